"""A market on a dev chain whose nodes run in this process and take their turns when a test says so.

Everything is real but two things: the compute process's handlers are called directly, so that torch is loaded once,
and nobody waits for its rank before making a move that anyone may make.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from node.devnet.people import Person
from node.operator.compute import TRAINING
from node.operator.peers import open_server
from node.operator.service import NodeService
from node.operator.worker import Worker
from node.poster.blobs import FolderStore
from node.poster.jobfile import load_job
from protocol.chain.transactions import Sender
from protocol.core.audit import Case
from protocol.core.presets import load_preset
from protocol.core.round import Round
from protocol.core.terms import Terms, compute_reservation
from protocol.runtime.config import load_config
from protocol.runtime.errors import ChildFailed
from protocol.store.outbox import Outbox
from protocol.training.data import Tokens, decode_manifest, load_shard
from protocol.training.pack import PackResult
from protocol.training.result import ClaimResult
from protocol.training.spec import Spec
from protocol.transport.server import BlobServer
from tests.integration.poster_fixtures import Bench, pack_tiny, poster_bench, write_job
from verifier import compute
from verifier.duty import Duty
from verifier.snapshot import Snapshot
from verifier.station import HomeConfig, Station, open_station

Handlers = Mapping[str, Callable[..., Any]]
HONEST: Handlers = TRAINING


def trainer(change: Callable[[ClaimResult], ClaimResult], data: Callable[[Tokens], Tokens]) -> Handlers:
    """The handlers of an operator that trains on something else, or makes something else of its result."""

    def train(spec: str, base: str, manifest: str, out: str, **where: Any) -> dict[str, Any]:
        tokens = load_shard(Path(where["data"]).read_bytes(), decode_manifest(Path(manifest).read_bytes()))
        ident, round, shard = bytes.fromhex(where["job"]), where["round"], where["shard"]
        start = compute.load_base(spec, base)
        result = compute.trainer_of(spec).train(start, data(tokens), job_id=ident, round=round, shard=shard)
        return compute.save_result(change(result), Path(out))

    return {**HONEST, "train": train}


def cheating() -> Handlers:
    """Trained on its text read backwards: every test is far in the fraud zone.

    The sequences in another order would not do: one seed in a hundred draws the same batches from them.
    """
    return trainer(lambda result: result, lambda tokens: tokens[:, ::-1].copy())


class InProcess:
    """protocol.runtime.process.ComputeProcess without the process; one call at a time, as there."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self.heard: Callable[[], None] = lambda: None

    async def call(self, method: str, /, *, timeout: float | None = None, **params: Any) -> Any:
        try:
            value = self._handlers[method](**params)
        except Exception as error:
            raise ChildFailed(method, type(error).__name__, str(error)) from error
        return msgspec.json.decode(msgspec.json.encode(value))


class Impatient:
    """A clock by which every move has waited long enough the second time that it is seen."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        self._now += 1_000.0
        return self._now


@dataclass
class Node:
    """A person's node. `compute` holds its handlers: a cheat replaces `train`."""

    person: Person
    station: Station
    worker: Worker
    server: BlobServer
    service: NodeService
    impatient: bool = True  # what failed is tried again at once

    @property
    def me(self) -> str:
        return self.person.operator.address

    @property
    def failures(self) -> dict[str, str]:
        """What the last attempts of its actions failed with."""
        return {key: failure.reason for key, failure in self.service.service.backoff.failures.items()}

    async def turn(self) -> None:
        """One turn, and the end of whatever it started."""
        if self.impatient:
            self.service.service.backoff.failures.clear()
        await self.service.service.turn()
        await asyncio.gather(*self.service.service.in_flight.values())

    async def snapshot(self) -> Snapshot:
        snapshot = await self.station.loader().load()
        await self.station.follow(snapshot)
        return snapshot


