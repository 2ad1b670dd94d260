"""Forgetting what nobody can ask for any more, so that a node can run for months on one disk.

Kept: everything of unsettled rounds and of the last `keep` settled ones, and every 16th checkpoint, from which the ones
between can be computed again.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence

import structlog

from protocol.transport.blobs import BlobStore
from verifier.snapshot import JobSnapshot
from verifier.station import Station

KEPT_BASES = 16  # one checkpoint in so many stays


async def tidy(station: Station, private: BlobStore, jobs: Sequence[JobSnapshot]) -> None:
    """Delete what is older than the configuration keeps; safe to repeat and to interrupt."""
    for job in jobs:
        oldest = min((round.number for round in job.job.rounds), default=job.job.progress.opened)
        limit = oldest - station.config.work.keep_rounds
        if limit <= 0:
            continue
        count = await _forget_results(station, private, job.job_id, limit)
        count += await _forget_payloads(station, job.job_id, limit)
        count += await _forget_audits(station, job.job_id, limit)
        count += await _forget_checkpoints(station, job, limit)
        if count:
            structlog.get_logger("tidy").info("tidied", job=job.job_id.hex(), before_round=limit, items=count)


async def _forget_results(station: Station, private: BlobStore, job_id: bytes, limit: int) -> int:
    prefix = f"result/{job_id.hex()}/"
    old = {k: v for k, v in (await station.intents.under(prefix)).items() if _round_in(k, prefix) < limit}
    for key, result in old.items():
        for digest in (result["trace_blob"], result["state"]):
            await asyncio.to_thread(private.delete, digest)
        await station.intents.forget(key)
    return len(old)


async def _forget_payloads(station: Station, job_id: bytes, limit: int) -> int:
    prefix = f"opening/{job_id.hex()}/"
    old = {k: v for k, v in (await station.intents.under(prefix)).items() if _round_in(k, prefix) < limit}
    for key, (payload, *_) in old.items():
        await asyncio.to_thread(station.blobs.delete, payload)
        await station.intents.forget(key)
    return len(old)


async def _forget_audits(station: Station, job_id: bytes, limit: int) -> int:
    """The record of a seat goes with its folder; seats about checkpoints have none."""
    records = {**await station.intents.under("audit/"), **await station.intents.under("step/")}
    old = {key: record for key, record in records.items() if record["job"] == job_id.hex() and record["round"] < limit}
    for key in old:
        folder = station.home / "audits" / key.removeprefix("audit/")
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await station.intents.forget(f"finding/{key}")
        await station.intents.forget(key)
    for prefix in (f"recheck-step/{job_id.hex()}/", f"base/{job_id.hex()}/"):
        for key in [key for key in await station.intents.under(prefix) if _round_in(key, prefix) < limit]:
            await station.intents.forget(key)
    return len(old)


async def _forget_checkpoints(station: Station, job: JobSnapshot, limit: int) -> int:
    """Checkpoint n is at most as old as round n: void rounds make no checkpoint."""
    done = f"tidied/{job.job_id.hex()}"
    first, last = int(await station.intents.get(done) or 1), min(limit, job.job.progress.closed)
    for number in range(first, last):
        if number % KEPT_BASES:
            digest = await station.market.checkpoint(job.job_id, number)
            await asyncio.to_thread(station.blobs.delete, digest)
    if last > first:
        await station.intents.note(done, last)
    return max(0, last - first)


def _round_in(key: str, prefix: str) -> int:
    return int(key.removeprefix(prefix).split("/")[0])
