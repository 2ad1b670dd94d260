"""Reading from a contract."""

from __future__ import annotations

from typing import Any

from web3.contract.async_contract import AsyncContractFunction
from web3.exceptions import Web3Exception
from web3.types import BlockIdentifier

from protocol.chain.bindings import shipped_errors
from protocol.chain.revert import ErrorTable


async def read(call: AsyncContractFunction, block: BlockIdentifier = "latest", errors: ErrorTable | None = None) -> Any:
    """Call a view function at a block. Raises Reverted with the contract's reason, Refused, ChainUnavailable.

    For a snapshot, read everything at one block number: two reads of "latest" may see two states.
    """
    try:
        return await call.call(block_identifier=block)
    except Web3Exception as error:
        raise (errors or shipped_errors()).explain(error) from error
