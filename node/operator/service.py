"""The service of a device that earns: one loop that loads, decides and acts until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from eth_account.signers.local import LocalAccount

from node.operator.actions import LONG as LONG_WORK
from node.operator.actions import NodeAction
from node.operator.peers import is_served_at, open_server
from node.operator.planner import GAS_PER_CLAIM, OwnState, plan_work, why_idle
from node.operator.status import save_status
from node.operator.tidy import tidy
from node.operator.worker import Worker
from protocol.core.errors import GradmarketError
from protocol.core.presets import load_preset
from protocol.core.round import Round, RoundStatus
from protocol.core.units import format_tokens
from protocol.runtime.errors import ConfigError
from protocol.runtime.loop import Service, stopping_on_signals
from protocol.transport.server import BlobServer
from verifier.actions import Action, ChallengeStep, RecheckStep
from verifier.executor import LONG as LONG_AUDITS
from verifier.panel import plan_seats
from verifier.records import base_key, next_key, result_key, step_check_key
from verifier.remedies import find_remedies
from verifier.sampler import plan_steps
from verifier.snapshot import JobSnapshot, Snapshot, step_checks
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
    steps: Mapping[str, Mapping[str, Any]]  # own checks of checkpoints, by `records.step_check_key`


class NodeService:
    """Wires planner, worker, panel and upkeep into one loop."""

    def __init__(self, station: Station, server: BlobServer, worker: Worker) -> None:
        self._station, self._server, self._worker = station, server, worker
        self._loader, self._executor, self._duty = station.loader(), station.executor(), station.duty()
        self._log = structlog.get_logger("node")
        self._stop = asyncio.Event()
        self._idle = "starting"
        self._reading: Reading | None = None
        self._preset = load_preset(station.market.deployment.preset)
        self._told: set[str] = set()  # remedies that the log has named
        self._tickets = 0  # of ours that are not over; read while leaving
        self.service: Service[Reading, Any] = Service(
            self._load, self._plan, self._execute, background=(*LONG_WORK, *LONG_AUDITS)
        )
        station.compute.heard = self.service.touch  # a claim may take longer than a service may be silent

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
        entry = await self._station.market.operator(me)
        if not entry.is_active(await self._station.market.connection.now()):
            why = "not registered" if not entry.is_known else "revoked" if entry.revoked else "no longer delegated to"
            raise NotRegistered(f"operator {me} is {why}: run `gradmarket node init`")
        known = entry.endpoint
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
        states = {job.job_id: await self._state(job, snapshot, why_stop) for job in snapshot.jobs}
        steps = await step_checks(self._station.intents, snapshot) if self._station.config.work.challenge else {}
        reading = Reading(snapshot, states, {**_attested_steps(snapshot, states), **steps})
        self._reading = reading
        return reading

    async def _state(self, job: JobSnapshot, snapshot: Snapshot, why_stop: str) -> OwnState:
        market, me = self._station.market, snapshot.me
        inputs = self._station.inputs(job.job_id)
        owner = await market.owner(job.job_id, me)
        current = job.job.current
        is_open = current is not None and current.status == RoundStatus.OPEN
        attesting = current is not None and current.status in (RoundStatus.SEALED, RoundStatus.TALLIED)
        results, nexts, bases = set(), {}, set()
        for round in job.job.rounds:
            if inputs.has_checkpoint(round.base) and await self._station.intents.get(base_key(job.job_id, round)):
                bases.add(round.number)
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
            bases=frozenset(bases),
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
        own = [*plan_work(snapshot, reading.states), *self._plan_steps(reading)]
        return [*plan_seats(snapshot), *self._station.orders.pending(), *own, *upkeep]

    def _plan_steps(self, reading: Reading) -> list[RecheckStep | ChallengeStep]:
        if not self._station.config.work.challenge:
            return []
        stakes = {job_id: state.owner.free_stake for job_id, state in reading.states.items()}
        return plan_steps(reading.snapshot, reading.steps, stakes)

    # -- act

    async def _execute(self, action: Any) -> None:
        if isinstance(action, NODE_ACTIONS):
            await self._worker.execute(action)
        else:
            await self._executor.execute(action)

    def _after_turn(self) -> None:
        if self._reading is None:
            return
        remedies = list(find_remedies(self._reading.snapshot, self._preset))
        for remedy in remedies:
            if remedy.command not in self._told:
                self._told.add(remedy.command)
                self._log.warning("work_unpaid", about=remedy.about, until=remedy.until, command=remedy.command)
        save_status(self._station, self.service, self._reading.snapshot, self._reading.states, self._idle, remedies)
        leaving = (self._station.home / DRAIN).exists()
        if leaving and not self.service.in_flight and not self._tickets and not _is_bound(self._reading.snapshot):
            self._log.info("left", reason="nothing of this operator is open any more")
            self._stop.set()


def _attested_steps(snapshot: Snapshot, states: Mapping[bytes, OwnState]) -> dict[str, Mapping[str, Any]]:
    """Rounds that closed with what this operator had computed to attest: nothing to take again."""
    found: dict[str, Mapping[str, Any]] = {}
    for job in snapshot.jobs:
        for round in job.job.rounds:
            step = states[job.job_id].nexts.get(round.number)
            if step and (int(step["bitmap"], 16), step["digest"]) == (round.accepted_map, round.next.hex()):
                found[step_check_key(job.job_id, round)] = {"finding": "match"}
    return found


def _is_bound(snapshot: Snapshot) -> bool:
    """Whether a claim of ours is unsettled or a seat of ours is open."""
    return any(_binds(round, snapshot.me) for job in snapshot.jobs for round in job.job.rounds)


def _binds(round: Round, me: str) -> bool:
    claims = any(claim.operator == me and not claim.is_resolved for claim in round.claims)
    seats = any(
        seat.operator == me and seat.locked
        for case in (*round.cases.values(), round.doubt)
        if case is not None and case.is_open
        for seat in case.seats
    )
    return claims or seats


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
