"""Following a job: records in order, each with money that adds up. The chain may be away for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from node.poster.errors import BooksDisagree
from node.poster.losses import Losses
from node.poster.money import Books
from node.poster.quote import Quote, find_obstacles, read_owners
from node.poster.records import Record, job_record, round_record
from protocol.chain.errors import ChainUnavailable, Refused
from protocol.core.job import Job, JobStatus
from protocol.core.presets import load_preset
from protocol.core.round import Round, RoundStatus
from verifier.jobs import JobReader

INTERVAL = 1.0  # seconds between looks
LONGEST_PAUSE = 30.0  # seconds between looks at a chain that does not answer
TRIES = 3  # looks that may fail in a row where the command is to end by itself
HICCUPS = (ChainUnavailable, Refused, BooksDisagree)  # the next look may do better


class Watch:
    """Tells each closed round once, again when a court replaced its checkpoint, once more when it is settled, and every
    change of the job's state."""

    def __init__(self, reader: JobReader) -> None:
        self._reader = reader
        station = reader.station
        self._books = Books(reader.market, station.intents, station.cursors)
        self._losses = Losses(reader)
        self._next = 0  # first round that was not told
        self._unsettled: dict[int, bytes] = {}  # the checkpoint that was told, by round
        self._state: tuple[object, ...] = ()

    async def look(self) -> AsyncIterator[Record]:
        """What is new since the last look. A look that fails in the middle goes on there the next time."""
        job = await self._reader.refresh()
        while self._next < job.progress.opened:
            round = await self._reader.market.round(self._reader.job_id, self._next)
            if not round.closed_at:
                break
            record = await self._closed("round", round)
            if round.status != RoundStatus.SETTLED:
                self._unsettled[self._next] = round.next
            self._next += 1
            yield record
        for number in sorted(self._unsettled):
            round = await self._reader.market.round(self._reader.job_id, number)
            if round.next != self._unsettled[number]:
                record = await self._closed("replaced", round)
                self._unsettled[number] = round.next
                yield record
            if round.status == RoundStatus.SETTLED:
                record = job_record("settled", job, await self._books.read(job.job_id), round_record(round))
                del self._unsettled[number]
                yield record
        state = (job.status, job.reason, job.funded, job.refunded)
        if state != self._state:
            obstacles = await self._obstacles(job)
            record = job_record("job", job, await self._books.read(job.job_id), obstacles=obstacles)
            self._state = state
            yield record

    async def _closed(self, kind: str, round: Round) -> Record:
        """Void rounds make no checkpoint, so a checkpoint's number is not its round's."""
        loss, no_loss = None, ""
        if round.checkpoint:
            loss, no_loss = await self._losses.try_measure(round.next, round.checkpoint)
        job = await self._reader.refresh()  # measuring took a while
        return job_record(kind, job, await self._books.read(job.job_id), round_record(round, loss, no_loss))

    async def _obstacles(self, job: Job) -> list[str]:
        """Why a job that could go on does not, or may not for long."""
        if job.status not in (JobStatus.RUNNING, JobStatus.READY, JobStatus.PAUSED):
            return []
        market, terms = self._reader.market, self._reader.inputs.terms
        quote = Quote(terms, load_preset(market.deployment.preset), job.escrow)
        if job.status == JobStatus.RUNNING:
            quote = replace(quote, deposit=quote.reservation)  # it lies in the open round
        return list(find_obstacles(quote, await read_owners(market)))

    @property
    def is_done(self) -> bool:
        return bool(self._state) and self._state[0] == JobStatus.CLOSED


async def watch_job(
    reader: JobReader, tell: Callable[[Record], None], warn: Callable[[str], None], *, once: bool, until_done: bool
) -> None:
    """Tell records until the one look is done, the job is closed, or for ever. A chain that is away is waited for."""
    watch, failures = Watch(reader), 0
    while True:
        try:
            async for record in watch.look():
                tell(record)
            failures = 0
        except HICCUPS as error:
            failures += 1
            if once and failures >= TRIES:
                raise
            warn(str(error))
        if not failures and (once or (until_done and watch.is_done)):
            return
        await asyncio.sleep(min(LONGEST_PAUSE, INTERVAL * 2**failures) if failures else INTERVAL)
