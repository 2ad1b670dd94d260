"""Custom errors, whatever shape they arrive in.

Hardhat puts the bytes under error.data.data or error.data, anvil and the eth-tester bridge under error.data, and
web3.py hands on either as an exception's `data` or inside `rpc_response`. So: look for the bytes,
never parse messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from eth_utils.abi import abi_to_signature, filter_abi_by_type
from eth_utils.crypto import keccak
from web3.exceptions import ContractLogicError, Web3Exception, Web3RPCError

from protocol.chain.errors import ChainError, Refused, Reverted

# Panic codes of Solidity, "Panic via assert and Error via require" in its manual.
PANICS = {
    0x01: "assertion failed",
    0x11: "arithmetic overflow",
    0x12: "division by zero",
    0x21: "value is no member of its enum",
    0x22: "broken storage array",
    0x31: "pop of an empty array",
    0x32: "index out of bounds",
    0x41: "out of memory",
    0x51: "call of an empty function",
}
_BUILT_IN = (
    {"type": "error", "name": "Error", "inputs": [{"name": "reason", "type": "string"}]},
    {"type": "error", "name": "Panic", "inputs": [{"name": "code", "type": "uint256"}]},
)


class ErrorTable:
    """Every error of a set of ABIs, by its four-byte selector."""

    def __init__(self, abis: Iterable[Iterable[Any]]) -> None:
        self._by_selector: dict[bytes, Mapping[str, Any]] = {}
        for abi in (_BUILT_IN, *abis):
            for entry in filter_abi_by_type("error", cast(Any, abi)):
                self._by_selector[keccak(text=abi_to_signature(entry))[:4]] = cast(Mapping[str, Any], entry)

    def decode(self, data: bytes) -> Reverted:
        """Name what a contract returned when it reverted."""
        if not data:
            return Reverted("NoReason", {})
        entry = self._by_selector.get(data[:4])
        if entry is None:
            return Reverted("UnknownError", {"data": data}, data)
        inputs = entry["inputs"]
        try:
            values = decode([_type(item) for item in inputs], data[4:])
        except DecodingError:
            return Reverted("UnknownError", {"data": data}, data)
        names = [item.get("name") or f"arg{index}" for index, item in enumerate(inputs)]
        return self._named(entry["name"], dict(zip(names, values, strict=True)), data)

    @staticmethod
    def _named(name: str, args: dict[str, Any], data: bytes) -> Reverted:
        if name == "Panic":
            args = {"code": args["code"], "meaning": PANICS.get(args["code"], "unknown")}
        return Reverted(name, args, data)

    def explain(self, error: Web3Exception) -> ChainError:
        """web3's exception as ours: a revert with its name and arguments, or the node's own refusal."""
        response = getattr(error, "rpc_response", None) or {}
        found = revert_data(getattr(error, "data", None), response)
        if found is not None:
            return self.decode(found)
        if isinstance(error, ContractLogicError):
            return Reverted("Error", {"reason": rpc_message(error)}) if error.message else Reverted("NoReason", {})
        return Refused(f"the RPC node refused the request: {rpc_message(error)}")


def revert_data(*shapes: Any) -> bytes | None:
    """The first thing in these shapes that looks like returned error bytes; b'' for an empty revert."""
    for shape in shapes:
        for text in _strings(shape):
            text = text.removeprefix("Reverted ").strip()
            if text == "0x":
                return b""
            if text.startswith("0x") and len(text) >= 10 and (len(text) - 10) % 64 == 0:
                return bytes.fromhex(text[2:])
    return None


def rpc_message(error: BaseException) -> str:
    """What the node said, in one line."""
    if isinstance(error, Web3RPCError) and error.rpc_response:
        detail: Any = error.rpc_response.get("error")
        if isinstance(detail, dict) and detail.get("message"):
            return " ".join(str(detail["message"]).split())
    message = getattr(error, "message", None)
    return " ".join(str(message or error or type(error).__name__).split())


def _strings(shape: Any) -> Iterator[str]:
    """Strings that stand alone or under a key `data`, outermost first: a message may quote other hex."""
    if isinstance(shape, str):
        yield shape
    elif isinstance(shape, Mapping):
        for key in ("data", "error", "originalError"):
            if key in shape:
                yield from _strings(shape[key])


def _type(item: Mapping[str, Any]) -> str:
    """The ABI type with its tuples written out, as eth-abi wants it."""
    kind = str(item["type"])
    if not kind.startswith("tuple"):
        return kind
    return "(" + ",".join(_type(part) for part in item["components"]) + ")" + kind[len("tuple") :]
