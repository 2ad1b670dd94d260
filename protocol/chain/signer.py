"""Signing: the only place that touches a private key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_account.signers.local import LocalAccount
from eth_account.typed_transactions.dynamic_fee_transaction import DynamicFeeTransaction
from hexbytes import HexBytes

from protocol.chain.fees import Fees

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
