"""What an operator does next. Pure: all rules of claiming, training, committing and attesting."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from node.operator.actions import (
    Attest,
    ClaimShards,
    CommitClaim,
    ComputeNext,
    NodeAction,
    OpenTrace,
    SyncBase,
    Train,
)
from protocol.core.claim import Claim, ClaimStatus
from protocol.core.operator import Operator, Owner
from protocol.core.round import Round, RoundStatus
from protocol.core.units import format_tokens
from verifier.snapshot import JobSnapshot, Snapshot

SAFETY = 2  # a claim is taken only if this many times the usual training time is left
GAS_PER_CLAIM = 400_000  # claim and commit, with margin


@dataclass(frozen=True)
class OwnState:
    """What the operator knows of itself in one job. Keys of the maps are round numbers and shards."""

    owner: Owner
    held: int  # the owner's claims in the open round
    attested: bool  # the owner, in the present window
    bases: frozenset[int]  # rounds whose base checkpoint is at hand
    results: frozenset[tuple[int, int]]  # (round, shard) trained and stored
    nexts: Mapping[int, Mapping[str, Any]]  # outer steps taken, by round: {bitmap, digest}
    claims_at_once: int
    train_seconds: float
    stop_claiming: str  # why no new claim is taken; empty when claims are welcome


def plan_work(snapshot: Snapshot, states: Mapping[bytes, OwnState]) -> list[NodeAction]:
    """At most one step for each claim and each round."""
    return [
        action
        for job in snapshot.jobs
        if job.job_id in states
        for round in job.job.rounds
        for action in _plan_round(job, round, snapshot, states[job.job_id])
    ]


def why_idle(snapshot: Snapshot, states: Mapping[bytes, OwnState]) -> str:
    """One line for the owner: why no claim is taken in any job, or an empty text."""
    reasons = [
        _why_not(job, job.job.current, snapshot, states[job.job_id]) for job in snapshot.jobs if job.job_id in states
    ]
    return "" if "" in reasons else "; ".join(dict.fromkeys(reasons)) or "no job is open"


def _plan_round(job: JobSnapshot, round: Round, snapshot: Snapshot, own: OwnState) -> Iterator[NodeAction]:
    mine = [claim for claim in round.claims if claim.operator == snapshot.me]
    if round.status == RoundStatus.OPEN:
        yield from _plan_open(job, round, mine, snapshot, own)
    elif round.status in (RoundStatus.SEALED, RoundStatus.TALLIED) and _has_say(round, own):
        yield from _plan_attest(job, round, own)
    for claim in mine:
        if _is_demanded(job, round, claim, snapshot.now) and (round.number, claim.shard) in own.results:
            yield OpenTrace(job.job_id, round.number, claim.shard)


def _is_demanded(job: JobSnapshot, round: Round, claim: Claim, now: int) -> bool:
    """Whether the claim's trace was demanded on chain and can still be opened there."""
    case = round.cases.get(claim.shard)
    if case is None or not case.demanded_at or case.opened:
        return False
    return now <= case.demanded_at + job.terms.windows.demand


def _plan_open(
    job: JobSnapshot, round: Round, mine: list[Claim], snapshot: Snapshot, own: OwnState
) -> Iterator[NodeAction]:
    if round.number not in own.bases:
        if not own.stop_claiming:
            yield SyncBase(job.job_id, round.number)
        return
    held = [claim for claim in mine if claim.status == ClaimStatus.HELD]
    for claim in held:
        done = (round.number, claim.shard) in own.results
        yield (CommitClaim if done else Train)(job.job_id, round.number, claim.shard)
    if not _why_not(job, round, snapshot, own):
        yield ClaimShards(job.job_id, round.number, (_choose(round, snapshot, own),))


def _has_say(round: Round, own: OwnState) -> bool:
    """An owner speaks once, for all its commitments: through whichever of its operators is first."""
    return any(claim.is_committed and claim.owner == own.owner.address for claim in round.claims)


def _plan_attest(job: JobSnapshot, round: Round, own: OwnState) -> Iterator[NodeAction]:
    if own.attested or round.number not in own.bases:
        return
    bitmap = round.accepted_map if round.status == RoundStatus.TALLIED else None
    step = own.nexts.get(round.number)
    if step is None or (bitmap is not None and int(step["bitmap"], 16) != bitmap):
        yield ComputeNext(job.job_id, round.number, bitmap)
    else:
        yield Attest(job.job_id, round.number, int(step["bitmap"], 16), step["digest"])


def _why_not(job: JobSnapshot, round: Round | None, snapshot: Snapshot, own: OwnState) -> str:
    """Why no shard of this round is claimed now; empty when one is."""
    terms = job.terms
    if round is None or round.status != RoundStatus.OPEN:
        return f"the job is {job.job.status.name.lower()}, no round is open"
    free = _free(round, own)
    waiting = sum(c.status == ClaimStatus.HELD for c in round.claims if c.operator == snapshot.me)
    early = snapshot.now <= (round.opened_at + round.ends_at) // 2
    cap = -(-terms.shards_per_round // 4) if early else terms.shards_per_round
    probation = bin(round.probation_map).count("1")
    left = min(round.ends_at - snapshot.now, terms.windows.train)
    checks = (
        (bool(own.stop_claiming), own.stop_claiming),
        (own.owner.barred, "the owner is barred from this job by verdicts against its claims"),
        (round.number not in own.bases, "the base checkpoint is not at hand yet"),
        (not free, "every shard of the round is taken"),
        (waiting >= own.claims_at_once, f"{waiting} claims are being worked on"),
        (own.held >= cap, f"the owner holds {own.held} claims of this round, at most {cap} for now"),
        (
            own.owner.free_stake < terms.bond_per_shard,
            f"free stake {format_tokens(own.owner.free_stake)}, a claim needs {format_tokens(terms.bond_per_shard)}: "
            "deposit more with `gradmarket stake deposit`",
        ),
        (
            own.owner.on_probation and probation >= terms.probation_slots,
            f"all {terms.probation_slots} probation slots of the round are taken",
        ),
        (
            left < SAFETY * own.train_seconds,
            f"a claim would have {left} s, here one takes about {own.train_seconds:.0f} s",
        ),
    )
    return next((reason for holds, reason in checks if holds), "")


def _free(round: Round, own: OwnState) -> list[int]:
    """Shards that nobody holds; not those that our owner let lapse."""
    return [
        claim.shard
        for claim in round.claims
        if claim.status == ClaimStatus.FREE or (claim.status == ClaimStatus.LAPSED and claim.owner != own.owner.address)
    ]


def _choose(round: Round, snapshot: Snapshot, own: OwnState) -> int:
    """Another shard for each operator, so that they seldom race for one."""
    free = _free(round, own)
    order = sorted(snapshot.operators, key=lambda operator: _rank(round, operator))
    rank = next((i for i, operator in enumerate(order) if operator.address == snapshot.me), 0)
    return free[rank % len(free)]


def _rank(round: Round, operator: Operator) -> bytes:
    return hashlib.sha256(f"{round.base.hex()} {operator.address}".encode()).digest()
