"""The whole market as one value, and the moment in which it is looked at or changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from protocol.core.model.records import (
    Bond,
    Case,
    Claim,
    ClaimId,
    Conviction,
    Draw,
    Job,
    Lock,
    Operator,
    Pair,
    Progress,
    Round,
    RoundId,
    Seat,
    Share,
    StepFinding,
    Ticket,
    Vote,
)
from protocol.core.presets import Rules


@dataclass(frozen=True)
class Site:
    """A deployment: the names under which the books know each other, and the preset."""

    chain_id: int
    token: str
    beacon: str
    vault: str
    ledger: str
    registry: str
    market: str
    rounds: str
    tickets: str
    court: str
    checkpoints: str
    guardian: str
    preset: Rules


@dataclass(frozen=True)
class Block:
    """The moment of a call: `hash_of` tells the hashes of earlier blocks."""

    time: int
    height: int
    hash_of: Callable[[int], bytes]


@dataclass
class World:
    """Everything the market remembers. Change a world only inside `transact`, which works on its own copy."""

    site: Site
    block: Block
    # money
    tokens: dict[str, int] = field(default_factory=dict)
    allowances: dict[tuple[str, str], int] = field(default_factory=dict)
    stakes: dict[str, int] = field(default_factory=dict)
    locks: dict[tuple[str, bytes], Lock] = field(default_factory=dict)
    pots: dict[bytes, int] = field(default_factory=dict)
    credits: dict[str, int] = field(default_factory=dict)
    # people
    operators: dict[str, Operator] = field(default_factory=dict)
    nonces: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, tuple[bool, ...]] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=dict)
    rejects: dict[tuple[bytes, str], int] = field(default_factory=dict)
    # jobs and rounds
    posting_allowed: bool = True
    jobs: dict[bytes, Job] = field(default_factory=dict)
    progress: dict[bytes, Progress] = field(default_factory=dict)
    checkpoints: dict[tuple[bytes, int], bytes] = field(default_factory=dict)
    replaced: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    rounds: dict[RoundId, Round] = field(default_factory=dict)
    votes: dict[RoundId, tuple[Vote, ...]] = field(default_factory=dict)
    convicted: dict[RoundId, Pair] = field(default_factory=dict)
    shares: dict[tuple[RoundId, str], Share] = field(default_factory=dict)
    draws: dict[RoundId, Draw] = field(default_factory=dict)
    claims: dict[ClaimId, Claim] = field(default_factory=dict)
    # tickets and cases
    tickets: tuple[Ticket, ...] = ()
    places: tuple[int, ...] = ()
    cases: dict[bytes, Case] = field(default_factory=dict)
    seats: dict[bytes, tuple[Seat, ...]] = field(default_factory=dict)
    bonds: dict[bytes, tuple[Bond, ...]] = field(default_factory=dict)
    found: dict[tuple[bytes, int], StepFinding] = field(default_factory=dict)
    right: dict[bytes, int] = field(default_factory=dict)
    convictions: dict[bytes, Conviction] = field(default_factory=dict)

    @property
    def now(self) -> int:
        """The block's time."""
        return self.block.time

    def at(self, block: Block) -> World:
        """The same facts in another moment; what is changed there is not changed here."""
        copies: dict[str, Any] = {f.name: _copied(getattr(self, f.name)) for f in fields(self)}
        return replace(self, **{**copies, "block": block})


def _copied(value: object) -> object:
    return dict(value) if isinstance(value, dict) else value
