"""gradmarket deploy: a market on a chain of your choice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from eth_utils.address import is_address, to_checksum_address

from node.commands.wallet import password_option
from node.deployment.bundle import CHECKOUT, CONTRACTS, INPUT, write_bundle
from node.deployment.launch import NotReady, Order, look, put_up
from node.deployment.report import check_lines, check_table, plan_lines, plan_table
from node.deployment.undertaking import book_path
from node.session import Home, pass_home, run_async
from protocol.chain.bindings import Deployment
from protocol.chain.connection import Connection, connect
from protocol.chain.fees import GWEI, FeePolicy
from protocol.chain.inspect import inspect
from protocol.chain.keystore import load_key, read_address, read_password
from protocol.core.errors import GradmarketError
from protocol.core.presets import load_preset, preset_names

F = TypeVar("F", bound=Callable[..., Any])


class DeploymentDiffers(GradmarketError):
    """A live deployment is not what its address book and its preset say."""


def _address(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not is_address(value):
        raise click.BadParameter(f"{value!r}: expected an address, 0x and 40 hex digits")
    return value and to_checksum_address(value)


preset_option = click.option("--preset", "preset_name", type=click.Choice(preset_names()), required=True)
rpc_option = click.option("--rpc", "urls", multiple=True, help="RPC address, several times for several; else config's.")
book_option = click.option(
    "--book",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Address book; HOME/deploy/CHAIN ID.json by default.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")


def deployment_options(function: F) -> F:
    """What a plan and a run have in common: a run does what the plan with the same options said."""
    for option in reversed(
        (
            preset_option,
            click.option("--token", callback=_address, help="The market's ERC-20; preset dev can make one."),
            rpc_option,
            click.option("--chain-id", type=click.IntRange(1), help="The chain that it must be."),
            click.option(
                "--key",
                type=click.Path(path_type=Path, dir_okay=False),
                help="Key file of the deployer, who becomes the guardian; HOME/keys/deployer.json by default.",
            ),
            click.option("--max-fee-gwei", type=click.IntRange(1), default=500, show_default=True),
            book_option,
        )
    ):
        function = option(function)
    return function


@click.group()
def deploy() -> None:
    """A market on a chain: plan it, put it up, check it, publish its sources."""


@deploy.command("plan")
@deployment_options
@json_option
@pass_home
@run_async
async def plan(home: Home, as_json: bool, **options: Any) -> None:
    """A dry run: addresses, gas, cost, every parameter and its reason, and whether chain, key and token suit.

    Sends nothing and asks for no password; exit code 1 if a check fails.
    """
    async with _open(home, options["urls"], options["chain_id"]) as connection:
        order = _order(home, connection, read_address(_key(home, options["key"])), options)
        blueprint, survey = await look(connection, order)
    if as_json:
        click.echo(json.dumps(plan_table(blueprint, survey), indent=2))
    else:
        click.echo("\n".join(plan_lines(blueprint, survey)))
    if not survey.ok:
        raise NotReady(survey)


@deploy.command("run")
@deployment_options
@click.option("--start-over", is_flag=True, help="Abandon an unfinished deployment and begin with the next nonces.")
@password_option
@pass_home
@run_async
async def run(home: Home, start_over: bool, password_file: Path | None, **options: Any) -> None:
    """Create the contracts and write their address book. Killed at any point, the same command goes on."""
    key = _key(home, options["key"])
    async with _open(home, options["urls"], options["chain_id"]) as connection:
        account = load_key(key, read_password(password_file, f"Password of {key.name}: "))
        order = _order(home, connection, account.address, options)
        book = await put_up(connection, account, home.path, order, start_over, click.echo)
    click.echo(f"preset {book.preset} on chain id {book.chain_id}: address book {order.book}")
    click.echo(f"now: gradmarket --home {home.path} deploy check --book {order.book}")


@deploy.command("check")
@book_option
@rpc_option
@click.option("--preset", "preset_name", type=click.Choice(preset_names()), help="What it should be; else the book's.")
@click.option("--guardian", callback=_address, help="Who may stop new jobs; the book's deployer by default.")
@click.option("--token", callback=_address, help="The market's ERC-20; the book's by default.")
@json_option
@pass_home
@run_async
async def check(
    home: Home,
    book: Path | None,
    urls: tuple[str, ...],
    preset_name: str | None,
    guardian: str | None,
    token: str | None,
    as_json: bool,
) -> None:
    """Read a live deployment back: code, creation, parameters, addresses, guardian. Exit code 1 on any difference."""
    async with _open(home, urls, None) as connection:
        path = book or book_path(home.path, connection.chain_id)
        deployment = Deployment.load(path)
        if deployment.chain_id != connection.chain_id:
            raise DeploymentDiffers(f"{path} is of chain id {deployment.chain_id}, the RPC's is {connection.chain_id}")
        preset = load_preset(preset_name or deployment.preset)
        comparisons = [row async for row in inspect(connection, deployment, preset, guardian, token)]
    if as_json:
        click.echo(json.dumps(check_table(comparisons), indent=2))
    else:
        click.echo("\n".join(check_lines(comparisons)))
    if wrong := [f"{row.subject} {row.what}" for row in comparisons if row.verdict != "ok"]:
        raise DeploymentDiffers(f"{path}: {len(wrong)} of {len(comparisons)} are not as expected: {', '.join(wrong)}")
    if not as_json:
        click.echo(f"{len(comparisons)} comparisons, all ok")


@deploy.command("verify-bundle")
@click.option("--book", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Address book.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to write to.")
@click.option(
    "--checkout",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=CHECKOUT,
    show_default="this program's",
    help="Source tree with a full build of the contracts.",
)
def verify_bundle(book: Path, out: Path, checkout: Path) -> None:
    """Write what Etherscan and Sourcify ask for: the compiler's standard input, and each contract's arguments."""
    deployment = Deployment.load(book)
    rows = write_bundle(deployment, load_preset(deployment.preset), checkout, out)
    for row in rows:
        click.echo(f"{row['address']}  {row['contract']}  {len(row['arguments']) // 2} bytes of arguments")
    click.echo(f"{out / INPUT} for all of them, arguments in {out / CONTRACTS}, compiler {rows[0]['compiler']}")


@contextlib.asynccontextmanager
async def _open(home: Home, urls: tuple[str, ...], chain_id: int | None) -> AsyncIterator[Connection]:
    chain = home.config.chain if not urls else None
    wanted = chain_id if chain is None or chain_id else chain.id
    async with await connect(chain.rpc if chain else urls, wanted) as connection:
        yield connection


def _key(home: Home, key: Path | None) -> Path:
    return key or home.path / "keys" / "deployer.json"


def _order(home: Home, connection: Connection, deployer: str, options: dict[str, Any]) -> Order:
    preset = load_preset(options["preset_name"])
    if options["token"] is None and preset.name != "dev":
        raise click.UsageError(f"--token is missing: only preset dev makes a token of its own, not {preset.name}")
    return Order(
        preset=preset,
        token=options["token"],
        deployer=deployer,
        policy=FeePolicy(max_fee_cap=options["max_fee_gwei"] * GWEI),
        chain_was_named=options["chain_id"] is not None,
        book=options["book"] or book_path(home.path, connection.chain_id),
    )
