"""gradmarket node: a device that earns."""

from __future__ import annotations

import asyncio
import functools
import time
from datetime import UTC, datetime, timedelta
from operator import or_
from pathlib import Path
from typing import cast

import click
import msgspec

from node.devnet.cheats import CHEATS
from node.operator.service import DRAIN, run_node
from node.session import Home, pass_home, run_async
from node.wallet import NotEnough, Wallet, open_wallet, ticket_size, unlock
from protocol.chain.keystore import read_address
from protocol.core.errors import GradmarketError
from protocol.core.operator import FOREVER, Scope
from protocol.core.times import duration, until
from protocol.core.units import format_tokens, parse_tokens
from protocol.runtime.errors import ConfigError
from protocol.runtime.logging import configure_logging
from protocol.store.lock import is_held


class NotRunning(GradmarketError):
    """A question to a node that is not there."""


SCOPES = {"train": Scope.TRAIN, "audit": Scope.AUDIT, "challenge": Scope.CHALLENGE}


def read_scopes(names: tuple[str, ...]) -> Scope | None:
    """The scopes of these names together; None when nobody named one."""
    return functools.reduce(or_, (SCOPES[name] for name in names)) if names else None


def read_expiry(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """A day counts until its last second; what names no zone is UTC."""
    if text is None or text == "never":
        return None if text is None else FOREVER
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}: expected a day such as 2030-06-30, a time, or never") from None
    if len(text) <= len("2030-06-30"):
        moment += timedelta(days=1, seconds=-1)
    second = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    if second <= 0:
        raise click.BadParameter(f"{text!r}: expected a time after 1970")
    return second


@click.group()
def node() -> None:
    """A device that earns."""


@node.command("init")
@click.option("--stake", "amount", default="0", help="Tokens of stake to have; what is missing is deposited.")
@click.option(
    "--ticket",
    default="0",
    help="Tokens of stake to have in tickets for panels; what is missing is enrolled, in whole tickets.",
)
@click.option("--payout", help="Who is credited; the owner by default.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(sorted(SCOPES)),
    help="What the operator may do, once for each; as registered, or all three for a new one, by default.",
)
@click.option(
    "--expires",
    "expiry",
    callback=read_expiry,
    help="Last day (2030-06-30) or second (2030-06-30T12:00:00, UTC) of the operator, or `never`; as registered, or "
    "never for a new one, by default.",
)
@pass_home
@run_async
async def init(
    home: Home, amount: str, ticket: str, payout: str | None, scopes: tuple[str, ...], expiry: int | None
) -> None:
    """Register the operator key with its owner, fill up the stake, enrol for panels; undoes `leave`. Safe to repeat."""
    config = home.config
    operator = unlock(config, "operator")
    async with open_wallet(home.path, config, unlock(config, "owner")) as purse:
        tickets = _whole_tickets(purse, parse_tokens(ticket))
        await purse.register(
            operator, payout or purse.address, config.serve.advertise, bytes(32), read_scopes(scopes), expiry
        )
        have = await purse.market.call(purse.market.stake_vault.functions.balanceOf(purse.address))
        missing = parse_tokens(amount) - have
        if missing > 0:
            await purse.deposit(missing)
            click.echo(f"stake: {format_tokens(missing)} tokens added to {format_tokens(have)}")
        await _enroll(purse, operator.address, tickets)
        await asyncio.to_thread((home.path / DRAIN).unlink, missing_ok=True)
        click.echo(
            f"operator {operator.address} of owner {purse.address} is ready: gradmarket --home {home.path} node run"
        )


def _whole_tickets(purse: Wallet, amount: int) -> int:
    """How many tickets so many wei make. Raises NotEnough rather than make none of some."""
    size = ticket_size(purse.market)
    if 0 < amount < size:
        raise NotEnough(f"--ticket: {format_tokens(amount)} tokens make no ticket, need {format_tokens(size)}")
    return amount // size


async def _enroll(purse: Wallet, operator: str, wanted: int) -> None:
    """Add what is missing to the tickets that are enrolled; say what there is."""
    live = sum(entry.exit_at == 0 for entry in await purse.market.tickets(purse.address))
    missing = wanted - live
    if missing > 0:
        await purse.enroll(operator, missing)
        live += missing
    if not live:
        return click.echo("tickets: none is enrolled, so no panel seat is served; add --ticket N for that")
    free = await purse.market.call(purse.market.stake_vault.functions.freeOf(purse.address))
    click.echo(
        f"tickets: {live} of {format_tokens(ticket_size(purse.market))} tokens, good for {live} seats at once or more; "
        f"{max(missing, 0)} added, {format_tokens(free)} tokens of stake stay free"
    )


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
    for remedy in found.get("remedies", ()):
        ends = until(remedy["until"], found["block_time"])
        bond = format_tokens(int(remedy["bond"]))
        click.echo(f"  unpaid: {remedy['about']}: `{remedy['command']}` by {ends}, bond {bond}")
    for key, reason in found["failures"].items():
        click.echo(f"  failed: {key}: {reason}")
    if not is_held(home.path / "state"):
        raise NotRunning(
            f"no node runs in {home.path}; its last turn was {duration(_age(path))} ago: gradmarket node run"
        )


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


@node.command("revoke")
@click.argument("operator", required=False)
@pass_home
@run_async
async def revoke(home: Home, operator: str | None) -> None:
    """Stop OPERATOR's key (this home's by default) from starting anything; what is open is finished. Safe to repeat."""
    config = home.config
    if operator is None and config.keys.operator is None:
        raise ConfigError("config.toml: keys.operator is missing; name the operator's address")
    address = operator or read_address(cast(Path, config.keys.operator))
    async with open_wallet(home.path, config, unlock(config, "owner")) as purse:
        await purse.revoke(address)
        click.echo(f"operator {address} is revoked")


def _age(path: Path) -> int:
    return int(time.time() - path.stat().st_mtime)
