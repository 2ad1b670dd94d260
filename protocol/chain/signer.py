"""Signing: the only place that touches a private key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_account.typed_transactions.dynamic_fee_transaction import DynamicFeeTransaction
from eth_typing import Hash32
from hexbytes import HexBytes

from protocol.chain.fees import Fees
from protocol.core.delegation import Delegation, Domain, delegation_digest, registration_digest, revocation_digest

_CALL_FIELDS = ("chainId", "nonce", "gas", "to", "value", "data", "accessList", "type")


@dataclass(frozen=True)
class Signed:
    """One signed transaction: `raw` is what goes over the wire, `hash` its 0x name for ever."""

    hash: str
    raw: bytes
    fees: Fees


def fee_fields(fees: Fees) -> dict[str, int]:
    return {"maxFeePerGas": fees.max_fee, "maxPriorityFeePerGas": fees.tip}


def sign(account: LocalAccount, fields: dict[str, Any], fees: Fees) -> Signed:
    """Sign an EIP-1559 transaction; `fields` has everything but the fees and the sender."""
    unsigned = {key: value for key, value in fields.items() if key != "from"} | fee_fields(fees)
    signed = account.sign_transaction(unsigned)
    return Signed(signed.hash.to_0x_hex(), bytes(signed.raw_transaction), fees)


def sign_again(account: LocalAccount, raw: bytes, fees: Fees) -> Signed:
    """The same call and nonce with other fees, from the signed bytes alone."""
    old = DynamicFeeTransaction.from_bytes(HexBytes(raw)).as_dict()
    return sign(account, {key: old[key] for key in _CALL_FIELDS}, fees)


def sign_digest(account: LocalAccount, digest: bytes) -> bytes:
    """Sign 32 bytes as they are: for requests between peers, whose digests cannot pass for a transaction's."""
    return bytes(account.unsafe_sign_hash(Hash32(digest)).signature)


def recover_digest(digest: bytes, signature: bytes) -> str:
    """The address that signed 32 bytes; raises whatever the library does for a malformed signature."""
    return str(Account._recover_hash(digest, signature=signature))


def sign_registration(
    account: LocalAccount, domain: Domain, owner: str, payout: str, nonce: int, deadline: int
) -> bytes:
    """An operator key's consent to work for an owner (OperatorRegistry.register)."""
    return sign_digest(account, registration_digest(domain, owner, account.address, payout, nonce, deadline))


def sign_delegation(account: LocalAccount, domain: Domain, delegation: Delegation, nonce: int, deadline: int) -> bytes:
    """An owner key's grant to an operator, for anyone to submit (OperatorRegistry.registerFor)."""
    return sign_digest(account, delegation_digest(domain, delegation, nonce, deadline))


def sign_revocation(account: LocalAccount, domain: Domain, operator: str, nonce: int, deadline: int) -> bytes:
    """An owner key's end of a delegation, for anyone to submit (OperatorRegistry.revokeFor)."""
    return sign_digest(account, revocation_digest(domain, account.address, operator, nonce, deadline))
