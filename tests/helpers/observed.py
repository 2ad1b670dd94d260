"""Everything that can be seen of a market: each question to a contract, beside the model's answer as words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields as fields_of
from functools import cache, lru_cache
from typing import Any

from protocol.core.commitment import COURT_FUND, round_pot
from protocol.core.model import case_ids, claims, findings, jobs, money, rounds, standing, terms, tickets
from protocol.core.model.audit_court import RULES as COURT
from protocol.core.model.checkpoint_court import RULES as CHECKPOINTS
from protocol.core.model.kinds import CasePhase, RoundStatus
from protocol.core.model.records import NOTHING, Case
from protocol.core.model.world import World

Question = tuple[str, str, tuple[Any, ...], bytes]
_OFFSET = 32
ENDPOINT = "http://peer"  # of every operator
of_claim = lru_cache(10_000)(case_ids.of_claim)
of_checkpoint = lru_cache(10_000)(case_ids.of_checkpoint)
pot_of_round = lru_cache(10_000)(round_pot)
_known: dict[int, tuple[Any, bytes]] = {}  # a record does not change: its words are worked out once


_MACHINE = bytes(64) + (8 * _OFFSET).to_bytes(32) + len(ENDPOINT).to_bytes(32) + ENDPOINT.encode().ljust(32, b"\0")


def word(value: Any) -> bytes:
    """One value as the ABI writes it."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return bytes(12) + bytes.fromhex(value[2:])
    return int(value).to_bytes(32)


def words(*values: Any) -> bytes:
    """Values in a row."""
    return b"".join(map(word, values))


def returned(value: Any) -> bytes:
    """What a call returns: one word, or a list of them."""
    return words(_OFFSET, len(value), *value) if isinstance(value, list) else words(value)


def record(value: Any, fields: int | None = None) -> bytes:
    """A record's fields in a row, the first so many of them."""
    known = _known.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    answer = words(*[getattr(value, name) for name in _names(value.__class__)[:fields]])
    if len(_known) > 100_000:
        _known.clear()
    _known[id(value)] = (value, answer)
    return answer


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields_of(kind))


def observe(w: World, accounts: Sequence[str], *, thorough: bool = True) -> Iterator[Question]:
    """Contract, view, arguments, and what it must answer; of settled rounds only where thorough."""
    yield from _money(w, accounts)
    yield from _people(w)
    for job in w.jobs:
        yield from _job(w, job)
        for number in range(jobs.progress_of(w, job).opened + 1):
            if thorough or rounds.status_of(w, job, number) != RoundStatus.SETTLED:
                yield from _round(w, job, number)
    for number, ticket in enumerate(w.tickets):
        yield "tickets", "ticketOf", (number,), record(ticket)
    yield "tickets", "ticketCount", (), words(len(w.tickets))
    yield "tickets", "liveOwners", (), words(tickets.live_owners(w))


def _money(w: World, accounts: Sequence[str]) -> Iterator[Question]:
    for account in (*accounts, w.site.vault, w.site.ledger, money.BURN):
        yield "token", "balanceOf", (account,), words(w.tokens.get(account, 0))
    for account in accounts:
        yield "ledger", "creditOf", (account,), words(w.credits.get(account, 0))
    for owner in w.stakes:
        yield "vault", "balanceOf", (owner,), words(w.stakes[owner])
        yield "vault", "lockedOf", (owner,), words(money.locked_of(w, owner))
    for (book, ident), lock in w.locks.items():
        yield "vault", "lockOf", (book, ident), record(lock)
    for pot, amount in w.pots.items():
        yield "ledger", "potOf", (pot,), words(amount)
    yield "ledger", "potOf", (COURT_FUND,), words(money.pot_of(w, COURT_FUND))
    yield "ledger", "held", (), words(money.held(w))
    yield "vault", "staked", (), words(sum(w.stakes.values()))


def _people(w: World) -> Iterator[Question]:
    for operator, entry in w.operators.items():
        yield "registry", "operatorOf", (operator,), words(_OFFSET) + record(entry) + _MACHINE
        yield "registry", "nonceOf", (operator,), words(w.nonces.get(operator, 0))
    for owner in w.stakes:
        yield "court", "passedOf", (owner,), words(w.passed.get(owner, 0))
        yield "registry", "nonceOf", (owner,), words(w.nonces.get(owner, 0))


