"""Honest work that was not paid: its operator is told what to type, appeals or demands an audit, and gets its money."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from click.testing import CliRunner, Result

from node.cli import main
from node.devnet.people import Person
from protocol.core.audit import Case, CaseKind, CasePhase, Finding, Outcome, SeatState
from protocol.core.claim import ClaimStatus
from protocol.core.commitment import case_id, round_pot
from protocol.core.round import RoundStatus
from protocol.core.units import format_tokens
from tests.helpers.market import Node, World, open_nodes, open_world
from verifier.actions import Appeal, DemandAudit
from verifier.orders import Orders
from verifier.upkeep import plan_upkeep

pytestmark = pytest.mark.asyncio(loop_scope="module")
NO_OPENING = (bytes(32), bytes(32), bytes(32))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("remedies")) as made:
        yield made


async def gradmarket(person: Person, *arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, ["--home", str(person.home), *arguments])


async def refused(person: Person, *arguments: str) -> str:
    done = await gradmarket(person, *arguments)
    assert done.exit_code == 1, done.output + done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


async def while_running(node: Node, person: Person, *arguments: str) -> Result:
    """A command beside the node that runs in the same home."""
    task = asyncio.create_task(gradmarket(person, *arguments))
    while not task.done():
        await node.turn()
        await asyncio.sleep(0.05)
    return task.result()


async def deny(world: World, job: bytes, shard: int, clerk: Node) -> Case:
    """Every seat that is drawn says that the payload cannot be had, until they have an outcome."""
    court, ident = world.bench.market.audit_court.functions, case_id(job, 0, shard)
    for _ in range(40):
        case = (await world.round(job)).cases.get(shard)
        if case is not None and case.phase == CasePhase.APPEALABLE:
            return case
        for number, seat in enumerate(case.seats if case else ()):
            person = next((p for p in world.bench.people if p.operator.address == seat.operator), None)
            if person is None:
                continue
            sender = world.sender(person.operator)
            if seat.state == SeatState.SEATED:
                await sender.submit_and_confirm(f"deny:{number}", court.commitAudit(ident, number, b"\7" * 32))
            elif seat.state == SeatState.COMMITTED:
                said = (Finding.UNAVAILABLE_PAYLOAD, 0, bytes(32), NO_OPENING, [], [])
                await sender.submit_and_confirm(f"denied:{number}", court.reveal(ident, number, said))
        await keep_up(clerk)
        await world.bench.chain.advance(1)
    raise AssertionError(case)


async def keep_up(clerk: Node) -> None:
    """What anyone may do, and nothing that a seat does."""
    snapshot = await clerk.snapshot()
    for action in plan_upkeep(snapshot):
        await clerk.station.executor().execute(action)


async def credited(world: World, job: bytes, person: Person) -> int:
    """Wei that the round paid this owner."""
    event = world.bench.market.reward_ledger.events.Credited()
    wanted = {"pot": round_pot(job, 0), "account": person.owner.address}
    logs = await event.get_logs(from_block=0, argument_filters=wanted)
    return sum(log["args"]["amount"] for log in logs)


def shard_of(world: World, claims: object, number: int) -> int:
    operator = world.bench.people[number].operator.address
    return next(claim.shard for claim in claims if claim.operator == operator)  # type: ignore[attr-defined]


async def test_a_claim_that_three_seats_denied_is_appealed_through_the_running_node_and_paid(world: World) -> None:
    market, person = world.bench.market, world.bench.people[0]
    terms = world.job_terms(rounds=1, windows={"challenge": 40})
    job = await world.post(terms, salt=1)
    async with open_nodes(world, job, 0, 1):
        closed = await world.run(job, lambda round: round.closed_at > 0)
    shard = shard_of(world, closed.claims, 0)
    ident = case_id(job, 0, shard).hex()
    async with open_nodes(world, job, 5) as (clerk,):
        assert "no unsettled round has such a case" in await refused(person, "node", "appeal", ident)
        case = await deny(world, job, shard, clerk)
    assert (case.level, case.outcome, case.kind) == (2, Outcome.REJECT, CaseKind.SAMPLED)

    async with open_nodes(world, job, 0) as (node,):
        await node.turn()
        node.service._after_turn()
        shown = await gradmarket(person, "node", "status")
        assert f"gradmarket node appeal {ident}" in shown.output and "found reject" in shown.output
        (remedy,) = json.loads((person.home / "status.json").read_bytes())["remedies"]
        assert int(remedy["bond"]) == 7 * terms.audit_fee and remedy["until"] == case.phase_ends

        quoted = await gradmarket(person, "node", "appeal", ident[:12], "--dry-run")
        assert quoted.exit_code == 0 and "sent" not in quoted.output
        for words in (f"bond      {format_tokens(7 * terms.audit_fee)} tokens", "deadline", "5 seats judge again"):
            assert words in quoted.output
        assert (await world.round(job)).cases[shard].phase == CasePhase.APPEALABLE

        sent = await while_running(node, person, "node", "appeal", ident[:12])
        assert sent.exit_code == 0 and sent.output.endswith("sent\n"), sent.output + sent.stderr
        again = await refused(person, "node", "appeal", ident)
        assert "there is no outcome to appeal from yet" in again
        assert list((person.home / "orders").iterdir()) == []
    appealed = (await world.round(job)).cases[shard]
    assert appealed.level == 3

    async with open_nodes(world, job, 0, 1, 2, 3, 4, 5):
        settled = await world.run(job, lambda round: round.status == RoundStatus.SETTLED, step=5)
    assert settled.cases[shard].outcome == Outcome.MATCH and settled.claims[shard].status == ClaimStatus.PAID
    assert await credited(world, job, person) == terms.reward_per_shard
    ended = await market.audit_court.events.BondEnded().get_logs(from_block=0)
    assert [(log["args"]["operator"], log["args"]["lost"]) for log in ended] == [(person.operator.address, 0)]
    assert "such a case" in await refused(person, "node", "appeal", ident)


async def test_a_claim_that_was_voted_out_is_audited_on_demand_and_half_paid(world: World) -> None:
    person, other = world.bench.people[0], world.bench.people[1]
    terms = world.job_terms(rounds=1, windows={"challenge": 90})
    job = await world.post(terms, salt=2)
    async with open_nodes(world, job, 1) as (present,):
        async with open_nodes(world, job, 0):
            await world.run(job, lambda round: round.sealed_at > 0, [*world.nodes])
        closed = await world.run(job, lambda round: round.closed_at > 0, [present], step=20)
    shard = shard_of(world, closed.claims, 0)
    assert closed.claims[shard].status == ClaimStatus.EXCLUDED
    arguments = ("node", "demand-audit", job.hex()[:12], "0", str(shard))

    mine = shard_of(world, closed.claims, 1)
    assert "is accepted; only what was voted out" in await refused(other, *arguments[:-1], str(mine))
    assert f"was claimed by {person.operator.address}" in await refused(other, *arguments)
    assert "has no shard 9" in await refused(person, *arguments[:-1], "9")
    assert "has no round 7" in await refused(person, *arguments[:3], "7", "0")

    quoted = await gradmarket(person, *arguments, "--dry-run")
    assert quoted.exit_code == 0 and f"bond      {format_tokens(3 * terms.audit_fee)} tokens" in quoted.output
    assert f"half of its reward, {format_tokens(terms.reward_per_shard // 2)} tokens" in quoted.output
    sent = await gradmarket(person, *arguments)
    assert sent.exit_code == 0 and sent.output.endswith("sent\n"), sent.output + sent.stderr
    assert (await world.round(job)).cases[shard].kind == CaseKind.DEMANDED
    assert "has its case already" in await refused(person, *arguments)

    async with open_nodes(world, job, 0, 1, 2, 3, 4, 5):
        settled = await world.run(job, lambda round: round.status == RoundStatus.SETTLED, step=5)
    assert settled.cases[shard].outcome == Outcome.MATCH
    assert await credited(world, job, person) == terms.reward_per_shard // 2


async def test_an_order_that_the_contract_refuses_is_answered_and_not_tried_again(world: World) -> None:
    person = world.bench.people[3]
    async with open_nodes(world, None, 3) as (node,):
        orders, order = Orders(person.home), DemandAudit(b"\7" * 32, 0, 0)
        task = asyncio.create_task(orders.hand_over(order, seconds=30))
        while not task.done():
            await node.turn()
            await asyncio.sleep(0.05)
        answer = task.result()
    assert answer is not None and answer.startswith("the contract refused: ")
    assert orders.pending() == []


async def test_an_order_that_nobody_takes_stays_for_the_next_start(world: World, tmp_path: Path) -> None:
    orders, order = Orders(tmp_path), Appeal(b"\7" * 32, 3, b"\x08" * 32, True)
    assert await orders.hand_over(order, seconds=0.2) is None
    assert Orders(tmp_path).pending() == [order]
    (tmp_path / "orders" / "junk.json").write_text("{}")
    assert Orders(tmp_path).pending() == [order], "a file that is no order stops nobody"
