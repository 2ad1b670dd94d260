"""Logs as events with names and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from eth_typing import HexStr
from eth_utils.abi import event_abi_to_log_topic, filter_abi_by_type
from hexbytes import HexBytes
from web3 import AsyncWeb3
from web3.contract import AsyncContract
from web3.exceptions import LogTopicError, Web3Exception
from web3.types import FilterParams

from protocol.chain.connection import Head
from protocol.chain.errors import Refused
from protocol.chain.revert import rpc_message


@dataclass(frozen=True)
class Event:
    """One log. `key` is its name for ever: the same log in another block after a reorg is another event."""

    contract: str
    name: str
    args: dict[str, Any]
    block_number: int
    block_hash: str
    tx_hash: str
    log_index: int

    @property
    def key(self) -> tuple[str, int]:
        return self.block_hash, self.log_index


class LogReader:
    """Reads and decodes the logs of a fixed set of contracts; logs of events that their ABI lacks are skipped."""

    def __init__(self, w3: AsyncWeb3[Any], contracts: Mapping[str, AsyncContract]) -> None:
        self._w3 = w3
        self._names = {contract.address.lower(): name for name, contract in contracts.items()}
        self._addresses = [contract.address for contract in contracts.values()]
        self._decoders = {
            (contract.address.lower(), topic): contract.get_event_by_topic(HexStr("0x" + topic.hex()))
            for contract in contracts.values()
            for topic in {event_abi_to_log_topic(entry) for entry in filter_abi_by_type("event", contract.abi)}
        }

    async def by_number(self, first: int, last: int) -> list[Event]:
        """Logs of the blocks first to last, both included. Raises Refused, e.g. when the range is too long."""
        return await self._read({"fromBlock": first, "toBlock": last})

    async def by_hash(self, block: Head) -> list[Event]:
        """Logs of exactly this block: a number could mean another block a moment later."""
        return await self._read({"blockHash": HexBytes(block.hash)})

    async def _read(self, where: dict[str, Any]) -> list[Event]:
        query = cast(FilterParams, where | {"address": self._addresses})
        try:
            logs: Any = await self._w3.eth.get_logs(query)
        except Web3Exception as error:
            raise Refused(f"the RPC node refused to list events: {rpc_message(error)}") from error
        events = [event for log in logs if (event := self._decode(log)) is not None]
        return sorted(events, key=lambda event: (event.block_number, event.log_index))

    def _decode(self, log: Any) -> Event | None:
        address = str(log["address"]).lower()
        if not log["topics"] or log.get("removed"):
            return None
        decoder = self._decoders.get((address, bytes(log["topics"][0])))
        if decoder is None:
            return None
        try:
            data: Any = decoder.process_log(log)
        except LogTopicError:
            return None  # same signature, other indexed fields: not an event of this ABI
        return Event(
            contract=self._names[address],
            name=data["event"],
            args=dict(data["args"]),
            block_number=int(log["blockNumber"]),
            block_hash=log["blockHash"].to_0x_hex(),
            tx_hash=log["transactionHash"].to_0x_hex(),
            log_index=int(log["logIndex"]),
        )
