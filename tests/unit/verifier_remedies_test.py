"""What can be done about unpaid work, what it costs, and one line for everything that cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.core.audit import CaseKind, CasePhase, Outcome
from protocol.core.claim import ClaimStatus
from protocol.core.commitment import case_id, checkpoint_case_id
from protocol.core.presets import load_preset
from protocol.core.round import Round, RoundStatus
from protocol.core.times import utc
from tests.helpers.views import (
    CLOSED_AT,
    JOB,
    ME,
    MY_OWNER,
    OTHER,
    OTHER_OWNER,
    a_case,
    a_claim,
    a_job,
    a_round,
    a_seat,
    an_operator,
    seen,
    some_terms,
)
from verifier.actions import Appeal, DemandAudit
from verifier.remedies import NoRemedy, appeal, demand, find_remedies

PRESET, TERMS = load_preset("dev"), some_terms()
LAST = CLOSED_AT + 60  # of the appeal; the challenge window ends after half of it
MINE, EXCLUDED = a_claim(0, ClaimStatus.ACCEPTED), a_claim(0, ClaimStatus.EXCLUDED)


def rejected(level: int = 2, **changes: Any) -> Round:
    seats = [a_seat(OTHER) for _ in range(3 if level == 2 else 5)]
    facts = {"outcome": Outcome.REJECT, "accused": MY_OWNER, "level": level} | changes
    case = a_case(0, facts.pop("phase", CasePhase.APPEALABLE), *seats, **facts)
    return a_round(RoundStatus.CLOSED, MINE, cases={0: case})


def remedies(round: Round, now: int) -> list[Any]:
    people = [replace(an_operator(ME), owner=MY_OWNER), replace(an_operator(OTHER), owner=OTHER_OWNER)]
    return list(find_remedies(seen(a_job(round), now=now, operators=people), PRESET))


def test_an_appeal_from_three_seats_costs_seven_fees_and_one_from_the_panel_fourteen() -> None:
    for level, fees, seats in ((2, 7, 5), (3, 14, 21)):
        round = rejected(level)
        remedy = appeal(JOB, round, round.cases[0], TERMS, PRESET, LAST)
        assert remedy.bond == fees * TERMS.audit_fee and remedy.until == LAST
        assert remedy.order == Appeal(JOB, 0, case_id(JOB, 0, 0), False)
        assert remedy.won.startswith(f"{seats} seats judge again")


def test_whoever_appeals_is_told_what_fraud_would_cost() -> None:
    round = rejected()
    lines = "\n".join(appeal(JOB, round, round.cases[0], TERMS, PRESET, LAST - 20).lines(LAST - 20))
    assert "bond      7.7 tokens" in lines and f"deadline  {utc(LAST)}, in 20 s" in lines
    assert "if they find fraud, the claim's own bond of 25 tokens" in lines and "is paid 1 tokens" in lines


def test_the_outcome_about_a_checkpoint_is_appealed_by_its_own_name() -> None:
    doubt = a_case(0, CasePhase.APPEALABLE, kind=CaseKind.CHECKPOINT, level=3, outcome=Outcome.FRAUD)
    round = a_round(RoundStatus.CLOSED, MINE, doubt=doubt)
    remedy = appeal(JOB, round, doubt, TERMS, PRESET, LAST)
    assert remedy.order == Appeal(JOB, 0, checkpoint_case_id(JOB, 0), True)
    assert "claim's own bond" not in remedy.lost and remedy in remedies(round, LAST)


@pytest.mark.parametrize(
    ("changes", "now", "words"),
    [
        ({"phase": CasePhase.DONE}, LAST, "has ended with reject: there is no appeal any more"),
        ({"phase": CasePhase.REVEALING}, LAST, "is revealing: there is no outcome to appeal from yet"),
        ({}, LAST + 1, f"the time to appeal ended {utc(LAST)}, 1 s ago"),
    ],
)
def test_what_cannot_be_appealed_is_one_line(changes: Any, now: int, words: str) -> None:
    round = rejected(**changes)
    with pytest.raises(NoRemedy, match=words) as refusal:
        appeal(JOB, round, round.cases[0], TERMS, PRESET, now)
    assert "\n" not in str(refusal.value)


def test_a_claim_that_was_voted_out_can_demand_an_audit_until_the_window_ends() -> None:
    round = a_round(RoundStatus.CLOSED, EXCLUDED, accepted_map=0)
    remedy = demand(JOB, round, 0, TERMS, ME, CLOSED_AT + 30)
    assert remedy.order == DemandAudit(JOB, 0, 0) and remedy.bond == 3 * TERMS.audit_fee
    assert "0.5 tokens, after a match" in remedy.won and "was voted out" in remedy.about
    with pytest.raises(NoRemedy, match="the time to demand an audit ended"):
        demand(JOB, round, 0, TERMS, ME, CLOSED_AT + 31)


def test_a_claim_of_a_void_round_can_be_audited_and_one_of_an_orphaned_round_not() -> None:
    assert "lies in a void round" in demand(JOB, a_round(RoundStatus.VOID, EXCLUDED), 0, TERMS, ME, CLOSED_AT).about
    with pytest.raises(NoRemedy, match="is orphaned"):
        demand(JOB, a_round(RoundStatus.ORPHANED, EXCLUDED), 0, TERMS, ME, CLOSED_AT)


def test_only_the_claimant_demands_an_audit_and_only_of_what_was_voted_out() -> None:
    with pytest.raises(NoRemedy, match=f"was claimed by {OTHER}, keys.operator is {ME}"):
        demand(JOB, a_round(RoundStatus.CLOSED, replace(EXCLUDED, operator=OTHER)), 0, TERMS, ME, CLOSED_AT)
    with pytest.raises(NoRemedy, match="is accepted; only what was voted out"):
        demand(JOB, a_round(RoundStatus.CLOSED, MINE), 0, TERMS, ME, CLOSED_AT)
    with pytest.raises(NoRemedy, match="has its case already: committing"):
        judged = a_round(RoundStatus.CLOSED, EXCLUDED, cases={0: a_case(0, CasePhase.COMMITTING)})
        demand(JOB, judged, 0, TERMS, ME, CLOSED_AT)
    with pytest.raises(NoRemedy, match="has no shard 4; expected 0 to 3"):
        demand(JOB, a_round(RoundStatus.CLOSED), 4, TERMS, ME, CLOSED_AT)


def test_an_operator_sees_the_commands_for_its_own_unpaid_work_alone() -> None:
    (found,) = remedies(rejected(), LAST)
    assert found.command == f"gradmarket node appeal {case_id(JOB, 0, 0).hex()}"
    assert remedies(rejected(), LAST + 1) == [] and remedies(rejected(accused=OTHER_OWNER), LAST) == []
    assert remedies(rejected(outcome=Outcome.MATCH), LAST) == []
    (found,) = remedies(a_round(RoundStatus.CLOSED, EXCLUDED), CLOSED_AT)
    assert found.command == f"gradmarket node demand-audit {JOB.hex()[:12]} 0 0"
    assert remedies(a_round(RoundStatus.CLOSED, a_claim(0, ClaimStatus.EXCLUDED, by=OTHER)), CLOSED_AT) == []
