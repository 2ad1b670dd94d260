"""When a claim's fate is decided: the twin of RoundBook.settle, second by second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.core.audit import CaseKind, CasePhase, Outcome
from protocol.core.claim import Claim, ClaimStatus
from protocol.core.job import MOST_ROUNDS, JobStatus
from protocol.core.presets import UnknownPreset, load_preset
from protocol.core.round import RoundStatus, bits, is_decided, is_final, lineage
from protocol.core.terms import Terms, sampled_at_most
from tests.helpers.views import CLOSED_AT, OTHER, a_case, a_claim, a_draw, a_job, a_round, some_terms

OPEN_PHASES = [phase for phase in CasePhase if phase not in (CasePhase.NONE, CasePhase.DONE)]
CHALLENGE, LAST = 30, CLOSED_AT + 30
ACCEPTED = a_claim(0, ClaimStatus.ACCEPTED)


def decided(
    claim: Claim = ACCEPTED,
    now: int = LAST,
    status: RoundStatus = RoundStatus.CLOSED,
    final: bool = True,
    **changes: Any,
) -> bool:
    return is_decided(replace(a_round(status, claim), **changes), claim, CHALLENGE, now, final=final)


@pytest.mark.parametrize("claim", [ACCEPTED, a_claim(0, ClaimStatus.EXCLUDED)], ids=["accepted", "excluded"])
def test_what_nobody_audits_is_decided_one_second_after_the_challenge_window(claim: Claim) -> None:
    assert not decided(claim, LAST)
    assert decided(claim, LAST + 1)


def test_a_claim_of_a_void_round_is_decided_with_the_window_as_well() -> None:
    committed = a_claim(0, ClaimStatus.EXCLUDED)
    assert not decided(committed, LAST, RoundStatus.VOID)
    assert decided(committed, LAST + 1, RoundStatus.VOID, draw=a_draw(drawn=False))


@pytest.mark.parametrize("status", [ClaimStatus.FREE, ClaimStatus.LAPSED])
def test_what_was_not_committed_is_decided_at_the_close(status: ClaimStatus) -> None:
    claim = a_claim(0, status, by=OTHER)
    assert decided(claim, CLOSED_AT, draw=a_draw(drawn=False))
    assert not decided(replace(claim, settled=ClaimStatus.UNPAID), CLOSED_AT)


def test_nothing_is_decided_before_the_close() -> None:
    for status in (RoundStatus.OPEN, RoundStatus.SEALED, RoundStatus.TALLIED, RoundStatus.DUE):
        assert not decided(a_claim(0, ClaimStatus.COMMITTED), LAST + 1_000, status)


@pytest.mark.parametrize("status", [ClaimStatus.PAID, ClaimStatus.UNPAID])
def test_what_is_settled_stays_as_it_is(status: ClaimStatus) -> None:
    assert not decided(a_claim(0, status), LAST + 1_000)


def test_nothing_accepted_is_decided_before_the_sample_is_drawn_and_judged() -> None:
    late = LAST + 1_000
    assert not decided(now=late, draw=a_draw(drawn=False))
    assert not decided(now=late, draw=a_draw(1))
    for phase in OPEN_PHASES:
        assert not decided(now=late, draw=a_draw(1), cases={0: a_case(0, phase)})
        assert not decided(now=late, cases={0: a_case(0, phase, kind=CaseKind.CHALLENGED)})


@pytest.mark.parametrize("outcome", [Outcome.MATCH, Outcome.REJECT, Outcome.FRAUD, Outcome.EXCUSED])
def test_a_verdict_decides_when_the_checkpoint_is_past_every_challenge(outcome: Outcome) -> None:
    cases = {0: a_case(0, CasePhase.DONE, outcome=outcome)}
    assert not decided(now=LAST, draw=a_draw(1), cases=cases)
    assert not decided(now=LAST + 1, draw=a_draw(1), cases=cases, final=False)
    assert decided(now=LAST + 1, draw=a_draw(1), cases=cases)


def test_a_demanded_audit_is_waited_for_like_any_other() -> None:
    excluded, demanded = a_claim(0, ClaimStatus.EXCLUDED), CaseKind.DEMANDED
    assert not decided(excluded, LAST + 1, cases={0: a_case(0, CasePhase.COMMITTING, kind=demanded)})
    judged = {0: a_case(0, CasePhase.DONE, kind=demanded, outcome=Outcome.MATCH)}
    assert decided(excluded, LAST + 1, cases=judged)


def test_an_orphaned_round_is_decided_as_soon_as_its_cases_are_done() -> None:
    excluded = a_claim(0, ClaimStatus.EXCLUDED)
    assert decided(excluded, CLOSED_AT, RoundStatus.ORPHANED, final=False)
    cases = {0: a_case(0, CasePhase.REVEALING)}
    assert not decided(excluded, LAST + 1_000, RoundStatus.ORPHANED, cases=cases)


def test_a_checkpoint_is_final_one_second_after_its_window_and_its_case() -> None:
    round = a_round(RoundStatus.CLOSED, ACCEPTED)
    assert not is_final(round, CHALLENGE, LAST) and is_final(round, CHALLENGE, LAST + 1)
    for phase in OPEN_PHASES:
        assert not is_final(replace(round, doubt=a_case(0, phase)), CHALLENGE, LAST + 1_000)
    assert is_final(replace(round, doubt=a_case(0, CasePhase.DONE)), CHALLENGE, LAST + 1)


def test_rounds_without_a_checkpoint_of_their_own_are_final_at_once() -> None:
    for status in (RoundStatus.VOID, RoundStatus.ORPHANED, RoundStatus.SETTLED):
        assert is_final(a_round(status, ACCEPTED), CHALLENGE, CLOSED_AT)
    assert not is_final(a_round(RoundStatus.SEALED), CHALLENGE, LAST + 1_000)


def test_a_round_is_final_only_after_all_before_it() -> None:
    doubted = a_round(RoundStatus.CLOSED, ACCEPTED, doubt=a_case(0, CasePhase.COMMITTING))
    later = a_round(RoundStatus.CLOSED, ACCEPTED, number=1)
    assert a_job(doubted, later).job.final_rounds(CHALLENGE, LAST + 1) == 0
    cleared = replace(doubted, doubt=a_case(0, CasePhase.DONE))
    assert a_job(cleared, later).job.final_rounds(CHALLENGE, LAST) == 0
    assert a_job(cleared, later).job.final_rounds(CHALLENGE, LAST + 1) == 2
    settled_before = a_round(RoundStatus.CLOSED, ACCEPTED, number=5)
    assert a_job(settled_before).job.final_rounds(CHALLENGE, LAST + 1) == 6


def test_rounds_that_the_reading_left_out_are_not_taken_for_settled() -> None:
    old = [a_round(RoundStatus.CLOSED, ACCEPTED, number=number) for number in range(MOST_ROUNDS - 1)]
    newest = a_round(RoundStatus.CLOSED, ACCEPTED, number=40)
    assert a_job(*old, newest).job.final_rounds(CHALLENGE, LAST + 1) == MOST_ROUNDS - 1


def test_the_model_rests_on_the_newest_round_of_each_checkpoint() -> None:
    rounds = [
        a_round(RoundStatus.SETTLED, number=0),
        a_round(RoundStatus.VOID, number=1),
        a_round(RoundStatus.SETTLED, number=2, checkpoint=2),  # orphaned once, settled since
        a_round(RoundStatus.CLOSED, number=3, checkpoint=2),
        a_round(RoundStatus.ORPHANED, number=4, checkpoint=3),
    ]
    assert [round.number for round in lineage(rounds, closed=2)] == [0, 3]


def test_a_case_that_nobody_could_judge_waits_for_the_window_like_an_unsampled_claim() -> None:
    cases = {0: a_case(0, CasePhase.DONE, outcome=Outcome.UNSAMPLED)}
    assert not decided(now=LAST, draw=a_draw(1), cases=cases)
    assert decided(now=LAST + 1, draw=a_draw(1), cases=cases)


def test_a_verdict_about_one_shard_says_nothing_about_another() -> None:
    cases = {1: a_case(1, CasePhase.DONE, outcome=Outcome.MATCH)}
    assert not decided(now=LAST, draw=a_draw(2), cases=cases)


def test_a_map_names_its_shards_in_order() -> None:
    assert bits(0) == [] and bits(0b1011) == [0, 1, 3] and bits(1 << 255) == [255]
    assert len(bits(2**256 - 1)) == 256


def test_the_current_round_is_the_newest_one_while_it_is_unsettled() -> None:
    first, second = a_round(RoundStatus.CLOSED), a_round(RoundStatus.OPEN, number=1)
    assert a_job(first, second).job.current == second
    settled = a_job(first, second).job
    assert replace(settled, rounds=(first,)).current is None
    assert a_job(status=JobStatus.READY).job.current is None


def test_terms_survive_the_way_to_the_chain_and_back() -> None:
    terms = some_terms()
    assert Terms.from_tuple(terms.as_tuple()) == terms


def test_at_most_every_shard_is_sampled() -> None:
    assert sampled_at_most(some_terms(audit_rate_bps=0, probation_slots=1)) == 1
    assert sampled_at_most(some_terms(audit_rate_bps=2_501, probation_slots=1)) == 3
    assert sampled_at_most(some_terms(audit_rate_bps=10_000)) == 4


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(UnknownPreset, match="'prod': expected one of dev"):
        load_preset("prod")
