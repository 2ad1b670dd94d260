"""Which moves are due that anyone may make, and whose turn it is to make them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.core.audit import CaseKind, CasePhase, Outcome
from protocol.core.claim import Claim, ClaimStatus
from protocol.core.commitment import case_id
from protocol.core.job import JobStatus
from protocol.core.round import Round, RoundStatus
from tests.helpers.views import (
    CLOSED_AT,
    JOB,
    OPENED_AT,
    OTHER,
    a_case,
    a_claim,
    a_draw,
    a_job,
    a_round,
    an_operator,
    seen,
)
from verifier.actions import (
    Action,
    AdvanceCase,
    AdvanceDoubt,
    AdvanceRound,
    CloseJob,
    Convene,
    Distribute,
    DrawSample,
    OpenRound,
    Settle,
)
from verifier.duty import SECONDS_PER_RANK, Duty
from verifier.upkeep import plan_upkeep

ACCEPTED, EXCLUDED, COMMITTED = ClaimStatus.ACCEPTED, ClaimStatus.EXCLUDED, ClaimStatus.COMMITTED
WINDOW_END = CLOSED_AT + 30  # the last second of the challenge window


def due(*rounds: Round, now: int = OPENED_AT + 10, status: JobStatus = JobStatus.RUNNING) -> list[Action]:
    return plan_upkeep(seen(a_job(*rounds, status=status), now=now))


def closed(*claims: Claim, sampled: int = 0, **changes: Any) -> Round:
    """Shards that are not given were never claimed."""
    return replace(a_round(RoundStatus.CLOSED, *claims, draw=a_draw(sampled)), **changes)


def done(shard: int, outcome: Outcome) -> Any:
    return a_case(shard, CasePhase.DONE, outcome=outcome)


# -- jobs and rounds ---------------------------------------------------------------------------------------------------


def test_a_ready_job_gets_its_next_round_and_a_closable_one_is_closed() -> None:
    assert due(status=JobStatus.READY) == [OpenRound(JOB)]
    assert due(status=JobStatus.CLOSABLE) == [CloseJob(JOB)]


@pytest.mark.parametrize("status", [JobStatus.RUNNING, JobStatus.PAUSED, JobStatus.DRAINING, JobStatus.CLOSED])
def test_nothing_is_done_about_a_job_that_waits(status: JobStatus) -> None:
    assert due(status=status) == []


@pytest.mark.parametrize("status", [RoundStatus.OPEN, RoundStatus.SEALED, RoundStatus.TALLIED])
def test_nothing_is_done_about_a_round_whose_time_is_not_over(status: RoundStatus) -> None:
    assert due(a_round(status, a_claim(0, COMMITTED)), now=OPENED_AT + 10_000) == []


def test_a_round_whose_time_is_over_is_advanced() -> None:
    assert due(a_round(RoundStatus.DUE, number=3)) == [AdvanceRound(JOB, 3)]


def test_every_unsettled_round_is_looked_after_in_the_same_turn() -> None:
    first = closed(a_claim(0, ACCEPTED), draw=a_draw(drawn=False))
    moves = due(first, a_round(RoundStatus.DUE, number=1), now=CLOSED_AT + 1, status=JobStatus.RUNNING)
    assert moves == [DrawSample(JOB, 0), AdvanceRound(JOB, 1)]


# -- sample and cases --------------------------------------------------------------------------------------------------


def test_the_sample_of_a_closed_round_is_drawn_once() -> None:
    undrawn = closed(*(a_claim(shard, ACCEPTED) for shard in range(4)), draw=a_draw(drawn=False))
    assert due(undrawn, now=CLOSED_AT) == [DrawSample(JOB, 0)]
    assert due(replace(undrawn, draw=a_draw()), now=CLOSED_AT) == []


def test_a_void_round_has_no_sample() -> None:
    void = a_round(RoundStatus.VOID, *(a_claim(shard, EXCLUDED) for shard in range(4)), draw=a_draw(drawn=False))
    assert due(void, now=WINDOW_END) == []


def test_sampled_shards_without_a_case_are_convened_together() -> None:
    claims = [a_claim(shard, ACCEPTED) for shard in range(4)]
    cases = {1: a_case(1, CasePhase.COMMITTING)}
    assert due(closed(*claims, sampled=0b1110, cases=cases), now=CLOSED_AT) == [Convene(JOB, 0, (2, 3))]


def test_a_case_with_an_empty_seat_is_drawn_for_at_once() -> None:
    cases = {2: a_case(2, CasePhase.SEATING)}
    claims = [a_claim(shard, ACCEPTED) for shard in range(4)]
    assert due(closed(*claims, sampled=4, cases=cases), now=CLOSED_AT) == [AdvanceCase(JOB, 0, 2, case_id(JOB, 0, 2))]


@pytest.mark.parametrize("phase", [CasePhase.COMMITTING, CasePhase.REVEALING, CasePhase.APPEALABLE])
def test_a_case_is_advanced_in_the_first_second_after_its_phase(phase: CasePhase) -> None:
    round = closed(*(a_claim(shard, ACCEPTED) for shard in range(4)), sampled=1, cases={0: a_case(0, phase)})
    assert [move for move in due(round, now=CLOSED_AT + 60) if isinstance(move, AdvanceCase)] == []
    assert AdvanceCase(JOB, 0, 0, case_id(JOB, 0, 0)) in due(round, now=CLOSED_AT + 61)


def test_a_seed_that_nobody_used_is_fetched_before_the_chain_forgets_it() -> None:
    case = a_case(0, CasePhase.REVEALING, seed=bytes(32))
    round = closed(*(a_claim(shard, ACCEPTED) for shard in range(4)), sampled=1, cases={0: case})
    fetch = AdvanceCase(JOB, 0, 0, case_id(JOB, 0, 0))
    assert fetch not in due(round, now=CLOSED_AT + 30)
    assert fetch in due(round, now=CLOSED_AT + 31)


def test_nothing_is_done_about_a_case_that_is_done() -> None:
    claims = [a_claim(shard, ClaimStatus.PAID) for shard in range(4)]
    assert due(closed(*claims, sampled=1, cases={0: done(0, Outcome.MATCH)}), now=CLOSED_AT + 10_000) == []


# -- settling ----------------------------------------------------------------------------------------------------------


def test_shards_are_settled_in_one_move_once_all_are_decided() -> None:
    round = closed(*(a_claim(shard, ACCEPTED) for shard in range(4)))
    assert due(round, now=WINDOW_END) == []
    assert due(round, now=WINDOW_END + 1) == [Settle(JOB, 0, (0, 1, 2, 3))]


def test_decided_shards_wait_for_the_others_for_two_windows() -> None:
    cases = {0: a_case(0, CasePhase.COMMITTING, phase_ends=CLOSED_AT + 10_000)}
    round = closed(*(a_claim(shard, ACCEPTED) for shard in range(4)), sampled=1, cases=cases)
    assert due(round, now=CLOSED_AT + 60) == []
    assert due(round, now=CLOSED_AT + 61) == [Settle(JOB, 0, (1, 2, 3))]


def test_what_is_settled_is_not_settled_again() -> None:
    claims = [a_claim(0, ClaimStatus.PAID), a_claim(1, ClaimStatus.UNPAID), a_claim(2, ACCEPTED), a_claim(3, ACCEPTED)]
    assert due(closed(*claims), now=WINDOW_END + 1) == [Settle(JOB, 0, (2, 3))]


def test_shards_that_nobody_committed_are_settled_with_the_rest() -> None:
    round = closed(a_claim(0, ACCEPTED), a_claim(1, ClaimStatus.LAPSED, by=OTHER))
    assert due(round, now=WINDOW_END + 1) == [Settle(JOB, 0, (0, 1, 2, 3))]


def test_a_void_round_is_settled_when_nobody_can_dispute_it_any_more() -> None:
    void = a_round(RoundStatus.VOID, *(a_claim(shard, EXCLUDED) for shard in range(4)))
    assert due(void, now=WINDOW_END) == []
    assert due(void, now=WINDOW_END + 1) == [Settle(JOB, 0, (0, 1, 2, 3))]


def test_no_refused_settle_is_sent_while_the_checkpoint_can_be_challenged() -> None:
    claims = [a_claim(0, ACCEPTED), *(a_claim(shard, ClaimStatus.PAID) for shard in (1, 2, 3))]
    for outcome in (Outcome.MATCH, Outcome.REJECT, Outcome.FRAUD, Outcome.EXCUSED):
        round = closed(*claims, sampled=1, cases={0: done(0, outcome)})
        assert due(round, now=WINDOW_END) == []
        assert due(round, now=WINDOW_END + 1) == [Settle(JOB, 0, (0,))]
    unsampled = closed(*claims, sampled=1, cases={0: done(0, Outcome.UNSAMPLED)})
    assert due(unsampled, now=WINDOW_END) == []
    assert due(unsampled, now=WINDOW_END + 1) == [Settle(JOB, 0, (0,))]


def test_a_round_waits_for_the_doubted_checkpoint_of_an_earlier_one() -> None:
    claims = [a_claim(shard, ACCEPTED) for shard in range(4)]
    doubt = a_case(0, CasePhase.COMMITTING, kind=CaseKind.CHECKPOINT, phase_ends=CLOSED_AT + 10_000)
    first, second = closed(*claims, doubt=doubt), closed(*claims, number=1)
    assert due(first, second, now=CLOSED_AT + 1_000) == []
    cleared = replace(first, doubt=replace(doubt, phase=CasePhase.DONE))
    settled = [Settle(JOB, 0, (0, 1, 2, 3)), Settle(JOB, 1, (0, 1, 2, 3))]
    assert due(cleared, second, now=CLOSED_AT + 1_000) == settled


def test_an_orphaned_round_is_settled_at_once_and_neither_drawn_nor_convened() -> None:
    claims = [a_claim(shard, EXCLUDED) for shard in range(4)]
    for draw in (a_draw(drawn=False), a_draw(0b11)):
        orphaned = a_round(RoundStatus.ORPHANED, *claims, draw=draw)
        assert due(orphaned, now=CLOSED_AT + 1) == [Settle(JOB, 0, (0, 1, 2, 3))]


# -- checkpoints that are doubted --------------------------------------------------------------------------------------


def test_a_sampled_shard_that_lost_its_place_with_a_replaced_checkpoint_is_not_convened() -> None:
    claims = [a_claim(0, EXCLUDED), *(a_claim(shard, ACCEPTED) for shard in (1, 2, 3))]
    assert due(closed(*claims, sampled=0b11), now=CLOSED_AT) == [Convene(JOB, 0, (1,))]


@pytest.mark.parametrize("phase", [CasePhase.COMMITTING, CasePhase.REVEALING, CasePhase.APPEALABLE])
def test_the_case_about_a_checkpoint_goes_on_like_any_other(phase: CasePhase) -> None:
    claims = [a_claim(shard, ACCEPTED) for shard in range(4)]
    doubted = closed(*claims, doubt=a_case(0, phase, kind=CaseKind.CHECKPOINT))
    assert due(doubted, now=CLOSED_AT + 60) == []
    assert due(doubted, now=CLOSED_AT + 61) == [AdvanceDoubt(JOB, 0)]
    seating = replace(doubted, doubt=a_case(0, CasePhase.SEATING))
    assert due(seating, now=CLOSED_AT) == [AdvanceDoubt(JOB, 0)]


def test_what_a_false_checkpoint_cost_is_shared_out() -> None:
    assert plan_upkeep(seen(spoils=[(JOB, 3)])) == [Distribute(JOB, 3)]


# -- whose turn --------------------------------------------------------------------------------------------------------

OPERATORS = [an_operator(f"0x{number:040x}") for number in range(1, 6)]
MOVES: list[Action] = [AdvanceRound(JOB, number) for number in range(20)]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def crew(clock: Clock) -> list[Duty]:
    return [Duty(operator.address, clock) for operator in OPERATORS]


def test_exactly_one_operator_makes_a_move_at_once() -> None:
    duties = crew(Clock())
    chosen = [duty.choose(MOVES, OPERATORS) for duty in duties]
    assert sorted(move.key for moves in chosen for move in moves) == sorted(move.key for move in MOVES)
    assert sum(bool(moves) for moves in chosen) > 1, "the burden is shared"


def test_when_the_first_is_dead_the_next_one_takes_over_after_two_seconds() -> None:
    clock = Clock()
    duties = crew(clock)
    firsts = [bool(duty.choose(MOVES[:1], OPERATORS)) for duty in duties]
    alive = [duty for duty, first in zip(duties, firsts, strict=True) if not first]
    for made in range(1, len(OPERATORS)):
        clock.now = 100.0 + made * SECONDS_PER_RANK - 0.01
        before = sum(bool(duty.choose(MOVES[:1], OPERATORS)) for duty in alive)
        clock.now = 100.0 + made * SECONDS_PER_RANK
        assert (before, sum(bool(duty.choose(MOVES[:1], OPERATORS)) for duty in alive)) == (made - 1, made)


def test_the_wait_starts_anew_when_a_move_was_made_and_is_due_again() -> None:
    clock = Clock()
    last = next(duty for duty in crew(clock) if not duty.choose(MOVES[:1], OPERATORS))
    last.choose([], OPERATORS)
    clock.now += 100
    assert last.choose(MOVES[:1], OPERATORS) == []


def test_an_auditor_that_is_no_operator_still_has_its_turn() -> None:
    clock = Clock()
    guest = Duty("0x" + "ee" * 20, clock)
    guest.choose(MOVES, OPERATORS)
    clock.now += SECONDS_PER_RANK * len(OPERATORS)
    assert guest.choose(MOVES, OPERATORS) == MOVES


def test_a_move_that_is_due_twice_is_made_once() -> None:
    alone = Duty(OPERATORS[0].address, Clock())
    assert alone.choose([*MOVES[:1], *MOVES[:1]], OPERATORS[:1]) == MOVES[:1]
