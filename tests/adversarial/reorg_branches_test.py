"""attack: a reorganisation after which something else stands where a step had been · gain: what was decided on the one
branch is sent on the other · defence: it is looked at again before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from click.testing import CliRunner

from node.cli import main
from node.devnet.people import Person
from node.operator.actions import Attest, ComputeNext
from node.poster.views import View
from node.wallet import open_wallet
from protocol.chain.errors import Reverted
from protocol.core.audit import CasePhase, Finding, Outcome, SeatState
from protocol.core.claim import ClaimStatus
from protocol.core.round import Round, RoundStatus, bits
from protocol.core.units import TOKEN
from protocol.runtime.config import load_config
from tests.helpers.market import HONEST, Node, World, open_nodes, open_world
from tests.helpers.reorg import Reorgs, Way, send_again, sent_since
from tests.integration.poster_fixtures import write_job
from verifier import compute
from verifier.actions import ChallengeStep, CommitAudit, RevealAudit
from verifier.panel import plan_seats
from verifier.station import HomeConfig

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("branches")) as made:
        yield made


def only_watching(node: Node) -> Node:
    work = msgspec.structs.replace(node.station.config.work, claims=0)
    node.station.config = msgspec.structs.replace(node.station.config, work=work)
    return node


async def planned(node: Node, kind: type) -> list[Any]:
    """What its next turn would do, of one kind."""
    return [action for action in node.service._plan(await node.service._load()) if isinstance(action, kind)]


# -- votes and challenges ----------------------------------------------------------------------------------------------


async def test_a_vote_about_claims_that_are_gone_is_not_sent(world: World) -> None:
    chain, market = world.bench.chain, world.bench.market
    terms = world.job_terms(rounds=1)
    job = await world.post(terms, salt=1)
    async with open_nodes(world, job, 0, 1) as (first, second):
        await world.run(job, lambda round: round.committed == 1, [first])
        only_watching(first)
        await world.run(job, lambda round: all(c.status != ClaimStatus.FREE for c in round.claims), [second])
        fork = await chain.rpc("evm_snapshot")
        await world.run(job, lambda round: round.status == RoundStatus.SEALED)
        (step,) = await planned(first, ComputeNext)
        await first.worker.execute(step)
        (vote,) = await planned(first, Attest)
        assert bits(vote.bitmap) == [0, 1]

        assert await chain.rpc("evm_revert", fork)
        await chain.advance(terms.windows.round + terms.windows.train)
        sealed = await world.run(job, lambda round: round.status == RoundStatus.SEALED, [first])
        assert sealed.committed == 1, "the second one came too late here"
        await first.worker.execute(vote)
        assert not await market.attested(job, 0, first.me)
        call = market.round_book.functions.attest(job, 0, sealed.base, vote.bitmap, bytes.fromhex(vote.next))
        with pytest.raises(Reverted):
            await market.call(View(call, sender=first.me))
        closed = await world.run(job, lambda round: round.closed_at > 0, [first])
    assert closed.accepted_map == sealed.committed_map and closed.next.hex() != vote.next


def false_step(spec: str, base: str, payloads: dict[str, str], out: str) -> str:
    """The outer step, taken twice."""
    compute.outer_step(spec, base, payloads, f"{out}-once")
    return compute.outer_step(spec, f"{out}-once", payloads, out)


async def test_a_checkpoint_that_was_false_on_another_branch_only_is_not_challenged(world: World) -> None:
    chain, market = world.bench.chain, world.bench.market
    job = await world.post(world.job_terms(rounds=1, windows={"challenge": 600}), salt=2)
    async with open_nodes(world, job, 2, handlers={**HONEST, "outer_step": false_step}) as (liar,):
        await world.run(job, lambda round: round.committed == 1)
        await chain.advance(only_watching(liar).station.inputs(job).terms.windows.round)
        sealed = await world.run(job, lambda round: round.status == RoundStatus.SEALED)
        fork = await chain.rpc("evm_snapshot")
        await world.run(job, lambda round: round.closed_at > 0)
        before = await market.connection.block_number()
        async with open_nodes(world, job, 3) as (doubter,):
            await only_watching(doubter).turn()
            (challenge,) = await planned(doubter, ChallengeStep)
            await doubter.service._execute(challenge)
            doubted = await world.round(job)
            assert doubted.doubt is not None
            *earlier, doubt = await sent_since(world, before + 1)

            assert await chain.rpc("evm_revert", fork)
            await chain.advance(1)
            inputs = doubter.station.inputs(job)
            (shard,) = bits(sealed.committed_map)
            opening = (await inputs.openings_of(sealed))[shard]
            right = await inputs.next_checkpoint(sealed, {shard: await inputs.payload(opening)})
            vote = market.round_book.functions.attest(job, 0, sealed.base, 1 << shard, bytes.fromhex(right))
            await liar.station.sender.submit_and_confirm("vote-again", vote)
            await world.run(job, lambda round: round.closed_at > 0, [liar])
            assert all([await send_again(world, raw) for raw in earlier])
            assert not await send_again(world, doubt), "what was sent names the checkpoint that it doubts"
            name = partial(market.checkpoint_court.functions.challenge, job, 0, sealed.base, 1 << shard)
            with pytest.raises(Reverted, match="OtherCheckpoint"):
                await market.call(View(name(doubted.next), sender=doubter.me))
            await market.call(View(name(bytes.fromhex(right)), sender=doubter.me))  # nothing else is in its way
            late = doubter.station.executor()._doubter  # as if it had looked before the chain changed
            await late._challenge(challenge, name(doubted.next))
            await doubter.service._execute(challenge)
            assert (await world.round(job)).doubt is None
            for _ in range(2):
                await doubter.turn()
            assert await planned(doubter, ChallengeStep) == []
            closed = await world.round(job)
    assert closed.closed_at and closed.doubt is None and closed.next.hex() == right


# -- seats -------------------------------------------------------------------------------------------------------------


def is_seated(round: Round, state: SeatState) -> bool:
    return len(round.cases) == 2 and all(seat.state == state for case in round.cases.values() for seat in case.seats)


async def test_a_seat_that_is_drawn_anew_is_audited_anew_and_the_old_one_says_nothing(world: World) -> None:
    chain, market = world.bench.chain, world.bench.market
    job = await world.post(world.job_terms(rounds=1, audit_rate_bps=10_000), salt=3)
    first = await market.connection.block_number()
    async with open_nodes(world, job, *range(6)) as nodes:
        await world.run(job, lambda round: round.status == RoundStatus.SEALED)
        fork = await chain.rpc("evm_snapshot")
        old = await world.run(job, lambda round: is_seated(round, SeatState.COMMITTED))
        stale: dict[int, tuple[Node, RevealAudit]] = {}
        for node in nodes:
            stale |= {action.shard: (node, action) for action in await planned(node, RevealAudit)}
        assert set(stale) == {0, 1}

        moved: list[int] = []
        while not moved:  # the block that seats are drawn by is another one each time
            assert await chain.rpc("evm_revert", fork)
            fork = await chain.rpc("evm_snapshot")
            await chain.advance(1)
            new = await world.run(job, lambda round: is_seated(round, SeatState.SEATED))
            moved = [shard for shard in (0, 1) if who(new, shard) != who(old, shard)]
        for shard in moved:
            node, reveal = stale[shard]
            assert not [action for action in plan_seats(await node.snapshot()) if at(action) == (job, shard)]
            await node.service._execute(reveal)
            with pytest.raises(Reverted):
                await node.service._execute(CommitAudit(*astuple(reveal)))
        judged = await world.run(job, lambda round: all(c.phase == CasePhase.DONE for c in round.cases.values()))
    for shard in moved:
        (seat,) = judged.cases[shard].seats
        assert seat.operator == who(new, shard) and seat.root != old.cases[shard].seats[0].root
    assert {case.outcome for case in judged.cases.values()} == {Outcome.MATCH}
    assert {seat.finding for case in judged.cases.values() for seat in case.seats} == {Finding.MATCH}
    assert await market.stake_vault.events.Slashed().get_logs(from_block=first) == []


def who(round: Round, shard: int) -> str:
    return round.cases[shard].seats[0].operator


def at(action: Any) -> tuple[bytes, int]:
    return action.job_id, action.shard


# -- jobs --------------------------------------------------------------------------------------------------------------


async def test_what_is_posted_in_the_place_of_a_job_that_was_given_up_is_seen_with_its_own_terms(world: World) -> None:
    chain = world.bench.chain
    terms, dearer = world.job_terms(), world.job_terms(price="2000")
    async with open_nodes(world, None, 4) as (node,):
        await node.service._load()
        fork = await chain.rpc("evm_snapshot")
        job = await world.post(terms, salt=4)
        assert job in {entry.job_id for entry in (await node.service._load()).snapshot.jobs}

        assert await chain.rpc("evm_revert", fork)
        other = await world.post(terms, salt=5)
        seen = {entry.job_id for entry in (await node.service._load()).snapshot.jobs}
        assert other in seen and job not in seen

        assert await world.post(dearer, salt=4, seed="http://127.0.0.1:1") == job
        (again,) = [entry for entry in (await node.service._load()).snapshot.jobs if entry.job_id == job]
        assert again.terms == dearer != terms
        assert node.station.inputs(job).terms == dearer and node.station.sources(job)[-1] == "http://127.0.0.1:1"
    for ended in (job, other):
        cancel = world.bench.market.job_market.functions.cancel(ended)
        await world.sender(world.bench.poster.owner).submit_and_confirm(f"cancel:{ended.hex()}", cancel)


# -- what people send --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Holdings:
    """What an account has in the market, wei; `jobs` and `tickets` are counts of all."""

    tokens: int
    credit: int
    stake: int
    escrow: int
    jobs: int
    tickets: int


async def holdings(world: World, person: Person, job: bytes) -> Holdings:
    market, owner = world.bench.market, person.owner.address
    return Holdings(
        tokens=await market.token_balance(owner),
        credit=int(await market.call(market.reward_ledger.functions.creditOf(owner))),
        stake=int(await market.call(market.stake_vault.functions.balanceOf(owner))),
        escrow=(await market.job(job)).escrow,
        jobs=len(await market.job_ids()),
        tickets=len(await market.tickets()),
    )


async def gradmarket(person: Person, *arguments: str) -> str:
    done = await asyncio.to_thread(CliRunner().invoke, main, ["--home", str(person.home), *arguments])
    assert done.exit_code == 0, done.output + done.stderr
    return done.output


def change(before: Holdings, after: Holdings) -> dict[str, int]:
    pairs = zip(astuple(before), astuple(after), strict=True)
    names = Holdings.__dataclass_fields__
    return {name: new - old for name, (old, new) in zip(names, pairs, strict=True) if new != old}


@pytest.mark.parametrize(
    ("step", "words", "expected"),
    [
        ("JobPosted", ("job", "post", "{file}"), {"jobs": 1, "tokens": -100 * TOKEN}),
        ("JobFunded", ("job", "fund", "{job}", "3"), {"escrow": 3 * TOKEN, "tokens": -3 * TOKEN}),
        ("JobRefunded", ("job", "refund", "{job}", "2"), {"escrow": -2 * TOKEN, "credit": 2 * TOKEN}),
        ("Withdrawn", ("rewards", "withdraw", "2"), {"credit": -2 * TOKEN, "tokens": 2 * TOKEN}),
        ("Deposited", ("stake", "deposit", "5"), {"stake": 5 * TOKEN, "tokens": -5 * TOKEN}),
    ],
)
async def test_what_a_person_sends_happens_once(
    world: World, funded: bytes, tmp_path: Path, step: str, words: tuple[str, ...], expected: dict[str, int]
) -> None:
    """Its block is given up without it: nothing happened, and the command does it. It moves to another: it is there."""
    person, reorgs = world.bench.poster, Reorgs(world, frozenset({step}))
    file = write_job(world.folder, world.spec, seed=world.seed.url, salt="people", deposit="100")
    arguments = [word.format(file=file, job=funded.hex()) for word in words]
    before = await holdings(world, person, funded)
    for way in Way:
        await reorgs.around(person.owner.address, lambda: gradmarket(person, *arguments))
        assert (step, way) in {(name, entry.way) for entry in reorgs.given_up for name in entry.steps}
        done = change(before, await holdings(world, person, funded))
        assert done == ({} if way is Way.GONE else expected)
    assert all(entry.landed for entry in reorgs.given_up)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def funded(world: World) -> bytes:
    """A job with money to spare."""
    return await world.post(world.job_terms(), salt=6)


async def test_a_ticket_is_enrolled_once(world: World) -> None:
    person = world.bench.people[5]
    reorgs = Reorgs(world, frozenset({"Enrolled"}))
    config = load_config(person.home / "config.toml", HomeConfig)
    before = await world.bench.market.tickets()
    async with open_wallet(person.home, config, person.owner) as wallet:
        gift = world.bench.market.dev_token.functions.mint(wallet.address, TOKEN)
        await world.bench.bank.submit_and_confirm("gift", gift)
        await wallet.deposit(TOKEN)  # what earlier tests cost this owner must not matter
        for way in Way:
            await reorgs.around(wallet.address, lambda: wallet.enroll(person.operator.address, 1))
            new = (await world.bench.market.tickets())[len(before) :]
            assert [ticket.amount for ticket in new] == ([] if way is Way.GONE else [40 * TOKEN])
    assert [entry.landed for entry in reorgs.given_up] == [True, True]
