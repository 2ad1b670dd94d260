"""A round, and when its claims can be settled (twin of Types.sol and RoundBook.sol)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from protocol.core.audit import Case, CasePhase, Outcome
from protocol.core.claim import Claim, ClaimStatus


class RoundStatus(IntEnum):
    """Derived on chain."""

    NONE = 0
    OPEN = 1
    DUE = 2
    SEALED = 3
    TALLIED = 4
    CLOSED = 5
    VOID = 6
    ORPHANED = 7
    SETTLED = 8


@dataclass(frozen=True)
class Draw:
    """The sample of a closed round."""

    beacon_ticket: int
    seed: bytes
    sampled_map: int
    tickets: int
    closed_at: int
    drawn: bool
    taken: int


@dataclass(frozen=True)
class Round:
    """One round as the chain tells it. `base` and `next` are checkpoint digests, 32 bytes.

    `checkpoint`: the number of `next`, 0 while there is none; `doubt`: the case about it.
    """

    number: int
    status: RoundStatus
    base: bytes
    next: bytes
    committed_map: int
    probation_map: int
    accepted_map: int
    opened_at: int
    ends_at: int
    sealed_at: int
    tallied_at: int
    closed_at: int
    committed: int
    resolved: int
    extended: bool
    voided: bool
    checkpoint: int
    generation: int
    claims: tuple[Claim, ...]
    draw: Draw
    cases: dict[int, Case]
    doubt: Case | None = None

    def is_sampled(self, shard: int) -> bool:
        return bool(self.draw.sampled_map >> shard & 1)


def bits(map: int) -> list[int]:
    """The shards that a map names, in order."""
    return [shard for shard in range(256) if map >> shard & 1]


def lineage(rounds: Iterable[Round], closed: int) -> list[Round]:
    """The rounds whose checkpoints lead to checkpoint number `closed`: void and orphaned ones are none of them."""
    of_number = {round.checkpoint: round for round in sorted(rounds, key=lambda round: round.number)}
    return [of_number[number] for number in range(1, closed + 1) if number in of_number]


def is_final(round: Round, challenge: int, now: int) -> bool:
    """Whether nobody can challenge a round's checkpoint any more, or never could; `challenge` in seconds."""
    if round.voided or round.status in (RoundStatus.ORPHANED, RoundStatus.SETTLED):
        return True
    doubted = round.doubt is not None and round.doubt.is_open
    return round.closed_at > 0 and now > round.closed_at + challenge and not doubted


def is_decided(round: Round, claim: Claim, challenge: int, now: int, *, final: bool) -> bool:
    """Whether RoundBook.settle would settle this claim at block time `now`; `challenge` is the window in seconds.

    `final`: whether this round's checkpoint and all earlier ones are past every challenge. Who attested to a false
    checkpoint could be settled before the sample is drawn; we wait for it.
    """
    if not round.closed_at or claim.is_resolved:
        return False
    if not claim.is_committed:
        return True
    case = round.cases.get(claim.shard)
    if case is not None and case.phase != CasePhase.DONE:
        return False
    if round.status == RoundStatus.ORPHANED:
        return True
    if not final or now <= round.closed_at + challenge:
        return False
    if claim.status == ClaimStatus.EXCLUDED or (case is not None and case.outcome != Outcome.UNSAMPLED):
        return True
    return round.draw.drawn and (case is not None or not round.is_sampled(claim.shard))
