"""attack: a job that cannot be read · gain: every node stops working on every job · defence: it is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from protocol.chain.errors import Reverted
from protocol.chain.market import Market
from protocol.core.job import Job
from tests.helpers.market import open_world
from verifier.snapshot import SnapshotLoader


class OneUnreadable(Market):
    """A market one of whose jobs no provider can read."""

    unreadable = b""

    async def job(self, job_id: bytes, first_round: int = 0) -> Job:
        if job_id == self.unreadable:
            raise Reverted("NoReason", {})
        return await super().job(job_id, first_round)


class NoRecords:
    async def get(self, key: str) -> Any:
        return None

    async def note(self, key: str, value: Any) -> None:
        return None

    async def under(self, prefix: str) -> dict[str, Any]:
        return {}

    async def forget(self, key: str) -> None:
        return None


async def test_one_job_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        market = OneUnreadable(world.bench.market.connection, world.bench.market.deployment)
        bad, good = [await world.post(world.job_terms(), salt) for salt in (1, 2)]
        market.unreadable = bad
        loader = SnapshotLoader(market, world.bench.people[0].operator.address, NoRecords(), max_head_age=10**9)
        for _ in range(2):
            assert [job.job_id for job in (await loader.load()).jobs] == [good]


async def test_a_job_that_pays_less_than_asked_is_not_looked_at(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        job = await world.post(world.job_terms())
        market = world.bench.market
        reward = (await market.terms(job)).reward_per_shard
        for least, expected in ((reward, [job]), (reward + 1, [])):
            loader = SnapshotLoader(
                world.bench.market, "0x" + "11" * 20, NoRecords(), max_head_age=10**9, min_reward=least
            )
            assert [entry.job_id for entry in (await loader.load()).jobs] == expected
