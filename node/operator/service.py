"""The service of a device that earns: one loop that loads, decides and acts until it is told to stop."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import structlog
from eth_account.signers.local import LocalAccount

from node.operator.actions import LONG as LONG_WORK
from node.operator.actions import NodeAction
from node.operator.peers import is_served_at, open_server
from node.operator.planner import GAS_PER_CLAIM, OwnState, plan_work, why_idle
from node.operator.tidy import tidy
from node.operator.worker import Worker
from protocol.core.audit import CasePhase
from protocol.core.errors import GradmarketError
from protocol.core.round import Round, RoundStatus
from protocol.core.units import format_tokens
from protocol.runtime.errors import ConfigError
from protocol.runtime.loop import Service, stopping_on_signals
from protocol.transport.server import BlobServer
from verifier.actions import Action
from verifier.executor import LONG as LONG_AUDITS
from verifier.panel import plan_seats
from verifier.records import next_key, result_key
from verifier.snapshot import JobSnapshot, Snapshot
from verifier.station import HomeConfig, Station, open_station
from verifier.upkeep import plan_upkeep

INTERVAL = 1.0  # seconds between turns
STUCK_AFTER = 900.0  # seconds without progress after which a supervisor should start the process anew
TURNS_TO_TIDY = 600  # about ten minutes
EVERYWHERE = ("0.0.0.0", "::", "")
DRAIN = "drain"  # a file in the home: take no new claims, leave when nothing is open
NODE_ACTIONS = NodeAction


class KeyInUse(GradmarketError):
    """Another program works with this operator's key."""


class NotRegistered(GradmarketError):
    """An operator key that no owner stands for."""


@dataclass(frozen=True)
class Reading:
    """One turn's view: the market and this operator in it."""

    snapshot: Snapshot
    states: Mapping[bytes, OwnState]


class NodeService:
    """Wires planner, worker, panel and upkeep into one loop."""

    def __init__(self, station: Station, server: BlobServer, worker: Worker) -> None:
        self._station, self._server, self._worker = station, server, worker
        self._loader, self._executor, self._duty = station.loader(), station.executor(), station.duty()
        self._log = structlog.get_logger("node")
        self._stop = asyncio.Event()
        self._idle = "starting"
        self._reading: Reading | None = None
        self._tickets = 0  # of ours that are not over; read while leaving
        self.service: Service[Reading, Any] = Service(
            self._load, self._plan, self._execute, background=(*LONG_WORK, *LONG_AUDITS)
        )

    async def run(self) -> None:
        await self._announce()
        await self._station.sender.resume()
        with stopping_on_signals(self._stop):
            await self.service.run(self._stop, interval=INTERVAL, on_turn=self._after_turn, stuck_after=STUCK_AFTER)

    async def _announce(self) -> None:
        """Say on chain where peers find this operator, if the registry says something else."""
        url = self._station.config.serve.advertise or self._server.url
        if self._server.host in EVERYWHERE and not self._station.config.serve.advertise:
            raise ConfigError(
                f"config.toml: serve.advertise is missing: no peer reaches {url}; name this machine's URL"
            )
        registry = self._station.market.operator_registry
        me = self._station.sender.address
        owner, _, retired, *_, known = await self._station.market.call(registry.functions.operatorOf(me))
        if retired or not int(owner, 16):
            raise NotRegistered(
                f"operator {me} is {'retired' if retired else 'not registered'}: run `gradmarket node init`"
            )
        if known and known != url and await is_served_at(self._station, known):
            raise KeyInUse(f"operator {me} already runs at {known}: one key in two programs loses both their claims")
        if known != url:
            call = registry.functions.setEndpoint(me, url)
            await self._station.sender.submit_and_confirm("set-endpoint:self", call)
        self._log.info("serving", url=url)

    # -- load

    async def _load(self) -> Reading:
        snapshot = await self._loader.load()
        await self._station.follow(snapshot)
        if self.service.turns % TURNS_TO_TIDY == 0:
            await tidy(self._station, self._worker.private, snapshot.jobs)
        why_stop = await self._why_stop()
        if (self._station.home / DRAIN).exists():
            self._tickets = await self._live_tickets(snapshot)
        reading = Reading(snapshot, {job.job_id: await self._state(job, snapshot, why_stop) for job in snapshot.jobs})
        self._reading = reading
        return reading

    async def _state(self, job: JobSnapshot, snapshot: Snapshot, why_stop: str) -> OwnState:
        market, me = self._station.market, snapshot.me
        inputs = self._station.inputs(job.job_id)
        owner = await market.owner(job.job_id, me)
        current = job.job.current
        is_open = current is not None and current.status == RoundStatus.OPEN
        attesting = current is not None and current.status in (RoundStatus.SEALED, RoundStatus.TALLIED)
        results, nexts = set(), {}
        for round in job.job.rounds:
            for claim in round.claims:
                key = result_key(job.job_id, round, claim.shard)
                if claim.operator == me and await self._station.intents.get(key):
                    results.add((round.number, claim.shard))
            step = await self._station.intents.get(next_key(job.job_id, round))
            if step:
                nexts[round.number] = step
        return OwnState(
            owner=owner,
            held=await market.held(job.job_id, current.number, owner.address) if current and is_open else 0,
            attested=await market.attested(job.job_id, current.number, me) if current and attesting else False,
            bases=frozenset(r.number for r in job.job.rounds if inputs.has_checkpoint(r.base)),
            results=frozenset(results),
            nexts=nexts,
            claims_at_once=self._station.config.work.claims,
            train_seconds=self._worker.train_seconds(job.job_id),
            stop_claiming=self._worker.why_broken(job.job_id) or why_stop,
        )

    async def _live_tickets(self, snapshot: Snapshot) -> int:
        """Tickets of this operator that can still be drawn or have an open seat: whoever is gone pays for silence."""
        tickets = [t for t in await self._station.market.tickets() if t.operator == snapshot.me and not t.released]
        return sum(t.used > 0 or t.exit_at == 0 or t.exit_at > snapshot.now for t in tickets)

    async def _why_stop(self) -> str:
        if (self._station.home / DRAIN).exists():
            return f"this node is leaving; {self._tickets} tickets can still be drawn (`node init` brings it back)"
        have = await self._station.market.gas_balance(self._station.sender.address)
        head = await self._station.market.connection.head()
        need = GAS_PER_CLAIM * (2 * head.base_fee + self._station.sender.policy.min_tip)
        if have < need:
            return (
                f"{self._station.sender.address} has {format_tokens(have)} coins for gas, "
                f"a claim needs about {format_tokens(need)}"
            )
        return ""

    # -- decide

    def _plan(self, reading: Reading) -> list[Any]:
        snapshot = reading.snapshot
        self._idle = why_idle(snapshot, reading.states)
        upkeep: list[Action] = self._duty.choose(plan_upkeep(snapshot), snapshot.operators)
        return [*plan_seats(snapshot), *plan_work(snapshot, reading.states), *upkeep]

    # -- act

    async def _execute(self, action: Any) -> None:
        if isinstance(action, NODE_ACTIONS):
            await self._worker.execute(action)
        else:
            await self._executor.execute(action)

    def _after_turn(self) -> None:
        if self._reading is None:
            return
        save_status(self._station, self.service, self._reading, self._idle)
        leaving = (self._station.home / DRAIN).exists()
        if leaving and not self.service.in_flight and not self._tickets and not _is_bound(self._reading.snapshot):
            self._log.info("left", reason="nothing of this operator is open any more")
            self._stop.set()


