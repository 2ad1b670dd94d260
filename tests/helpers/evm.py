"""The real contracts in an EVM inside this process: about 50 000 calls a second, and time is an argument.

Artifacts are the exported ones, or the compiler's where the export is older than the contracts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyrevm
from eth_abi.abi import encode
from eth_utils.abi import collapse_if_tuple
from eth_utils.crypto import keccak

ROOT = Path(__file__).parents[2]
EXPORTED = ROOT / "protocol" / "chain" / "abi"
COMPILED = ROOT / "hardhat" / "artifacts" / "contracts"
DEPLOYER = "0x" + "de" * 20
BOOKS = {
    "vault": "StakeVault",
    "ledger": "RewardLedger",
    "registry": "OperatorRegistry",
    "market": "JobMarket",
    "rounds": "RoundBook",
    "tickets": "TicketBook",
    "court": "AuditCourt",
    "checkpoints": "CheckpointCourt",
}
WITH_PRESET = ("market", "tickets", "court", "checkpoints")
NAMES = {"token": "DevToken", "beacon": "BlockhashBeacon", **BOOKS}
_REVERT = re.compile(r"Revert \{ gas_used: \d+, output: 0x([0-9a-f]*) \}")


class Reverted(Exception):
    """A call that the contracts refuse: the error's name and the bytes of its facts."""

    def __init__(self, name: str, facts: bytes) -> None:
        super().__init__(name, facts.hex())
        self.name = name
        self.facts = facts


@cache
def artifact(name: str) -> Mapping[str, Any]:
    """The ABI and the creation code of a contract."""
    is_current = (EXPORTED / "TicketBook.json").exists()
    path = EXPORTED / f"{name}.json" if is_current else next(COMPILED.rglob(f"{name}.json"))
    return dict(json.loads(path.read_text()))


def _signature(entry: Mapping[str, Any]) -> str:
    return f"{entry['name']}({','.join(_types(entry))})"


def _types(entry: Mapping[str, Any]) -> list[str]:
    return [collapse_if_tuple(parameter) for parameter in entry["inputs"]]


@cache
def functions(contract: str) -> Mapping[str, tuple[bytes, list[str]]]:
    """Selector and argument types of each function, by name."""
    entries = [entry for entry in artifact(NAMES[contract])["abi"] if entry["type"] == "function"]
    return {entry["name"]: (keccak(text=_signature(entry))[:4], _types(entry)) for entry in entries}


@cache
def errors() -> Mapping[bytes, str]:
    """The name of each error, by selector; those of the terms' library and of the compiler too."""
    named = {keccak(text="Panic(uint256)")[:4]: "Panic"}
    for name in (*NAMES.values(), "TermsLib"):
        for entry in artifact(name)["abi"]:
            if entry["type"] == "error":
                named[keccak(text=_signature(entry))[:4]] = entry["name"]
    return named


def create_address(sender: str, nonce: int) -> str:
    """Where a contract will be: keccak of the RLP of sender and nonce (1 to 127)."""
    return "0x" + keccak(b"\xd6\x94" + bytes.fromhex(sender[2:]) + bytes([nonce]))[12:].hex()


class Chain:
    """One deployment."""

    def __init__(self, preset: Sequence[int], time: int, height: int) -> None:
        self.evm = pyrevm.EVM(spec_id="CANCUN")
        self._views: dict[tuple[Any, ...], bytes] = {}
        self.move_to(time, height)
        self.address = {"token": self._deploy("DevToken"), "beacon": self._deploy("BlockhashBeacon")}
        nonce = self.evm.basic(DEPLOYER).nonce
        for i, book in enumerate(BOOKS):
            self.address[book] = create_address(DEPLOYER, nonce + i)
        table = encode(["address"] * 10, list(self.address.values()))
        for book, name in BOOKS.items():
            arguments = table + encode(["uint256"] * len(preset), preset) if book in WITH_PRESET else table
            at = self._deploy(name, b"" if book == "registry" else arguments)
            assert at == self.address[book], "an address that was predicted"

    def _deploy(self, name: str, arguments: bytes = b"") -> str:
        code = bytes.fromhex(artifact(name)["bytecode"].removeprefix("0x"))
        return str(self.evm.deploy(DEPLOYER, code + arguments)).lower()

    def move_to(self, time: int, height: int) -> None:
        """The block that the next calls are in."""
        self.evm.set_block_env(pyrevm.BlockEnv(number=height, timestamp=time))

    def hash_of(self, height: int) -> bytes:
        """The hash of an earlier block."""
        return bytes(self.evm.block_hash(height))

    def send(self, caller: str, contract: str, function: str, args: Sequence[Any]) -> bytes:
        """A transaction. Raises Reverted."""
        selector, types = functions(contract)[function]
        return self._call(caller, contract, selector + encode(types, args))

    def view(self, contract: str, function: str, *args: Any) -> bytes:
        """The bytes that a view answers. The question is encoded once."""
        key = (contract, function, *args)
        data = self._views.get(key)
        if data is None:
            selector, types = functions(contract)[function]
            data = self._views[key] = selector + encode(types, args)
        return bytes(self.evm.message_call(DEPLOYER, self.address[contract], data, is_static=True))

    def _call(self, caller: str, contract: str, data: bytes) -> bytes:
        try:
            return bytes(self.evm.message_call(caller, self.address[contract], data))
        except RuntimeError as error:
            match = _REVERT.search(str(error))
            if match is None:
                raise
            answer = bytes.fromhex(match[1])
            raise Reverted(errors().get(answer[:4], answer[:4].hex()), answer[4:]) from None
