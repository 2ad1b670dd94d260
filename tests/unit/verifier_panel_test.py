"""What the seats of an operator have to do next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.core.audit import CasePhase, PanelSeat, SeatState
from protocol.core.claim import ClaimStatus
from protocol.core.commitment import case_id, checkpoint_case_id
from protocol.core.round import RoundStatus
from tests.helpers.views import CLOSED_AT, JOB, OTHER, a_case, a_claim, a_job, a_round, a_seat, seen
from verifier.actions import Action, CommitAudit, CommitStep, RecomputeStep, Reexecute, RevealAudit, RevealStep
from verifier.panel import plan_seats
from verifier.records import audit_key, step_key

CASE = case_id(JOB, 0, 1)
CLAIM = a_claim(1, ClaimStatus.ACCEPTED, by=OTHER)
DONE = {"salt": "00" * 32, "root": "11" * 32, "missing": "", "failed": "", "baseless": ""}
SEATED, COMMITTED, REVEALED = SeatState.SEATED, SeatState.COMMITTED, SeatState.REVEALED


def duties(
    phase: CasePhase, *seats: PanelSeat, now: int = CLOSED_AT + 5, done: bool = False, **case: Any
) -> list[Action]:
    round = replace(a_round(RoundStatus.CLOSED, CLAIM), cases={1: a_case(1, phase, *seats, **case)})
    records = {audit_key(CASE, number, CLAIM.commitment): DONE for number in range(len(seats))}
    return plan_seats(seen(a_job(round), now=now, audits=records if done else {}))


def test_a_seat_re_executes_then_commits_then_reveals() -> None:
    assert duties(CasePhase.COMMITTING, a_seat()) == [Reexecute(JOB, 0, 1, CASE, 0, CLAIM.commitment)]
    assert duties(CasePhase.COMMITTING, a_seat(), done=True) == [CommitAudit(JOB, 0, 1, CASE, 0, CLAIM.commitment)]
    assert duties(CasePhase.REVEALING, a_seat(state=COMMITTED), done=True) == [
        RevealAudit(JOB, 0, 1, CASE, 0, CLAIM.commitment)
    ]


def test_nothing_is_done_twice() -> None:
    assert duties(CasePhase.COMMITTING, a_seat(state=COMMITTED), done=True) == []
    assert duties(CasePhase.REVEALING, a_seat(state=REVEALED), done=True) == []


def test_nothing_is_revealed_while_others_still_commit() -> None:
    assert duties(CasePhase.COMMITTING, a_seat(OTHER), a_seat(state=COMMITTED), done=True) == []


def test_a_seat_that_did_not_commit_in_time_has_nothing_to_reveal() -> None:
    assert duties(CasePhase.REVEALING, a_seat(state=SEATED), done=True) == []


def test_without_its_record_a_committed_seat_cannot_reveal() -> None:
    assert duties(CasePhase.REVEALING, a_seat(state=COMMITTED)) == []


@pytest.mark.parametrize("phase", [CasePhase.SEATING, CasePhase.DONE])
def test_between_the_cycles_a_seat_has_nothing_to_do(phase: CasePhase) -> None:
    assert duties(phase, a_seat(), a_seat(state=COMMITTED), done=True) == []


def test_the_last_second_of_a_phase_still_counts_and_the_next_does_not() -> None:
    assert duties(CasePhase.COMMITTING, a_seat(), now=CLOSED_AT + 60)
    assert duties(CasePhase.COMMITTING, a_seat(), now=CLOSED_AT + 61) == []


def test_only_the_own_seat_is_served_by_its_number() -> None:
    seats = (a_seat(OTHER), a_seat(OTHER), a_seat())
    assert duties(CasePhase.COMMITTING, *seats) == [Reexecute(JOB, 0, 1, CASE, 2, CLAIM.commitment)]
    assert duties(CasePhase.COMMITTING, *seats[:2]) == []


@pytest.mark.parametrize("state", [SeatState.EMPTY, SeatState.VACANT])
def test_a_seat_that_was_taken_away_is_left(state: SeatState) -> None:
    assert duties(CasePhase.COMMITTING, a_seat(state=state)) == []


def test_what_was_done_on_another_seat_of_the_case_is_not_committed_here() -> None:
    """An owner that missed its seat can be drawn again; salt and root are of one seat alone."""
    round = replace(
        a_round(RoundStatus.CLOSED, CLAIM), cases={1: a_case(1, CasePhase.COMMITTING, a_seat(OTHER), a_seat())}
    )
    before = {audit_key(CASE, 0, CLAIM.commitment): DONE}
    plan = plan_seats(seen(a_job(round), now=CLOSED_AT + 5, audits=before))
    assert plan == [Reexecute(JOB, 0, 1, CASE, 1, CLAIM.commitment)]


def test_what_was_done_for_a_claim_of_another_fork_is_not_committed_here() -> None:
    round = replace(a_round(RoundStatus.CLOSED, CLAIM), cases={1: a_case(1, CasePhase.COMMITTING, a_seat())})
    plan = plan_seats(seen(a_job(round), now=CLOSED_AT + 5, audits={audit_key(CASE, 0, b"fork" * 8): DONE}))
    assert plan == [Reexecute(JOB, 0, 1, CASE, 0, CLAIM.commitment)]


# -- checkpoints -------------------------------------------------------------------------------------------------------

DOUBT = checkpoint_case_id(JOB, 0)


def doubted(phase: CasePhase, *seats: PanelSeat, **changes: Any) -> Any:
    return replace(a_round(RoundStatus.CLOSED, CLAIM), doubt=a_case(0, phase, *seats), **changes)


def test_a_seat_about_a_checkpoint_recomputes_then_commits_then_reveals() -> None:
    committing, revealing = (doubted(phase, a_seat()) for phase in (CasePhase.COMMITTING, CasePhase.REVEALING))
    revealing = replace(revealing, doubt=a_case(0, CasePhase.REVEALING, a_seat(state=COMMITTED)))
    key = step_key(DOUBT, 0, committing)
    where, now = (JOB, 0, DOUBT, 0, key), CLOSED_AT + 5
    assert plan_seats(seen(a_job(committing), now=now)) == [RecomputeStep(*where)]
    assert plan_seats(seen(a_job(committing), now=now, audits={key: {}})) == [CommitStep(*where)]
    assert plan_seats(seen(a_job(revealing), now=now, audits={key: {}})) == [RevealStep(*where)]
    assert plan_seats(seen(a_job(revealing), now=now)) == [], "without its record nothing can be revealed"


def test_what_a_seat_found_about_a_checkpoint_of_another_fork_is_not_committed_here() -> None:
    here, fork = doubted(CasePhase.COMMITTING, a_seat()), doubted(CasePhase.COMMITTING, a_seat(), next=b"fork" * 8)
    audits: dict[str, Any] = {step_key(DOUBT, 0, fork): {}}
    (action,) = plan_seats(seen(a_job(here), now=CLOSED_AT + 5, audits=audits))
    assert isinstance(action, RecomputeStep)


def test_a_seat_about_a_checkpoint_is_left_when_its_phase_is_over_or_it_is_not_ours() -> None:
    mine, theirs = doubted(CasePhase.COMMITTING, a_seat()), doubted(CasePhase.COMMITTING, a_seat(OTHER))
    assert plan_seats(seen(a_job(mine), now=CLOSED_AT + 61)) == []
    assert plan_seats(seen(a_job(theirs), now=CLOSED_AT + 5)) == []
