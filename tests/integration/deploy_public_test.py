"""The presets for public networks, with their beacons, put up on a chain with Prague and read back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from eth_account import Account
from msgspec.structs import replace as changed

from node.devnet.chain import DevChain, devchain
from protocol.chain import headers
from protocol.chain.bindings import load_artifact
from protocol.chain.blueprint import draw_up
from protocol.chain.connection import connect
from protocol.chain.deploy import carry_out
from protocol.chain.market import Market
from protocol.chain.transactions import Sender
from protocol.core.presets import Parameter, load_preset
from protocol.store.database import open_store
from protocol.store.outbox import Outbox
from tests.helpers.deployment import Deployer, create, make_deployer
from tests.helpers.prague import prague_chain

pytestmark = pytest.mark.asyncio(loop_scope="module")
BEACONS = {"testnet": "PrevrandaoBeacon", "mainnet": "DrandBeacon"}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def chain() -> AsyncIterator[DevChain]:
    async with prague_chain() as made:
        for _ in range(3):
            await made.rpc("evm_mine")
        yield made


async def with_token(chain: DevChain, home: Path) -> tuple[Deployer, str]:
    """Somebody with coins, and an ERC-20 that was there before."""
    someone = await make_deployer(chain, home)
    async with await connect([chain.url]) as connection:
        return someone, await create(connection, someone, load_artifact("DevToken").bytecode)


@pytest.mark.parametrize("preset", BEACONS)
async def test_a_public_preset_is_planned_put_up_and_found_as_it_should_be(
    chain: DevChain, tmp_path: Path, preset: str
) -> None:
    someone, token = await with_token(chain, tmp_path / "home")
    options = ("--preset", preset, "--token", token, "--chain-id", "31337")
    plan = await someone.deploy("plan", *options, "--json")
    assert plan.exit_code == 0, plan.output + plan.stderr
    table = json.loads(plan.stdout)
    assert all(check["ok"] for check in table["checks"]), table["checks"]
    made = await someone.deploy("run", *options)
    assert made.exit_code == 0, made.output + made.stderr
    assert await someone.check("--preset", preset, "--token", token) == (True, {})
    shown = await someone.deploy("check")
    assert shown.exit_code == 0 and BEACONS[preset] in shown.output
    async with await connect([chain.url]) as connection:
        market = Market(connection, someone.load())
        assert market.beacon_kind == BEACONS[preset]
        for name, parameter in load_preset(preset).beacon.arguments.items():
            assert await market.call(market.block_beacon.functions[name]()) == parameter.value


async def test_a_chain_whose_headers_have_unknown_fields_is_found_before_anything_is_deployed(
    chain: DevChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that was written before Prague meets a chain of Prague."""
    monkeypatch.setattr(headers, "FIELDS", headers.FIELDS[:-1])
    someone, token = await with_token(chain, tmp_path / "home")
    refused = await someone.deploy("run", "--preset", "testnet", "--token", token, "--chain-id", "31337")
    assert refused.exit_code == 1 and await someone.used_nonces() == 1
    for words in ("fields that this version does not know", "unknown in the answer: requestsHash"):
        assert words in refused.output + refused.stderr


@pytest.mark.parametrize(("preset", "argument", "value"), [("testnet", "lead", 128), ("mainnet", "margin", 60)])
async def test_a_beacon_with_a_shorter_wait_than_the_preset_says_is_found(
    chain: DevChain, tmp_path: Path, preset: str, argument: str, value: int
) -> None:
    someone, token = await with_token(chain, tmp_path / "home")
    right = load_preset(preset)
    arguments = right.beacon.arguments | {argument: Parameter(argument, value, "", "")}
    wrong = replace(right, beacon=replace(right.beacon, arguments=arguments))
    async with await connect([chain.url]) as connection, open_store(someone.home / "wallets" / "test") as database:
        account = Account.from_key(someone.key)
        sender = Sender(connection, account, Outbox(database, connection.key, account.address))
        book = await carry_out(connection, sender, draw_up(31337, someone.address, 1, wrong, token), 0)
    someone.book.parent.mkdir()
    changed(book, preset=preset).save(someone.book)
    ok, found = await someone.check()
    assert not ok and f"{BEACONS[preset]} creation" in found, found


@pytest.mark.parametrize("preset", BEACONS)
async def test_a_public_preset_is_refused_on_a_chain_that_cannot_prove_its_seeds(tmp_path: Path, preset: str) -> None:
    async with devchain(backend="anvil") as cancun:
        someone, token = await with_token(cancun, tmp_path / "home")
        options = ("--preset", preset, "--token", token, "--chain-id", "31337")
        refused = await someone.deploy("run", *options)
        assert refused.exit_code == 1 and "older than Prague" in refused.output + refused.stderr
        assert await someone.used_nonces() == 1
