"""A job as the chain tells it (twin of Types.sol)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from protocol.core.round import Round, is_final

MOST_ROUNDS = 16  # unsettled rounds read at once


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
    """How far a job has come. `opened` counts void rounds too; `closed` is the latest checkpoint's number.

    `final_rounds`: rounds from the first on that RoundBook has found past every challenge; it looks on when it settles.
    `generation`: checkpoints that a court replaced.
    """

    opened: int
    closed: int
    unsettled: int
    void_streak: int
    moved_at: int
    final_rounds: int
    generation: int
    active: bool


@dataclass(frozen=True)
class Job:
    """One reading of a job; amounts in wei. `rounds`: the unsettled ones, of more than `MOST_ROUNDS` the oldest and the
    newest.
    """

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

    def final_rounds(self, challenge: int, now: int) -> int:
        """Rounds from the first on that RoundBook.settle would find final at block time `now` (RoundBook._finalize)."""
        known = {round.number: round for round in self.rounds}
        numbers = sorted(known)
        hidden = range(numbers[-2] + 1, numbers[-1]) if len(numbers) >= MOST_ROUNDS else range(0)
        count = self.progress.final_rounds
        while count < self.progress.opened and count not in hidden:
            if count in known and not is_final(known[count], challenge, now):
                break
            count += 1
        return count
