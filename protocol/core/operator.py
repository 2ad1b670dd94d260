"""Operators and their owners, as the chain tells them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operator:
    """A registered hot key and where it can be reached."""

    address: str
    owner: str
    payout: str
    retired: bool
    encryption_key: bytes
    determinism_class: bytes
    endpoint: str


@dataclass(frozen=True)
class Owner:
    """What an operator's owner may do in a job; amounts in wei."""

    address: str
    free_stake: int
    locked_stake: int
    passed_audits: int
    on_probation: bool
    barred: bool


@dataclass(frozen=True)
class Ticket:
    """An entry in the list that panels are drawn from; amounts in wei."""

    number: int
    owner: str
    exit_at: int
    released: bool
    operator: str
    amount: int
    used: int
