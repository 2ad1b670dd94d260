"""What a court adds to the panels that both share."""

from __future__ import annotations

from typing import Protocol

from protocol.core.model.kinds import CaseKind, Outcome
from protocol.core.model.records import Case
from protocol.core.model.world import World


class Court(Protocol):
    """The rules by which one court judges its cases."""

    def case_of(self, w: World, case: bytes) -> Case:
        """A case of this court; all zero where there is none."""

    def outcome_of(self, w: World, case: bytes) -> Outcome:
        """What the findings reach at the case's level; NONE: the next level decides."""

    def distance_of(self, w: World, case: bytes, seat: int, outcome: Outcome) -> int:
        """How far a finding lies from the verdict: 0 is paid, 2 loses a quarter of its seat's lock."""

    def conclude(self, w: World, case: bytes, outcome: Outcome) -> None:
        """Do what the verdict says, and empty the case's pot."""

    def is_accused(self, w: World, c: Case, owner: str) -> bool:
        """Whether an owner may not judge, being judged."""

    def opened_in_vain(self, kind: CaseKind, outcome: Outcome) -> bool:
        """Whether the verdict says that nobody should have opened the case."""