@dataclass
class World:
    """A bench with the artefacts of a tiny job, and the nodes that run."""

    bench: Bench
    folder: Path
    store: FolderStore
    seed: BlobServer
    packed: PackResult
    spec: Spec
    nodes: list[Node] = field(default_factory=list)

    def job_terms(self, **changes: Any) -> Terms:
        """`changes` replace fields of job.toml."""
        plan = load_job(write_job(self.folder, self.spec, seed=self.seed.url, **changes))
        self.store_blob(plan.spec_blob)
        path = self.folder / "genesis"
        genesis = compute.genesis(str(self.store.path(plan.spec_digest)), str(path))
        return plan.terms(load_preset("dev"), bytes.fromhex(genesis))

    def store_blob(self, data: bytes) -> str:
        """Let the poster's seed serve these bytes."""
        return self.store.put(data)

    async def post(self, terms: Terms, salt: int = 0, seed: str | None = None) -> bytes:
        """A job of the poster's, funded for all of its rounds."""
        market, poster = self.bench.market, self.sender(self.bench.poster.owner)
        deposit = terms.rounds * compute_reservation(terms)
        ledger = market.deployment.address("RewardLedger")
        await poster.submit_and_confirm("approve", market.dev_token.functions.approve(ledger, deposit))
        word = salt.to_bytes(32)
        call = market.job_market.functions.post(terms.as_tuple(), word, deposit, seed or self.seed.url)
        await poster.submit_and_confirm(f"post:{salt}", call)
        ident = market.job_market.functions.jobIdOf(self.bench.poster.owner.address, terms.spec_digest, word)
        return bytes(await market.call(ident))

    def sender(self, account: Any) -> Sender:
        connection = self.bench.market.connection
        return Sender(connection, account, Outbox(self.bench.database, connection.key, account.address))

    async def round(self, job_id: bytes, number: int = 0) -> Round:
        return await self.bench.market.round(job_id, number)

    async def case(self, job_id: bytes, shard: int) -> Case | None:
        return (await self.round(job_id)).cases.get(shard)

    async def run(
        self, job_id: bytes, until: Callable[[Round], bool], nodes: Sequence[Node] | None = None, step: int = 1
    ) -> Round:
        """Turns of all nodes with `step` seconds between them until round 0 is as wanted."""
        for _ in range(60):
            for node in self.nodes if nodes is None else nodes:
                await node.turn()
                found = await self.round(job_id)
                if until(found):
                    return found
            await self.bench.chain.advance(step)
        raise AssertionError(f"the round did not get there: {found}; {[node.failures for node in self.nodes]}")


@contextlib.asynccontextmanager
async def open_world(folder: Path, people: int = 6, **bench_options: Any) -> AsyncIterator[World]:
    """Six owners with stake and tickets: as many as a job of the dev preset needs. No node runs yet.

    `bench_options`: another chain or preset (poster_bench).
    """
    packed, spec = pack_tiny(folder / "blobs")
    store = FolderStore(folder / "blobs")
    async with poster_bench(folder, **bench_options) as bench, BlobServer(store) as seed:
        await bench.settle_in(people)
        yield World(bench, folder, store, seed, packed, spec)


@contextlib.asynccontextmanager
async def open_nodes(
    world: World, job_id: bytes | None, *people: int, handlers: Handlers = HONEST
) -> AsyncIterator[list[Node]]:
    """The nodes of these people (by number), announced on chain, for this job alone or for all."""
    async with contextlib.AsyncExitStack() as stack:
        nodes = []
        for number in people:
            person = world.bench.people[number]
            nodes.append(await stack.enter_async_context(_node(person, job_id, handlers)))
        world.nodes += nodes
        yield nodes
        for node in nodes:
            world.nodes.remove(node)


@contextlib.asynccontextmanager
async def _node(person: Person, job_id: bytes | None, handlers: Handlers) -> AsyncIterator[Node]:
    config = load_config(person.home / "config.toml", HomeConfig)
    config = replace(config, work=replace(config.work, jobs=(job_id.hex(),) if job_id else ()))
    async with open_station(person.home, config, person.operator) as station:
        replacements = {"compute": InProcess(handlers), "duty": lambda: Duty(person.operator.address, Impatient())}
        for name, value in replacements.items():
            setattr(station, name, value)
        worker = Worker(station)
        async with open_server(station, worker) as server:
            registry = station.market.operator_registry.functions
            call = registry.setEndpoint(person.operator.address, server.url)
            await station.sender.submit_and_confirm("set-endpoint:self", call)
            yield Node(person, station, worker, server, NodeService(station, server, worker))
