"""Everything that a turn decides upon, read at once and not changed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from protocol.chain.errors import Refused, Reverted
from protocol.chain.market import Market
from protocol.core.commitment import case_id
from protocol.core.job import Job, JobStatus
from protocol.core.operator import Operator
from protocol.core.round import RoundStatus
from protocol.core.terms import Terms
from verifier.records import audit_key

TURNS_OF_OPERATORS = 5  # turns between readings of the operators: they change seldom
TURNS_OF_QUIET = 20  # turns for which a paused job is left alone: posting many of them must not slow the others


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
    """One reading. `audits`: what this operator has done on panels, by `records.audit_key`."""

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
        self,
        market: Market,
        me: str,
        audits: Audits,
        follows: Callable[[bytes], bool] = lambda job_id: True,
        max_head_age: int = 120,
        min_reward: int = 0,
    ) -> None:
        self._market, self._me, self._audits, self._follows = market, me, audits, follows
        self._max_head_age, self._min_reward = max_head_age, min_reward
        self._log = structlog.get_logger("snapshot")
        self._turn = 0
        self._known: list[bytes] = []
        self._operators: list[Operator] = []
        self._terms: dict[bytes, Terms] = {}
        self._first: dict[bytes, int] = {}
        self._closed: set[bytes] = set()
        self._quiet: dict[bytes, int] = {}  # jobs on which nothing can happen soon, and the turn to look again

    async def load(self) -> Snapshot:
        """Raises StaleHead rather than decide upon old facts."""
        head = await self._market.connection.check_fresh(self._max_head_age)
        self._known += await self._market.job_ids(len(self._known))
        read = [await self._try_job(job_id) for job_id in self._known if self._is_wanted(job_id)]
        jobs = [job for job in read if job is not None]
        if self._turn % TURNS_OF_OPERATORS == 0:
            self._operators = [entry for entry in await self._market.operators() if not entry.retired]
        self._turn += 1
        return Snapshot(
            now=head.timestamp,
            block=head.number,
            me=self._me,
            operators=self._operators,
            jobs=jobs,
            audits=await self._records(jobs),
        )

    async def _records(self, jobs: Sequence[JobSnapshot]) -> dict[str, Any]:
        mine = [
            audit_key(case_id(job.job_id, case.round, case.shard), number, round.claims[case.shard].commitment)
            for job in jobs
            for round in job.job.rounds
            for case in round.cases.values()
            for number, seat in enumerate(case.seats)
            if seat.operator == self._me
        ]
        records = {key: await self._audits.get(key) for key in mine}
        return {key: record for key, record in records.items() if record is not None}

    def _is_wanted(self, job_id: bytes) -> bool:
        if job_id in self._closed or self._quiet.get(job_id, 0) > self._turn:
            return False
        return self._follows(job_id)

    async def _try_job(self, job_id: bytes) -> JobSnapshot | None:
        """None for a job that cannot be read or pays less than we work for: it must not keep us from the others."""
        try:
            if job_id not in self._terms:
                self._terms[job_id] = await self._market.terms(job_id)
            if self._terms[job_id].reward_per_shard < self._min_reward:
                self._closed.add(job_id)
                return None
            return await self._job(job_id)
        except (Reverted, Refused) as error:
            self._quiet[job_id] = self._turn + TURNS_OF_QUIET
            self._log.warning("job_unreadable", job=job_id.hex(), reason=str(error))
            return None

    async def _job(self, job_id: bytes) -> JobSnapshot:
        job = await self._market.job(job_id, self._first.get(job_id, 0))
        open_rounds = [round.number for round in job.rounds if round.status != RoundStatus.SETTLED]
        self._first[job_id] = min(open_rounds, default=job.progress.opened)
        if job.status == JobStatus.CLOSED:
            self._closed.add(job_id)
        if job.status == JobStatus.PAUSED and not open_rounds:
            self._quiet[job_id] = self._turn + TURNS_OF_QUIET
        return JobSnapshot(job, self._terms[job_id])
