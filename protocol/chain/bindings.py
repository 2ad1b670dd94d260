"""Contracts by name: the shipped ABIs and the address book of a deployment."""

from __future__ import annotations

import functools
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from eth_typing import ABI
from eth_utils.address import is_checksum_address
from web3 import AsyncWeb3
from web3.contract import AsyncContract

from protocol.chain.connection import Connection
from protocol.chain.errors import DeploymentError
from protocol.chain.revert import ErrorTable

FOREIGN_TOKEN = "Token"  # the address book's name of a token that the deployment did not create


class Artifact(msgspec.Struct, frozen=True, rename="camel"):
    """What the compiler made of one contract; bytecode is 0x hex, empty for an interface.

    `immutables`: where each of them stands in the deployed bytecode, 32 bytes at a time.
    """

    contract_name: str
    abi: list[dict[str, Any]]
    bytecode: str = "0x"
    deployed_bytecode: str = "0x"
    immutables: list[list[int]] = []


class Deployment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address book: where the contracts of one market live. `block` is the first block worth reading.

    The rest says how they came there: who deployed them (the guardian), the compiler, the keccak256 of each creation
    code, and the transactions. Programs that use a market need none of it; `deploy check` does.
    """

    chain_id: int
    block: int
    preset: str
    contracts: dict[str, str]
    deployer: str = ""
    compiler: str = ""
    artifacts: dict[str, str] = {}
    transactions: dict[str, str] = {}

    def address(self, name: str) -> str:
        """Raises DeploymentError when the book does not name the contract."""
        try:
            return self.contracts[name]
        except KeyError:
            known = ", ".join(sorted(self.contracts)) or "none"
            raise DeploymentError(f"the deployment names no contract {name!r}; it names {known}") from None

    def save(self, path: Path) -> None:
        data = msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_name(path.name + ".new")
        scratch.write_bytes(data)
        scratch.replace(path)

    @classmethod
    def load(cls, path: Path) -> Deployment:
        """Raises DeploymentError with the file and the fault."""
        try:
            book = msgspec.json.decode(path.read_bytes(), type=cls)
        except OSError as error:
            raise DeploymentError(f"deployment file {path}: {error.strerror}") from None
        except msgspec.DecodeError as error:
            raise DeploymentError(f"deployment file {path}: {error}") from None
        for name, address in book.contracts.items():
            if not is_checksum_address(address):
                raise DeploymentError(f"deployment file {path}: {name}: {address!r} is no checksummed address")
        return book


def shipped_contracts() -> list[str]:
    """The names of all contracts whose ABI is in this package."""
    folder = files("protocol.chain").joinpath("abi")
    if not folder.is_dir():
        return []
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


@functools.cache
def load_artifact(name: str) -> Artifact:
    """The shipped ABI and bytecode. Raises DeploymentError for a name that is not shipped."""
    resource = files("protocol.chain").joinpath("abi", f"{name}.json")
    if not resource.is_file():
        raise DeploymentError(f"no ABI of contract {name!r} is shipped; there are {', '.join(shipped_contracts())}")
    return msgspec.json.decode(resource.read_bytes(), type=Artifact)


@functools.cache
def shipped_errors() -> ErrorTable:
    """All custom errors of all shipped contracts: a vault's error may surface through a book's call."""
    return ErrorTable(load_artifact(name).abi for name in shipped_contracts())


def contract(connection: Connection, deployment: Deployment, name: str, abi_of: str | None = None) -> AsyncContract:
    """The contract as web3 sees it, to call and to send to (through a Sender). `abi_of` if its ABI has another name."""
    if deployment.chain_id != connection.chain_id:
        raise DeploymentError(
            f"the deployment is on chain id {deployment.chain_id}, the connection on {connection.chain_id}"
        )
    address = AsyncWeb3.to_checksum_address(deployment.address(name))
    abi: ABI = load_artifact(abi_of or name).abi  # type: ignore[assignment]
    return connection.w3.eth.contract(address=address, abi=abi)


async def check_deployed(connection: Connection, deployment: Deployment) -> None:
    """Raise DeploymentError unless there is code at every address of the book."""
    for name, address in deployment.contracts.items():
        if not await connection.w3.eth.get_code(AsyncWeb3.to_checksum_address(address)):
            raise DeploymentError(
                f"{name}: no contract at {address} on chain id {connection.chain_id}: "
                "the deployment file belongs to another chain, or the dev chain was reset"
            )
