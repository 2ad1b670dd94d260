"""Operators and posters that do their worst to a panel: the audit ends, and honest seats lose nothing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio
from aiohttp import web

from protocol.core.audit import Case, CasePhase, Finding, Outcome
from protocol.core.commitment import case_id
from protocol.core.round import Round
from protocol.core.trace import TraceRow, encode_trace, trace_root
from protocol.training.checkpoint import end_state_bytes
from protocol.training.data import Tokens
from protocol.training.spec import trace_rows
from protocol.transport.server import BlobServer
from tests.helpers.market import HONEST, Handlers, Node, World, cheating, open_nodes, open_world, trainer
from verifier.files import TRACE

pytestmark = pytest.mark.asyncio(loop_scope="module")
Answer = Callable[[World, str], web.StreamResponse]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("hostile")) as made:
        yield made


# -- what the operator did ---------------------------------------------------------------------------------------------


def same(tokens: Tokens) -> Tokens:
    return tokens


def other_sketches() -> Handlers:
    """The right work under a trace that nobody else gets."""
    return trainer(lambda result: replace(result, rows=[replace(row, sketch=b"\7" * 32) for row in result.rows]), same)


def misnumbered() -> Handlers:
    """The right work; every row says that it is the first one."""
    return trainer(lambda result: replace(result, rows=[replace(row, step=1) for row in result.rows]), same)


@dataclass
class Scene:
    """One claim of a hostile operator, closed and accepted, and the nodes that judge it."""

    world: World
    job: bytes
    shard: int
    hostile: Node
    judges: list[Node]

    async def until(self, wanted: Callable[[Case], bool]) -> Case:
        """Only the judges do anything from here on."""

        def is_there(round: Round) -> bool:
            return self.shard in round.cases and wanted(round.cases[self.shard])

        return (await self.world.run(self.job, is_there, self.judges, step=5)).cases[self.shard]


@contextlib.asynccontextmanager
async def audited(world: World, salt: int, handlers: Handlers, answer: Answer) -> AsyncIterator[Scene]:
    """The hostile operator claims first; whoever asks it for private artefacts gets `answer`."""
    job = await world.post(world.job_terms(rounds=1, audit_rate_bps=10_000), salt)
    async with contextlib.AsyncExitStack() as stack:
        (hostile,) = await stack.enter_async_context(open_nodes(world, job, 0, handlers=handlers))
        server = BlobServer(hostile.station.blobs)

        async def reply(request: web.Request) -> web.StreamResponse:
            return answer(world, request.match_info["what"])

        server.mount("/claims/{commitment}/{what}", reply)
        await stack.enter_async_context(server)
        call = world.bench.market.operator_registry.functions.setEndpoint(hostile.me, server.url)
        await hostile.station.sender.submit_and_confirm(f"hostile-endpoint:{salt}", call)
        first = await world.run(job, lambda round: any(claim.is_committed for claim in round.claims))
        shard = next(claim.shard for claim in first.claims if claim.is_committed)
        judges = await stack.enter_async_context(open_nodes(world, job, 1, 2, 3, 4, 5))
        closed = await world.run(job, lambda round: round.closed_at > 0)
        assert closed.accepted_map == 0b11
        yield Scene(world, job, shard, hostile, judges)


# -- what it answers ---------------------------------------------------------------------------------------------------


def nothing(world: World, what: str) -> web.StreamResponse:
    return web.Response(status=404)


def garbage(world: World, what: str) -> web.StreamResponse:
    return web.Response(body=b"\xff\x00[{" * 50)


def too_much(world: World, what: str) -> web.StreamResponse:
    return web.Response(body=b"[" * (8 * 2**20))


def another_trace(world: World, what: str) -> web.StreamResponse:
    """Well formed, of the right size, and not what was committed."""
    rows = [TraceRow(step, 1, 1, bytes(32), bytes(32)) for step in range(1, trace_rows(world.spec) + 1)]
    return web.Response(body=encode_trace(rows) if what == TRACE else b"\1" * end_state_bytes(world.spec))


def an_error(world: World, what: str) -> web.StreamResponse:
    return web.Response(status=500, text="\x1b[2J" + "x" * 5_000)


ANSWERS = {f.__name__: f for f in (nothing, garbage, too_much, another_trace, an_error)}


def has_finding(case: Case) -> bool:
    return case.level > 1


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_cheat_gains_nothing_by_what_it_answers(world: World, name: str) -> None:
    salt = 1 + list(ANSWERS).index(name)
    async with audited(world, salt, cheating(), ANSWERS[name]) as scene:
        case = await scene.until(has_finding)
    assert case.demanded_at > 0, "its trace was demanded on chain"
    assert case.seats[0].finding == Finding.FRAUD


@pytest.mark.parametrize("name", ["nothing", "another_trace"])
async def test_right_work_under_a_hidden_trace_is_rejected_and_not_fraud(world: World, name: str) -> None:
    async with audited(world, 10 + len(name), other_sketches(), ANSWERS[name]) as scene:
        case = await scene.until(has_finding)
    assert case.demanded_at > 0 and case.seats[0].finding == Finding.REJECT


async def test_a_trace_that_is_only_opened_on_chain_is_compared(world: World) -> None:
    async with audited(world, 30, other_sketches(), nothing) as scene:
        await scene.until(lambda case: case.demanded_at > 0)
        await scene.hostile.turn()
        case = await scene.until(lambda case: case.phase == CasePhase.DONE)
    assert case.opened and case.outcome == Outcome.MATCH and case.level == 1


async def test_misnumbered_rows_opened_on_chain_do_not_stop_the_panel(world: World) -> None:
    async with audited(world, 31, misnumbered(), nothing) as scene:
        await scene.until(lambda case: case.demanded_at > 0)
        await open_raw(scene)
        case = await scene.until(has_finding)
    assert case.opened and case.seats[0].finding == Finding.REJECT


async def open_raw(scene: Scene) -> None:
    """Open the trace on chain as it was committed; a node would refuse to read it."""
    station = scene.hostile.station
    (result,) = (await station.intents.under(f"result/{scene.job.hex()}/0/{scene.shard}/")).values()
    rows = rows_of(scene.hostile.worker.private.read(result["trace_blob"], 2**20))
    assert trace_root(rows).hex() == result["trace"]
    parts = tuple(bytes.fromhex(result[name]) for name in ("payload", "trace", "state"))
    table = [(row.step, row.loss, row.grad_norm, row.sketch, row.state) for row in rows]
    call = station.market.audit_court.functions.openTrace(case_id(scene.job, 0, scene.shard), parts, table)
    await station.sender.submit_and_confirm("open-raw", call)


def rows_of(data: bytes) -> list[TraceRow]:
    return [
        TraceRow(r["step"], r["loss"], r["gradNorm"], bytes.fromhex(r["sketch"]), bytes.fromhex(r["state"]))
        for r in json.loads(data)
    ]


# -- hostile posters ---------------------------------------------------------------------------------------------------


async def test_a_job_that_nobody_can_replay_costs_its_panel_nothing(world: World) -> None:
    """Its poster and an operator of its own try to make seats miss: terms and spec contradict each other."""
    market = world.bench.market
    terms = replace(world.job_terms(rounds=1, audit_rate_bps=10_000), loss_tolerance=6_000)
    job = await world.post(terms, 40)
    accomplice, book = world.sender(world.bench.people[0].operator), market.round_book.functions
    await accomplice.submit_and_confirm("open:40", book.open(job))
    await accomplice.submit_and_confirm("claim:40", book.claim(job, 0, [0]))
    await accomplice.submit_and_confirm(
        "commit:40", book.commit(job, 0, 0, terms.genesis_digest, (b"\1" * 32, b"\2" * 32, b"\3" * 32))
    )
    async with open_nodes(world, job, 1, 2, 3, 4, 5) as judges:
        await judges[0].turn()
        assert "terms say loss tolerance 6000, its spec 5000" in " ".join(judges[0].failures.values())
        await world.bench.chain.advance(121)
        await world.run(job, lambda round: round.sealed_at > 0, judges)
        await accomplice.submit_and_confirm("attest:40", book.attest(job, 0, terms.genesis_digest, 1, b"\4" * 32))
        before = await market.connection.block_number()
        round = await world.run(job, lambda round: is_done(round, 0), judges, step=5)
    assert round.cases[0].outcome == Outcome.EXCUSED
    assert {seat.finding for seat in round.cases[0].seats} == {Finding.UNAVAILABLE_INPUTS}
    assert [claim.is_committed for claim in round.claims] == [True, False], "nobody else claimed"
    assert await market.stake_vault.events.Slashed().get_logs(from_block=before) == []


def is_done(round: Round, shard: int) -> bool:
    return shard in round.cases and round.cases[shard].phase == CasePhase.DONE


async def test_a_seat_whose_machine_cannot_replay_a_claim_abstains_and_is_not_silent(world: World) -> None:
    """A poster's spec may ask for more than an auditor has: memory, or hours. Silence would cost the seat its lock."""
    tries: list[int] = []

    def exhausted(**_: object) -> object:
        tries.append(1)
        raise MemoryError("cannot allocate")

    job = await world.post(world.job_terms(rounds=1, audit_rate_bps=10_000), 41)
    sender, book = world.sender(world.bench.people[0].operator), world.bench.market.round_book.functions
    await sender.submit_and_confirm("open:41", book.open(job))
    before = [ticket.amount for ticket in await world.bench.market.tickets()]
    async with open_nodes(world, job, 0, 1, handlers={**HONEST, "replay": exhausted}) as operators:
        await world.run(job, lambda round: round.closed_at > 0, operators)
        async with open_nodes(world, job, 2, 3, 4, 5, handlers={**HONEST, "replay": exhausted}) as judges:
            nodes = [*operators, *judges]
            round = await world.run(job, lambda round: is_done(round, 0) and is_done(round, 1), nodes, step=5)
    assert len(tries) >= 4  # each machine's trouble was tried again once
    assert {case.outcome for case in round.cases.values()} == {Outcome.UNSAMPLED}
    assert [ticket.amount for ticket in await world.bench.market.tickets()] == before, "nobody was fined for silence"