def _job(w: World, job: bytes) -> Iterator[Question]:
    j, p = w.jobs[job], jobs.progress_of(w, job)
    yield "market", "statusOf", (job,), words(*jobs.status_of(w, job))
    yield "market", "totalsOf", (job,), words(j.funded, j.refunded)
    yield "market", "calibrationOf", (job,), words(j.calibration)
    yield "market", "reservationOf", (job,), words(terms.reservation(j.terms))
    yield "rounds", "progressOf", (job,), record(p)
    for number in range(p.closed + 2):
        yield "rounds", "checkpointOf", (job, number), words(rounds.checkpoint_of(w, job, number))
    for owner in w.stakes:
        yield "court", "standingOf", (job, owner), words(*standing.standing_of(w, job, owner))
        fee = claims.lapse_fee(j.terms, claims.doublings_of(w, owner))
        yield "rounds", "lapseFeeOf", (job, owner), words(fee)


def _round(w: World, job: bytes, number: int) -> Iterator[Question]:
    r, status = rounds.round_of(w, job, number), rounds.status_of(w, job, number)
    yield "rounds", "roundOf", (job, number), record(r) + words(status)
    if status == RoundStatus.NONE:
        return
    shards = range(rounds.terms_of(w, job).shards)
    yield "rounds", "claimsOf", (job, number), _claims(w, job, number, shards)
    yield "rounds", "drawOf", (job, number), record(rounds.draw_of(w, job, number), 7)
    yield "rounds", "isChallengeable", (job, number), words(rounds.is_challengeable(w, job, number))
    yield "rounds", "isOrphaned", (job, number), words(rounds.is_orphaned(w, job, number))
    yield "ledger", "potOf", (pot_of_round(job, number),), words(money.pot_of(w, pot_of_round(job, number)))
    for owner in w.stakes:
        yield "rounds", "heldBy", (job, number, owner), words(rounds.share_of(w, job, number, owner).held)
        yield "rounds", "attestedTo", (job, number, owner), words(rounds.attested_to(w, job, number, owner))
    window = 2 if r.tallied_at else 1
    for operator, entry in w.operators.items():
        spoke = any(v.owner == entry.owner and v.window == window for v in w.votes.get((job, number), ()))
        weight = rounds.share_of(w, job, number, entry.owner).commits
        yield "rounds", "weightOf", (job, number, operator), words(weight, spoke)
    for shard in shards:
        yield from _case(w, "court", of_claim(job, number, shard))
        c = COURT.case_of(w, of_claim(job, number, shard))
        known = c.phase != CasePhase.NONE
        answer = words(known, c.phase == CasePhase.DONE, c.outcome, c.kind)
        yield "court", "outcomeOf", (job, number, shard), answer
    yield from _case(w, "checkpoints", of_checkpoint(job, number))
    doubt = CHECKPOINTS.case_of(w, of_checkpoint(job, number))
    is_open = doubt.phase not in (CasePhase.NONE, CasePhase.DONE)
    yield "checkpoints", "isOpen", (job, number), words(is_open)


def _claims(w: World, job: bytes, number: int, shards: range) -> bytes:
    held = b"".join(record(rounds.claim_of(w, job, number, shard)) for shard in shards)
    statuses = words(*(rounds.claim_status(w, job, number, shard) for shard in shards))
    count = words(len(shards))
    return words(2 * _OFFSET, 3 * _OFFSET + len(held)) + count + held + count + statuses


def _case(w: World, court: str, case: bytes) -> Iterator[Question]:
    seats, bonds = w.seats.get(case, ()), w.bonds.get(case, ())
    head = record(w.cases.get(case, Case()))
    answer = head + words(len(head) + _OFFSET, len(seats)) + b"".join(map(record, seats))
    yield court, "caseOf", (case,), answer
    yield court, "bondsOf", (case,), words(_OFFSET, len(bonds)) + b"".join(map(record, bonds))
    c = w.cases.get(case)
    if court == "court" and c is not None and c.phase == CasePhase.REVEALING and c.seed != NOTHING:
        steps = findings.steps_of(c.seed, case, w.jobs[c.job].terms.inner_steps)
        yield "court", "stepsOf", (case,), words(*steps)
