"""gradmarket demo and devnet."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from eth_utils.address import is_address, to_checksum_address

from node.commands.ledger import make_console
from node.devnet.chain import BACKENDS, CHAIN_ID, dev_accounts, devchain
from node.devnet.cheats import CHEATS
from node.session import run_async
from protocol.chain.connection import connect
from protocol.chain.deploy import deploy
from protocol.chain.market import Market
from protocol.chain.transactions import Sender
from protocol.core.presets import load_preset
from protocol.core.units import parse_tokens
from protocol.runtime.loop import stopping_on_signals
from protocol.store.database import open_store
from protocol.store.outbox import Outbox

if TYPE_CHECKING:
    from node.devnet.stage import DemoPlan

backend_option = click.option("--backend", type=click.Choice(BACKENDS), default="auto", show_default=True)


@click.group(invoke_without_command=True)
@click.option("--quick", is_flag=True, help="Three rounds, no baselines.")
@click.option(
    "--cheat",
    "cheats",
    type=click.Choice(sorted(CHEATS)),
    multiple=True,
    default=("extrapolate",),
    show_default=True,
    help="How a cheat cheats; up to three times.",
)
@click.option("--sample", type=click.FloatRange(0, 1), help="What the auditor checks of its own accord.")
@click.option("--challenge-seconds", type=click.IntRange(1), help="How long an accepted claim can be challenged.")
@click.option("--audit-rate-bps", type=click.IntRange(1, 10_000), help="What the court samples past probation.")
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Folder that takes the run.",
)
@backend_option
@click.pass_context
def demo(
    ctx: click.Context,
    quick: bool,
    cheats: tuple[str, ...],
    sample: float | None,
    challenge_seconds: int | None,
    audit_rate_bps: int | None,
    runs: Path,
    backend: str,
) -> None:
    """Run the whole market on this machine: train, verify, pay, slash."""
    if ctx.invoked_subcommand is not None:
        return
    from node.devnet.stage import CHEATERS, QUICK, DemoPlan

    if len(cheats) > len(CHEATERS):
        raise click.UsageError(f"--cheat: at most {len(CHEATERS)} times, have {len(cheats)}")
    plan = replace(QUICK if quick else DemoPlan(), cheats=tuple(zip(CHEATERS, cheats, strict=False)), backend=backend)
    options: dict[str, Any] = {
        "sample": sample,
        "challenge_seconds": challenge_seconds,
        "audit_rate_bps": audit_rate_bps,
    }
    plan = replace(plan, **{name: value for name, value in options.items() if value is not None})
    asyncio.run(_run(plan, runs))


async def _run(plan: DemoPlan, runs: Path) -> None:
    from node.devnet.demo import play
    from node.devnet.report import write_report
    from node.devnet.screen import Screen
    from node.devnet.stage import new_run_folder, set_stage

    console = make_console()
    with Screen(console) as screen:
        async with set_stage(new_run_folder(runs.absolute()), plan, screen.say) as stage:
            screen.follow(stage)
            outcome = await play(stage, screen.show)
            screen.stop()
            await write_report(stage, outcome, console)


@demo.command("prove")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@run_async
async def prove(folder: Path) -> None:
    """Start the chain of a finished run again from its saved state and recompute every account from it."""
    import json

    from node.commands.ledger import show
    from node.ledger import check_books, keep_books, read_events
    from protocol.chain.bindings import Deployment

    missing = [name for name in ("names.json", "deployment.json", "chain") if not (folder / name).exists()]
    if missing:
        raise click.BadParameter(f"{folder} has no {missing[0]}: expected the folder of a run", param_hint="FOLDER")
    names = json.loads((folder / "names.json").read_text())
    async with devchain(folder / "chain") as chain, await connect([chain.url], chain.chain_id) as connection:
        market = Market(connection, Deployment.load(folder / "deployment.json"))
        books = keep_books(await read_events(market))
        await check_books(market, books)
        show(make_console(), books, names, gas=False)


@click.group()
def devnet() -> None:
    """A chain of your own with the contracts deployed."""


@devnet.command("up")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), default=Path("devnet"), show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8545, show_default=True)
@backend_option
@run_async
async def up(folder: Path, port: int, backend: str) -> None:
    """Start a chain, deploy the contracts with the dev preset, and run until Ctrl-C. Keeps its state in FOLDER."""
    folder = folder.absolute()
    book = folder / "deployment.json"
    stop = asyncio.Event()
    async with devchain(folder / "chain", port=port, backend=backend, block_time=1) as chain:
        async with await connect([chain.url], CHAIN_ID) as connection, open_store(folder / "bank") as database:
            account = dev_accounts()[0]
            if not book.exists():
                sender = Sender(connection, account, Outbox(database, connection.key, account.address))
                (await deploy(connection, sender, load_preset("dev"))).save(book)
        click.echo(f"chain {CHAIN_ID} at {chain.url} ({chain.backend}), deployment {book}")
        click.echo(f"funds: gradmarket devnet faucet ADDRESS --folder {folder}")
        with stopping_on_signals(stop):
            await stop.wait()


@devnet.command("faucet")
@click.argument("address")
@click.option("--tokens", default="1000", show_default=True)
@click.option("--rpc", default="http://127.0.0.1:8545", show_default=True)
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), default=Path("devnet"), show_default=True)
@run_async
async def faucet(address: str, tokens: str, rpc: str, folder: Path) -> None:
    """Give ADDRESS a coin for gas and test tokens."""
    from node.devnet.people import give_coins
    from protocol.chain.bindings import Deployment

    amount = parse_tokens(tokens)
    if not is_address(address):
        raise click.BadParameter(f"{address!r}: expected an address, 0x and 40 hex digits", param_hint="ADDRESS")
    address = to_checksum_address(address)
    deployment = Deployment.load(folder / "deployment.json")
    async with await connect([rpc], CHAIN_ID) as connection, open_store(folder / "faucet") as database:
        account = dev_accounts()[1]
        bank = Sender(connection, account, Outbox(database, connection.key, account.address))
        market = Market(connection, deployment)
        await give_coins(bank, address)
        await bank.submit_and_confirm(f"mint:{address}", market.dev_token.functions.mint(address, amount))
        click.echo(f"{address} has one more coin and {tokens} more test tokens")
