"""A round, and when its claims can be settled (twin of Types.sol and RoundBook.sol)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from protocol.core.audit import Case, CasePhase
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
    SETTLED = 7


@dataclass(frozen=True)
class Draw:
    """The sample of a closed round."""

    beacon_ticket: int
    seed: bytes
    sampled_map: int
    tickets: int
    closed_at: int
    drawn: bool


@dataclass(frozen=True)
class Round:
    """One round as the chain tells it. `base` and `next` are checkpoint digests, 32 bytes."""

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
    claims: tuple[Claim, ...]
    draw: Draw
    cases: dict[int, Case]

    def is_sampled(self, shard: int) -> bool:
        return bool(self.draw.sampled_map >> shard & 1)


def bits(map: int) -> list[int]:
    """The shards that a map names, in order."""
    return [shard for shard in range(256) if map >> shard & 1]


def is_decided(round: Round, claim: Claim, challenge: int, now: int) -> bool:
    """Whether RoundBook.settle would settle this claim at block time `now`; `challenge` is the window in seconds."""
    if not round.closed_at or claim.is_resolved:
        return False
    if not claim.is_committed:
        return True
    window_over = now > round.closed_at + challenge
    if claim.status == ClaimStatus.EXCLUDED or round.voided:
        return window_over
    case = round.cases.get(claim.shard)
    if not round.draw.drawn or (round.is_sampled(claim.shard) and case is None):
        return False
    if case is None:
        return window_over
    return case.phase == CasePhase.DONE and (window_over or case.outcome.name != "UNSAMPLED")
