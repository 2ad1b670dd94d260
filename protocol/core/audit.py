"""Cases, seats and findings (twin of Types.sol and of the ladder in AuditCourt.sol)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from protocol.core.encoding import abi_encode, keccak

ROWS_OPENED = 3


class Finding(IntEnum):
    """What a seat says about a claim."""

    NONE = 0
    MATCH = 1
    REJECT = 2
    FRAUD = 3
    UNAVAILABLE_PAYLOAD = 4
    UNAVAILABLE_INPUTS = 5
    ABSTAIN = 6


class Outcome(IntEnum):
    """What a case ends in."""

    NONE = 0
    MATCH = 1
    REJECT = 2
    FRAUD = 3
    EXCUSED = 4
    UNSAMPLED = 5


class CasePhase(IntEnum):
    """Where a case's present cycle stands."""

    NONE = 0
    SEATING = 1
    COMMITTING = 2
    REVEALING = 3
    APPEALABLE = 4
    DONE = 5


class CaseKind(IntEnum):
    """Why a case was opened."""

    SAMPLED = 0
    CHALLENGED = 1
    DEMANDED = 2
    CHECKPOINT = 3


class SeatState(IntEnum):
    """Where a seat stands."""

    EMPTY = 0
    SEATED = 1
    COMMITTED = 2
    REVEALED = 3
    VACANT = 4


@dataclass(frozen=True)
class PanelSeat:
    """A seat of a panel, as the chain tells it."""

    owner: str
    ticket: int
    draws: int
    state: SeatState
    finding: Finding
    step: int
    operator: str
    locked: int
    root: bytes


@dataclass(frozen=True)
class Case:
    """A case about one claim, or about the checkpoint of a round (its shard says nothing then). Times are block times,
    0 where nothing happened yet.
    """

    job_id: bytes
    round: int
    shard: int
    level: int
    phase: CasePhase
    outcome: Outcome
    kind: CaseKind
    withheld: bool
    met_busy: bool
    accused: str
    phase_ends: int
    demanded_at: int
    opened: bool
    tries: int
    tickets: int
    closed_at: int
    beacon_ticket: int
    seed: bytes
    seats: tuple[PanelSeat, ...]

    @property
    def is_open(self) -> bool:
        return self.phase not in (CasePhase.NONE, CasePhase.DONE)


@dataclass(frozen=True)
class StepFinding:
    """What a seat found when it took the outer step itself (ICheckpointCourt.StepFinding). Digests are 32 bytes."""

    abstain: bool
    bitmap: int
    digest: bytes
    contested: bytes
    salt: bytes

    def as_tuple(self) -> tuple[bool, int, bytes, bytes, bytes]:
        return self.abstain, self.bitmap, self.digest, self.contested, self.salt


def step_root(case_id: bytes, seat: int, operator: str, finding: StepFinding) -> bytes:
    """What a seat about a checkpoint commits to (CheckpointCourt.rootOf)."""
    types = ("string", "bytes32", "uint16", "address", "(bool,uint256,bytes32,bytes32,bytes32)")
    return keccak(abi_encode(types, ("step", case_id, seat, operator, finding.as_tuple())))


def steps_to_open(seed: bytes, case_id: bytes, inner_steps: int) -> tuple[int, ...]:
    """The steps whose rows a seat opens, one in each third (TraceLib.stepAt). `seed` is the case's, once pinned."""
    row_seed = keccak(abi_encode(("bytes32", "bytes32"), (seed, case_id)))
    steps = []
    for i in range(ROWS_OPENED):
        first, end = i * inner_steps // ROWS_OPENED, (i + 1) * inner_steps // ROWS_OPENED
        drawn = int.from_bytes(keccak(abi_encode(("bytes32", "string", "uint256"), (row_seed, "row", i))))
        steps.append(first + drawn % (end - first) + 1)
    return tuple(steps)
