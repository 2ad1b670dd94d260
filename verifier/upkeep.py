"""Which moves are due that anyone may make. Pure: the same snapshot gives the same moves."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.core.audit import Case, CasePhase
from protocol.core.commitment import case_id
from protocol.core.job import JobStatus
from protocol.core.round import Round, RoundStatus, bits, is_decided
from protocol.core.terms import Terms
from verifier.actions import Action, AdvanceCase, AdvanceRound, CloseJob, Convene, DrawSample, OpenRound, Settle
from verifier.snapshot import JobSnapshot, Snapshot

MOST_CONVENED = 16  # cases opened in one transaction: about 5 M gas
MOST_SETTLED = 64  # shards settled in one transaction: about 4 M gas
PATIENCE = 2  # challenge windows after which decided shards are settled although others are not decided


def plan_upkeep(snapshot: Snapshot) -> list[Action]:
    """Everything that somebody should do now to keep jobs, rounds and cases going."""
    return [action for job in snapshot.jobs for action in _plan_job(job, snapshot)]


def _plan_job(job: JobSnapshot, snapshot: Snapshot) -> Iterator[Action]:
    if job.job.status == JobStatus.READY:
        yield OpenRound(job.job_id)
    if job.job.status == JobStatus.CLOSABLE:
        yield CloseJob(job.job_id)
    for round in job.job.rounds:
        yield from _plan_round(job, round, snapshot)


def _plan_round(job: JobSnapshot, round: Round, snapshot: Snapshot) -> Iterator[Action]:
    if round.status == RoundStatus.DUE:
        yield AdvanceRound(job.job_id, round.number)
    if not round.closed_at:
        return
    if not round.voided and not round.draw.drawn:
        yield DrawSample(job.job_id, round.number)
    waiting = tuple(shard for shard in bits(round.draw.sampled_map) if shard not in round.cases)
    for some in _chunks(waiting, MOST_CONVENED):
        yield Convene(job.job_id, round.number, some)
    for shard, case in round.cases.items():
        if _is_case_due(case, job.terms, snapshot.now):
            yield AdvanceCase(job.job_id, round.number, shard, case_id(job.job_id, round.number, shard))
    decided = tuple(c.shard for c in round.claims if is_decided(round, c, job.terms.windows.challenge, snapshot.now))
    unresolved = sum(not claim.is_resolved for claim in round.claims)
    late = snapshot.now > round.closed_at + PATIENCE * job.terms.windows.challenge
    if len(decided) == unresolved or late:
        for some in _chunks(decided, MOST_SETTLED):
            yield Settle(job.job_id, round.number, some)


def _chunks(shards: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    """What fits one transaction."""
    return (shards[start : start + size] for start in range(0, len(shards), size))


def _is_case_due(case: Case, terms: Terms, now: int) -> bool:
    if case.phase == CasePhase.SEATING:
        return True
    # The chain forgets a seed that nobody used, and without it no seat can show its rows.
    if (
        case.phase == CasePhase.REVEALING
        and not any(case.seed)
        and now > case.phase_ends - terms.windows.audit_reveal // 2
    ):
        return True
    return case.phase in (CasePhase.COMMITTING, CasePhase.REVEALING) and now > case.phase_ends
