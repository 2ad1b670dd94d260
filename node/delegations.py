"""What an owner signs away from the chain, as a file, and how anyone brings it there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from eth_account.signers.local import LocalAccount
from eth_utils.address import is_checksum_address

from node.wallet import Wallet
from protocol.chain.market import Market
from protocol.chain.signer import sign_delegation, sign_registration, sign_revocation
from protocol.core.delegation import Delegation, Domain
from protocol.core.errors import GradmarketError
from protocol.core.operator import Scope
from protocol.core.times import until

Count = Annotated[int, msgspec.Meta(ge=0)]
Bits = Annotated[int, msgspec.Meta(ge=1, le=int(Scope.ALL))]


class BadDelegation(GradmarketError):
    """A signed file that cannot be used here."""


class SignedDelegation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="delegation", tag_field="kind"):
    """An owner's grant; times are block times."""

    chain_id: int
    registry: str
    owner: str
    operator: str
    payout: str
    scopes: Bits
    expiry: Count
    nonce: Count
    deadline: Count
    signature: str


class SignedRevocation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="revocation", tag_field="kind"):
    """An owner's end of a grant."""

    chain_id: int
    registry: str
    owner: str
    operator: str
    nonce: Count
    deadline: Count
    signature: str


Signed = SignedDelegation | SignedRevocation


def grant(owner: LocalAccount, domain: Domain, given: Delegation, nonce: int, deadline: int) -> SignedDelegation:
    """Needs no chain: the owner says which of its signatures this is."""
    signature = sign_delegation(owner, domain, given, nonce, deadline).hex()
    people = (given.owner, given.operator, given.payout)
    return SignedDelegation(
        domain.chain_id, domain.registry, *people, int(given.scopes), given.expiry, nonce, deadline, signature
    )


def take_back(owner: LocalAccount, domain: Domain, operator: str, nonce: int, deadline: int) -> SignedRevocation:
    """Needs no chain either."""
    signature = sign_revocation(owner, domain, operator, nonce, deadline).hex()
    return SignedRevocation(domain.chain_id, domain.registry, owner.address, operator, nonce, deadline, signature)


def load(path: Path) -> Signed:
    """Raises BadDelegation with the file and the fault."""
    try:
        signed: Signed = msgspec.json.decode(path.read_bytes(), type=Signed)
        bytes.fromhex(signed.signature)
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise BadDelegation(f"{path}: {error}") from None
    payout = signed.payout if isinstance(signed, SignedDelegation) else signed.owner
    wrong = [a for a in (signed.registry, signed.owner, signed.operator, payout) if not is_checksum_address(a)]
    if wrong:
        raise BadDelegation(f"{path}: {wrong[0]!r} is no checksummed address")
    return signed


async def check(market: Market, signed: Signed) -> None:
    """Raise BadDelegation for another market, another nonce or too late a day: before anything is sent."""
    here = Domain(market.connection.chain_id, market.operator_registry.address)
    if (signed.chain_id, signed.registry) != (here.chain_id, here.registry):
        raise BadDelegation(
            f"it was signed for chain {signed.chain_id} and registry {signed.registry}, "
            f"here are {here.chain_id} and {here.registry}"
        )
    nonce = int(await market.call(market.operator_registry.functions.nonceOf(signed.owner)))
    if signed.nonce != nonce:
        raise BadDelegation(f"it was signed with nonce {signed.nonce}, the owner's next is {nonce}: sign it again")
    now = await market.connection.now()
    if signed.deadline < now:
        raise BadDelegation(f"it could be used until {until(signed.deadline, now)}: sign it again")


async def submit(wallet: Wallet, signed: Signed, operator: LocalAccount | None) -> None:
    """Bring it to the chain. A delegation needs its operator's key, which consents; a revocation needs no key."""
    await check(wallet.market, signed)
    registry = wallet.market.operator_registry
    by_owner = (signed.deadline, bytes.fromhex(signed.signature))
    if isinstance(signed, SignedRevocation):
        call = registry.functions.revokeFor(signed.operator, by_owner)
        await wallet.sender.submit_and_confirm(f"revoke:{signed.operator}:{signed.nonce}", call)
        return
    if operator is None or operator.address != signed.operator:
        have = operator.address if operator else "none"
        raise BadDelegation(f"it is for operator {signed.operator}, keys.operator is {have}")
    nonce = await wallet.market.call(registry.functions.nonceOf(operator.address))
    if operator.address == signed.owner:
        raise BadDelegation(f"{operator.address} is owner and operator in one: `gradmarket node init` does it")
    domain = Domain(signed.chain_id, signed.registry)
    consent = sign_registration(operator, domain, signed.owner, signed.payout, nonce, signed.deadline)
    message = (signed.owner, signed.operator, signed.payout, signed.scopes, signed.expiry)
    call = registry.functions.registerFor(message, by_owner, (signed.deadline, consent))
    await wallet.sender.submit_and_confirm(f"register:{signed.operator}:{signed.nonce}", call)
