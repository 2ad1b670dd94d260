"""A market on a dev chain, a poster with a home, and its command line in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result

from node.commands.data import data
from node.commands.job import job
from node.commands.wallet import rewards
from node.devnet.chain import DevChain, dev_accounts, devchain
from node.devnet.people import Person, create_person, give_coins, settle_in
from node.session import Home, Program
from protocol.chain.connection import connect
from protocol.chain.deploy import deploy
from protocol.chain.market import Market
from protocol.chain.transactions import Sender
from protocol.core.presets import Preset, load_preset
from protocol.core.units import TOKEN
from protocol.store.database import Database, open_store
from protocol.store.outbox import Outbox
from protocol.training.families import LlamaSpec
from protocol.training.pack import PackResult, pack_text
from protocol.training.spec import (
    DataSpec,
    EncodingSpec,
    InnerSpec,
    OuterSpec,
    Spec,
    VerifySpec,
    encode_spec,
)
from verifier.cli import verifier

TEXT = "".join(
    f"In round {i} the miller saw {i * 7 % 31} sheep and {i * i % 17} goats by the river.\n" for i in range(900)
)


@click.group(cls=Program)
@click.option("--home", type=click.Path(path_type=Path))
@click.pass_context
def gradmarket(ctx: click.Context, home: Path) -> None:
    """The groups that a poster and an auditor use."""
    ctx.obj = Home(home)


for group in (job, data, verifier, rewards):
    gradmarket.add_command(group)


def run_command(home: Path, *arguments: str) -> Result:
    """One command as a person types it."""
    return CliRunner().invoke(gradmarket, ["--home", str(home), *arguments])


def pack_tiny(folder: Path) -> tuple[PackResult, Spec]:
    """Data and a spec that trains a claim in a tenth of a second."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder.parent / "text.txt"
    text.write_text(TEXT)
    packed = pack_text([text], folder, vocab=300, sequence=32, shard_sequences=8, max_shards=6, max_validation=8)
    manifest = packed.manifest
    return packed, Spec(
        name="tiny",
        model=LlamaSpec(vocab=300, width=32, layers=1, heads=2, kv_heads=1, feed_forward=48),
        tokenizer=manifest.tokenizer,
        data=DataSpec(manifest=packed.manifest_digest, validation=manifest.validation),
        inner=InnerSpec(lr=3e-3, steps=4, batch=2, micro_batch=2, sequence=32),
        outer=OuterSpec(lr=1.0, momentum=0.0),
        exchange=EncodingSpec(compressor="int8", block=64),
        verify=VerifySpec(tolerance_class="fp32", state_every=2),
        genesis=7,
    )


def write_job(folder: Path, spec: Spec, **changes: Any) -> Path:
    """job.toml beside its spec; `changes` replace fields, None leaves one out."""
    (folder / "spec.json").write_bytes(encode_spec(spec))
    fields: dict[str, Any] = {
        "spec": "spec.json",
        "blobs": "blobs",
        "rounds": 2,
        "shards_per_round": 2,
        "probation_slots": 2,
        "price": "1000",
        "seed": "http://127.0.0.1:7790",
        "salt": "first",
        "windows": {"challenge": 10},
    } | changes
    path = folder / "job.toml"
    path.write_text("\n".join(f"{name} = {_toml(value)}" for name, value in fields.items() if value is not None) + "\n")
    return path


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(inner)}" for name, inner in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)


@dataclass
class Bench:
    """`poster` has 1000 tokens and coins; nobody else is there yet."""

    chain: DevChain
    market: Market
    bank: Sender
    database: Database
    folder: Path
    poster: Person
    people: list[Person] = field(default_factory=list)

    async def run(self, *arguments: str, home: Path | None = None) -> Result:
        """A poster's command, in a thread: it has an event loop of its own."""
        return await asyncio.to_thread(run_command, home or self.poster.home, *arguments)

    async def settle_in(self, count: int, stake: int = 80 * TOKEN) -> None:
        """Add owners, each with an operator, free stake and a ticket."""
        for _ in range(count):
            person = self.person(f"owner{len(self.people)}")
            await settle_in(self.market, self.bank, person, stake, stake, 1)
            self.people.append(person)

    def sender(self, person: Person) -> Sender:
        """What the person's operator key sends."""
        connection = self.market.connection
        return Sender(connection, person.operator, Outbox(self.database, connection.key, person.operator.address))

    def person(self, name: str) -> Person:
        path = self.folder / "deployment.json"
        return create_person(name, self.folder / "people", self.chain.url, self.chain.chain_id, path)


@asynccontextmanager
async def poster_bench(
    folder: Path,
    backend: str = "auto",
    running: AbstractAsyncContextManager[DevChain] | None = None,
    preset: Preset | None = None,
) -> AsyncIterator[Bench]:
    async with (
        running or devchain(backend=backend) as chain,
        open_store(folder / "bank") as database,
        await connect([chain.url], chain.chain_id) as connection,
    ):
        account = dev_accounts()[0]
        bank = Sender(connection, account, Outbox(database, connection.key, account.address))
        deployment = await deploy(connection, bank, preset or load_preset("dev"))
        deployment.save(folder / "deployment.json")
        market = Market(connection, deployment)
        poster = create_person("poster", folder / "people", chain.url, chain.chain_id, folder / "deployment.json")
        await give_coins(bank, poster.owner.address)
        mint = market.dev_token.functions.mint(poster.owner.address, 1000 * TOKEN)
        await bank.submit_and_confirm("mint:poster", mint)
        yield Bench(chain, market, bank, database, folder, poster)
