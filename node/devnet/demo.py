"""The whole market on one machine: a funded job, honest operators, a cheat, an auditor, as processes of their own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from node.devnet.narrator import Narrator
from node.devnet.posting import pack_text, post_job
from node.devnet.processes import read_status
from node.devnet.stage import STAKE, TICKETS, DemoFailed, Stage
from node.ledger import CONTRACTS, MemoryCursor, snake
from node.operator.status import cpu_seconds
from node.wallet import open_wallet, ticket_size
from protocol.chain.follower import Follower, Rollback
from protocol.core.job import Job, JobStatus
from protocol.core.round import Round
from protocol.core.units import TOKEN
from protocol.runtime.config import load_config
from protocol.runtime.process import ComputeProcess
from protocol.store.database import open_store
from protocol.store.outbox import Outbox
from protocol.training.spec import Spec, spec_digest
from verifier.station import HomeConfig

PROMPT, WORDS = "ROMEO:", 120  # the sample: how it starts, and its tokens
POLL_SECONDS = 1.0
DEADLINE = 1500.0  # seconds; a demo that takes longer is stuck


@dataclass
class Outcome:
    """What the run left behind, for the report."""

    folder: Path
    job_id: bytes
    names: dict[str, str]
    losses: list[tuple[int, float]] = field(default_factory=list)
    baselines: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    gas: dict[str, dict[str, int]] = field(default_factory=dict)
    killed: str = ""
    seconds: float = 0.0
    cpu: float = 0.0
    peak_mib: int = 0


async def play(stage: Stage, show: Callable[[Job], None]) -> Outcome:
    """From the packed text to the closed job."""
    started = time.monotonic()
    spec, blobs = await pack_text(stage)
    job_id = await post_job(stage, blobs)
    outcome = Outcome(stage.folder, job_id, stage.names)
    write_json(stage.folder / "names.json", outcome.names)
    for name in (*stage.plan.honest, *stage.plan.cheaters):
        await stage.start_node(name)
    auditor = stage.people[stage.plan.auditor]
    sample = ("--sample", str(stage.plan.sample))
    await stage.processes.start(auditor.name, auditor.home, "verifier", "run", "--quiet", *sample)
    poster = stage.people["poster"].home
    await stage.processes.start("watch", poster, "job", "watch", job_id.hex(), "--json", "--until-done")
    stage.processes.running["watch"].expected = True
    await _Play(stage, outcome, spec, blobs, show).run()
    outcome.losses = read_losses(stage.processes.running["watch"].log)
    outcome.seconds = time.monotonic() - started
    return outcome


class _Play:
    """Watches the job and lets things happen to it: a kill, a joiner, a leaver."""

    def __init__(self, stage: Stage, outcome: Outcome, spec: Spec, blobs: Path, show: Callable[[Job], None]) -> None:
        self._stage, self._outcome, self._spec, self._blobs, self._show = stage, outcome, spec, blobs, show
        market = stage.market
        contracts = {name: getattr(market, snake(name)) for name in CONTRACTS}
        self._follower = Follower(stage.connection, contracts, market.deployment.block, MemoryCursor(), name="demo")
        self._narrator = Narrator(outcome.names)
        self._events = (stage.folder / "events.jsonl").open("w")
        self._happenings: dict[str, asyncio.Task[None]] = {}
        self._settled: dict[int, Round] = {}

    async def run(self) -> None:
        deadline = time.monotonic() + DEADLINE
        try:
            while True:
                job = await self._stage.market.job(self._outcome.job_id)
                self._show(await self._with_settled(job))
                await self._tell()
                self._let_happen(job)
                self._note_statuses()
                self._stage.processes.measure()
                self._stage.processes.check()
                if job.status == JobStatus.CLOSED:
                    break
                if time.monotonic() > deadline:
                    raise DemoFailed(
                        f"the job is still {job.status.name} after {DEADLINE:.0f} s; logs: {self._stage.folder}"
                    )
                await asyncio.sleep(POLL_SECONDS)
            await self._tell()
            await self._finish()
        finally:
            self._events.close()
            for task in self._happenings.values():
                task.cancel()

    async def _with_settled(self, job: Job) -> Job:
        """The job with all its rounds: the view leaves out the settled ones, and the table must show how they ended."""
        live = {round.number for round in job.rounds}
        for number in range(job.progress.opened):
            if number not in live and number not in self._settled:
                self._settled[number] = await self._stage.market.round(self._outcome.job_id, number)
        return replace(job, rounds=(*self._settled.values(), *job.rounds))

    async def _tell(self) -> None:
        """Write every event down and say what is worth saying."""
        while batch := await self._follower.poll():
            for event in batch:
                if isinstance(event, Rollback):
                    continue
                record = {"block": event.block_number, "tx": event.tx_hash, "contract": event.contract}
                record |= {"event": event.name, "args": _hex(event.args)}
                self._events.write(msgspec.json.encode(record, enc_hook=_plain).decode() + "\n")
                if line := self._narrator.tell(event):
                    self._stage.say(line)
        self._events.flush()

    def _let_happen(self, job: Job) -> None:
        """Start what is due, beside the loop; a failed happening fails the demonstration."""
        plan, round = self._stage.plan, job.progress.opened
        if plan.kill_in and round >= plan.kill_in:
            self._once("kill", self._kill)
        if plan.join_in and round >= plan.join_in:
            self._once("join", self._join)
        if plan.leave_in and round >= plan.leave_in:
            self._once("leave", self._leave)
        if plan.baselines and job.progress.closed == plan.rounds:
            self._once("baselines", self._train_baselines)
        for task in self._happenings.values():
            if task.done():
                task.result()

    def _once(self, what: str, happen: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if what not in self._happenings:
            self._happenings[what] = asyncio.create_task(happen(), name=what)

    async def _join(self) -> None:
        stage, name = self._stage, self._stage.plan.joiner
        person = stage.people[name]
        await stage.processes.run(
            f"{name}-init",
            person.home,
            "node",
            "init",
            "--stake",
            str(STAKE // TOKEN),
            "--ticket",
            str(TICKETS * ticket_size(stage.market) // TOKEN),
        )
        await stage.start_node(name)
        stage.say(f"{name} joins with a new device")

    async def _leave(self) -> None:
        name = self._stage.plan.honest[-1]
        running = self._stage.processes.running[name]
        running.expected = True  # it ends by itself once nothing of it is open
        await self._stage.processes.run(f"{name}-leave", self._stage.people[name].home, "node", "leave")
        self._stage.say(f"{name} leaves: no new claims, what is open is finished first")

    async def _kill(self) -> None:
        """SIGKILL to an honest operator in mid-training, and the same command again two seconds later."""
        stage = self._stage
        name = await self._someone_training()
        pid = stage.processes.kill(name)
        self._outcome.killed = name
        stage.say(f"{name}'s process {pid} is killed with SIGKILL in mid-training")
        await asyncio.sleep(2)
        await stage.start_node(name)
        stage.say(f"{name} is started again with the same command")

    async def _someone_training(self) -> str:
        """An honest operator whose status says that it trains; the last one is about to leave and is spared."""
        while True:
            for name in self._stage.plan.honest[:-1]:
                doing = read_status(self._stage.people[name]).get("doing")
                if isinstance(doing, list) and any(str(key).startswith("train:") for key in doing):
                    return name
            await asyncio.sleep(0.1)

    async def _sample_text(self, out: Path) -> None:
        """What the model writes, loaded as anybody would load it."""
        log = self._stage.folder / "log" / "sample.log"
        async with ComputeProcess("node.devnet.baseline_compute", log_path=log) as compute:
            text = await compute.call("write_text", model=str(self._stage.folder / "model"), prompt=PROMPT, count=WORDS)
        await asyncio.to_thread(out.write_text, text)
        self._stage.say(f"the model loads in transformers and writes: {text[:60]!r}…")

    async def _train_baselines(self) -> None:
        """While the last claims are settled: one device alone, and all-reduce, on two cores."""
        names = {"one device alone": "alone", "all-reduce": "all_reduce"}
        plan = self._stage.plan

        async def train(title: str, method: str) -> None:
            log = self._stage.folder / "log" / f"{method}.log"
            async with ComputeProcess("node.devnet.baseline_compute", log_path=log, nice=10) as compute:
                curve = await compute.call(
                    method,
                    spec=spec_digest(self._spec),
                    blobs=str(self._blobs),
                    rounds=plan.rounds,
                    shards=plan.shards,
                )
            self._outcome.baselines[title] = [(int(step), float(loss)) for step, loss in curve]

        self._stage.say("baselines are trained meanwhile: one device alone, and all-reduce")
        await asyncio.gather(*(train(title, method) for title, method in names.items()))

    def _note_statuses(self) -> None:
        for name in (*self._stage.plan.honest, *self._stage.plan.cheaters, self._stage.plan.joiner):
            if status := read_status(self._stage.people[name]):
                self._outcome.statuses[name] = dict(status)

    async def _finish(self) -> None:
        """Fetch the model while its holders still run, pull every credit, stop everybody."""
        stage, job = self._stage, self._outcome.job_id.hex()
        poster = stage.people["poster"].home
        watch = stage.processes.running["watch"].process
        await asyncio.wait_for(watch.wait(), 120)
        text = await stage.processes.run("fetch", poster, "job", "fetch", job, "--out", str(stage.folder / "model"))
        for line in text.splitlines():
            stage.say(f"  {line}")
        await self._sample_text(stage.folder / "sample.txt")
        for person in stage.people.values():
            ledger = stage.market.reward_ledger.functions
            if await stage.market.call(ledger.creditOf(person.owner.address)):
                config = load_config(person.home / "config.toml", HomeConfig)
                async with open_wallet(person.home, config, person.owner) as wallet:
                    await wallet.withdraw_rewards(person.owner.address, 0)
        stage.say("everybody has withdrawn what the ledger owed")
        self._note_statuses()
        if any(not task.done() for task in self._happenings.values()):
            stage.say("waiting for the baselines, for comparison only")
        await asyncio.gather(*self._happenings.values())
        await stage.processes.stop_all()
        self._outcome.gas = await _gas_by_kind(stage)
        self._outcome.peak_mib = stage.processes.peak_mib
        self._outcome.cpu = cpu_seconds()


async def _gas_by_kind(stage: Stage) -> dict[str, dict[str, int]]:
    """Gas of every kind of transaction, from the operators' own outboxes."""
    kinds: dict[str, dict[str, int]] = {}
    for person in stage.people.values():
        if not (person.home / "state").exists():
            continue
        async with open_store(person.home / "state") as database:
            outbox = Outbox(database, stage.connection.key, person.operator.address)
            for kind, use in (await outbox.gas_by_kind()).items():
                entry = kinds.setdefault(kind, {"count": 0, "total": 0, "largest": 0})
                entry["count"] += use.count
                entry["total"] += use.total
                entry["largest"] = max(entry["largest"], use.largest)
    return dict(sorted(kinds.items()))


def read_losses(log: Path) -> list[tuple[int, float]]:
    """Verified losses by number of checkpoints, from what `job watch --json` printed."""
    losses = []
    for line in log.read_text().splitlines():
        record = json.loads(line) if line.startswith("{") else {}
        if record.get("kind") == "round" and record["round"].get("loss") is not None:
            losses.append((int(record["round"]["number"]) + 1, float(record["round"]["loss"])))
    return losses


def write_json(path: Path, value: Any) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=1) + b"\n")


def _hex(value: Any) -> Any:
    """Bytes as hex, at any depth: msgspec itself would write them as base64 and never ask its hook."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if hasattr(value, "items"):
        return {key: _hex(entry) for key, entry in value.items()}
    return [_hex(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> Any:
    """Structs of web3 as plain objects."""
    if hasattr(value, "items"):
        return dict(value)
    raise TypeError(type(value))
