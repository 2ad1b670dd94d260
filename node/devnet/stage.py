"""The stage of a demonstration: chain, contracts, people with keys and funds, and who takes part."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from node.devnet.chain import dev_accounts, devchain
from node.devnet.demo_spec import ROUNDS, SHARDS_PER_ROUND
from node.devnet.people import Person, create_person, settle_in
from node.devnet.processes import Processes
from protocol.chain.connection import Connection, connect
from protocol.chain.deploy import deploy
from protocol.chain.market import Market
from protocol.chain.transactions import Sender
from protocol.core.errors import GradmarketError
from protocol.core.presets import load_preset
from protocol.core.units import TOKEN
from protocol.store.database import Database, open_store
from protocol.store.outbox import Outbox

FORTUNE, STAKE, TICKETS = 1000 * TOKEN, 700 * TOKEN, 8

Say = Callable[[str], None]


class DemoFailed(GradmarketError):
    """The demonstration did not come to its end."""


@dataclass(frozen=True)
class DemoPlan:
    """Who takes part and what happens when. Rounds count from 1, 0 for never."""

    rounds: int = ROUNDS
    shards: int = SHARDS_PER_ROUND
    honest: tuple[str, ...] = ("ada", "ben", "cleo", "dora", "emil")
    cheats: tuple[tuple[str, str], ...] = (("mallory", "extrapolate"),)  # (name, kind of cheat)
    auditor: str = "vera"
    joiner: str = "finn"
    kill_in: int = 2
    join_in: int = 3
    leave_in: int = 5
    audit_rate_bps: int = 2500  # the court's share of claims that are past probation
    challenge_seconds: int = 30  # how long an accepted claim can be challenged
    sample: float = 0.2  # what the auditor checks of its own accord
    baselines: bool = True
    backend: str = "auto"

    @property
    def cheaters(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.cheats)


CHEATERS = ("mallory", "trudy", "oscar")  # their names, in the order of the cheats asked for
QUICK = DemoPlan(rounds=3, kill_in=1, join_in=2, leave_in=3, baselines=False)


@dataclass
class Stage:
    """Everything that is set up before the curtain rises."""

    folder: Path
    plan: DemoPlan
    say: Say
    connection: Connection
    bank: Sender
    market: Market
    processes: Processes
    people: dict[str, Person]

    @property
    def names(self) -> dict[str, str]:
        pairs = [(key.address, p.name) for p in self.people.values() for key in (p.owner, p.operator)]
        return dict(pairs)

    async def start_node(self, name: str) -> None:
        kind = dict(self.plan.cheats).get(name)
        cheat = ["--cheat", kind] if kind else []
        await self.processes.start(name, self.people[name].home, "node", "run", "--quiet", *cheat)


@contextlib.asynccontextmanager
async def set_stage(folder: Path, plan: DemoPlan, say: Say) -> AsyncIterator[Stage]:
    """Chain, contracts, wallets, stakes, tickets. Everything ends with the context."""
    async with contextlib.AsyncExitStack() as stack:
        chain = await stack.enter_async_context(devchain(folder / "chain", backend=plan.backend, block_time=1))
        connection = await stack.enter_async_context(await connect([chain.url], chain.chain_id))
        database: Database = await stack.enter_async_context(open_store(folder / "bank"))
        account = dev_accounts()[0]
        bank = Sender(connection, account, Outbox(database, connection.key, account.address))
        deployment = await deploy(connection, bank, load_preset("dev"))
        deployment.save(folder / "deployment.json")
        say(f"{chain.backend} at {chain.url}, contracts of preset dev deployed")
        market = Market(connection, deployment)
        everyone = ("poster", *plan.honest, *plan.cheaters, plan.auditor, plan.joiner)
        people = {
            name: create_person(name, folder / "homes", chain.url, chain.chain_id, folder / "deployment.json")
            for name in everyone
        }
        for person in people.values():
            stake = 0 if person.name in ("poster", plan.joiner) else STAKE
            await settle_in(market, bank, person, FORTUNE, stake, TICKETS)
        say(f"{len(everyone)} wallets with coins and test tokens, {len(everyone) - 2} owners with stake and tickets")
        processes = Processes(folder / "log")
        stack.push_async_callback(processes.stop_all)
        yield Stage(folder, plan, say, connection, bank, market, processes, people)


def new_run_folder(root: Path) -> Path:
    """runs/<time>-<pid>."""
    folder = root / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    folder.mkdir(parents=True)
    return folder
