"""attack: whoever can reorganise a block, at any step of a job's life · gain: pay twice, seats of one's choice, honest
people slashed for what they said on the other branch · defence: programs decide from what the chain says now, and what
they sent is bound to what it rests on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from node.devnet.people import give_coins
from node.ledger import check_books, keep_books, read_events
from node.operator.service import NodeService
from node.wallet import open_wallet
from protocol.chain.logs import Event
from protocol.core.audit import CaseKind, Finding, Outcome
from protocol.core.claim import ClaimStatus
from protocol.core.commitment import checkpoint_case_id, round_pot
from protocol.core.job import JobStatus
from protocol.core.round import Round, RoundStatus
from protocol.core.terms import Terms
from protocol.core.units import TOKEN
from protocol.runtime.config import load_config
from protocol.transport.server import BlobServer
from tests.helpers.market import HONEST, Impatient, InProcess, World, cheating, open_nodes, open_world
from tests.helpers.reorg import Reorgs, Way
from verifier import compute
from verifier.duty import Duty
from verifier.service import VerifierService
from verifier.station import HomeConfig, open_station

pytestmark = pytest.mark.asyncio(loop_scope="module")
PEOPLE = 6  # with tickets: five seats and whoever is accused
CHEAT, LIAR, AUDITOR = 2, 3, 6
TURNS = 80
Until = Callable[[Round], Awaitable[bool]]

STEPS = {
    "honest": (
        "RoundOpened Claimed Committed RoundSealed Attested RoundClosed Drawn CaseOpened Seated AuditCommitted "
        "RevealPhase Revealed VerdictReached ClaimSettled RoundSettled JobClosed"
    ),
    "cheated": "RoundSealed TraceDemanded TraceOpened LevelStarted Revealed Slashed",
    "misled": "BondPosted CaseOpened Seated AuditCommitted StepRevealed CheckpointReplaced ProversPaid",
    "challenged": "BondPosted",
}
LONG = {life: [pytest.mark.slow] if life in ("cheated", "misled") else [] for life in STEPS}
EVERY_STEP = [pytest.param(life, step, marks=LONG[life]) for life, steps in STEPS.items() for step in steps.split()]


def false_step(spec: str, base: str, payloads: dict[str, str], out: str) -> str:
    """The outer step, taken twice."""
    compute.outer_step(spec, base, payloads, f"{out}-once")
    return compute.outer_step(spec, f"{out}-once", payloads, out)


@dataclass
class Life:
    """A job that came to its end although each of its steps was given up by the chain, first without its transaction
    and then with it in another block."""

    world: World
    job: bytes
    terms: Terms
    reorgs: Reorgs
    last: Round
    status: JobStatus
    events: list[Event]
    failed: list[str]

    def named(self, name: str) -> list[dict[str, Any]]:
        """The events of this job's life on the chain as it is."""
        return [event.args for event in self.events if event.name == name]

    def paid(self, number: int) -> int:
        """Wei that the round credited to this owner."""
        owner, pot = self.world.bench.people[number].owner.address, round_pot(self.job, 0)
        return sum(args["amount"] for args in self.named("Credited") if (args["pot"], args["account"]) == (pot, owner))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("reorg"), people=PEOPLE) as made:
        await add_auditor(made)
        yield made


async def add_auditor(world: World) -> None:
    """An owner with stake and an operator who sits on no panel: it has no ticket."""
    bench = world.bench
    person, stake = bench.person("auditor"), 80 * TOKEN
    for key in (person.owner, person.operator):
        await give_coins(bench.bank, key.address)
    mint = bench.market.dev_token.functions.mint(person.owner.address, stake)
    await bench.bank.submit_and_confirm("mint:auditor", mint)
    config = load_config(person.home / "config.toml", HomeConfig)
    async with open_wallet(person.home, config, person.owner) as wallet:
        await wallet.register(person.operator, person.owner.address, "", bytes(32))
        await wallet.deposit(stake)
    bench.people.append(person)


def with_work(config: HomeConfig, **changes: Any) -> HomeConfig:
    return msgspec.structs.replace(config, work=msgspec.structs.replace(config.work, **changes))


@contextlib.asynccontextmanager
async def auditor(world: World, job: bytes, reorgs: Reorgs, rate: float) -> AsyncIterator[VerifierService]:
    """One that does not train, and looks at claims and checkpoints of its own accord."""
    person = world.bench.people[AUDITOR]
    config = load_config(person.home / "config.toml", HomeConfig)
    async with open_station(person.home, with_work(config, jobs=(job.hex(),)), person.operator) as station:
        station.compute = InProcess(HONEST)  # type: ignore[assignment]
        station.duty = lambda: Duty(person.operator.address, Impatient())  # type: ignore[method-assign]
        program = VerifierService(station, rate)
        program._secret = bytes(32)
        reorgs.watch(station, program)
        yield program


