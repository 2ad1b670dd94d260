"""Everything that a turn decides upon, read at once and not changed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from protocol.chain.market import Market
from protocol.core.commitment import case_id
from protocol.core.job import Job, JobStatus
from protocol.core.operator import Operator
from protocol.core.round import RoundStatus
from protocol.core.terms import Terms


@dataclass(frozen=True)
class JobSnapshot:
    """A job that is not closed, with its unsettled rounds."""

    job: Job
    terms: Terms

    @property
    def job_id(self) -> bytes:
        return self.job.job_id


@dataclass(frozen=True)
class Snapshot:
    """One reading. `audits`: what this operator has done on panels, by case id in hex (`auditor.py`)."""

    now: int  # block time
    block: int
    me: str
    operators: Sequence[Operator]
    jobs: Sequence[JobSnapshot]
    audits: Mapping[str, Mapping[str, Any]]


class Audits(Protocol):
    """Durable records (protocol.store.intents)."""

    async def get(self, key: str) -> Any: ...


class SnapshotLoader:
    """Reads snapshots; remembers what never changes: terms, settled rounds, closed jobs."""

    def __init__(
        self, market: Market, me: str, audits: Audits, follows: Callable[[bytes], bool] = lambda job_id: True
    ) -> None:
        self._market, self._me, self._audits, self._follows = market, me, audits, follows
        self._terms: dict[bytes, Terms] = {}
        self._first: dict[bytes, int] = {}
        self._closed: set[bytes] = set()

    async def load(self) -> Snapshot:
        head = await self._market.connection.head()
        jobs = [await self._job(job_id) for job_id in await self._market.job_ids() if self._is_wanted(job_id)]
        return Snapshot(
            now=head.timestamp,
            block=head.number,
            me=self._me,
            operators=[entry for entry in await self._market.operators() if not entry.retired],
            jobs=jobs,
            audits=await self._records(jobs),
        )

    async def _records(self, jobs: Sequence[JobSnapshot]) -> dict[str, Any]:
        mine = [
            case_id(job.job_id, case.round, case.shard).hex()
            for job in jobs
            for round in job.job.rounds
            for case in round.cases.values()
            if any(seat.operator == self._me for seat in case.seats)
        ]
        records = {case: await self._audits.get(f"audit/{case}") for case in mine}
        return {case: record for case, record in records.items() if record is not None}

    def _is_wanted(self, job_id: bytes) -> bool:
        return job_id not in self._closed and self._follows(job_id)

    async def _job(self, job_id: bytes) -> JobSnapshot:
        if job_id not in self._terms:
            self._terms[job_id] = await self._market.terms(job_id)
        job = await self._market.job(job_id, self._first.get(job_id, 0))
        open_rounds = [round.number for round in job.rounds if round.status != RoundStatus.SETTLED]
        self._first[job_id] = min(open_rounds, default=job.progress.opened)
        if job.status == JobStatus.CLOSED:
            self._closed.add(job_id)
        return JobSnapshot(job, self._terms[job_id])
