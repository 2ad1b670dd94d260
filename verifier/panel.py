"""What the seats of this operator have to do next. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.core.audit import Case, CasePhase, SeatState
from protocol.core.commitment import case_id
from verifier.actions import Action, CommitAudit, Reexecute, RevealAudit
from verifier.records import audit_key
from verifier.snapshot import JobSnapshot, Snapshot


def plan_seats(snapshot: Snapshot) -> list[Action]:
    """One step for each seat: re-execute, commit, reveal."""
    return [
        action
        for job in snapshot.jobs
        for round in job.job.rounds
        for case in round.cases.values()
        for action in _plan_case(job, case, round.claims[case.shard].commitment, snapshot)
    ]


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
