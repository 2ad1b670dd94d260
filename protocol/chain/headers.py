"""The header of a block in RLP, as its hash covers it, from what JSON-RPC tells of the block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import rlp
from eth_utils.crypto import keccak
from web3.types import RPCEndpoint

from protocol.chain.connection import Connection
from protocol.chain.errors import Refused

BYTES, NUMBER = "bytes", "number"
HEX = "0123456789abcdefABCDEF"
# The order of the header, with the upgrade of Ethereum that appended each of the later fields.
FIELDS = (
    ("parentHash", BYTES),
    ("sha3Uncles", BYTES),
    ("miner", BYTES),
    ("stateRoot", BYTES),
    ("transactionsRoot", BYTES),
    ("receiptsRoot", BYTES),
    ("logsBloom", BYTES),
    ("difficulty", NUMBER),
    ("number", NUMBER),
    ("gasLimit", NUMBER),
    ("gasUsed", NUMBER),
    ("timestamp", NUMBER),
    ("extraData", BYTES),
    ("mixHash", BYTES),
    ("nonce", BYTES),
    ("baseFeePerGas", NUMBER),  # London
    ("withdrawalsRoot", BYTES),  # Shanghai
    ("blobGasUsed", NUMBER),  # Cancun
    ("excessBlobGas", NUMBER),
    ("parentBeaconBlockRoot", BYTES),
    ("requestsHash", BYTES),  # Prague
)
ALWAYS = 15  # the first fields, which every header has
BESIDE = frozenset({"hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals"})  # not in the header


class HeaderUnknown(Refused):
    """A header that this program cannot encode."""


async def header_of(connection: Connection, height: int) -> bytes:
    """The header of a block in RLP; its keccak256 is the block's hash.

    Raises HeaderUnknown, naming the fields that are new, Refused when the node does not show the block.
    """
    method = RPCEndpoint("eth_getBlockByNumber")
    # Not through eth.get_block: its middleware moves extraData, and new fields would be lost.
    answer: Any = await connection.w3.provider.make_request(method, [hex(height), False])
    block = answer.get("result")
    if not isinstance(block, dict):
        raise Refused(f"the RPC node does not show block {height}")
    return encode_header(block)


def encode_header(block: Mapping[str, Any]) -> bytes:
    """The header of a block as `eth_getBlockByNumber` gives it. Raises HeaderUnknown unless it hashes to `hash`."""
    names = [name for name, _ in FIELDS]
    given = [name for name in names if block.get(name) is not None]
    if given != names[: len(given)] or len(given) < ALWAYS:
        missing = ", ".join(name for name in names[: max(ALWAYS, len(given))] if name not in given)
        raise HeaderUnknown(f"a block without the header fields {missing}")
    try:
        encoded: bytes = rlp.encode([_item(block[name], kind) for name, kind in FIELDS[: len(given)]])
        wanted = _bytes(block.get("hash"))
    except ValueError as error:
        raise HeaderUnknown(f"a block of another form: {error}") from None
    if keccak(encoded) != wanted:
        more = ", ".join(sorted(str(name) for name in block if name not in BESIDE and name not in names)) or "none"
        raise HeaderUnknown(
            f"the header of block {int(block['number'], 16)} does not give its hash: the chain's headers have fields "
            f"that this version does not know (unknown in the answer: {more[:200]})"
        )
    return encoded


def _item(value: Any, kind: str) -> bytes:
    if kind == BYTES:
        return _bytes(value)
    number = int(_hex(value), 16)
    return number.to_bytes((number.bit_length() + 7) // 8)


def _bytes(value: Any) -> bytes:
    return bytes.fromhex(_hex(value))


def _hex(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith("0x") or value[2:].strip(HEX):
        raise ValueError(f"expected 0x and hex digits, have {str(value)[:80]!r}")
    return value[2:]
