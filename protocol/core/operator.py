"""Operators and their owners, as the chain tells them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

FOREVER = 2**64 - 1  # the expiry of a delegation without an end
NOBODY = "0x" + "00" * 20


class Scope(IntFlag):
    """What an owner lets a key do (Types.sol)."""

    TRAIN = 1  # claim, commit, attest
    AUDIT = 2  # sit on panels
    CHALLENGE = 4  # challenge, appeal
    ALL = 7


@dataclass(frozen=True)
class Operator:
    """A hot key, what it may do until when, and where it can be reached. `expiry` is a block time."""

    address: str
    owner: str
    scopes: Scope
    expiry: int
    revoked: bool
    payout: str
    encryption_key: bytes
    determinism_class: bytes
    endpoint: str

    @property
    def is_known(self) -> bool:
        """Whether an owner ever registered the key."""
        return self.owner != NOBODY

    def is_active(self, now: int) -> bool:
        """Whether the key acts for its owner in the second `now`, whatever its scopes."""
        return self.is_known and not self.revoked and now <= self.expiry


@dataclass(frozen=True)
class Owner:
    """What an operator's owner may do in a job; amounts in wei."""

    address: str
    free_stake: int
    locked_stake: int
    passed_audits: int
    on_probation: bool
    barred: bool


MOST_TICKETS = 64  # enrolled in one transaction


@dataclass(frozen=True)
class Ticket:
    """An entry in the list that panels are drawn from; amounts in wei."""

    number: int
    owner: str
    exit_at: int
    enrolled_at: int
    released: bool
    amount: int
    used: int
    operator: str
