"""Three quarters of a round's weight attest to a false checkpoint. An auditor finds it, a panel replaces it, the
liars pay for it, and the job goes on from the right one: real contracts, real nodes, and a restart in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from node.ledger import check_books, keep_books, read_events
from node.poster.views import View
from protocol.chain.errors import Reverted
from protocol.chain.logs import Event
from protocol.core.audit import Case, CaseKind, CasePhase, Finding, Outcome, StepFinding, step_root
from protocol.core.claim import ClaimStatus
from protocol.core.commitment import checkpoint_case_id
from protocol.core.round import Round, RoundStatus
from protocol.core.terms import CHALLENGE_FEES, Terms
from protocol.runtime.config import load_config
from tests.helpers.market import HONEST, InProcess, Node, World, open_nodes, open_world
from verifier import compute
from verifier.service import VerifierService
from verifier.station import HomeConfig, open_station

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIARS, HONEST_PEOPLE, AUDITOR = (0, 1), (2, 3, 4, 5, 6), 7  # five seats, the challenger, and two that are accused
SALT = bytes(range(32))


def false_step(spec: str, base: str, payloads: dict[str, str], out: str) -> str:
    """A checkpoint that leaves all payloads but the first out, and says nothing of it."""
    first = min(payloads, key=int)
    return compute.outer_step(spec, base, {first: payloads[first]}, out)


LYING = {**HONEST, "outer_step": false_step}


@dataclass
class Story:
    """`attested`: round 0 as the liars closed it; `judged`: after the verdict; `after`: all rounds at the end."""

    world: World
    job: bytes
    terms: Terms
    attested: Round
    right: bytes
    judged: Round
    roots_before_restart: list[bytes]
    after: list[Round]
    events: list[Event]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [event.args for event in self.events if event.name == name]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("doubt"), people=8) as made:
        yield made


def some_terms(world: World, challenge: int = 60) -> Terms:
    return world.job_terms(shards_per_round=4, probation_slots=4, rounds=3, windows={"challenge": challenge})


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def story(world: World) -> Story:
    terms = some_terms(world)
    job = await world.post(terms)
    async with open_nodes(world, job, *LIARS, handlers=LYING) as liars:
        attested = await lie(world, job, liars)
        async with open_nodes(world, job, *HONEST_PEOPLE):
            right = await right_step(world.nodes[-1], job, attested)
            await audit(world, job, AUDITOR)
            await world.run(job, lambda round: is_at(round.doubt, CasePhase.REVEALING))
            committed = await world.round(job)
        roots = [seat.root for seat in committed.doubt.seats] if committed.doubt else []
        async with open_nodes(world, job, *HONEST_PEOPLE):
            judged = await world.run(job, lambda round: is_at(round.doubt, CasePhase.DONE))
            for liar in liars:  # once is enough
                liar.station.compute._handlers = HONEST  # type: ignore[attr-defined]
            await world.run(job, lambda round: round.status == RoundStatus.SETTLED, step=15)
            await go_on(world, job, rounds=3)
            after = [await world.round(job, number) for number in range(await opened(world, job))]
            events = await read_events(world.bench.market)
    return Story(world, job, terms, attested, right, judged, roots, after, events)


async def lie(world: World, job: bytes, liars: list[Node]) -> Round:
    """The liars commit three shards of four and close the round with their digest."""
    async with open_nodes(world, job, HONEST_PEOPLE[0]):
        await world.run(job, lambda round: round.committed == 3)
        await world.run(job, lambda round: round.sealed_at > 0, liars, step=15)
        return await world.run(job, lambda round: round.closed_at > 0, liars)


async def audit(world: World, job: bytes, number: int) -> None:
    """Turns of an auditor that does not train, and checks next to no claim, until it has doubted the checkpoint."""
    person = world.bench.people[number]
    config = load_config(person.home / "config.toml", HomeConfig)
    config = msgspec.structs.replace(config, work=msgspec.structs.replace(config.work, jobs=(job.hex(),)))
    async with open_station(person.home, config, person.operator) as station:
        station.compute = InProcess(HONEST)  # type: ignore[assignment]
        service = VerifierService(station, 1e-9).service
        for _ in range(5):
            await service.turn()
            await asyncio.gather(*service.in_flight.values())
            if (await world.round(job)).doubt is not None:
                return
    raise AssertionError(service.backoff.failures)


async def right_step(node: Node, job: bytes, round: Round) -> bytes:
    """What the attested payloads give."""
    await node.snapshot()
    inputs = node.station.inputs(job)
    openings = await inputs.openings_of(round)
    payloads = {shard: await inputs.payload(openings[shard]) for shard in range(4)}
    return bytes.fromhex(await inputs.next_checkpoint(round, payloads))


def is_at(case: Case | None, phase: CasePhase) -> bool:
    return case is not None and case.phase == phase


async def opened(world: World, job: bytes) -> int:
    return (await world.bench.market.job(job)).progress.opened


async def build_on(world: World, job: bytes, liars: list[Node]) -> None:
    """Round 1 starts from the false checkpoint and ends in what follows from it, and round 2 is open."""
    for liar in liars:
        liar.station.compute._handlers = HONEST  # type: ignore[attr-defined]
    while await opened(world, job) < 3:
        for liar in liars:
            await liar.turn()
        await world.bench.chain.advance(10)
    first, second = await world.round(job, 0), await world.round(job, 1)
    assert second.base == first.next and second.committed == 4


async def go_on(world: World, job: bytes, rounds: int) -> None:
    """Until so many rounds were opened, the last of them is closed and the slashed bonds are shared out."""
    pot = checkpoint_case_id(job, 0)
    for _ in range(60):
        for node in world.nodes:
            await node.turn()
        count = await opened(world, job)
        closed = count >= rounds and (await world.round(job, count - 1)).closed_at
        if closed and await world.bench.market.pots([pot]) == [0]:
            return
        await world.bench.chain.advance(2)
    raise AssertionError([node.failures for node in world.nodes])


async def test_the_names_and_the_root_are_those_of_the_contract(story: Story) -> None:
    market, court = story.world.bench.market, story.world.bench.market.checkpoint_court.functions
    ident = checkpoint_case_id(story.job, 7)
    assert bytes(await market.call(court.caseIdOf(story.job, 7))) == ident
    operator = story.world.bench.people[3].operator.address
    for finding in (StepFinding(True, 0, bytes(32), bytes(32), SALT), StepFinding(False, 5, SALT, SALT[::-1], SALT)):
        on_chain = await market.call(court.rootOf(ident, 2, operator, finding.as_tuple()))
        assert bytes(on_chain) == step_root(ident, 2, operator, finding)


async def test_the_liars_had_more_than_two_thirds_of_the_weight(story: Story) -> None:
    liars = {story.world.bench.people[number].operator.address for number in LIARS}
    votes = [args for args in story.named("Attested") if args["round"] == 0 and args["next"] == story.attested.next]
    assert {args["operator"] for args in votes} <= liars and sum(args["weight"] for args in votes) == 3
    assert story.attested.next != story.right


async def test_an_auditor_challenges_once_and_nobody_after_it(story: Story) -> None:
    doubts = [args for args in story.named("CaseOpened") if args["kind"] == CaseKind.CHECKPOINT]
    assert [(args["jobId"], args["round"]) for args in doubts] == [(story.job, 0)]
    assert doubts[0]["opener"] == story.world.bench.people[AUDITOR].operator.address
    bonds = [args for args in story.named("BondEnded") if args["caseId"] == checkpoint_case_id(story.job, 0)]
    assert [(args["operator"], args["lost"]) for args in bonds] == [(doubts[0]["opener"], 0)]
    posted = [args["amount"] for args in story.named("BondPosted") if args["operator"] == doubts[0]["opener"]]
    assert CHALLENGE_FEES * story.terms.audit_fee in posted


async def test_every_seat_finds_the_same_and_a_restart_reveals_what_was_committed_before_it(story: Story) -> None:
    assert story.judged.doubt is not None
    seats = story.judged.doubt.seats
    assert story.judged.doubt.outcome == Outcome.FRAUD and len(seats) == 5
    assert {seat.finding for seat in seats} == {Finding.FRAUD}
    assert len(set(story.roots_before_restart)) == 5 and [seat.root for seat in seats] == story.roots_before_restart
    revealed = {(args["bitmap"], args["digest"], args["contested"]) for args in story.named("StepRevealed")}
    assert revealed == {(0b1111, story.right, story.right)}


async def test_the_right_checkpoint_takes_the_place_of_the_false_one_and_what_was_built_on_it_is_orphaned(
    story: Story,
) -> None:
    assert story.judged.next == story.right and story.after[0].next == story.right
    orphaned = [round for round in story.after[1:] if round.base == story.attested.next]
    assert orphaned, "the liars went on from their own checkpoint"
    assert not any(claim.status == ClaimStatus.PAID for round in orphaned for claim in round.claims)
    honest = {story.world.bench.people[number].operator.address for number in HONEST_PEOPLE}
    assert not any(claim.operator in honest for round in orphaned for claim in round.claims)


async def test_honest_nodes_go_on_from_the_right_checkpoint(story: Story) -> None:
    honest = {story.world.bench.people[number].operator.address for number in HONEST_PEOPLE}
    (following,) = [round for round in story.after if round.base == story.right]
    assert following.closed_at and not following.voided and following.status != RoundStatus.ORPHANED
    assert any(claim.operator in honest and claim.is_committed for claim in following.claims)


async def test_the_liars_lose_the_bonds_of_that_round_and_those_who_proved_it_share_them(story: Story) -> None:
    market, people = story.world.bench.market, story.world.bench.people
    book = market.deployment.address("RoundBook")
    slashed = [args for args in story.named("Slashed") if args["book"] == book and args["amount"] > 0]
    assert {args["owner"] for args in slashed} == {people[number].owner.address for number in LIARS}
    assert [args["amount"] for args in slashed] == [story.terms.bond_per_shard] * 3
    books = keep_books(story.events)
    proved = [
        people[number].name for number in (*HONEST_PEOPLE, AUDITOR) if books.of(people[number].owner.address).proved
    ]
    assert len(proved) == 6, "five seats and the challenger"
    assert await market.pots([checkpoint_case_id(story.job, 0)]) == [0]
    await check_books(market, books)


async def test_the_honest_claim_of_that_round_is_paid_and_the_liars_are_not(story: Story) -> None:
    honest = story.world.bench.people[HONEST_PEOPLE[0]].operator.address
    paid = {claim.operator for claim in story.after[0].claims if claim.status == ClaimStatus.PAID}
    assert paid == {honest}
    assert story.after[0].status == RoundStatus.SETTLED


async def test_what_the_liars_said_cannot_be_challenged_by_themselves(story: Story) -> None:
    """Their checkpoint is gone: nothing of round 0 can be doubted once more."""
    market = story.world.bench.market
    operator = story.world.bench.people[0].operator.address
    for round in (story.attested, story.after[0]):
        call = market.checkpoint_court.functions.challenge(story.job, 0, round.base, round.accepted_map, round.next)
        with pytest.raises(Reverted, match="NotChallengeable"):
            await market.call(View(call, sender=operator))


async def test_a_device_that_trains_challenges_a_checkpoint_that_it_did_not_attest_to(story: Story) -> None:
    """One whose owner does not want that leaves it; it builds nothing on it either, nor on what was built on it."""
    world = story.world
    job = await world.post(some_terms(world, challenge=600), salt=1)
    async with open_nodes(world, job, *LIARS, handlers=LYING) as liars:
        await lie(world, job, liars)
        await build_on(world, job, liars)
        async with open_nodes(world, job, 3) as (careful,):
            work = msgspec.structs.replace(careful.station.config.work, challenge=False)
            careful.station.config = msgspec.structs.replace(careful.station.config, work=work)
            for _ in range(4):
                await careful.turn()
        assert (await world.round(job)).doubt is None
        assert "do not build on it" in " ".join(careful.failures.values())
        assert not any(claim.operator == careful.me for claim in (await world.round(job, 2)).claims)
        async with open_nodes(world, job, HONEST_PEOPLE[0]) as (node,):
            doubted = await world.run(job, lambda round: round.doubt is not None, [node])
    assert doubted.doubt is not None and doubted.doubt.kind == CaseKind.CHECKPOINT
    (bond,) = await world.bench.market.call(
        world.bench.market.checkpoint_court.functions.bondsOf(checkpoint_case_id(job, 0))
    )
    assert bond[0] == node.me
