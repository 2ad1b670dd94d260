"""The service of an auditor that does not train: upkeep and panels."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import structlog
from eth_account.signers.local import LocalAccount

from protocol.runtime.loop import Service, stopping_on_signals
from verifier.executor import LONG
from verifier.panel import plan_seats
from verifier.snapshot import Snapshot
from verifier.station import HomeConfig, open_station
from verifier.upkeep import plan_upkeep

INTERVAL = 1.0  # seconds between turns
STUCK_AFTER = 900.0


async def run_verifier(home: Path, config: HomeConfig, account: LocalAccount) -> None:
    """Serve this operator's seats until SIGTERM or Ctrl-C."""
    async with open_station(home, config, account) as station:
        loader, executor, duty = station.loader(), station.executor(), station.duty()

        async def load() -> Snapshot:
            snapshot = await loader.load()
            await station.follow(snapshot)
            return snapshot

        def plan(snapshot: Snapshot) -> list[Any]:
            return [*plan_seats(snapshot), *duty.choose(plan_upkeep(snapshot), snapshot.operators)]

        service: Service[Snapshot, Any] = Service(load, plan, executor.execute, background=LONG)
        stop = asyncio.Event()
        structlog.get_logger("verifier").info("serving_panels", operator=account.address)
        with stopping_on_signals(stop):
            await station.sender.resume()
            await service.run(stop, interval=INTERVAL, stuck_after=STUCK_AFTER)
