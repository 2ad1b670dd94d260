"""A claim: an operator's exclusive hold on a shard, and what became of it (twin of Types.sol)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ClaimStatus(IntEnum):
    """Derived on chain."""

    FREE = 0
    HELD = 1
    LAPSED = 2
    COMMITTED = 3
    EXCLUDED = 4
    ACCEPTED = 5
    PAID = 6
    UNPAID = 7


NO_COMMITMENT = bytes(32)


@dataclass(frozen=True)
class Claim:
    """One shard of a round. Times are block times; `settled` is FREE until the claim is settled."""

    shard: int
    status: ClaimStatus
    operator: str
    claimed_at: int
    deadline: int
    settled: ClaimStatus
    owner: str
    commitment: bytes

    @property
    def is_committed(self) -> bool:
        return self.commitment != NO_COMMITMENT

    @property
    def is_resolved(self) -> bool:
        """Whether settling it again would change nothing."""
        if self.is_committed:
            return self.settled != ClaimStatus.FREE
        return self.settled == ClaimStatus.UNPAID