@contextlib.asynccontextmanager
async def judging(world: World, job: bytes, reorgs: Reorgs, *people: int) -> AsyncIterator[list[NodeService]]:
    """Nodes that sit on panels, and neither train nor challenge."""
    async with open_nodes(world, job, *people) as nodes:
        for node in nodes:
            node.station.config = with_work(node.station.config, claims=0, challenge=False)
            reorgs.watch(node.station, node.service)
        yield [node.service for node in nodes]


async def next_block(world: World) -> int:
    return await world.bench.market.connection.block_number() + 1


async def look(world: World, job: bytes, terms: Terms, reorgs: Reorgs, first: int, failed: list[str]) -> Life:
    """What there is on the chain in the end, once the market's books were found to balance."""
    events = await read_events(world.bench.market)
    await check_books(world.bench.market, keep_books(events))
    recent = [event for event in events if event.block_number >= first]
    status = (await world.bench.market.job(job)).status
    return Life(world, job, terms, reorgs, await world.round(job), status, recent, failed)


async def live(world: World, job: bytes, programs: list[Any], until: Until, step: int = 3) -> list[str]:
    """Turns of all programs until the round is as wanted; what failed on the way."""
    failed: list[str] = []
    for _ in range(TURNS):
        for program in programs:
            service = program.service
            service.backoff.failures.clear()
            await service.turn()
            await asyncio.gather(*service.in_flight.values())
            failed += [failure.reason for failure in service.backoff.failures.values()]
        if await until(await world.round(job)):
            return failed
        await world.bench.chain.advance(step)
    raise AssertionError((await world.round(job), failed))


async def committed(round: Round) -> bool:
    return round.committed > 0


async def sealed(round: Round) -> bool:
    return round.sealed_at > 0


async def closed(round: Round) -> bool:
    return round.closed_at > 0


async def settled(round: Round) -> bool:
    return round.status == RoundStatus.SETTLED


# -- the lives ---------------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def honest(world: World) -> Life:
    """Honest work, all of it sampled, judged, settled and paid; and the end of the job."""
    terms, first = world.job_terms(rounds=1, audit_rate_bps=10_000), await next_block(world)
    job = await world.post(terms, salt=1)
    reorgs = Reorgs(world, frozenset(STEPS["honest"].split()))

    async def is_over(round: Round) -> bool:
        return (await world.bench.market.job(job)).status == JobStatus.CLOSED

    async with open_nodes(world, job, 0, 1) as trainers, judging(world, job, reorgs, 2, 3, 4, 5) as judges:
        for node in trainers:
            reorgs.watch(node.station, node.service)
        failed = await live(world, job, [*(node.service for node in trainers), *judges], is_over)
    return await look(world, job, terms, reorgs, first, failed)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def challenged(world: World, honest: Life) -> Life:
    """Two cheats whose owners have a record: one is sampled, an auditor challenges the other."""
    terms, first = world.job_terms(rounds=1, windows={"challenge": 60}), await next_block(world)
    job = await world.post(terms, salt=2)
    reorgs = Reorgs(world, frozenset(STEPS["challenged"].split()))

    async def is_judged(round: Round) -> bool:
        return len(round.cases) == 2

    async with open_nodes(world, job, 0, 1, handlers=cheating()) as cheats, auditor(world, job, reorgs, 1.0) as doubter:
        await live(world, job, [node.service for node in cheats], closed)
        failed = await live(world, job, [doubter], is_judged, step=2)
    return await look(world, job, terms, reorgs, first, failed)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def cheated(world: World) -> Life:
    """A cheat that shows its trace on the chain only, and then not to be paid; the other shard stays free."""
    terms, first = world.job_terms(rounds=1, audit_rate_bps=10_000), await next_block(world)
    job = await world.post(terms, salt=3)
    reorgs = Reorgs(world, frozenset(STEPS["cheated"].split()))
    async with contextlib.AsyncExitStack() as stack:
        (cheat,) = await stack.enter_async_context(open_nodes(world, job, CHEAT, handlers=cheating()))
        reorgs.watch(cheat.station, cheat.service)
        await live(world, job, [cheat.service], committed)
        cheat.station.config = with_work(cheat.station.config, claims=0)
        await world.bench.chain.advance(terms.windows.round)
        await live(world, job, [cheat.service], sealed)
        hidden = await stack.enter_async_context(BlobServer(cheat.station.blobs))
        call = world.bench.market.operator_registry.functions.setEndpoint(cheat.me, hidden.url)
        await cheat.station.sender.submit_and_confirm("hide", call)
        judges = await stack.enter_async_context(judging(world, job, reorgs, 0, 1, 3, 4, 5))
        failed = await live(world, job, [cheat.service, *judges], settled, step=5)
    return await look(world, job, terms, reorgs, first, failed)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def misled(world: World) -> Life:
    """A checkpoint that is false, challenged, judged and replaced; and what its liar lost, shared out."""
    terms, first = world.job_terms(rounds=1, windows={"challenge": 60}), await next_block(world)
    job = await world.post(terms, salt=4)
    reorgs = Reorgs(world, frozenset(STEPS["misled"].split()))

    async def is_shared_out(round: Round) -> bool:
        return await settled(round) and await world.bench.market.pots([checkpoint_case_id(job, 0)]) == [0]

    async with open_nodes(world, job, LIAR, handlers={**HONEST, "outer_step": false_step}) as (liar,):
        await live(world, job, [liar.service], committed)
        await world.bench.chain.advance(terms.windows.round)
        await live(world, job, [liar.service], closed)
        async with judging(world, job, reorgs, 0, 1, 2, 4, 5) as judges, auditor(world, job, reorgs, 1e-9) as doubter:
            failed = await live(world, job, [doubter, *judges], is_shared_out, step=5)
    return await look(world, job, terms, reorgs, first, failed)


