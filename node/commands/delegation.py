"""gradmarket delegation: an owner that signs and sends nothing."""

from __future__ import annotations

import time
from pathlib import Path

import click
import msgspec
from eth_utils.address import is_address, to_checksum_address

from node.commands.node import SCOPES, read_expiry, read_scopes
from node.delegations import Signed, grant, load, take_back
from node.delegations import submit as bring
from node.session import Home, pass_home, run_async
from node.wallet import BadAddress, open_wallet, unlock
from protocol.chain.bindings import Deployment
from protocol.core.delegation import Delegation, Domain
from protocol.core.operator import FOREVER, Scope

DAY = 86_400
nonce_option = click.option(
    "--nonce", type=click.IntRange(0), default=0, show_default=True, help="Signatures that the owner used so far."
)
days_option = click.option(
    "--valid-days", type=click.IntRange(1, 3650), default=7, show_default=True, help="How long it can be submitted."
)
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The signed file; nothing in it is secret.",
)


@click.group()
def delegation() -> None:
    """An owner that signs and sends nothing: its key never meets the chain."""


@delegation.command("sign")
@click.argument("operator")
@click.option("--payout", help="Who is credited; the owner by default.")
@click.option(
    "--scope", "scopes", multiple=True, type=click.Choice(sorted(SCOPES)), help="What it may do; all three by default."
)
@click.option("--expires", "expiry", callback=read_expiry, help="As in `node init`; never by default.")
@nonce_option
@days_option
@out_option
@pass_home
def sign(
    home: Home,
    operator: str,
    payout: str | None,
    scopes: tuple[str, ...],
    expiry: int | None,
    nonce: int,
    valid_days: int,
    out: Path,
) -> None:
    """Let OPERATOR's address work for this home's owner. Needs the owner's key and no chain."""
    owner = unlock(home.config, "owner")
    given = Delegation(
        owner.address,
        _address(operator),
        _address(payout or owner.address),
        read_scopes(scopes) or Scope.ALL,
        FOREVER if expiry is None else expiry,
    )
    _write(out, grant(owner, _domain(home), given, nonce, _deadline(valid_days)))


@delegation.command("revoke")
@click.argument("operator")
@nonce_option
@days_option
@out_option
@pass_home
def revoke(home: Home, operator: str, nonce: int, valid_days: int, out: Path) -> None:
    """Stop OPERATOR's key from starting anything. Needs the owner's key and no chain."""
    owner = unlock(home.config, "owner")
    _write(out, take_back(owner, _domain(home), _address(operator), nonce, _deadline(valid_days)))


@delegation.command("submit")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@pass_home
@run_async
async def submit(home: Home, file: Path) -> None:
    """Bring a signed FILE to the chain, with this home's operator: it consents, and pays the gas."""
    signed = load(file)
    operator = unlock(home.config, "operator")
    async with open_wallet(home.path, home.config, operator) as purse:
        await bring(purse, signed, operator)
        entry = await purse.market.operator(signed.operator)
        click.echo(f"operator {entry.address} of owner {entry.owner} is {'revoked' if entry.revoked else 'registered'}")


def _address(text: str) -> str:
    if not is_address(text):
        raise BadAddress(f"{text!r}: expected an address, 0x and 40 hex digits")
    return str(to_checksum_address(text))


def _domain(home: Home) -> Domain:
    """From the files alone: nobody is asked."""
    return Domain(home.config.chain.id, Deployment.load(home.config.chain.deployment).address("OperatorRegistry"))


def _deadline(days: int) -> int:
    return int(time.time()) + days * DAY


def _write(out: Path, signed: Signed) -> None:
    out.write_bytes(msgspec.json.format(msgspec.json.encode(signed), indent=1) + b"\n")
    click.echo(f"signed with nonce {signed.nonce}: bring {out} to the operator, `gradmarket delegation submit {out}`")
