"""Deploying a market: every contract is told the addresses of all, so they are computed before they exist."""

from __future__ import annotations

from typing import Any

import rlp
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from protocol.chain.bindings import Deployment, load_artifact
from protocol.chain.connection import Connection
from protocol.chain.errors import DeploymentError
from protocol.chain.transactions import Sender
from protocol.core.presets import Preset

ORDER = (
    "DevToken",
    "BlockhashBeacon",
    "StakeVault",
    "RewardLedger",
    "OperatorRegistry",
    "JobMarket",
    "RoundBook",
    "AuditCourt",
    "MarketLens",
)
_TABLE = ORDER[:-1]  # Types.sol: Addresses
_WITH_PRESET = ("JobMarket", "AuditCourt")
_BARE = ("DevToken", "BlockhashBeacon", "OperatorRegistry")


async def deploy(connection: Connection, sender: Sender, preset: Preset) -> Deployment:
    """Deploy all contracts from the sender's next nonces. Raises DeploymentError when an address came out different."""
    nonce = int(await connection.w3.eth.get_transaction_count(to_checksum_address(sender.address)))
    planned = {name: _address(sender.address, nonce + i) for i, name in enumerate(ORDER)}
    table = tuple(planned[name] for name in _TABLE)
    block = await connection.block_number()
    for name in ORDER:
        artifact = load_artifact(name)
        factory: Any = connection.w3.eth.contract(abi=artifact.abi, bytecode=artifact.bytecode)
        arguments = () if name in _BARE else (table, preset.as_tuple()) if name in _WITH_PRESET else (table,)
        receipt = await sender.submit_and_confirm(f"deploy:{name}", factory.constructor(*arguments))
        if receipt.contract_address != planned[name]:
            raise DeploymentError(
                f"deploy {name}: it is at {receipt.contract_address}, planned {planned[name]}: "
                "another program used the deployer's key; start again with a key of its own"
            )
    return Deployment(chain_id=connection.chain_id, block=block, preset=preset.name, contracts=planned)


def _address(sender: str, nonce: int) -> str:
    """Where CREATE puts the contract that `sender` deploys with `nonce` (yellow paper, section 7)."""
    return str(to_checksum_address(keccak(rlp.encode([bytes.fromhex(sender[2:]), nonce]))[12:]))
