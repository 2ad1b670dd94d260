"""A job as the chain tells it (twin of Types.sol)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from protocol.core.round import Round


class JobStatus(IntEnum):
    """Derived on chain from stored facts and the block time."""

    NONE = 0
    RUNNING = 1
    READY = 2
    PAUSED = 3
    DRAINING = 4
    CLOSABLE = 5
    CLOSED = 6


class PauseReason(IntEnum):
    """Why no round can be opened."""

    NONE = 0
    POSTER = 1
    ESCROW = 2
    AUDITORS = 3
    VOID_ROUND = 4


@dataclass(frozen=True)
class Progress:
    """How far a job has come. `opened` counts void rounds too; `closed` is the latest checkpoint's number."""

    opened: int
    closed: int
    unsettled: int
    void_streak: int
    moved_at: int
    active: bool


@dataclass(frozen=True)
class Job:
    """One reading of a job, with its unsettled rounds; amounts in wei."""

    job_id: bytes
    status: JobStatus
    reason: PauseReason
    escrow: int
    funded: int
    refunded: int
    progress: Progress
    rounds: tuple[Round, ...]

    @property
    def current(self) -> Round | None:
        """The newest round, while it is unsettled."""
        last = self.progress.opened - 1
        return next((r for r in self.rounds if r.number == last), None)
