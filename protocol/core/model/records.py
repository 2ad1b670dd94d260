"""What the market remembers, as values: nothing here changes, a new fact is a new record.

Fields that are seen from outside stand in the order of Types.sol. Amounts are wei, times are block times.
"""

from __future__ import annotations

from dataclasses import dataclass

from protocol.core.model.kinds import CaseKind, CasePhase, ClaimStatus, Finding, Outcome, SeatState
from protocol.core.operator import Scope
from protocol.core.terms import Windows

NOBODY = "0x" + "00" * 20
NOTHING = bytes(32)

Pair = tuple[int, bytes]  # a bitmap and the digest that follows from it
RoundId = tuple[bytes, int]  # a job and a round
ClaimId = tuple[bytes, int, int]  # and a shard


@dataclass(frozen=True)
class Terms:
    """The numbers of a job; they never change."""

    spec_digest: bytes
    genesis_digest: bytes
    reward: int
    bond: int
    rounds: int
    inner_steps: int
    fee: int
    audit_rate_bps: int
    probation_slots: int
    shards: int
    min_shards: int
    tolerance_class: int
    loss_tolerance: int
    windows: Windows


@dataclass(frozen=True)
class Lock:
    """Stake that a book holds back."""

    owner: str
    amount: int


@dataclass(frozen=True)
class Operator:
    """A hot key of an owner; `expiry` is its last second."""

    owner: str
    scopes: Scope
    expiry: int
    revoked: bool
    payout: str


@dataclass(frozen=True)
class Job:
    """A job: terms, orders of its poster, totals."""

    terms: Terms
    poster: str
    posted_at: int
    paused: bool = False
    cancelled: bool = False
    closed: bool = False
    funded: int = 0
    refunded: int = 0
    calibration: bytes = NOTHING


@dataclass(frozen=True)
class Progress:
    """How far a job has come."""

    opened: int = 0
    closed: int = 0
    unsettled: int = 0
    void_streak: int = 0
    moved_at: int = 0
    final_rounds: int = 0
    generation: int = 0
    active: bool = False


@dataclass(frozen=True)
class Round:
    """One round. `base` and `next` are checkpoint digests."""

    base: bytes = NOTHING
    next: bytes = NOTHING
    committed_map: int = 0
    probation_map: int = 0
    accepted_map: int = 0
    opened_at: int = 0
    ends_at: int = 0
    sealed_at: int = 0
    tallied_at: int = 0
    closed_at: int = 0
    committed: int = 0
    resolved: int = 0
    extended: bool = False
    voided: bool = False
    checkpoint: int = 0
    generation: int = 0


@dataclass(frozen=True)
class Claim:
    """The last hold on a shard and what became of it."""

    operator: str = NOBODY
    claimed_at: int = 0
    deadline: int = 0
    settled: ClaimStatus = ClaimStatus.FREE
    owner: str = NOBODY
    commitment: bytes = NOTHING


@dataclass(frozen=True)
class Share:
    """An owner's part in a round; `lapse_level` is the doublings of its fee plus one, 0 before it lapsed."""

    held: int = 0
    commits: int = 0
    lapse_level: int = 0


@dataclass(frozen=True)
class Vote:
    """One attestation."""

    owner: str
    window: int
    pair: Pair
    weight: int


@dataclass(frozen=True)
class Draw:
    """The sample of a closed round, which claims it was drawn from, and what its panels are drawn from."""

    beacon_ticket: int = 0
    seed: bytes = NOTHING
    sampled_map: int = 0
    tickets: int = 0
    closed_at: int = 0
    drawn: bool = False
    taken: int = 0
    drawn_map: int = 0


@dataclass(frozen=True)
class Ticket:
    """An entry of the draw; `used` of its wei lie behind seats that are open."""

    owner: str
    exit_at: int
    enrolled_at: int
    released: bool
    amount: int
    used: int
    operator: str


@dataclass(frozen=True)
class Seat:
    """One place on a panel."""

    owner: str = NOBODY
    ticket: int = 0
    draws: int = 0
    state: SeatState = SeatState.EMPTY
    finding: Finding = Finding.NONE
    step: int = 0
    operator: str = NOBODY
    locked: int = 0
    root: bytes = NOTHING


@dataclass(frozen=True)
class Case:
    """What a court knows of one claim or checkpoint."""

    job: bytes = NOTHING
    round: int = 0
    shard: int = 0
    level: int = 0
    phase: CasePhase = CasePhase.NONE
    outcome: Outcome = Outcome.NONE
    kind: CaseKind = CaseKind.SAMPLED
    withheld: bool = False
    met_busy: bool = False
    accused: str = NOBODY
    phase_ends: int = 0
    demanded_at: int = 0
    opened: bool = False
    tries: int = 0
    tickets: int = 0
    closed_at: int = 0
    beacon_ticket: int = 0
    seed: bytes = NOTHING


@dataclass(frozen=True)
class Bond:
    """Stake of somebody who made a panel sit; `against` is the outcome appealed from."""

    operator: str
    fees: int
    against: Outcome
    owner: str


@dataclass(frozen=True)
class Conviction:
    """What the attested payloads give, and the numbers of the bonds whose owners attested to something else."""

    digest: bytes
    false_bonds: frozenset[int]


@dataclass(frozen=True)
class StepFinding:
    """What a seat of the checkpoint court found when it took the outer step itself."""

    abstain: bool
    bitmap: int
    digest: bytes
    contested: bytes
    salt: bytes
