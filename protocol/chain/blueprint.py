"""Which contracts a market consists of, in which order they are created, where, and with which arguments.

Every contract is told the addresses of all, so they are computed before anything exists. What a constructor takes is
read from its ABI: `Addresses` and `Preset` are filled in by the names of their fields, plain arguments come from the
preset's beacon.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import rlp
from eth_abi.abi import encode
from eth_utils.abi import collapse_if_tuple
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from protocol.chain.bindings import FOREIGN_TOKEN, load_artifact
from protocol.chain.errors import DeploymentError
from protocol.core.presets import Preset

OWN_TOKEN = "DevToken"
LENS = "MarketLens"
_BOOKS = {  # field of Types.sol: Addresses -> contract
    "vault": "StakeVault",
    "ledger": "RewardLedger",
    "registry": "OperatorRegistry",
    "market": "JobMarket",
    "rounds": "RoundBook",
    "tickets": "TicketBook",
    "court": "AuditCourt",
    "checkpoints": "CheckpointCourt",
}


@dataclass(frozen=True)
class Creation:
    """One contract to create: its code with the encoded arguments goes out with exactly this nonce."""

    name: str
    nonce: int
    address: str
    arguments: tuple[Any, ...]
    code: bytes

    @property
    def purpose(self) -> str:
        """Names the transaction in the sender's journal; a nonce is used once, so the name is."""
        return f"deploy:{self.name} with nonce {self.nonce}"


@dataclass(frozen=True)
class Blueprint:
    """A whole market before it exists. `contracts`: by name, with a token that is there already."""

    chain_id: int
    deployer: str
    preset: Preset
    contracts: dict[str, str]
    creations: tuple[Creation, ...]

    @property
    def fingerprint(self) -> str:
        """Changes with any byte that would be deployed."""
        return "0x" + keccak(b"".join(keccak(creation.code) for creation in self.creations)).hex()


def draw_up(chain_id: int, deployer: str, nonce: int, preset: Preset, token: str | None = None) -> Blueprint:
    """The market that `deployer` would create from this nonce on; without a token it gets a worthless one."""
    fields = contract_fields(preset, OWN_TOKEN if token is None else FOREIGN_TOKEN)
    names = [name for name in (*fields.values(), LENS) if name != FOREIGN_TOKEN]
    contracts: dict[str, str] = {FOREIGN_TOKEN: to_checksum_address(token)} if token else {}
    contracts |= {name: created_at(deployer, nonce + i) for i, name in enumerate(names)}
    creations = []
    for i, name in enumerate(names):
        arguments = constructor_arguments(name, contracts, preset)
        code = creation_code(name, arguments)
        creations.append(Creation(name, nonce + i, contracts[name], arguments, code))
    return Blueprint(chain_id, deployer, preset, contracts, tuple(creations))


def contract_fields(preset: Preset, token: str) -> dict[str, str]:
    """The fields of `Addresses` in its order, which is the order of deployment, with the contracts they name."""
    known = {"token": token, "beacon": preset.beacon.kind, **_BOOKS}
    fields = [part["name"] for part in _components("StakeVault", "struct Addresses")]
    if unknown := [name for name in fields if name not in known]:
        raise DeploymentError(f"Addresses has the fields {', '.join(unknown)}, which this program cannot fill in")
    return {name: known[name] for name in fields}


def constructor_arguments(name: str, contracts: Mapping[str, str], preset: Preset) -> tuple[Any, ...]:
    """What the constructor of `name` is given. Raises DeploymentError when the preset lacks one."""
    return tuple(_argument(name, parameter, contracts, preset) for parameter in _parameters(name))


def creation_code(name: str, arguments: tuple[Any, ...]) -> bytes:
    """The data of the transaction that creates the contract."""
    return bytes.fromhex(load_artifact(name).bytecode[2:]) + encoded_arguments(name, arguments)


def encoded_arguments(name: str, arguments: tuple[Any, ...]) -> bytes:
    types = [collapse_if_tuple(parameter) for parameter in _parameters(name)]
    return encode(types, arguments)


def created_at(deployer: str, nonce: int) -> str:
    """Where CREATE puts the contract that `deployer` creates with `nonce` (yellow paper, section 7)."""
    return str(to_checksum_address(keccak(rlp.encode([bytes.fromhex(deployer[2:]), nonce]))[12:]))


def _argument(name: str, parameter: dict[str, Any], contracts: Mapping[str, str], preset: Preset) -> Any:
    kind = parameter.get("internalType", "")
    fields = [part["name"] for part in parameter.get("components", ())]
    if kind == "struct Addresses":
        token = FOREIGN_TOKEN if FOREIGN_TOKEN in contracts else OWN_TOKEN
        of_field = contract_fields(preset, token)
        return tuple(contracts[of_field[field]] for field in fields)
    if kind == "struct Preset":
        return tuple(preset.parameter(field) for field in fields)
    label = parameter["name"].strip("_")
    if name != preset.beacon.kind or label not in preset.beacon.arguments:
        named = ", ".join(preset.beacon.arguments) or "none"
        raise DeploymentError(
            f"preset {preset.name}: the constructor of {name} takes {label} ({parameter['type']}); "
            f"the preset's beacon {preset.beacon.kind} has the arguments: {named}"
        )
    return preset.beacon.arguments[label].value


def _parameters(name: str) -> list[dict[str, Any]]:
    constructor = next((part for part in load_artifact(name).abi if part["type"] == "constructor"), {})
    return list(constructor.get("inputs", ()))


@functools.cache
def _components(name: str, struct: str) -> tuple[dict[str, Any], ...]:
    found: Iterator[dict[str, Any]] = (part for part in _parameters(name) if part.get("internalType") == struct)
    return tuple(next(found)["components"])
