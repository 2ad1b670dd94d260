"""What the seats of this operator have to do next. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.core.audit import Case, CasePhase, SeatState
from protocol.core.commitment import case_id, checkpoint_case_id
from protocol.core.round import Round
from verifier.actions import Action, CommitAudit, CommitStep, RecomputeStep, Reexecute, RevealAudit, RevealStep
from verifier.records import audit_key, step_key
from verifier.snapshot import JobSnapshot, Snapshot


def plan_seats(snapshot: Snapshot) -> list[Action]:
    """One step for each seat: re-execute, commit, reveal."""
    claims = [
        action
        for job in snapshot.jobs
        for round in job.job.rounds
        for case in round.cases.values()
        for action in _plan_case(job, case, round.claims[case.shard].commitment, snapshot)
    ]
    steps = [
        action
        for job in snapshot.jobs
        for round in job.job.rounds
        if round.doubt is not None
        for action in _plan_doubt(job, round, round.doubt, snapshot)
    ]
    return [*claims, *steps]


def _plan_case(job: JobSnapshot, case: Case, commitment: bytes, snapshot: Snapshot) -> Iterator[Action]:
    ident = case_id(job.job_id, case.round, case.shard)
    for number, seat in enumerate(case.seats):
        if seat.operator != snapshot.me or snapshot.now > case.phase_ends:
            continue
        where = (job.job_id, case.round, case.shard, ident, number, commitment)
        record = snapshot.audits.get(audit_key(ident, number, commitment))
        if case.phase == CasePhase.COMMITTING and seat.state == SeatState.SEATED:
            yield Reexecute(*where) if record is None else CommitAudit(*where)
        elif case.phase == CasePhase.REVEALING and seat.state == SeatState.COMMITTED and record is not None:
            yield RevealAudit(*where)


def _plan_doubt(job: JobSnapshot, round: Round, case: Case, snapshot: Snapshot) -> Iterator[Action]:
    ident = checkpoint_case_id(job.job_id, round.number)
    for number, seat in enumerate(case.seats):
        if seat.operator != snapshot.me or snapshot.now > case.phase_ends:
            continue
        key = step_key(ident, number, round)
        where = (job.job_id, round.number, ident, number, key)
        if case.phase == CasePhase.COMMITTING and seat.state == SeatState.SEATED:
            yield CommitStep(*where) if key in snapshot.audits else RecomputeStep(*where)
        elif case.phase == CasePhase.REVEALING and seat.state == SeatState.COMMITTED and key in snapshot.audits:
            yield RevealStep(*where)
