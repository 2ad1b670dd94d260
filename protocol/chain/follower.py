"""Polling follower: every event of some contracts exactly once per fork, with a cursor that survives a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec
from web3.contract import AsyncContract
from web3.exceptions import BlockNotFound, Web3Exception

from protocol.chain.connection import Connection, Head
from protocol.chain.errors import ChainUnavailable, Refused
from protocol.chain.logs import Event, LogReader

MAX_RANGE = 2_000  # blocks asked for at once; halved on any refusal, as providers differ
TAIL_BLOCKS = 64  # read block by block where the chain tells no finalised block


class CursorStore(Protocol):
    """Durable memory of a position."""

    async def load(self, name: str) -> bytes | None: ...

    async def save(self, name: str, value: bytes) -> None: ...


@dataclass(frozen=True)
class Rollback:
    """Blocks above `to_block` were given up by the chain: forget the events that came from them."""

    to_block: int


class _Seen(msgspec.Struct, frozen=True, array_like=True):
    number: int
    hash: str


class _Position(msgspec.Struct):
    """`seen`: the newest blocks that were read, oldest first; the last one is where the follower stands."""

    next_block: int
    seen: list[_Seen]


class Follower:
    """`poll` reads on, `acknowledge` makes the position durable: a crash between the two repeats events, loses none.

    Finalised blocks are read in ranges by number. Newer ones block by block by hash, each checked to be the child of
    the one before. A provider may lag or go backwards: that alone rolls nothing back, only another hash does.
    """

    def __init__(
        self,
        connection: Connection,
        contracts: Mapping[str, AsyncContract],
        start_block: int,
        cursors: CursorStore,
        *,
        name: str = "follower",
        confirmations: int = 0,
    ) -> None:
        self._connection, self._cursors = connection, cursors
        self._logs = LogReader(connection.w3, contracts)
        self._start, self._confirmations = start_block, confirmations
        self._name = f"{name}@{connection.key}"
        self._range = MAX_RANGE
        self._position: _Position | None = None

    async def poll(self) -> list[Event | Rollback]:
        """What is new, in order; an empty list when nothing is. Large gaps arrive over several calls."""
        known = await self._load()
        position = _Position(known.next_block, list(known.seen))  # a failed poll must not move the follower
        rollback = await self._check_fork(position)
        found: list[Event | Rollback] = [] if rollback is None else [rollback]
        target = await self._connection.block_number() - self._confirmations
        final = min(await self._finalised(target), target)
        while not found and position.next_block <= final:
            found += await self._read_range(position, final)
            if not found:  # nothing can be lost by keeping this step
                self._position = _Position(position.next_block, list(position.seen))
        if position.next_block > final:
            found += await self._read_tail(position, target)
        self._position = position
        return found

    async def acknowledge(self) -> None:
        """Everything that poll returned so far was taken care of."""
        if self._position is not None:
            await self._cursors.save(self._name, msgspec.json.encode(self._position))

    async def follow(self, interval: float = 1.0) -> AsyncIterator[Event | Rollback]:
        """All events from the cursor on, without end; a batch is acknowledged once its last item was taken."""
        while True:
            batch = await self.poll()
            for item in batch:
                yield item
            await self.acknowledge()
            if not batch:
                await asyncio.sleep(interval)

    @property
    def next_block(self) -> int:
        """The first block that was not read yet."""
        return self._start if self._position is None else self._position.next_block

    async def _load(self) -> _Position:
        if self._position is None:
            data = await self._cursors.load(self._name)
            stored = None if data is None else msgspec.json.decode(data, type=_Position)
            self._position = stored or _Position(self._start, [])
        return self._position

    async def _finalised(self, head: int) -> int:
        try:
            return (await self._connection.head("finalized")).number
        except (Web3Exception, Refused):
            return head - TAIL_BLOCKS  # a chain without that notion

    async def _check_fork(self, position: _Position) -> Rollback | None:
        """Step back to the newest block that the chain still has under its number."""
        kept = list(position.seen)
        while kept:
            try:
                if (await self._connection.head(kept[-1].number)).hash == kept[-1].hash:
                    break
            except BlockNotFound:
                if len(kept) == len(position.seen):
                    return None  # the provider is behind: wait for it
            kept.pop()
        if len(kept) == len(position.seen):
            return None
        to_block = kept[-1].number if kept else self._before(position.seen[0].number)
        position.seen, position.next_block = kept, to_block + 1
        return Rollback(to_block)

    def _before(self, number: int) -> int:
        """Deeper than memory: read the last finalised-looking stretch again as well."""
        return max(self._start, number - TAIL_BLOCKS) - 1

    async def _read_range(self, position: _Position, final: int) -> list[Event | Rollback]:
        first = position.next_block
        while True:
            last = min(final, first + self._range - 1)
            try:
                events = await self._logs.by_number(first, last)
            except (Refused, ChainUnavailable) as error:
                # Providers differ in what they refuse and how; some just do not answer a long range in time.
                smallest, self._range = self._range == 1, max(1, self._range // 2)
                if smallest or isinstance(error, ChainUnavailable):
                    raise
                continue
            end = await self._connection.head(last)
            position.seen, position.next_block = [_Seen(end.number, end.hash)], last + 1
            self._range = min(MAX_RANGE, self._range * 2)
            return list(events)

    async def _read_tail(self, position: _Position, target: int) -> list[Event | Rollback]:
        found: list[Event | Rollback] = []
        while position.next_block <= target:
            try:
                block = await self._connection.head(position.next_block)
            except BlockNotFound:
                break  # the provider went backwards: the next poll reads on
            if not _is_child(block, position.seen):
                break  # a reorg in this very moment: the next poll finds the fork
            found += await self._logs.by_hash(block)
            position.seen = [*position.seen[-TAIL_BLOCKS:], _Seen(block.number, block.hash)]
            position.next_block += 1
        return found


def _is_child(block: Head, seen: list[_Seen]) -> bool:
    return not seen or seen[-1].hash == block.parent
