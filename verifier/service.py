"""The service of an auditor that does not train: upkeep, panels, and checks of its own accord."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from eth_account.signers.local import LocalAccount

from protocol.runtime.loop import Service, stopping_on_signals
from verifier.actions import Action
from verifier.executor import LONG
from verifier.panel import plan_seats
from verifier.records import recheck_key
from verifier.sampler import plan_sampling, plan_steps
from verifier.snapshot import Snapshot, step_checks
from verifier.station import HomeConfig, Station, open_station
from verifier.upkeep import plan_upkeep

INTERVAL = 1.0  # seconds between turns
STUCK_AFTER = 900.0  # seconds without progress after which a supervisor should start the process anew
SECRET = "sampling-secret"


@dataclass(frozen=True)
class Reading:
    """One turn's view. `checked`: own checks by commitment, `steps`: by `records.step_check_key`; `stakes`: the owner's
    free wei by job."""

    snapshot: Snapshot
    checked: Mapping[str, Mapping[str, Any]]
    stakes: Mapping[bytes, int]
    steps: Mapping[str, Mapping[str, Any]]


class VerifierService:
    """`rate`: the share of unsampled claims that are checked of one's own accord, 0 to 1; above 0, checkpoints too."""

    def __init__(self, station: Station, rate: float) -> None:
        self._station, self._rate = station, rate
        self._loader, self._executor, self._duty = station.loader(), station.executor(), station.duty()
        self._secret = b""
        self.service: Service[Reading, Action] = Service(
            self._load, self._plan, self._executor.execute, background=LONG
        )
        station.compute.heard = self.service.touch  # a claim may take longer than a service may be silent

    async def run(self) -> None:
        stop = asyncio.Event()
        self._secret = await self._own_secret()
        structlog.get_logger("verifier").info("serving_panels", operator=self._station.sender.address, rate=self._rate)
        with stopping_on_signals(stop):
            await self._station.sender.resume()
            await self.service.run(stop, interval=INTERVAL, stuck_after=STUCK_AFTER)

    async def _own_secret(self) -> bytes:
        """Kept over restarts, so that a restart does not draw again."""
        intents = self._station.intents
        if await intents.get(SECRET) is None:
            await intents.record(SECRET, secrets.token_hex(32))
        return bytes.fromhex(await intents.get(SECRET))

    async def _load(self) -> Reading:
        snapshot = await self._loader.load()
        await self._station.follow(snapshot)
        if not self._rate:
            return Reading(snapshot, {}, {}, {})
        checked, stakes = {}, {}
        for job in snapshot.jobs:
            stakes[job.job_id] = (await self._station.market.owner(job.job_id, snapshot.me)).free_stake
            for claim in (claim for round in job.job.rounds for claim in round.claims if claim.is_committed):
                result = await self._station.intents.get(recheck_key(claim.commitment))
                if result is not None:
                    checked[claim.commitment.hex()] = result
        return Reading(snapshot, checked, stakes, await step_checks(self._station.intents, snapshot))

    def _plan(self, reading: Reading) -> list[Action]:
        snapshot = reading.snapshot
        upkeep = self._duty.choose(plan_upkeep(snapshot), snapshot.operators)
        own = plan_sampling(snapshot, self._rate, self._secret, reading.checked, reading.stakes)
        steps = plan_steps(snapshot, reading.steps, reading.stakes) if self._rate else []
        return [*plan_seats(snapshot), *self._station.orders.pending(), *steps, *own, *upkeep]


async def run_verifier(home: Path, config: HomeConfig, account: LocalAccount, rate: float = 0.0) -> None:
    """Serve this operator's seats until SIGTERM or Ctrl-C."""
    async with open_station(home, config, account) as station:
        await VerifierService(station, rate).run()