def _is_bound(snapshot: Snapshot) -> bool:
    """Whether a claim of ours is unsettled or a seat of ours is open."""
    return any(_binds(round, snapshot.me) for job in snapshot.jobs for round in job.job.rounds)


def _binds(round: Round, me: str) -> bool:
    claims = any(claim.operator == me and not claim.is_resolved for claim in round.claims)
    seats = any(
        seat.operator == me and seat.locked
        for case in round.cases.values()
        if case.phase != CasePhase.DONE
        for seat in case.seats
    )
    return claims or seats


def save_status(station: Station, service: Service[Reading, Any], reading: Reading, idle: str) -> None:
    """Write status.json for `node status`: what the loop does, and why not more."""
    snapshot = reading.snapshot
    traffic = station.client.traffic
    status = {
        "operator": snapshot.me,
        "block_time": snapshot.now,
        "block": snapshot.block,
        "turns": service.turns,
        "doing": sorted(service.in_flight),
        "idle": idle,
        "failures": {key: failure.reason for key, failure in service.backoff.failures.items()},
        "owners": {
            job.hex(): {
                "passed_audits": s.owner.passed_audits,
                "barred": s.owner.barred,
                "free": str(s.owner.free_stake),
            }
            for job, s in reading.states.items()
        },
        "sent": dict(traffic.sent),
        "received": dict(traffic.received),
        "cpu_seconds": cpu_seconds(),
    }
    path = station.home / "status.json"
    scratch = path.with_suffix(".new")
    scratch.write_bytes(msgspec.json.encode(status))
    scratch.replace(path)


def cpu_seconds() -> float:
    """CPU time of this process and its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


async def run_node(
    home: Path,
    config: HomeConfig,
    account: LocalAccount,
    *,
    compute_module: str = "node.operator.compute",
    compute_env: Mapping[str, str] | None = None,
) -> None:
    """Run until SIGTERM, Ctrl-C or the end of a drain."""
    async with open_station(home, config, account, compute_module=compute_module, compute_env=compute_env) as station:
        worker = Worker(station)
        async with open_server(station, worker) as server:
            await NodeService(station, server, worker).run()