# -- what is true of each ----------------------------------------------------------------------------------------------


@pytest.fixture
def lived(request: pytest.FixtureRequest, life: str) -> Life:
    found: Life = request.getfixturevalue(life)
    return found


@pytest.mark.parametrize(("life", "step"), EVERY_STEP)
async def test_every_step_is_taken_again_or_lands_in_a_later_block_and_everybody_sees_what_is_there(
    lived: Life, life: str, step: str
) -> None:
    reorgs = lived.reorgs.of(step)
    assert {entry.way for entry in reorgs} == set(Way)
    assert [entry.strayed for entry in reorgs] == [()] * len(reorgs)
    assert all(entry.landed for entry in reorgs)
    assert lived.named(step), "it stands on the chain that was kept"


@pytest.mark.parametrize("life", [pytest.param(life, marks=LONG[life]) for life in STEPS])
async def test_no_program_fails_over_a_reorganisation(lived: Life, life: str) -> None:
    assert lived.failed == []


async def test_honest_work_is_paid_once_and_the_job_ends(honest: Life) -> None:
    assert honest.status == JobStatus.CLOSED
    assert {claim.settled for claim in honest.last.claims} == {ClaimStatus.PAID}
    assert [honest.paid(number) for number in (0, 1)] == [honest.terms.reward_per_shard] * 2
    once = ("RoundOpened", "RoundSealed", "RoundClosed", "Drawn", "RoundSettled", "JobClosed")
    assert [len(honest.named(name)) for name in once] == [1] * len(once)
    twice = ("Claimed", "Committed", "Attested", "CaseOpened", "VerdictReached", "ClaimSettled", "SeatPaid")
    assert [len(honest.named(name)) for name in twice] == [2] * len(twice)
    assert honest.named("Slashed") == [] and honest.named("Lapsed") == []


async def test_seats_commit_and_reveal_once_each(honest: Life) -> None:
    for name in ("Seated", "AuditCommitted", "Revealed"):
        seats = [(args["caseId"], args["seat"]) for args in honest.named(name)]
        assert len(seats) == 2 and len(set(seats)) == 2
    assert {args["finding"] for args in honest.named("Revealed")} == {Finding.MATCH}


@pytest.mark.slow
async def test_a_cheat_is_convicted_once_and_nobody_else_loses_anything(cheated: Life) -> None:
    (verdict,) = cheated.named("VerdictReached")
    assert verdict["outcome"] == Outcome.FRAUD and cheated.paid(CHEAT) == 0
    owner = cheated.world.bench.people[CHEAT].owner.address
    lost = [(args["owner"], args["amount"]) for args in cheated.named("Slashed")]
    assert lost == [(owner, cheated.terms.bond_per_shard)]
    assert len(cheated.named("TraceDemanded")) == 1 and len(cheated.named("TraceOpened")) == 1


@pytest.mark.slow
async def test_a_false_checkpoint_is_replaced_once_and_its_liar_pays_once(misled: Life) -> None:
    (doubt,) = misled.named("BondPosted")
    assert doubt["operator"] == misled.world.bench.people[AUDITOR].operator.address
    assert len(misled.named("CheckpointReplaced")) == 1
    assert misled.last.doubt is not None
    assert {seat.finding for seat in misled.last.doubt.seats} == {Finding.FRAUD}
    owner = misled.world.bench.people[LIAR].owner.address
    lost = [(args["owner"], args["amount"]) for args in misled.named("Slashed") if args["amount"]]
    assert lost == [(owner, misled.terms.bond_per_shard)]
    assert len(misled.named("ProversPaid")) == 1 and len(misled.named("StepRevealed")) == 5


async def test_a_challenge_is_made_once(challenged: Life) -> None:
    (bond,) = challenged.named("BondPosted")
    assert bond["operator"] == challenged.world.bench.people[AUDITOR].operator.address
    kinds = sorted(case.kind for case in challenged.last.cases.values())
    assert kinds == [CaseKind.SAMPLED, CaseKind.CHALLENGED]
