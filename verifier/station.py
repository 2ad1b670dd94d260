"""One operator's equipment: chain, keys, store, blobs and compute process, opened together and closed together."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eth_account.signers.local import LocalAccount

from protocol.chain.bindings import Deployment, check_deployed
from protocol.chain.connection import connect
from protocol.chain.fees import GWEI, FeePolicy
from protocol.chain.market import Market
from protocol.chain.signer import sign_digest
from protocol.chain.transactions import Sender
from protocol.core.operator import Operator
from protocol.core.terms import Terms
from protocol.core.units import parse_tokens
from protocol.runtime.config import Config
from protocol.runtime.errors import ConfigError
from protocol.runtime.process import ComputeProcess
from protocol.store.cursor import Cursors
from protocol.store.database import open_store
from protocol.store.intents import Intents
from protocol.store.outbox import Outbox
from protocol.transport.addresses import AddressPolicy
from protocol.transport.blobs import BlobStore
from protocol.transport.client import BlobClient
from protocol.transport.errors import AddressRefused
from protocol.transport.relays import PUBLIC_RELAYS, Relays
from protocol.transport.signing import RequestSigner
from protocol.transport.traffic import Traffic
from verifier.duty import Duty
from verifier.executor import Executor
from verifier.inputs import JobInputs, Limits
from verifier.openings import Openings
from verifier.orders import Orders
from verifier.snapshot import Snapshot, SnapshotLoader
from verifier.tools import Tools


class ChainConfig(Config, frozen=True, kw_only=True):
    """Which chain and which market on it.

    `max_head_age`: seconds that the newest block may be old. `confirmations`: blocks on top of a transaction before it
    counts. `max_fee_gwei`: the most that a unit of gas may cost, tip included.
    """

    rpc: list[str]
    id: int
    deployment: Path
    max_head_age: int = 120
    confirmations: int = 0
    max_fee_gwei: int = 500

    @property
    def fees(self) -> FeePolicy:
        return FeePolicy(max_fee_cap=self.max_fee_gwei * GWEI, confirmations=self.confirmations)


class KeysConfig(Config, frozen=True, kw_only=True):
    """Keystore files and the file with their password, readable by its owner alone."""

    operator: Path | None = None
    owner: Path | None = None
    password: Path | None = None


class ServeConfig(Config, frozen=True, kw_only=True):
    """Where peers reach this machine. `private_peers`: also talk to loopback and private addresses (dev networks)."""

    host: str = "0.0.0.0"
    port: int = 7780
    advertise: str = ""
    private_peers: bool = False


class WorkConfig(Config, frozen=True, kw_only=True):
    """`jobs`: ids in hex, none for all. `claims`: held at once. `nice`: of the compute process.

    `keep_rounds`: settled rounds whose artefacts stay on this disk. `min_reward`: tokens a shard must pay; a job that
    pays less is not looked at. `max_parameters`, `max_shard_mib`: of a job that this machine can work on. `challenge`:
    whether a node that trains recomputes checkpoints it did not attest to, and takes a false one to court with seven
    audit fees of its owner's stake.
    """

    jobs: tuple[str, ...] = ()
    claims: int = 1
    nice: int = 5
    keep_rounds: int = 64
    min_reward: str = "0"
    max_parameters: int = 2 * 10**9
    max_shard_mib: int = 1024
    challenge: bool = True


class BeaconConfig(Config, frozen=True, kw_only=True):
    """`relays`: base URLs of drand's HTTP relays, asked in turn on markets whose seeds are rounds of drand."""

    relays: tuple[str, ...] = PUBLIC_RELAYS


class HomeConfig(Config, frozen=True, kw_only=True):
    """config.toml of a node or a verifier."""

    chain: ChainConfig
    keys: KeysConfig = KeysConfig()
    serve: ServeConfig = ServeConfig()
    work: WorkConfig = WorkConfig()
    beacon: BeaconConfig = BeaconConfig()


