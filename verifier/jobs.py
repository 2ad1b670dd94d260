"""One job by its id or the beginning of it, and a station without anybody's key to read it with."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from eth_account import Account

from protocol.chain.market import Market
from protocol.core.job import Job
from verifier.errors import VerifierError
from verifier.inputs import JobInputs
from verifier.snapshot import JobSnapshot, Snapshot
from verifier.station import HomeConfig, Station, open_station


class UnknownJob(VerifierError):
    """A text that names no job of this market, or several."""


async def find_job(market: Market, text: str) -> bytes:
    """The id that `text` (hex, with or without 0x) is or begins. Raises UnknownJob."""
    wanted = text.removeprefix("0x").lower()
    if not wanted or len(wanted) > 64 or wanted.strip("0123456789abcdef"):
        raise UnknownJob(f"job {text!r}: expected the job's id in hex or its first digits; see `gradmarket job list`")
    known = await market.job_ids()
    found = [job_id for job_id in known if job_id.hex().startswith(wanted)]
    if len(found) != 1:
        what = f"{len(found)} jobs begin so; give more digits" if found else f"none of the market's {len(known)} jobs"
        raise UnknownJob(f"job {text!r}: {what}; see `gradmarket job list`")
    return found[0]


class JobReader:
    """A job as anyone can read it."""

    def __init__(self, station: Station, job_id: bytes) -> None:
        self.station, self.job_id, self.market = station, job_id, station.market

    async def refresh(self) -> Job:
        """The job now; remembers who can be asked for its artefacts."""
        head = await self.market.connection.head()
        job, terms = await self.market.job(self.job_id), await self.market.terms(self.job_id)
        operators = [operator for operator in await self.market.operators() if operator.is_active(head.timestamp)]
        me = self.station.sender.address
        await self.station.follow(Snapshot(head.timestamp, head.number, me, operators, [JobSnapshot(job, terms)], {}))
        return job

    @property
    def inputs(self) -> JobInputs:
        """After the first refresh."""
        return self.station.inputs(self.job_id)


@contextlib.asynccontextmanager
async def open_job(home: Path, config: HomeConfig, text: str) -> AsyncIterator[JobReader]:
    """Open a station for reading in a folder of its own, so that a running node does not block it.

    Its key is made up and holds nothing: no transaction can come from it.
    """
    async with open_station(home, config, Account.create()) as station:
        reader = JobReader(station, await find_job(station.market, text))
        await reader.refresh()
        yield reader
