"""What a node forgets, and what it must keep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from node.operator.tidy import tidy
from protocol.core.round import RoundStatus
from protocol.store.database import open_store
from protocol.store.intents import Intents
from protocol.transport.blobs import BlobStore
from tests.helpers.views import JOB, a_job, a_round
from verifier.snapshot import JobSnapshot

KEEP = 4
ROUNDS = 40


class Checkpoints:
    """Checkpoint n is the blob of b"checkpoint n"."""

    async def checkpoint(self, job_id: bytes, number: int) -> str:
        return self.digests[number]

    def __init__(self, store: BlobStore) -> None:
        self.digests = [store.put(b"checkpoint %d" % number) for number in range(ROUNDS)]


@pytest.fixture
async def station(tmp_path: Path) -> Any:
    async with open_store(tmp_path / "state") as database:
        blobs = BlobStore(tmp_path / "blobs")
        yield SimpleNamespace(
            home=tmp_path,
            intents=Intents(database),
            blobs=blobs,
            market=Checkpoints(blobs),
            config=SimpleNamespace(work=SimpleNamespace(keep_rounds=KEEP)),
        )


def job_at(unsettled: int) -> JobSnapshot:
    """Every round below `unsettled` is settled."""
    job = a_job(a_round(RoundStatus.OPEN, number=unsettled))
    progress = replace(job.job.progress, opened=unsettled + 1, closed=unsettled)
    return JobSnapshot(replace(job.job, progress=progress), job.terms)


async def test_old_results_payloads_and_audits_go_and_recent_ones_stay(station: Any, tmp_path: Path) -> None:
    private = BlobStore(tmp_path / "private")
    kept: dict[int, list[tuple[BlobStore, str]]] = {}
    for number in (0, 5, 6, 9):
        trace, state = private.put(b"trace %d" % number), private.put(b"state %d" % number)
        payload = station.blobs.put(b"payload %d" % number)
        await station.intents.record(f"result/{JOB.hex()}/{number}/2", {"trace_blob": trace, "state": state})
        await station.intents.note(f"opening/{JOB.hex()}/{number}/2/0xabc", [payload, "", ""])
        await station.intents.record(f"audit/{number:064x}", {"job": JOB.hex(), "round": number, "seat": 0})
        (tmp_path / "audits" / f"{number:064x}").mkdir(parents=True)
        kept[number] = [(private, trace), (private, state), (station.blobs, payload)]
    await tidy(station, private, [job_at(10)])
    for number, blobs in kept.items():
        recent = number >= 10 - KEEP
        assert [store.has(digest) for store, digest in blobs] == [recent] * 3
        assert (await station.intents.get(f"audit/{number:064x}") is not None) == recent
        assert (tmp_path / "audits" / f"{number:064x}").exists() == recent


async def test_every_sixteenth_checkpoint_stays(station: Any, tmp_path: Path) -> None:
    await tidy(station, BlobStore(tmp_path / "private"), [job_at(39)])
    left = [number for number, digest in enumerate(station.market.digests) if station.blobs.has(digest)]
    assert left == [0, 16, 32, *range(39 - KEEP, ROUNDS)]


async def test_tidying_twice_changes_nothing_more(station: Any, tmp_path: Path) -> None:
    private = BlobStore(tmp_path / "private")
    await tidy(station, private, [job_at(20)])
    before = set(station.blobs.digests())
    await tidy(station, private, [job_at(20)])
    assert set(station.blobs.digests()) == before


async def test_a_young_job_loses_nothing(station: Any, tmp_path: Path) -> None:
    before = set(station.blobs.digests())
    await tidy(station, BlobStore(tmp_path / "private"), [job_at(KEEP)])
    assert set(station.blobs.digests()) == before