@dataclass
class Station:
    """What a service works with. `follow` is called with each snapshot."""

    home: Path
    config: HomeConfig
    market: Market
    sender: Sender
    account: LocalAccount
    intents: Intents
    cursors: Cursors
    blobs: BlobStore
    client: BlobClient
    compute: ComputeProcess
    openings: Openings
    signer: RequestSigner
    operators: dict[str, Operator] = field(default_factory=dict)
    _inputs: dict[bytes, JobInputs] = field(default_factory=dict)
    _seeds: dict[bytes, str] = field(default_factory=dict)
    _forks: int = 0

    async def follow(self, snapshot: Snapshot) -> None:
        """Remember who can be asked and prepare the inputs of new jobs."""
        self.operators = {operator.address: operator for operator in snapshot.operators}
        if snapshot.forks != self._forks:  # a job of the same name may have other terms now
            self._forks = snapshot.forks
            self._inputs.clear()
            self._seeds.clear()
        for job in snapshot.jobs:
            if job.job_id not in self._inputs:
                self._seeds[job.job_id] = await self.market.seed(job.job_id)
                self._inputs[job.job_id] = self._new_inputs(job.job_id, job.terms)

    def inputs(self, job_id: bytes) -> JobInputs:
        return self._inputs[job_id]

    def sources(self, job_id: bytes) -> list[str]:
        """Peers, and the poster's seed last: it should not be needed for what peers have."""
        peers = [o.endpoint for o in self.operators.values() if o.address != self.sender.address and o.endpoint]
        return [*peers, self._seeds.get(job_id, "")]

    def loader(self) -> SnapshotLoader:
        wanted = {bytes.fromhex(job.removeprefix("0x")) for job in self.config.work.jobs}
        return SnapshotLoader(
            self.market,
            self.sender.address,
            self.intents,
            lambda job: not wanted or job in wanted,
            self.config.chain.max_head_age,
            parse_tokens(self.config.work.min_reward),
        )

    def executor(self) -> Executor:
        tools = Tools(
            self.market,
            self.sender,
            self.signer,
            self.compute,
            self.intents,
            self.home / "audits",
            self.inputs,
            lambda address: self.operators.get(address),  # `follow` replaces the table
            self.orders,
            Relays(self.client, self.config.beacon.relays),
        )
        return Executor(tools)

    @property
    def orders(self) -> Orders:
        return Orders(self.home)

    def duty(self) -> Duty:
        return Duty(self.sender.address)

    def _new_inputs(self, job_id: bytes, terms: Terms) -> JobInputs:
        return JobInputs(
            self.market,
            job_id,
            terms,
            self.blobs,
            self.client,
            self.compute,
            self.openings,
            lambda: self.sources(job_id),
            Limits(self.config.work.max_parameters, self.config.work.max_shard_mib * 2**20),
        )


@contextlib.asynccontextmanager
async def open_station(
    home: Path,
    config: HomeConfig,
    account: LocalAccount,
    *,
    compute_module: str = "verifier.compute",
    compute_env: Mapping[str, str] | None = None,
) -> AsyncIterator[Station]:
    """Open everything for `account`. Refuses another chain, a stale head, a second instance in the same home."""
    async with contextlib.AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_store(home / "state"))
        connection = await stack.enter_async_context(await connect(config.chain.rpc, config.chain.id))
        await connection.check_fresh(config.chain.max_head_age)
        deployment = Deployment.load(config.chain.deployment)
        await check_deployed(connection, deployment)
        market = Market(connection, deployment)
        intents, cursors = Intents(database), Cursors(database)
        blobs = BlobStore(home / "blobs")
        traffic = Traffic()
        policy = AddressPolicy(allow_private=config.serve.private_peers)
        _check_relays(config.beacon.relays, policy)
        client = await stack.enter_async_context(BlobClient(blobs, policy, traffic=traffic))
        compute = await stack.enter_async_context(
            ComputeProcess(
                compute_module, log_path=home / "log" / "compute.log", env=compute_env, nice=config.work.nice
            )
        )
        yield Station(
            home=home,
            config=config,
            market=market,
            sender=Sender(connection, account, Outbox(database, connection.key, account.address), config.chain.fees),
            account=account,
            intents=intents,
            cursors=cursors,
            blobs=blobs,
            client=client,
            compute=compute,
            openings=Openings(market, intents, cursors),
            signer=RequestSigner(account.address, lambda digest: sign_digest(account, digest)),
        )


def _check_relays(urls: tuple[str, ...], policy: AddressPolicy) -> None:
    """A mistake is told at the start, not when the first seed is needed."""
    for url in urls:
        try:
            policy.check_url(url)
        except AddressRefused as refused:
            raise ConfigError(f"config.toml: beacon.relays: {refused}") from None
