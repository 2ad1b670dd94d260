"""What the demo says happened: every turn of a case is told, and none as something else."""

from __future__ import annotations

from typing import Any

import pytest

from node.devnet.narrator import Narrator
from protocol.chain.logs import Event
from protocol.core.audit import CaseKind, Finding, Outcome

NAMES = {"0xa": "ada", "0xm": "mallory", "0xv": "vera"}
CASE, TRUTH, LIE = b"c" * 32, b"t" * 32, b"l" * 32


@pytest.fixture
def narrator() -> Narrator:
    told = Narrator(NAMES)
    tell(told, "Claimed", round=0, shard=2, operator="0xm")
    tell(told, "RoundClosed", round=0, acceptedMap=7, next=LIE)
    return told


def tell(narrator: Narrator, name: str, **args: Any) -> str:
    return narrator.tell(Event("", name, args, 1, "0x1", "0x1", 0))


def open_case(narrator: Narrator, kind: CaseKind, opener: str = "0xv") -> str:
    return tell(narrator, "CaseOpened", caseId=CASE, round=0, shard=2, kind=kind, opener=opener)


def level(narrator: Narrator, number: int, seats: int) -> str:
    return tell(narrator, "LevelStarted", caseId=CASE, level=number, seats=seats)


def verdict(narrator: Narrator, outcome: Outcome, number: int) -> str:
    return tell(narrator, "VerdictReached", caseId=CASE, outcome=outcome, level=number)


def test_an_audit_that_passes_at_once_is_not_worth_a_line(narrator: Narrator) -> None:
    said = [open_case(narrator, CaseKind.SAMPLED), level(narrator, 1, 1), verdict(narrator, Outcome.MATCH, 1)]
    said.append(tell(narrator, "Revealed", caseId=CASE, operator="0xv", finding=Finding.MATCH))
    assert said == ["", "", "", ""]


def test_a_sampled_claim_is_doubted_by_the_court(narrator: Narrator) -> None:
    open_case(narrator, CaseKind.SAMPLED)
    assert level(narrator, 2, 3) == "the court doubts mallory's shard 2 of round 1: 3 seats"
    assert verdict(narrator, Outcome.MATCH, 2) == "verdict on mallory's shard 2 of round 1: MATCH at level 2"


def test_a_challenged_claim_is_doubted_by_its_challenger_and_judged_by_the_seats(narrator: Narrator) -> None:
    assert open_case(narrator, CaseKind.CHALLENGED) == "vera challenges mallory's shard 2 of round 1"
    assert level(narrator, 3, 5) == "5 seats judge mallory's shard 2 of round 1"


def test_an_outcome_that_can_be_appealed_is_no_verdict_yet(narrator: Narrator) -> None:
    open_case(narrator, CaseKind.SAMPLED)
    said = tell(narrator, "Appealable", caseId=CASE, outcome=Outcome.REJECT, endsAt=9)
    assert said == "REJECT on mallory's shard 2 of round 1, unless somebody appeals"
    said = tell(narrator, "Appealed", caseId=CASE, operator="0xm", against=Outcome.REJECT)
    assert said == "mallory appeals in the case about mallory's shard 2 of round 1"
    assert level(narrator, 3, 5) == "5 seats judge mallory's shard 2 of round 1"


def test_a_demanded_audit_names_who_asks_for_it(narrator: Narrator) -> None:
    said = open_case(narrator, CaseKind.DEMANDED, "0xm")
    assert said == "mallory demands an audit of mallory's shard 2 of round 1"


def test_a_doubted_checkpoint_is_told_to_its_end(narrator: Narrator) -> None:
    about = "the checkpoint of round 1"
    assert open_case(narrator, CaseKind.CHECKPOINT) == f"vera challenges {about}"
    assert level(narrator, 3, 5) == f"5 seats judge {about}"
    assert step(narrator, 7, TRUTH) == f"ada computes another checkpoint than {about}"
    assert step(narrator, 6, LIE) == f"ada computes another checkpoint than {about}"
    assert step(narrator, 7, LIE) == "", "it says the same"
    assert step(narrator, 0, bytes(32)) == "", "it could not compute any"
    assert verdict(narrator, Outcome.MATCH, 3) == f"verdict on {about}: MATCH at level 3"


def step(narrator: Narrator, bitmap: int, digest: bytes) -> str:
    return tell(narrator, "StepRevealed", caseId=CASE, operator="0xa", bitmap=bitmap, digest=digest)


def test_only_a_convicted_checkpoint_is_called_false(narrator: Narrator) -> None:
    said = [tell(narrator, "CheckpointReplaced", round=0, convicted=convicted) for convicted in (True, False)]
    assert "was false" in said[0] and "was false" not in said[1]
    assert all("what was built on it is orphaned" in line for line in said)
