"""Everything that a turn decides upon, read at once and not changed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from protocol.chain.beacon import SeedReader
from protocol.chain.connection import Head
from protocol.chain.errors import Refused, Reverted
from protocol.chain.fork import DEPTH, ForkWatch
from protocol.chain.market import Market
from protocol.core.audit import Case, CasePhase, Outcome
from protocol.core.beacon import Unread
from protocol.core.commitment import case_id, checkpoint_case_id
from protocol.core.job import Job, JobStatus
from protocol.core.operator import Operator
from protocol.core.round import Round, RoundStatus
from protocol.core.terms import Terms
from verifier.records import audit_key, step_check_key, step_key

TURNS_OF_OPERATORS = 5  # turns between readings of the operators: they change seldom
SPOILS = "spoils/"
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
    """One reading. `audits`: what this operator has done on panels, by `records.audit_key` and
    `records.step_key`. `spoils`: settled rounds
    (job, number) whose false checkpoint left slashed bonds that nobody has shared out yet. `unread`: tickets that
    somebody waits for and that give no seed yet; always empty where the beacon needs no proofs. `forks`: how often the
    chain was seen to give up blocks: whatever else is remembered of an earlier count may be of another chain.
    """

    now: int  # block time
    block: int
    me: str
    operators: Sequence[Operator]
    jobs: Sequence[JobSnapshot]
    audits: Mapping[str, Mapping[str, Any]]
    spoils: Sequence[tuple[bytes, int]] = ()
    unread: Mapping[int, Unread] = field(default_factory=dict)
    forks: int = 0


class Audits(Protocol):
    """Durable records (protocol.store.intents)."""

    async def get(self, key: str) -> Any: ...

    async def note(self, key: str, value: Any) -> None: ...

    async def under(self, prefix: str) -> dict[str, Any]: ...

    async def forget(self, key: str) -> None: ...


class SnapshotLoader:
    """Reads snapshots; remembers what does not change while the chain keeps its blocks: terms, settled rounds, closed
    jobs."""

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
        self._seeds = SeedReader(market)
        self._log = structlog.get_logger("snapshot")
        self._watch, self._forks = ForkWatch(market.connection), 0
        self._forget()

    def _forget(self) -> None:
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
        if await self._watch.has_forked(head):
            self._forks += 1
            self._log.warning("chain_went_back", block=head.number)
            self._forget()
        self._known += await self._market.job_ids(len(self._known))
        read = [await self._try_job(job_id) for job_id in self._known if self._is_wanted(job_id)]
        jobs = [job for job in read if job is not None]
        if self._turn % TURNS_OF_OPERATORS == 0:
            self._operators = [entry for entry in await self._market.operators() if entry.is_active(head.timestamp)]
        self._turn += 1
        snapshot = Snapshot(
            now=head.timestamp,
            block=head.number,
            me=self._me,
            operators=self._operators,
            jobs=jobs,
            audits=await self._records(jobs),
            spoils=await self._spoils(jobs, head),
            unread=await self._unread(jobs, head),
            forks=self._forks,
        )
        await self._watch.remember()
        return snapshot

    async def _unread(self, jobs: Sequence[JobSnapshot], head: Head) -> Mapping[int, Unread]:
        if not self._seeds.needs_proofs:
            return {}
        tickets = {ticket for job in jobs for round in job.job.rounds for ticket in tickets_of(round)}
        return await self._seeds.unread(sorted(tickets), head)

    async def _spoils(self, jobs: Sequence[JobSnapshot], head: Head) -> list[tuple[bytes, int]]:
        """A settled round leaves the view of its job, and perhaps the job is closed with it: convictions are noted.

        The block in which their bonds were found shared out is noted too: a reorganisation can take that back.
        """
        open_rounds = {(job.job_id, round.number): round for job in jobs for round in job.job.rounds}
        for (job_id, number), round in open_rounds.items():
            if round.doubt is not None and round.doubt.outcome == Outcome.FRAUD and not round.doubt.is_open:
                await self._audits.note(f"{SPOILS}{job_id.hex()}/{number}", 0)
        found = []
        for key, shared_at in (await self._audits.under(SPOILS)).items():
            parts = key.removeprefix(SPOILS).split("/")
            where = (bytes.fromhex(parts[0]), int(parts[1]))
            if where in open_rounds:
                continue
            (left,) = await self._market.pots([checkpoint_case_id(*where)])
            if left:
                found.append(where)
            elif not shared_at:
                await self._audits.note(key, head.number)
            elif head.number > shared_at + DEPTH:
                await self._audits.forget(key)
        return found

    async def _records(self, jobs: Sequence[JobSnapshot]) -> dict[str, Any]:
        mine = [
            audit_key(case_id(job.job_id, case.round, case.shard), number, round.claims[case.shard].commitment)
            for job in jobs
            for round in job.job.rounds
            for case in round.cases.values()
            for number, seat in enumerate(case.seats)
            if seat.operator == self._me
        ] + [
            step_key(checkpoint_case_id(job.job_id, round.number), number, round)
            for job in jobs
            for round in job.job.rounds
            if round.doubt is not None
            for number, seat in enumerate(round.doubt.seats)
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


async def step_checks(records: Audits, snapshot: Snapshot) -> dict[str, Mapping[str, Any]]:
    """What this program found of its own accord about the checkpoints of closed rounds, by `records.step_check_key`."""
    closed = [(job.job_id, r) for job in snapshot.jobs for r in job.job.rounds if r.status == RoundStatus.CLOSED]
    keys = [step_check_key(job_id, round) for job_id, round in closed]
    found = {key: await records.get(key) for key in keys}
    return {key: record for key, record in found.items() if record is not None}


def tickets_of(round: Round) -> list[int]:
    """The tickets whose seeds a round waits for: its draw, the seats of its cases, the rows that they show."""
    draws = [round.draw.beacon_ticket] if round.status == RoundStatus.CLOSED and not round.draw.drawn else []
    cases = [*round.cases.values(), *([round.doubt] if round.doubt is not None else [])]
    return [*draws, *(case.beacon_ticket for case in cases if waits_for_seed(case))]


def waits_for_seed(case: Case) -> bool:
    return case.phase in (CasePhase.SEATING, CasePhase.REVEALING) and not any(case.seed)
