"""gradmarket node: a device that earns."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import click
import msgspec

from node.devnet.cheats import CHEATS
from node.operator.service import DRAIN, run_node
from node.session import Home, pass_home, run_async
from node.wallet import Wallet, open_wallet, unlock
from protocol.core.errors import GradmarketError
from protocol.core.units import format_tokens, parse_tokens
from protocol.runtime.logging import configure_logging
from protocol.store.lock import is_held


class NotRunning(GradmarketError):
    """A question to a node that is not there."""


@click.group()
def node() -> None:
    """A device that earns."""


@node.command("init")
@click.option("--stake", "amount", default="0", help="Tokens of stake to have; what is missing is deposited.")
@click.option("--ticket", default="0", help="Tokens of stake to lock as a ticket for panels, if none is enrolled.")
@click.option("--payout", help="Who is credited; the owner by default.")
@pass_home
@run_async
async def init(home: Home, amount: str, ticket: str, payout: str | None) -> None:
    """Register the operator key with its owner, fill up the stake, enrol for panels; undoes `leave`. Safe to repeat."""
    config = home.config
    operator = unlock(config, "operator")
    async with open_wallet(home.path, config, unlock(config, "owner")) as purse:
        await purse.register(operator, payout or purse.address, config.serve.advertise, bytes(32))
        have = await purse.market.call(purse.market.stake_vault.functions.balanceOf(purse.address))
        missing = parse_tokens(amount) - have
        if missing > 0:
            await purse.deposit(missing)
            click.echo(f"stake: {format_tokens(missing)} tokens added to {format_tokens(have)}")
        await _enroll(purse, operator.address, parse_tokens(ticket))
        await asyncio.to_thread((home.path / DRAIN).unlink, missing_ok=True)
        click.echo(
            f"operator {operator.address} of owner {purse.address} is ready: gradmarket --home {home.path} node run"
        )


async def _enroll(purse: Wallet, operator: str, amount: int) -> None:
    """One enrolled ticket is enough; say what there is."""
    live = [entry for entry in await purse.market.tickets(purse.address) if entry.exit_at == 0]
    if live:
        held = ", ".join(f"{entry.number} of {format_tokens(entry.amount)}" for entry in live)
        click.echo(f"ticket: {held} tokens is enrolled already, nothing was added")
    elif amount:
        await purse.enroll(operator, amount)
    else:
        click.echo("ticket: none is enrolled, so no panel seat is served; add --ticket N for that")


@node.command("run")
@click.option("--cheat", type=click.Choice(sorted(CHEATS)), help="Train falsely, to see it caught (development only).")
@click.option("--quiet", is_flag=True, help="Log to HOME/log/node.jsonl only.")
@pass_home
@run_async
async def run(home: Home, cheat: str | None, quiet: bool) -> None:
    """Earn: claim, train, commit, attest, and judge others, until Ctrl-C."""
    configure_logging(home.path / "log" / "node.jsonl", console=not quiet)
    config = home.config
    account = unlock(config, "operator")
    if cheat is None:
        await run_node(home.path, config, account)
    else:
        await run_node(
            home.path,
            config,
            account,
            compute_module="node.devnet.cheats",
            compute_env={"GRADMARKET_CHEAT": cheat},
        )


@node.command("status")
@click.option("--json", "as_json", is_flag=True, help="The whole status file.")
@pass_home
def status(home: Home, as_json: bool) -> None:
    """What the running node does, and why not more."""
    path = home.path / "status.json"
    if not path.exists():
        raise NotRunning(f"{path} does not exist: no node has run here; start one with `gradmarket node run`")
    data = path.read_bytes()
    if as_json:
        click.echo(data.decode())
        return
    found = msgspec.json.decode(data)
    click.echo(f"operator {found['operator']}  block {found['block']}  turns {found['turns']}")
    click.echo(f"  doing: {', '.join(found['doing']) or 'nothing'}")
    if found["idle"]:
        click.echo(f"  no new claim: {found['idle']}")
    for key, reason in found["failures"].items():
        click.echo(f"  failed: {key}: {reason}")
    if not is_held(home.path / "state"):
        raise NotRunning(f"no node runs in {home.path}; its last turn was {_age(path)} s ago: gradmarket node run")


@node.command("leave")
@pass_home
@run_async
async def leave(home: Home) -> None:
    """Take no new claims, announce the exit of the tickets; the node stops when nothing is open. Safe to repeat."""
    config = home.config
    owner = unlock(config, "owner")
    await asyncio.to_thread((home.path / DRAIN).touch)
    async with open_wallet(home.path, config, owner) as purse:
        locked = await purse.exit_tickets()
        click.echo(f"leaving: the node stops when its claims are settled; {locked} tickets are still locked")


def _age(path: Path) -> int:
    return int(time.time() - path.stat().st_mtime)
