"""The model and the contracts agree where random plays seldom come: each of these is a rule that few plays reach."""

from __future__ import annotations

from random import Random

from protocol.core.encoding import keccak
from protocol.core.model import case_ids, rounds
from protocol.core.model.kinds import CaseKind, CasePhase, Finding, Outcome, RoundStatus
from tests.helpers.cast import ALL_AUDITED, FEW_AUDITED, OPERATORS, TRUSTING
from tests.helpers.endings import left_over, wind_up
from tests.helpers.scripted import (
    close_round,
    doubt,
    finish,
    judge_checkpoint,
    judge_claim,
    step_found,
    twins_with_a_job,
)
from tests.helpers.twins import STRANGER, Twins

LIE, TRUTH, OTHER = keccak(b"lie"), keccak(b"truth"), keccak(b"other")
ALL_OF_FOUR, ALL_OF_FIVE = 0b1111, 0b11111


def _end(t: Twins) -> None:
    wind_up(t, Random(0))
    assert not any(left_over(t).values())


def test_what_a_court_puts_back_is_drawn_once_more_and_comes_before_the_fees() -> None:
    t, job = twins_with_a_job(TRUSTING, FEW_AUDITED, 3)
    close_round(t, job, 0, trainers=(0, 0, 0, 3, 4), voters=(0, 4), bitmap=0b00111, digest=TRUTH)
    t.wait(1, 2)
    t.act((STRANGER, "rounds", "draw", job, 0))
    first = rounds.draw_of(t.world, job, 0)
    t.act((OPERATORS[3], "court", "demandAudit", job, 0, 3))
    assert doubt(t, OPERATORS[7], job, 0) is None
    case = case_ids.of_checkpoint(job, 0)
    judge_checkpoint(t, case, [step_found(ALL_OF_FIVE, OTHER, TRUTH)] * TRUSTING.slash_panel)
    finish(t, "checkpoints", case)
    assert t.world.cases[case].outcome == Outcome.REJECT
    between = rounds.draw_of(t.world, job, 0)
    assert (first.drawn, between.drawn, between.taken) == (True, False, 2)
    t.wait(1, 2)
    t.act((STRANGER, "rounds", "draw", job, 0))
    # of the two that came back, one had its case already
    assert rounds.draw_of(t.world, job, 0).sampled_map == first.sampled_map | 1 << 4
    _end(t)


def test_who_attested_to_a_lie_is_slashed_although_its_round_was_orphaned() -> None:
    t, job = twins_with_a_job(TRUSTING, ALL_AUDITED, 3)
    for number in (0, 1):
        close_round(t, job, number, trainers=range(4), voters=range(3), bitmap=ALL_OF_FOUR, digest=LIE)
    cases = [case_ids.of_checkpoint(job, number) for number in (0, 1)]
    for number in (1, 0):
        assert doubt(t, OPERATORS[7], job, number) is None
    found = [step_found(ALL_OF_FOUR, TRUTH, TRUTH)] * TRUSTING.slash_panel
    judge_checkpoint(t, cases[0], found)
    finish(t, "checkpoints", cases[0])
    assert rounds.status_of(t.world, job, 1) == RoundStatus.ORPHANED
    assert t.act((STRANGER, "rounds", "settle", job, 1, [0, 1, 2, 3])) == "NothingToSettle"
    judge_checkpoint(t, cases[1], found)
    finish(t, "checkpoints", cases[1])
    assert t.act((STRANGER, "rounds", "settle", job, 1, [0, 1, 2, 3])) is None
    assert t.world.pots[cases[1]] > 0
    assert t.act((STRANGER, "checkpoints", "distribute", cases[1])) is None
    _end(t)


def test_an_appeal_that_nobody_hears_leaves_a_reject() -> None:
    t, job = twins_with_a_job(TRUSTING, ALL_AUDITED, 3)
    close_round(t, job, 0, trainers=range(4), voters=range(3), bitmap=ALL_OF_FOUR, digest=TRUTH)
    t.wait(1, 2)
    t.act((STRANGER, "rounds", "draw", job, 0))
    t.act((STRANGER, "court", "convene", job, 0, [0]))
    case = case_ids.of_claim(job, 0, 0)
    said = [Finding.UNAVAILABLE_PAYLOAD, Finding.UNAVAILABLE_PAYLOAD, Finding.UNAVAILABLE_INPUTS]
    judge_claim(t, case, said)
    t.wait(1, 2)
    t.act((STRANGER, "court", "advance", case))
    judge_claim(t, case, said)
    assert t.world.cases[case].phase == CasePhase.APPEALABLE
    assert t.act((OPERATORS[0], "court", "appeal", case)) is None
    finish(t, "court", case)
    c = t.world.cases[case]
    assert (c.level, c.outcome, c.kind) == (3, Outcome.REJECT, CaseKind.SAMPLED)
    _end(t)


def test_an_attester_that_appeals_proves_nothing() -> None:
    t, job = twins_with_a_job(TRUSTING, ALL_AUDITED, 3)
    close_round(t, job, 0, trainers=(0, 0, 0, 1), voters=[0], bitmap=ALL_OF_FOUR, digest=LIE)
    assert doubt(t, OPERATORS[7], job, 0) is None
    case = case_ids.of_checkpoint(job, 0)
    truth, other = step_found(ALL_OF_FOUR, TRUTH, TRUTH), step_found(ALL_OF_FOUR, OTHER, OTHER)
    found = [truth, other, truth, other, truth, truth]
    judge_checkpoint(t, case, found)
    assert t.world.cases[case].outcome == Outcome.UNSAMPLED
    assert t.act((OPERATORS[0], "checkpoints", "appeal", case)) is None
    judge_checkpoint(t, case, found)
    assert t.world.cases[case].outcome == Outcome.FRAUD
    assert t.world.convictions[case].false_bonds == {1}
    _end(t)
