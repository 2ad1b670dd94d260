"""`deploy check` against deployments that are not what their address book says, and the looks before a deployment."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from eth_account import Account
from msgspec.structs import replace as changed

from node.devnet.chain import DevChain, dev_accounts, devchain
from protocol.chain.bindings import contract
from protocol.chain.blueprint import Blueprint, constructor_arguments, creation_code, draw_up
from protocol.chain.connection import Connection, connect
from protocol.chain.deploy import carry_out, next_nonce
from protocol.chain.fees import FeePolicy
from protocol.chain.preflight import NEEDS, check_need, survey
from protocol.chain.transactions import Sender
from protocol.core.presets import Preset, load_preset
from protocol.store.database import open_store
from protocol.store.outbox import Outbox
from tests.helpers.deployment import Deployer, make_deployer
from tests.helpers.prague import prague_chain

pytestmark = pytest.mark.asyncio(loop_scope="module")
DEV = load_preset("dev")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def chain() -> AsyncIterator[DevChain]:
    async with devchain(backend="anvil") as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def connection(chain: DevChain) -> AsyncIterator[Connection]:
    async with await connect([chain.url]) as made:
        yield made


@contextlib.asynccontextmanager
async def sender_of(connection: Connection, deployer: Deployer) -> AsyncIterator[Sender]:
    async with open_store(deployer.home / "wallets" / "test") as database:
        account = Account.from_key(deployer.key)
        yield Sender(connection, account, Outbox(database, connection.key, account.address))


async def put_up(connection: Connection, deployer: Deployer, change: Any = lambda blueprint: blueprint) -> None:
    """A market whose address book says preset dev, from a blueprint that somebody changed."""
    nonce = await next_nonce(connection, deployer.address)
    blueprint = change(draw_up(connection.chain_id, deployer.address, nonce, DEV))
    async with sender_of(connection, deployer) as sender:
        book = await carry_out(connection, sender, blueprint, 0)
    deployer.book.parent.mkdir()
    changed(book, preset="dev").save(deployer.book)


@pytest_asyncio.fixture(loop_scope="module")
async def someone(chain: DevChain, tmp_path: Path) -> Deployer:
    return await make_deployer(chain, tmp_path / "home")


def with_preset(blueprint: Blueprint, preset: Preset, *names: str) -> Blueprint:
    """The contracts of these names are given another preset."""
    creations = []
    for creation in blueprint.creations:
        if creation.name in names:
            arguments = constructor_arguments(creation.name, blueprint.contracts, preset)
            code = creation_code(creation.name, arguments)
            creation = replace(creation, arguments=arguments, code=code)
        creations.append(creation)
    return replace(blueprint, creations=tuple(creations))


async def test_other_parameters_are_found_with_both_values(connection: Connection, someone: Deployer) -> None:
    other = replace(DEV, slash_needed=3, ticket=7)
    await put_up(connection, someone, lambda made: with_preset(made, other, "JobMarket", "AuditCourt"))
    ok, wrong = await someone.check()
    assert not ok
    assert set(wrong) == {"preset slashNeeded", "preset ticket", "JobMarket creation", "AuditCourt creation"}
    assert (wrong["preset slashNeeded"]["have"], wrong["preset slashNeeded"]["want"]) == ("3", "4")
    result = await someone.deploy("check")
    assert result.exit_code == 1 and "DIFFERS  preset           slashNeeded        3; expected 4" in result.stdout
    assert result.stderr.count("\n") == 1 and re.search(r"4 of \d+ are not as expected", result.stderr)


async def test_a_parameter_that_nobody_can_read_is_found_by_its_creation(
    connection: Connection, someone: Deployer
) -> None:
    """The court alone convicts more easily than the market says; its own copy has no getter."""
    lenient = replace(DEV, slash_needed=3)
    await put_up(connection, someone, lambda made: with_preset(made, lenient, "AuditCourt"))
    ok, wrong = await someone.check()
    assert not ok and set(wrong) == {"AuditCourt creation"}


async def test_without_the_creations_a_check_does_not_pass(connection: Connection, someone: Deployer) -> None:
    await put_up(connection, someone)
    book = someone.load()
    changed(book, transactions={}).save(someone.book)
    ok, wrong = await someone.check()
    assert not ok and {row["verdict"] for row in wrong.values()} == {"UNKNOWN"} and len(wrong) == len(book.artifacts)
    swapped = book.transactions | {"JobMarket": book.transactions["RoundBook"], "RoundBook": "0x" + "12" * 32}
    changed(book, transactions=swapped).save(someone.book)
    ok, wrong = await someone.check()
    assert (wrong["JobMarket creation"]["verdict"], wrong["RoundBook creation"]["verdict"]) == ("DIFFERS", "UNKNOWN")
    assert set(wrong) == {"JobMarket creation", "RoundBook creation"}


async def test_another_beacon_is_found_everywhere_it_is_known(connection: Connection, someone: Deployer) -> None:
    def swap(blueprint: Blueprint) -> Blueprint:
        contracts = blueprint.contracts | {"BlockhashBeacon": blueprint.contracts["StakeVault"]}
        creations = []
        for made in blueprint.creations:
            arguments = constructor_arguments(made.name, contracts, DEV)
            creations.append(replace(made, arguments=arguments, code=creation_code(made.name, arguments)))
        return replace(blueprint, creations=tuple(creations))

    await put_up(connection, someone, swap)
    ok, wrong = await someone.check()
    assert not ok and {"RoundBook beacon", "AuditCourt beacon", "RoundBook creation"} <= set(wrong)
    assert wrong["RoundBook beacon"]["have"] == someone.load().contracts["StakeVault"]


async def test_a_contract_of_other_code_is_found(connection: Connection, someone: Deployer) -> None:
    await put_up(connection, someone)
    book = someone.load()
    changed(book, contracts=book.contracts | {"BlockhashBeacon": book.contracts["DevToken"]}).save(someone.book)
    ok, wrong = await someone.check()
    assert not ok and {"BlockhashBeacon code", "BlockhashBeacon creation", "RoundBook beacon"} <= set(wrong)
    nowhere = "0x" + "11" * 20
    changed(book, contracts=book.contracts | {"JobMarket": nowhere}).save(someone.book)
    ok, wrong = await someone.check()
    assert wrong["JobMarket code"]["have"] == "nothing" and wrong["preset slashPanel"]["have"] == "no answer"


async def test_a_deployment_of_another_preset_is_not_what_was_expected(
    connection: Connection, someone: Deployer
) -> None:
    await put_up(connection, someone)
    ok, wrong = await someone.check("--preset", "mainnet")
    assert not ok and wrong["book beacon"]["want"] == "DrandBeacon"
    assert {"book preset", "preset slashPanel", "preset calibrated", "JobMarket creation"} <= set(wrong)


async def test_another_guardian_another_token_and_a_stop_of_posting_are_told(
    connection: Connection, someone: Deployer
) -> None:
    await put_up(connection, someone)
    expected = str(dev_accounts()[0].address)
    ok, wrong = await someone.check("--guardian", expected)
    assert not ok and list(wrong) == ["JobMarket guardian"]
    assert (wrong["JobMarket guardian"]["have"], wrong["JobMarket guardian"]["want"]) == (someone.address, expected)
    ok, wrong = await someone.check("--token", expected)
    assert not ok and set(wrong) == {"StakeVault token", "RewardLedger token"}
    async with sender_of(connection, someone) as sender:
        market: Any = contract(connection, someone.load(), "JobMarket")
        await sender.submit_and_confirm("stop", market.functions.allowPosting(False))
    ok, wrong = await someone.check()
    assert not ok and list(wrong) == ["JobMarket postingAllowed"]


async def test_an_address_book_that_cannot_be_read_is_one_line(connection: Connection, someone: Deployer) -> None:
    result = await someone.deploy("check")
    assert result.exit_code == 1 and f"deployment file {someone.book}: No such file" in result.stderr
    await put_up(connection, someone)
    book = someone.load()
    changed(book, chain_id=5).save(someone.book)
    assert f"{someone.book} is of chain id 5, the RPC's is 31337" in (await someone.deploy("check")).stderr
    kept = {name: address for name, address in book.contracts.items() if name != "RoundBook"}
    changed(book, contracts=kept).save(someone.book)
    result = await someone.deploy("check")
    assert result.exit_code == 1 and "the deployment names no contract 'RoundBook'" in result.stderr


# -- before a deployment


async def test_a_preset_is_for_its_chains_and_one_for_any_chain_wants_it_named(
    connection: Connection, someone: Deployer
) -> None:
    async def look(preset: Preset, named: bool) -> tuple[bool, str]:
        blueprint = draw_up(connection.chain_id, someone.address, 0, preset)
        found = await survey(connection, blueprint, FeePolicy(), named)
        check = found.checks[0]
        assert found.ok == check.ok
        return check.ok, check.facts

    assert await look(replace(DEV, chains=(1, 5)), True) == (False, "id 31337; preset dev is for 1, 5 only")
    assert await look(replace(DEV, chains=()), False) == (
        False,
        "id 31337; preset dev wants it named: add --chain-id 31337",
    )
    assert (await look(replace(DEV, chains=()), True))[0] and (await look(DEV, False))[0]


async def test_a_chain_before_prague_has_no_pairings_and_no_history(connection: Connection) -> None:
    checks = {need: await check_need(connection, need) for need in sorted(NEEDS)}
    assert not checks["eip2537"].ok and "no BLS12-381 precompiles" in checks["eip2537"].facts
    assert not checks["eip2935"].ok and "no code at 0x0000F90827F1" in checks["eip2935"].facts


async def test_a_prague_chain_has_what_both_public_beacons_need() -> None:
    async with prague_chain() as chain, await connect([chain.url]) as prague:
        for _ in range(3):
            await chain.rpc("evm_mine")
        for need in sorted(NEEDS):
            check = await check_need(prague, need)
            assert check.ok, check
