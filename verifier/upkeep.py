"""Which moves are due that anyone may make. Pure: the same snapshot gives the same moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from protocol.core.audit import Case, CasePhase
from protocol.core.beacon import Unread, moment_of
from protocol.core.claim import ClaimStatus
from protocol.core.commitment import case_id
from protocol.core.job import JobStatus
from protocol.core.round import Round, RoundStatus, bits, is_decided
from verifier.actions import (
    Action,
    AdvanceCase,
    AdvanceDoubt,
    AdvanceRound,
    CloseJob,
    Convene,
    Distribute,
    DrawSample,
    OpenRound,
    ProveSeed,
    Settle,
)
from verifier.snapshot import JobSnapshot, Snapshot, tickets_of, waits_for_seed

MOST_CONVENED = 16  # cases opened in one transaction: about 5 M gas
MOST_SETTLED = 64  # shards settled in one transaction: about 4 M gas
PATIENCE = 2  # challenge windows after which decided shards are settled although others are not decided


def plan_upkeep(snapshot: Snapshot) -> list[Action]:
    """Everything that somebody should do now to keep jobs, rounds and cases going."""
    shares = [Distribute(job_id, number) for job_id, number in snapshot.spoils]
    return [*_proofs(snapshot), *(action for job in snapshot.jobs for action in _plan_job(job, snapshot)), *shares]


def _proofs(snapshot: Snapshot) -> list[ProveSeed]:
    """One for each moment that has come. Seats that judged a checkpoint show no rows, so they need no seed."""
    tickets: dict[int, ProveSeed] = {}
    for round in (round for job in snapshot.jobs for round in job.job.rounds):
        shown = round.doubt if round.doubt is not None and round.doubt.phase == CasePhase.SEATING else None
        for ticket in tickets_of(replace(round, doubt=shown)):
            if snapshot.unread.get(ticket) == Unread.UNPROVED:
                tickets.setdefault(moment_of(ticket), ProveSeed(ticket))
    return list(tickets.values())


def _plan_job(job: JobSnapshot, snapshot: Snapshot) -> Iterator[Action]:
    if job.job.status == JobStatus.READY:
        yield OpenRound(job.job_id)
    if job.job.status == JobStatus.CLOSABLE:
        yield CloseJob(job.job_id)
    final = job.job.final_rounds(job.terms.windows.challenge, snapshot.now)
    for round in job.job.rounds:
        yield from _plan_round(job, round, snapshot, final > round.number)


def _plan_round(job: JobSnapshot, round: Round, snapshot: Snapshot, final: bool) -> Iterator[Action]:
    if round.status == RoundStatus.DUE:
        yield AdvanceRound(job.job_id, round.number)
    if not round.closed_at:
        return
    if round.status == RoundStatus.CLOSED and not round.draw.drawn and round.draw.beacon_ticket not in snapshot.unread:
        yield DrawSample(job.job_id, round.number)
    for some in _chunks(_unjudged(round), MOST_CONVENED):
        yield Convene(job.job_id, round.number, some)
    for shard, case in round.cases.items():
        if _is_case_due(case, job, snapshot):
            yield AdvanceCase(job.job_id, round.number, shard, case_id(job.job_id, round.number, shard))
    if round.doubt is not None and _is_case_due(round.doubt, job, snapshot):
        yield AdvanceDoubt(job.job_id, round.number)
    window = job.terms.windows.challenge
    decided = tuple(c.shard for c in round.claims if is_decided(round, c, window, snapshot.now, final=final))
    unresolved = sum(not claim.is_resolved for claim in round.claims)
    late = snapshot.now > round.closed_at + PATIENCE * window
    if len(decided) == unresolved or late:
        for some in _chunks(decided, MOST_SETTLED):
            yield Settle(job.job_id, round.number, some)


def _unjudged(round: Round) -> tuple[int, ...]:
    """Sampled shards without a case; none that lost its place with a checkpoint that was replaced."""
    accepted = {claim.shard for claim in round.claims if claim.status == ClaimStatus.ACCEPTED}
    return tuple(shard for shard in bits(round.draw.sampled_map) if shard in accepted and shard not in round.cases)


def _chunks(shards: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    """What fits one transaction."""
    return (shards[start : start + size] for start in range(0, len(shards), size))


def _is_case_due(case: Case, job: JobSnapshot, snapshot: Snapshot) -> bool:
    silent = waits_for_seed(case) and case.beacon_ticket in snapshot.unread
    if case.phase == CasePhase.SEATING:
        return not silent
    # The chain forgets a seed that nobody used, and without it no seat can show its rows.
    late = snapshot.now > case.phase_ends - job.terms.windows.audit_reveal // 2
    if case.phase == CasePhase.REVEALING and not any(case.seed) and late and not silent:
        return True
    return case.is_open and snapshot.now > case.phase_ends
