"""One job's whole life with a cheat, a payload that nobody serves and a shard that nobody takes: every rule of money
and time, asked of the chain itself."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from node.ledger import BooksDoNotBalance, check_books, keep_books, read_events
from protocol.chain.errors import Reverted
from protocol.chain.logs import Event
from protocol.core.audit import Outcome
from protocol.core.claim import ClaimStatus
from protocol.core.job import JobStatus
from protocol.core.round import Round, RoundStatus, is_decided
from tests.helpers.market import World, cheating, open_nodes, open_world

pytestmark = pytest.mark.asyncio(loop_scope="module")
CHALLENGE = 10
HIDDEN = 2  # the shard of a payload that nobody serves; one of the others is left for nobody
MONEY = ("Deposited", "Funded", "Credited", "Slashed", "Absorbed", "Burnt", "Withdrawn")


@dataclass
class Life:
    """A settled job and everything that happened. `decisions`: what the law and the contract said, second by second."""

    world: World
    job: bytes
    settled: Round
    decisions: dict[tuple[int, int], tuple[bool, bool]]
    events: list[Event]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def life(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Life]:
    async with open_world(tmp_path_factory.mktemp("life")) as world:
        windows = {"challenge": CHALLENGE}
        terms = world.job_terms(shards_per_round=4, probation_slots=4, rounds=1, windows=windows)
        job = await world.post(terms)
        await claim_and_hide(world, job)
        async with open_nodes(world, job, 1, 5), open_nodes(world, job, 0, handlers=cheating()):
            await world.run(job, lambda round: round.committed == 3)
            await world.bench.chain.advance(121)
            async with open_nodes(world, job, 2, 3, 4):
                closed = await world.run(job, lambda round: round.closed_at > 0)
                decisions = await decide(world, job, closed.closed_at)
                settled = await world.run(job, lambda round: round.status == RoundStatus.SETTLED)
                for _ in range(2):
                    await world.run(job, lambda round: True)
            await withdraw_everything(world, job)
            yield Life(world, job, settled, decisions, await read_events(world.bench.market))


async def claim_and_hide(world: World, job: bytes) -> None:
    sender, book = world.sender(world.bench.people[5].operator), world.bench.market.round_book.functions
    await sender.submit_and_confirm("open", book.open(job))
    await sender.submit_and_confirm("claim", book.claim(job, 0, [HIDDEN]))
    opening = (hashlib.sha256(b"hidden").digest(), b"\7" * 32, b"\7" * 32)
    base = (await world.round(job)).base
    await sender.submit_and_confirm("commit", book.commit(job, 0, HIDDEN, base, opening))


async def decide(world: World, job: bytes, closed_at: int) -> dict[tuple[int, int], tuple[bool, bool]]:
    """Around the end of the challenge window: would settling a shard change anything? By us, and by the contract."""
    market, found = world.bench.market, {}
    for second in range(closed_at + 1, closed_at + CHALLENGE + 3):
        if second > await market.connection.now():
            await world.bench.chain.rpc("evm_setNextBlockTimestamp", second)
            await world.bench.chain.rpc("evm_mine")
        now, read = await market.connection.now(), await market.job(job)
        round, final = read.rounds[0], read.final_rounds(CHALLENGE, now) > 0
        for claim in round.claims:
            ours = is_decided(round, claim, CHALLENGE, now, final=final)
            found[now - closed_at, claim.shard] = (ours, await settles(market, job, claim.shard))
    return found


async def settles(market: Any, job: bytes, shard: int) -> bool:
    try:
        await market.call(market.round_book.functions.settle(job, 0, [shard]))
    except Reverted as refusal:
        assert refusal.name == "NothingToSettle"
        return False
    return True


async def withdraw_everything(world: World, job: bytes) -> None:
    market, ledger = world.bench.market, world.bench.market.reward_ledger.functions
    assert (await market.job(job)).status == JobStatus.CLOSED
    for person in [world.bench.poster, *world.bench.people]:
        if await market.call(ledger.creditOf(person.owner.address)):
            call = ledger.withdraw(person.owner.address, 0)
            await world.bench.bank.submit_and_confirm(f"withdraw:{person.name}", call)


async def test_a_claim_is_decided_in_the_very_second_in_which_the_contract_settles_it(life: Life) -> None:
    assert {when for when, _ in life.decisions} >= {CHALLENGE, CHALLENGE + 1}
    assert {where: pair for where, pair in life.decisions.items() if pair[0] != pair[1]} == {}
    hidden = {when: pair[0] for (when, shard), pair in life.decisions.items() if shard == HIDDEN}
    assert not hidden[CHALLENGE] and hidden[CHALLENGE + 1]


async def test_the_honest_are_paid_the_cheat_is_slashed_and_the_hidden_payload_costs_its_pay_alone(life: Life) -> None:
    cheat = life.world.bench.people[0].owner.address
    outcomes = {claim.shard: claim for claim in life.settled.claims}
    assert outcomes[HIDDEN].status == ClaimStatus.UNPAID
    (slashed,) = [claim for claim in life.settled.claims if claim.owner == cheat]
    assert slashed.status == ClaimStatus.UNPAID and life.settled.cases[slashed.shard].outcome == Outcome.FRAUD
    for claim in life.settled.claims:
        if claim.is_committed and claim.shard != HIDDEN and claim.owner != cheat:
            assert claim.status == ClaimStatus.PAID
    assert {event.args["owner"] for event in life.events if event.name == "Slashed"} == {cheat}


async def test_the_books_balance_at_every_block(life: Life) -> None:
    market = life.world.bench.market
    token, book = market.dev_token.functions, market.deployment
    for block in sorted({event.block_number for event in life.events}):
        books = keep_books(event for event in life.events if event.block_number <= block)
        held = {
            name: await token.balanceOf(book.address(name)).call(block_identifier=block)
            for name in ("StakeVault", "RewardLedger")
        }
        assert held["StakeVault"] == books.still_staked
        assert held["RewardLedger"] == books.still_credited + books.in_pots
        assert books.put_in == sum(held.values()) + books.total("unstaked") + books.total("withdrawn") + books.burnt


async def test_every_account_has_in_the_vaults_what_its_books_say(life: Life) -> None:
    market, books = life.world.bench.market, keep_books(life.events)
    vault, ledger = market.stake_vault.functions, market.reward_ledger.functions
    for address, account in books.accounts.items():
        stake = account.staked - account.unstaked - account.slashed
        assert await market.call(vault.balanceOf(address)) == stake
        assert await market.call(ledger.creditOf(address)) == account.credited - account.withdrawn
    poster = books.of(life.world.bench.poster.owner.address)
    assert 0 < poster.refunded < poster.funded and poster.trained == 0
    cheat = books.of(life.world.bench.people[0].owner.address)
    assert cheat.slashed > 0 and cheat.trained == 0
    assert books.in_pots == books.court_fund > 0 and books.burnt > 0
    await check_books(market, books)


async def test_no_event_about_money_can_be_left_out(life: Life) -> None:
    market = life.world.bench.market
    for name in MONEY:
        index = next(i for i, event in enumerate(life.events) if event.name == name)
        books = keep_books([*life.events[:index], *life.events[index + 1 :]])
        with pytest.raises(BooksDoNotBalance, match="the books do not balance"):
            await check_books(market, books)
