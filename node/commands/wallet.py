"""gradmarket wallet, stake and rewards."""

from __future__ import annotations

import re
from pathlib import Path

import click

from node.session import Home, pass_home, run_async
from node.wallet import open_market, open_wallet, unlock
from protocol.chain.keystore import SCRYPT_ITERATIONS, create_key, import_key, read_address, read_password
from protocol.core.times import until
from protocol.core.units import format_tokens, parse_some_or_all, parse_tokens

password_option = click.option(
    "--password-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the password, readable by its owner alone (chmod 600); asked for otherwise.",
)
fast_option = click.option("--fast-key", is_flag=True, help="A cheap key derivation, for development keys only.")


def _key_path(home: Home, name: str) -> Path:
    if not re.fullmatch(r"[\w-][\w.-]*", name):
        raise click.BadParameter(f"{name!r}: expected letters, digits, '-', '_' and '.'", param_hint="NAME")
    return home.path / "keys" / f"{name}.json"


@click.group()
def wallet() -> None:
    """Keys at rest (keystore version 3)."""


@wallet.command("new")
@click.argument("name")
@password_option
@fast_option
@pass_home
def new(home: Home, name: str, password_file: Path | None, fast_key: bool) -> None:
    """Make a new key: HOME/keys/NAME.json."""
    path = _key_path(home, name)
    password = read_password(password_file, f"New password for {name}: ")
    click.echo(f"{create_key(path, password, _iterations(fast_key))}  {path}")


@wallet.command("import")
@click.argument("name")
@click.option(
    "--key-file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File with the private key in hex.",
)
@password_option
@fast_option
@pass_home
def import_(home: Home, name: str, key_file: Path, password_file: Path | None, fast_key: bool) -> None:
    """Encrypt an existing private key. It is read from a file, never from the command line."""
    path = _key_path(home, name)
    text = read_password(key_file).strip().removeprefix("0x")
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        raise click.BadParameter(f"{key_file}: expected a private key of 64 hex digits") from None
    password = read_password(password_file, f"New password for {name}: ")
    click.echo(f"{import_key(path, secret, password, _iterations(fast_key))}  {path}")


@wallet.command("show")
@pass_home
def show(home: Home) -> None:
    """List the keys of this home."""
    paths = sorted((home.path / "keys").glob("*.json"))
    if not paths:
        click.echo(f"no keys in {home.path / 'keys'}: make one with `gradmarket wallet new owner`", err=True)
    for path in paths:
        click.echo(f"{path.stem:12} {read_address(path)}")


def _iterations(fast: bool) -> int:
    return 2**12 if fast else SCRYPT_ITERATIONS


@click.group()
def stake() -> None:
    """The owner's stake."""


@stake.command("deposit")
@click.argument("amount")
@pass_home
@run_async
async def deposit(home: Home, amount: str) -> None:
    """Add AMOUNT tokens to the owner's stake."""
    config = home.config
    async with open_wallet(home.path, config, unlock(config, "owner")) as purse:
        await purse.deposit(parse_tokens(amount))
        click.echo(f"deposited {amount} tokens")


@stake.command("withdraw")
@click.argument("amount", required=False)
@pass_home
@run_async
async def withdraw(home: Home, amount: str | None) -> None:
    """Take AMOUNT tokens of unlocked stake back; all of it without an amount."""
    config = home.config
    async with open_wallet(home.path, config, unlock(config, "owner")) as purse:
        await purse.withdraw_stake(parse_some_or_all(amount))
        click.echo("withdrawn")


@stake.command("show")
@pass_home
@run_async
async def show_stake(home: Home) -> None:
    """Deposited, locked and free stake, and the tickets."""
    config = home.config
    address = _owner_address(home)
    async with open_market(config) as market:
        vault, now = market.stake_vault.functions, await market.connection.now()
        total, locked = await market.call(vault.balanceOf(address)), await market.call(vault.lockedOf(address))
        click.echo(f"owner {address}")
        amounts = {"deposited": total, "locked": locked, "free": total - locked}
        click.echo("  " + "  ".join(f"{name} {format_tokens(amount)}" for name, amount in amounts.items()))
        for ticket in await market.tickets(address):
            exits = f"exits {until(ticket.exit_at, now)}" if ticket.exit_at else "enrolled"
            state = "released" if ticket.released else exits
            used = f", {format_tokens(ticket.used)} on open seats" if ticket.used else ""
            click.echo(f"  ticket {ticket.number}: {format_tokens(ticket.amount)} {state}{used}")


@click.group()
def rewards() -> None:
    """What was earned."""


@rewards.command("show")
@click.option("--account", help="Any account; the owner's by default.")
@pass_home
@run_async
async def show_rewards(home: Home, account: str | None) -> None:
    """The credit that can be withdrawn."""
    async with open_market(home.config) as market:
        address = account or _owner_address(home)
        click.echo(f"{address} {format_tokens(await market.call(market.reward_ledger.functions.creditOf(address)))}")


@rewards.command("withdraw")
@click.argument("amount", required=False)
@click.option("--account", help="Whose credit, sent to that account; the owner's by default.")
@pass_home
@run_async
async def withdraw_rewards(home: Home, amount: str | None, account: str | None) -> None:
    """Withdraw AMOUNT tokens of credit; all of it without an amount."""
    config = home.config
    async with open_wallet(home.path, config, unlock(config, "owner")) as purse:
        sent = await purse.withdraw_rewards(account or purse.address, parse_some_or_all(amount))
        click.echo(f"withdrew {format_tokens(sent)} tokens")


def _owner_address(home: Home) -> str:
    path = home.config.keys.owner
    if path is None:
        raise click.UsageError("config.toml: keys.owner is missing")
    return read_address(path)
