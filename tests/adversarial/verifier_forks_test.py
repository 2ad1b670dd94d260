"""Openings come from events, and events of a fork that the chain gave up open nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from protocol.core.commitment import Opening
from tests.helpers.market import Node, World, open_nodes, open_world

pytestmark = pytest.mark.asyncio(loop_scope="module")
GIVEN_UP = Opening(b"\1" * 32, b"\2" * 32, b"\3" * 32)
KEPT = Opening(b"\4" * 32, b"\5" * 32, b"\6" * 32)


@dataclass
class Fork:
    """A claim that was committed in two ways: in blocks that were given up, and then in those that stayed."""

    world: World
    job: bytes
    reader: Node
    operator: str

    async def send(self, call: object) -> None:
        """From the operator's key, without a Sender: a Sender would follow its transaction through the fork.

        Gas without an estimate: a call may cost more in the second in which it is mined than in that of its estimate.
        """
        chain = self.world.bench.chain
        data = call._encode_transaction_data()  # type: ignore[attr-defined]
        to = self.world.bench.market.round_book.address
        sending = {"from": self.operator, "to": to, "data": data, "gas": hex(1_000_000)}
        sent = await chain.rpc("eth_sendTransaction", sending)
        while (receipt := await chain.rpc("eth_getTransactionReceipt", sent)) is None:
            await asyncio.sleep(0.02)
        assert receipt["status"] == "0x1"

    async def commit(self, opening: Opening) -> None:
        book = self.world.bench.market.round_book.functions
        parts = (opening.payload_digest, opening.trace_root, opening.state_digest)
        await self.send(book.commit(self.job, 0, 0, (await self.world.round(self.job)).base, parts))

    async def read(self, node: Node | None = None) -> Opening | None:
        round = await self.world.round(self.job)
        return (await (node or self.reader).station.inputs(self.job).openings_of(round)).get(0)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def fork(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fork]:
    async with open_world(tmp_path_factory.mktemp("forks")) as world:
        job = await world.post(world.job_terms())
        book = world.bench.market.round_book.functions
        await world.bench.bank.submit_and_confirm("open", book.open(job))
        operator = world.bench.people[5].operator.address
        await world.bench.chain.rpc("anvil_impersonateAccount", operator)
        async with open_nodes(world, job, 0) as (reader,):
            await reader.snapshot()
            made = Fork(world, job, reader, operator)
            await made.send(book.claim(job, 0, [0]))
            yield made


async def test_a_commitment_on_a_fork_that_was_given_up_opens_nothing(fork: Fork) -> None:
    chain = fork.world.bench.chain
    before = await chain.rpc("evm_snapshot")
    await fork.commit(GIVEN_UP)
    assert await fork.read() == GIVEN_UP
    assert await chain.rpc("evm_revert", before)
    assert await fork.read() is None
    await fork.commit(KEPT)
    assert await fork.read() == KEPT


async def test_what_is_remembered_is_checked_against_the_commitment_on_chain(fork: Fork) -> None:
    key = f"opening/{fork.job.hex()}/0/0/{fork.operator}"
    forged = [part.hex() for part in (GIVEN_UP.payload_digest, GIVEN_UP.trace_root, GIVEN_UP.state_digest)]
    await fork.reader.station.intents.note(key, forged)
    assert await fork.read() is None, "the follower has passed the event: nothing is better than something false"
    async with open_nodes(fork.world, fork.job, 1) as (fresh,):
        await fresh.snapshot()
        assert await fork.read(fresh) == KEPT


async def test_another_operators_opening_opens_nothing(fork: Fork) -> None:
    other = fork.world.bench.people[4].operator.address
    await fork.world.bench.chain.rpc("anvil_impersonateAccount", other)
    thief = Fork(fork.world, fork.job, fork.reader, other)
    book = fork.world.bench.market.round_book.functions
    await thief.send(book.claim(fork.job, 0, [1]))
    base = (await fork.world.round(fork.job)).base
    await thief.send(book.commit(fork.job, 0, 1, base, (KEPT.payload_digest, KEPT.trace_root, KEPT.state_digest)))
    round = await fork.world.round(fork.job)
    assert round.claims[0].commitment != round.claims[1].commitment
    found = await fork.reader.station.inputs(fork.job).openings_of(round)
    assert found[1] == KEPT, "the same result under another name is another commitment"
