"""What became of a transaction, and why a contract refused one that was mined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from hexbytes import HexBytes
from web3 import AsyncWeb3
from web3.exceptions import TransactionIndexingInProgress, TransactionNotFound, Web3Exception
from web3.types import TxParams, TxReceipt

from protocol.chain.errors import ChainError, OutOfGas, Refused, Reverted
from protocol.chain.revert import ErrorTable


@dataclass(frozen=True)
class Receipt:
    """A mined transaction. `raw` is web3's, for contract.events.X().process_receipt(receipt.raw)."""

    hash: str
    block_number: int
    block_hash: str
    gas_used: int
    fee_paid: int  # wei
    ok: bool
    contract_address: str | None
    raw: TxReceipt


async def find_receipt(w3: AsyncWeb3[Any], tx_hash: str) -> Receipt | None:
    """The receipt as this node knows it now; None may also mean that the node lags."""
    try:
        raw = await w3.eth.get_transaction_receipt(HexBytes(tx_hash))
    except (TransactionNotFound, TransactionIndexingInProgress):
        return None
    if raw.get("blockNumber") is None:
        return None
    return Receipt(
        hash=tx_hash,
        block_number=int(raw["blockNumber"]),
        block_hash=raw["blockHash"].to_0x_hex(),
        gas_used=int(raw["gasUsed"]),
        fee_paid=int(raw["gasUsed"]) * int(raw.get("effectiveGasPrice", 0)),
        ok=int(raw["status"]) == 1,
        contract_address=cast("str | None", raw.get("contractAddress")),
        raw=raw,
    )


async def why_reverted(w3: AsyncWeb3[Any], receipt: Receipt, errors: ErrorTable) -> Reverted:
    """Run a failed transaction again as a call: on the state before its block, then on the state after it.

    Neither is exactly the state it met, so the reason may be gone: then UnknownReason.
    """
    try:
        tx: Any = await w3.eth.get_transaction(HexBytes(receipt.hash))
    except TransactionNotFound:
        return Reverted("UnknownReason", {"hash": receipt.hash})
    if receipt.gas_used >= int(tx["gas"]):
        return OutOfGas(int(tx["gas"]))
    call: dict[str, Any] = {key: tx[key] for key in ("from", "value", "gas")} | {"data": tx["input"]}
    if tx.get("to"):
        call["to"] = tx["to"]
    for block in (receipt.block_number - 1, receipt.block_number):
        try:
            await w3.eth.call(cast(TxParams, call), block)
        except Web3Exception as error:
            found: ChainError = errors.explain(error)
            if isinstance(found, Reverted):
                return found
            if not isinstance(found, Refused):
                raise found from error
    return Reverted("UnknownReason", {"hash": receipt.hash})
