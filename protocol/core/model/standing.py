"""What verdicts did to an owner: its passed audits, and its count of unpaid claims in a job."""

from __future__ import annotations

from protocol.core.model.kinds import CaseKind, Outcome
from protocol.core.model.records import Case
from protocol.core.model.world import World

_REJECTS_TO_BAR = 2


def standing_of(w: World, job: bytes, owner: str) -> tuple[bool, bool]:
    """Whether every claim of an owner is sampled, and whether it may claim no more in this job."""
    on_probation = w.passed.get(owner, 0) < w.site.preset.probation_audits
    return on_probation, w.rejects.get((job, owner), 0) >= _REJECTS_TO_BAR


def record(w: World, c: Case, outcome: Outcome) -> None:
    """A passed sample counts for an owner; a Reject counts one and a Fraud two against it, from zero on."""
    owner = c.accused
    if outcome == Outcome.MATCH and c.kind == CaseKind.SAMPLED:
        w.passed[owner] = w.passed.get(owner, 0) + 1
    if outcome in (Outcome.REJECT, Outcome.FRAUD):
        w.passed[owner] = 0
        weight = _REJECTS_TO_BAR if outcome == Outcome.FRAUD else 1
        w.rejects[c.job, owner] = w.rejects.get((c.job, owner), 0) + weight
