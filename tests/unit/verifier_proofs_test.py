"""Which seeds are proved, by whom, and what waits for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from protocol.chain.beacon import SeedReader
from protocol.chain.connection import Head
from protocol.chain.errors import Reverted
from protocol.chain.market import Market
from protocol.core.audit import Case, CaseKind, CasePhase
from protocol.core.beacon import DRAND, PREVRANDAO, Unread, round_time
from protocol.core.claim import ClaimStatus
from protocol.core.commitment import case_id
from protocol.core.round import Round, RoundStatus
from tests.helpers.views import CLOSED_AT, JOB, ME, OTHER, a_case, a_claim, a_draw, a_job, a_round, an_operator, seen
from verifier.actions import Action, AdvanceCase, AdvanceDoubt, DrawSample, ProveSeed, Settle
from verifier.duty import MOST_RANK, SECONDS_PER_RANK, Duty
from verifier.snapshot import tickets_of
from verifier.upkeep import plan_upkeep

TICKET = a_draw().beacon_ticket
CASE_TICKET = a_case(0, CasePhase.SEATING).beacon_ticket
ADVANCE, DRAW = AdvanceCase(JOB, 0, 0, case_id(JOB, 0, 0)), DrawSample(JOB, 0)
NOW = CLOSED_AT + 5


def due(*rounds: Round, now: int = NOW, **unread: Unread) -> list[Action]:
    """What has to do with seeds. `t7=…`: ticket 7 gives no seed."""
    return planned(rounds, {int(name[1:]): why for name, why in unread.items()}, now)


def planned(rounds: Sequence[Round], unread: Mapping[int, Unread], now: int = NOW) -> list[Action]:
    moves = plan_upkeep(seen(a_job(*rounds), now=now, unread=unread))
    return [move for move in moves if not isinstance(move, Settle)]


def undrawn(**changes: Any) -> Round:
    return replace(a_round(RoundStatus.CLOSED, draw=a_draw(drawn=False)), **changes)


def with_case(phase: CasePhase, **changes: Any) -> Round:
    """A drawn round with one case that has no seed yet."""
    case = a_case(0, phase, **{"seed": bytes(32)} | changes)
    claim = a_claim(0, ClaimStatus.ACCEPTED)
    return replace(a_round(RoundStatus.CLOSED, claim, draw=a_draw(1)), cases={0: case})


def test_a_draw_waits_for_its_moment_then_the_moment_is_proved_then_it_is_drawn() -> None:
    assert due(undrawn(), t7=Unread.TO_COME) == []
    assert due(undrawn(), t7=Unread.UNPROVED) == [ProveSeed(TICKET)]
    assert due(undrawn()) == [DRAW]


@pytest.mark.parametrize("phase", [CasePhase.SEATING, CasePhase.REVEALING])
def test_seats_and_rows_that_wait_for_a_seed_have_it_proved(phase: CasePhase) -> None:
    round = with_case(phase)
    assert due(round, t9=Unread.TO_COME) == []
    assert due(round, t9=Unread.UNPROVED) == [ProveSeed(CASE_TICKET)]


def test_a_seat_is_drawn_and_a_seed_kept_once_it_can_be_read() -> None:
    late = a_case(0, CasePhase.REVEALING).phase_ends - 10
    assert due(with_case(CasePhase.SEATING)) == [ADVANCE]
    assert due(with_case(CasePhase.REVEALING), now=late) == [ADVANCE]
    assert due(with_case(CasePhase.REVEALING), now=late, t9=Unread.UNPROVED) == [ProveSeed(CASE_TICKET)]


def test_a_reveal_without_a_seed_ends_with_its_phase() -> None:
    over = a_case(0, CasePhase.REVEALING).phase_ends + 1
    assert ADVANCE in due(with_case(CasePhase.REVEALING), now=over, t9=Unread.TO_COME)


@pytest.mark.parametrize("phase", [CasePhase.COMMITTING, CasePhase.APPEALABLE, CasePhase.DONE])
def test_no_other_phase_waits_for_a_seed(phase: CasePhase) -> None:
    assert tickets_of(with_case(phase)) == []


def test_a_seed_that_a_case_holds_is_not_asked_for() -> None:
    assert tickets_of(with_case(CasePhase.SEATING, seed=b"\4" * 32)) == []
    assert due(with_case(CasePhase.SEATING, seed=b"\4" * 32), t9=Unread.UNPROVED) == [ADVANCE]


def test_a_doubted_checkpoint_needs_seeds_for_its_seats_and_none_for_what_they_show() -> None:
    def doubted(phase: CasePhase) -> Round:
        doubt: Case = a_case(0, phase, seed=bytes(32), kind=CaseKind.CHECKPOINT)
        return replace(a_round(RoundStatus.CLOSED), doubt=doubt)

    late = a_case(0, CasePhase.REVEALING).phase_ends - 10
    assert due(doubted(CasePhase.SEATING), t9=Unread.UNPROVED) == [ProveSeed(CASE_TICKET)]
    assert due(doubted(CasePhase.SEATING)) == [AdvanceDoubt(JOB, 0)]
    assert due(doubted(CasePhase.REVEALING), now=late, t9=Unread.UNPROVED) == []


def test_one_proof_serves_every_ticket_of_a_moment() -> None:
    replaced = 1 << 64 | TICKET
    rounds = [undrawn(), undrawn(number=1, draw=replace(a_draw(drawn=False), beacon_ticket=replaced))]
    unread = {TICKET: Unread.UNPROVED, replaced: Unread.UNPROVED}
    assert planned(rounds, unread) == [ProveSeed(TICKET)]
    assert ProveSeed(TICKET).key == ProveSeed(replaced).key == "prove-seed:7"


def test_one_operator_proves_at_once_and_the_next_ones_only_if_it_does_not() -> None:
    clock = [0.0]
    crew = [an_operator(ME), an_operator(OTHER)]
    duties = [Duty(operator.address, clock=lambda: clock[0]) for operator in crew]
    assert sum(bool(duty.choose([ProveSeed(TICKET)], crew)) for duty in duties) == 1
    clock[0] = SECONDS_PER_RANK * MOST_RANK
    assert all(duty.choose([ProveSeed(TICKET)], crew) for duty in duties)


# -- what the chain says -----------------------------------------------------------------------------------------------


class View:
    """Functions whose calls answer from a table."""

    def __init__(self, outcomes: dict[int, bytes], expired: set[int]) -> None:
        self.outcomes, self.gone, self.asked = outcomes, expired, 0

    def outcomeOf(self, moment: int) -> bytes:
        return self.outcomes.get(moment, bytes(32))

    def expired(self, ticket: int) -> bool:
        if ticket == 666:
            raise Reverted("UnknownTicket", {"ticket": ticket})
        return ticket in self.gone


class OneBeacon:
    """A market of which only the beacon is looked at."""

    def __init__(self, kind: str, view: View) -> None:
        self.beacon_kind, self.view = kind, view
        self.block_beacon = self
        self.functions = view

    async def call(self, value: Any) -> Any:
        self.view.asked += 1
        return value


def reader(kind: str, outcomes: dict[int, bytes] | None = None, expired: set[int] | None = None) -> SeedReader:
    return SeedReader(cast(Market, OneBeacon(kind, View(outcomes or {}, expired or set()))))


def head(number: int, timestamp: int = 0) -> Head:
    return Head(number, "0x", "0x", timestamp, 0)


async def test_a_beacon_without_proofs_is_never_asked() -> None:
    assert not reader("BlockhashBeacon").needs_proofs
    assert reader(PREVRANDAO).needs_proofs and reader(DRAND).needs_proofs


async def test_a_ticket_is_to_come_then_unproved_then_read_or_expired() -> None:
    randao = reader(PREVRANDAO, {101: b"\1" * 32}, {102, 1 << 64 | 103})
    tickets = [100, 101, 102, 1 << 64 | 103, 200, 666]
    assert await randao.unread(tickets, head(150)) == {100: Unread.UNPROVED, 200: Unread.TO_COME, 666: Unread.TO_COME}
    assert await randao.unread([666], head(700)) == {}
    drand = reader(DRAND)
    assert await drand.unread([1000], head(9, round_time(1000) - 1)) == {1000: Unread.TO_COME}
    assert await drand.unread([1000], head(9, round_time(1000))) == {1000: Unread.UNPROVED}


async def test_a_last_resort_waits_for_its_block_and_is_never_proved() -> None:
    last = 3 << 64 | 500
    for kind in (DRAND, PREVRANDAO):
        assert await reader(kind).unread([last], head(500)) == {last: Unread.TO_COME}
        assert await reader(kind).unread([last], head(501)) == {}
