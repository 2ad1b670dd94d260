"""Deploying a market, one contract after the other, each with the nonce that its address was computed from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from protocol.chain.bindings import Deployment, load_artifact
from protocol.chain.blueprint import Blueprint, Creation, draw_up
from protocol.chain.connection import Connection
from protocol.chain.errors import DeploymentError, NonceTaken, OutOfGas
from protocol.chain.receipts import Receipt
from protocol.chain.transactions import Sender
from protocol.core.presets import Preset

Say = Callable[[str], None]


async def deploy(connection: Connection, sender: Sender, preset: Preset) -> Deployment:
    """Deploy all contracts and a worthless token from the sender's next nonces."""
    nonce = await next_nonce(connection, sender.address)
    blueprint = draw_up(connection.chain_id, sender.address, nonce, preset)
    return await carry_out(connection, sender, blueprint, await connection.block_number())


async def next_nonce(connection: Connection, address: str) -> int:
    """The nonce of the next transaction that is mined."""
    return int(await connection.w3.eth.get_transaction_count(to_checksum_address(address)))


async def carry_out(
    connection: Connection, sender: Sender, blueprint: Blueprint, block: int, say: Say = lambda line: None
) -> Deployment:
    """Create what is not there yet; what an earlier process of the same sender has sent is followed, never repeated.

    Raises DeploymentError when something else used one of the nonces: the addresses that the contracts know are then
    those of nothing. Any other error leaves the deployment to be gone on with.
    """
    receipts = {}
    for creation in blueprint.creations:
        receipt = await sender.mined(creation.purpose)
        news = "is there" if receipt else "created"
        receipts[creation.name] = receipt = receipt or await _create(connection, sender, creation)
        say(f"{creation.name} {news} at {creation.address}, {receipt.gas_used} gas, block {receipt.block_number}")
    created = [creation.name for creation in blueprint.creations]
    return Deployment(
        chain_id=connection.chain_id,
        block=block,
        preset=blueprint.preset.name,
        contracts=blueprint.contracts,
        deployer=sender.address,
        compiler=compiler_of(created[-1]),
        artifacts={name: artifact_hash(name) for name in created},
        transactions={name: receipts[name].hash for name in created},
    )


async def _create(connection: Connection, sender: Sender, creation: Creation) -> Receipt:
    artifact = load_artifact(creation.name)
    factory: Any = connection.w3.eth.contract(abi=artifact.abi, bytecode=artifact.bytecode)
    try:
        tx_hash = await sender.submit(creation.purpose, factory.constructor(*creation.arguments), nonce=creation.nonce)
        receipt = await sender.confirm(tx_hash)
    except (NonceTaken, OutOfGas) as error:
        reason = "its creation ran out of gas" if isinstance(error, OutOfGas) else "another transaction used it"
        raise DeploymentError(
            f"deploy {creation.name}: nonce {creation.nonce} of {sender.address} is gone: {reason}. The contracts "
            "created so far wait for one at an address that no longer can be: begin again with --start-over, "
            "and use the deployer's key nowhere else"
        ) from error
    if receipt.contract_address != creation.address:
        raise DeploymentError(f"deploy {creation.name}: it is at {receipt.contract_address}, not {creation.address}")
    return receipt


def artifact_hash(name: str) -> str:
    """keccak256 of the creation code without arguments."""
    return "0x" + keccak(hexstr=load_artifact(name).bytecode).hex()


def compiler_of(name: str) -> str:
    """The compiler's version, from the metadata that it appended to the code."""
    code = bytes.fromhex(load_artifact(name).deployed_bytecode[2:])
    _, mark, rest = code.rpartition(b"dsolcC")  # CBOR: a text of 4, "solc"; 3 bytes
    if not mark:
        raise DeploymentError(f"{name}: its code names no compiler")
    return "solc " + ".".join(str(part) for part in rest[:3])
