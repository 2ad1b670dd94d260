"""A chain that gives up the block of each step of a job's life, once its people have seen it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from node.ledger import CONTRACTS, snake
from protocol.chain.logs import Event, LogReader
from protocol.core.job import Job, JobStatus
from tests.helpers.market import World
from verifier.snapshot import Snapshot
from verifier.station import Station


class Way(Enum):
    """What becomes of a transaction whose block was given up."""

    GONE = "gone"
    LATER = "later"  # in another, later block


@dataclass
class Watcher:
    """A program that follows the chain: a node's service or an auditor's."""

    station: Station
    program: Any

    @property
    def me(self) -> str:
        return self.station.sender.address

    async def sees(self) -> list[Job]:
        """The open jobs as its next turn would see them; it reads openings as well."""
        snapshot: Snapshot = (await self.program._load()).snapshot
        for job in snapshot.jobs:
            for round in job.job.rounds:
                await self.station.inputs(job.job_id).openings_of(round)
        return _open(snapshot)

    async def is_told(self) -> list[Job]:
        """The same by a program that was never there before."""
        return _open(await self.station.loader().load())


def _open(snapshot: Snapshot) -> list[Job]:
    return [job.job for job in snapshot.jobs if job.job.status != JobStatus.CLOSED]


async def sent_since(world: World, first: int) -> list[str]:
    """The signed bytes of everything mined from block `first` on, in order."""
    chain = world.bench.chain
    found: list[str] = []
    for number in range(first, await world.bench.market.connection.block_number() + 1):
        block = await chain.rpc("eth_getBlockByNumber", hex(number), False)
        found += [await chain.rpc("eth_getRawTransactionByHash", hash) for hash in block["transactions"]]
    return found


async def send_again(world: World, raw: str) -> bool:
    """Whether these signed bytes succeed where they are mined now."""
    chain = world.bench.chain
    sent = await chain.rpc("eth_sendRawTransaction", raw)
    async with asyncio.timeout(20):
        while (receipt := await chain.rpc("eth_getTransactionReceipt", sent)) is None:
            await asyncio.sleep(0.02)
    return bool(receipt["status"] == "0x1")


@dataclass(frozen=True)
class GivenUp:
    """One reorganisation. `strayed`: who saw something else than the chain afterwards; `landed`: whether every
    transaction succeeded in its later block.
    """

    way: Way
    who: str
    steps: frozenset[str]
    strayed: tuple[str, ...]
    landed: bool


@dataclass
class Reorgs:
    """Every step that `wanted` names, first given up with its transaction, then moved to a later block."""

    world: World
    wanted: frozenset[str]
    watchers: list[Watcher] = field(default_factory=list)
    given_up: list[GivenUp] = field(default_factory=list)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    def watch(self, station: Station, program: Any) -> None:
        """Reorganise what this service does."""
        service = program.service
        original: Callable[[Any], Awaitable[None]] = service._execute

        async def execute(action: Any) -> None:
            async with self._one_at_a_time:
                await self.around(station.sender.address, lambda: original(action))

        service._execute = execute
        self.watchers.append(Watcher(station, program))

    async def around(self, who: str, act: Callable[[], Awaitable[Any]]) -> Any:
        """Act; where that was a step not yet given up in both ways, let it be seen and give it up."""
        chain = self.world.bench.chain
        before, fork = await self._block(), await chain.rpc("evm_snapshot")
        done = await act()
        events = await self._events(before + 1)
        steps = {event.name for event in events} & self.wanted
        way = next((way for way in Way if any((way, step) not in self.ways for step in steps)), None)
        if way is None:
            return done
        sent = await sent_since(self.world, before + 1)
        near = self._near(who)
        for watcher in near:
            await watcher.sees()
        assert await chain.rpc("evm_revert", fork)
        await chain.advance(1)
        landed = [await send_again(self.world, raw) for raw in sent] if way is Way.LATER else []
        told = [await watcher.is_told() for watcher in near[:1]]
        strayed = [watcher.me for watcher in near if [await watcher.sees()] != told]
        self.given_up.append(GivenUp(way, who, frozenset(steps), tuple(strayed), all(landed)))
        return done

    @property
    def ways(self) -> set[tuple[Way, str]]:
        return {(entry.way, step) for entry in self.given_up for step in entry.steps}

    def of(self, step: str) -> list[GivenUp]:
        return [entry for entry in self.given_up if step in entry.steps]

    def _near(self, who: str) -> list[Watcher]:
        """Who acted, and somebody who did not; all others see it in their own turns."""
        others = [watcher for watcher in self.watchers if watcher.me != who]
        return [*(watcher for watcher in self.watchers if watcher.me == who), *others[:1]]

    async def _block(self) -> int:
        return await self.world.bench.market.connection.block_number()

    async def _events(self, first: int) -> list[Event]:
        market, last = self.world.bench.market, await self._block()
        contracts = {name: getattr(market, snake(name)) for name in CONTRACTS}
        return await LogReader(market.connection.w3, contracts).by_number(first, last) if last >= first else []
