"""Reading a live deployment back: is it what its address book and its preset say?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from hexbytes import HexBytes
from web3.exceptions import TransactionNotFound, Web3Exception

from protocol.chain.bindings import FOREIGN_TOKEN, Deployment, contract, load_artifact, shipped_errors
from protocol.chain.blueprint import (
    LENS,
    OWN_TOKEN,
    constructor_arguments,
    contract_fields,
    creation_code,
)
from protocol.chain.calls import read
from protocol.chain.connection import Connection
from protocol.chain.errors import DeploymentError, Refused, Reverted
from protocol.chain.preflight import check_token
from protocol.chain.receipts import find_receipt
from protocol.core.presets import PARAMETERS, Preset

WORD = 32


@dataclass(frozen=True)
class Comparison:
    """What the chain says beside what it should say. `unknown`: it could not be read, which is no reason to trust."""

    subject: str
    what: str
    have: str
    want: str
    unknown: bool = False

    @property
    def verdict(self) -> str:
        return "UNKNOWN" if self.unknown else "ok" if self.have == self.want else "DIFFERS"


async def inspect(
    connection: Connection, book: Deployment, preset: Preset, guardian: str | None = None, token: str | None = None
) -> AsyncIterator[Comparison]:
    """Compare everything: code, creation, parameters, addresses, guardian, token. The guardian is the book's deployer
    and the token the book's unless others are named. Raises DeploymentError when the book lacks a contract,
    ChainUnavailable.
    """
    beacon = next((name for name in book.contracts if name.endswith("Beacon")), "none")
    yield Comparison("book", "beacon", beacon, preset.beacon.kind)
    preset = replace(preset, beacon=replace(preset.beacon, kind=beacon))  # to go on with what there is
    fields = contract_fields(preset, OWN_TOKEN if OWN_TOKEN in book.contracts else FOREIGN_TOKEN)
    own = [name for name in (*fields.values(), LENS) if name != FOREIGN_TOKEN]
    for name in (*fields.values(), LENS):
        book.address(name)
    yield Comparison("book", "preset", book.preset, preset.name)
    for name in own:
        for look in (_code, _creation):
            try:
                yield await look(connection, book, preset, name)
            except DeploymentError as error:  # this program does not know such a contract
                yield Comparison(name, look.__name__.strip("_"), str(error), "", unknown=True)
    async for comparison in _parameters(connection, book, preset):
        yield comparison
    expected = {field: book.address(name) for field, name in fields.items()}
    expected["guardian"] = guardian or book.deployer
    expected["token"] = token or expected["token"]
    async for comparison in _addresses(connection, book, own, expected):
        yield comparison
    yield await _one(connection, book, "JobMarket", "postingAllowed", "yes")
    erc20 = await check_token(connection, book.address(fields["token"]))
    yield Comparison("token", "an ERC-20 with 18 decimals", "yes" if erc20.ok else erc20.facts, "yes")


async def _code(connection: Connection, book: Deployment, _: Preset, name: str) -> Comparison:
    """The deployed code, apart from immutables: those follow from the creation."""
    artifact = load_artifact(name)
    try:
        have = bytes(await connection.w3.eth.get_code(to_checksum_address(book.address(name))))
    except Web3Exception as error:
        raise shipped_errors().explain(error) from error
    places = [start for immutable in artifact.immutables for start in immutable]
    want = _masked(bytes.fromhex(artifact.deployed_bytecode[2:]), places)
    return Comparison(name, "code", _digest(_masked(have, places)), _digest(want))


async def _creation(connection: Connection, book: Deployment, preset: Preset, name: str) -> Comparison:
    """The transaction that created it carried our code and the arguments of this market: so nothing is unlike them,
    neither immutables nor what a constructor stored and nobody can read.
    """
    want = _digest(creation_code(name, constructor_arguments(name, book.contracts, preset)))
    tx_hash = book.transactions.get(name)
    if tx_hash is None:
        return Comparison(name, "creation", "the book names no transaction", want, unknown=True)
    try:
        transaction: Any = await connection.w3.eth.get_transaction(HexBytes(tx_hash))
        receipt = await find_receipt(connection.w3, tx_hash)
    except TransactionNotFound:
        receipt = None
    except Web3Exception as error:
        raise shipped_errors().explain(error) from error
    if receipt is None:
        return Comparison(name, "creation", f"the RPC node does not know {tx_hash}", want, unknown=True)
    if receipt.contract_address != book.address(name):
        return Comparison(name, "creation", f"{tx_hash} created {receipt.contract_address}", book.address(name))
    return Comparison(name, "creation", _digest(bytes(transaction["input"])), want)


async def _parameters(connection: Connection, book: Deployment, preset: Preset) -> AsyncIterator[Comparison]:
    """Every parameter as the market holds it."""
    market = contract(connection, book, "JobMarket")
    try:
        values = list(await read(market.functions.preset()))
    except (Reverted, Refused):
        values = []
    for number, name in enumerate(PARAMETERS):
        have = shown(values[number]) if number < len(values) else "no answer"
        yield Comparison("preset", name, have, shown(preset.parameter(name)))


async def _addresses(
    connection: Connection, book: Deployment, names: list[str], expected: dict[str, str]
) -> AsyncIterator[Comparison]:
    """Every contract that shows an address of the market shows the book's."""
    for name in names:
        for part in load_artifact(name).abi:
            plain = part["type"] == "function" and not part["inputs"] and len(part["outputs"]) == 1
            if plain and part["outputs"][0]["type"] == "address" and part["name"] in expected:
                yield await _one(connection, book, name, part["name"], expected[part["name"]])


async def _one(connection: Connection, book: Deployment, name: str, getter: str, want: str) -> Comparison:
    try:
        have = shown(await read(contract(connection, book, name).functions[getter]()))
    except (Reverted, Refused):
        have = "no answer"
    return Comparison(name, getter, have, want)


def shown(value: Any) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _masked(code: bytes, places: list[int]) -> bytes:
    masked = bytearray(code)
    for start in places:
        masked[start : start + WORD] = bytes(len(masked[start : start + WORD]))
    return bytes(masked)


def _digest(code: bytes) -> str:
    return f"{len(code)} bytes, keccak256 {keccak(code).hex()}" if code else "nothing"
