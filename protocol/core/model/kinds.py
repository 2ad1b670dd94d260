"""The words of the market that are one of a few, numbered as in Types.sol: those of `protocol.core`, and one more."""

from __future__ import annotations

from enum import IntEnum

from protocol.core.audit import CaseKind, CasePhase, Finding, Outcome, SeatState
from protocol.core.claim import ClaimStatus
from protocol.core.job import JobStatus, PauseReason
from protocol.core.round import RoundStatus

__all__ = [
    "Candidate",
    "CaseKind",
    "CasePhase",
    "ClaimStatus",
    "Finding",
    "JobStatus",
    "Outcome",
    "PauseReason",
    "RoundStatus",
    "SeatState",
]


class Candidate(IntEnum):
    """What a drawn ticket is good for."""

    UNFIT = 0
    BUSY = 1
    FREE = 2
