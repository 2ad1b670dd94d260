"""Putting a market up: the plan, the run, and every way in which a run can be cut short."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from node.devnet.chain import DevChain, devchain
from protocol.chain.bindings import Deployment
from protocol.chain.connection import connect
from protocol.chain.market import Market
from tests.helpers.deployment import CONTRACTS, Deployer, create, make_deployer

pytestmark = pytest.mark.asyncio(loop_scope="module")
# runtime code that answers every call with 6: an ERC-20 of six decimals, as far as it is asked
SIX = "0x69600660005260206000f3600052600a6016f3"
SILENT = "0x600160005360016000f3"  # runtime code that answers with nothing


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def chain() -> AsyncIterator[DevChain]:
    async with devchain(backend="anvil") as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def someone(chain: DevChain, tmp_path: Path) -> Deployer:
    return await make_deployer(chain, tmp_path / "home")


async def killed(deployer: Deployer, point: str, number: int) -> None:
    """A run that ends by SIGKILL around its n-th transaction."""
    command = [sys.executable, "-m", "tests.helpers.killed_deployment", point, str(number), *deployer.arguments("run")]
    process = await asyncio.create_subprocess_exec(*command, cwd=Path(__file__).resolve().parents[2])
    assert await process.wait() == -signal.SIGKILL


async def test_a_plan_names_addresses_cost_and_reasons_and_sends_nothing(someone: Deployer) -> None:
    result = await someone.deploy("plan")
    assert result.exit_code == 0, result.output
    for part in (
        f"deployer and guardian {someone.address}",
        f"nonces 0 to {CONTRACTS - 1}",
        "AuditCourt",
        "coins at",
        "slashNeeded",
    ):
        assert part in result.output
    assert re.search(r"ticketExit +600 seconds +from a close to the last seat", result.output)
    assert await someone.used_nonces() == 0 and not someone.book.exists()


async def test_a_run_does_what_the_plan_said_and_the_check_finds_nothing(someone: Deployer) -> None:
    plan = json.loads((await someone.deploy("plan", "--json")).stdout)
    before = int(await someone.chain.rpc("eth_getBalance", someone.address, "latest"), 16)
    result = await someone.deploy("run")
    assert result.exit_code == 0, result.output
    book = someone.load()
    assert book.contracts == {row["name"]: row["address"] for row in plan["contracts"]}
    assert (book.preset, book.deployer, book.compiler) == ("dev", someone.address, "solc 0.8.30")
    assert set(book.artifacts) == set(book.transactions) == set(book.contracts)
    spent = before - int(await someone.chain.rpc("eth_getBalance", someone.address, "latest"), 16)
    assert 0 < spent <= int(plan["most"]) and await someone.used_nonces() == CONTRACTS
    assert await someone.check() == (True, {}) and not someone.begun.exists()


@pytest.mark.parametrize(
    ("point", "number"), [("stored", 1), ("sent", 1), ("stored", 5), ("sent", 6), ("sent", CONTRACTS)]
)
async def test_a_killed_run_goes_on_without_a_second_copy(someone: Deployer, point: str, number: int) -> None:
    await killed(someone, point, number)
    assert someone.begun.exists() and not someone.book.exists()
    result = await someone.deploy("run")
    assert result.exit_code == 0, result.output
    assert "going on with the deployment that began with nonce 0" in result.output
    assert await someone.used_nonces() == CONTRACTS
    assert await someone.check() == (True, {}) and not someone.begun.exists()


async def test_a_run_may_be_killed_again_and_again(someone: Deployer) -> None:
    for point in ("sent", "stored", "sent"):
        await killed(someone, point, 2)
    assert (await someone.deploy("run")).exit_code == 0
    assert await someone.used_nonces() == CONTRACTS and (await someone.check())[0]


async def test_a_nonce_that_somebody_else_used_ends_it_with_what_to_do(someone: Deployer) -> None:
    await killed(someone, "sent", 3)
    async with await connect([someone.chain.url]) as connection:
        await create(connection, someone, SIX)
    result = await someone.deploy("run")
    assert result.exit_code == 1
    line = result.stderr.strip()
    assert line.count("\n") == 0 and f"RewardLedger: nonce 3 of {someone.address} is gone" in line
    assert "begin again with --start-over" in line and not someone.book.exists()
    assert await someone.used_nonces() == 4
    again = await someone.deploy("run", "--start-over")
    assert again.exit_code == 0, again.output
    assert await someone.used_nonces() == 4 + CONTRACTS and (await someone.check())[0]
    assert len(list(someone.begun.parent.glob("*.abandoned"))) == 1


async def test_what_was_begun_is_not_finished_as_something_else(someone: Deployer, tmp_path: Path) -> None:
    await killed(someone, "sent", 2)
    begun = json.loads(someone.begun.read_text())
    token = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
    result = await someone.deploy("run", "--token", token)
    assert result.exit_code == 1 and f"token None, now {token}" in result.stderr
    someone.begun.write_text(json.dumps(begun | {"fingerprint": "0x" + "00" * 32}))
    changed = await someone.deploy("run")
    assert changed.exit_code == 1 and "contracts or the preset of this program were changed" in changed.stderr
    someone.begun.write_text("{")
    broken = await someone.deploy("run")
    assert broken.exit_code == 1 and "begin again with --start-over" in broken.stderr
    assert await someone.used_nonces() == 2


async def test_a_finished_deployment_is_not_repeated(someone: Deployer) -> None:
    assert (await someone.deploy("run")).exit_code == 0
    someone.begun.write_text("{}")  # as after a kill between the address book and forgetting
    assert "finished already" in (await someone.deploy("run")).output and not someone.begun.exists()
    result = await someone.deploy("run")
    assert result.exit_code == 1 and f"{someone.book} exists: a market was deployed already" in result.stderr
    assert await someone.used_nonces() == CONTRACTS


async def test_a_market_takes_a_token_that_is_there(someone: Deployer, tmp_path: Path) -> None:
    assert (await someone.deploy("run")).exit_code == 0
    token = someone.load().address("DevToken")
    second = tmp_path / "second.json"
    result = await someone.deploy("run", "--token", token.lower(), "--book", str(second))
    assert result.exit_code == 0, result.output
    book = Deployment.load(second)
    assert book.address("Token") == token and "DevToken" not in book.contracts
    assert await someone.used_nonces() == 2 * CONTRACTS - 1
    assert await someone.check("--book", str(second)) == (True, {})
    async with await connect([someone.chain.url]) as connection:
        market = Market(connection, book)
        assert (market.token.address, market.block_beacon.address) == (token, book.address("BlockhashBeacon"))
        assert await market.token_balance(someone.address) == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (None, "no contract at 0x"),
        (SILENT, "does not answer as an ERC-20"),
        (SIX, "has 6 decimals; this program counts with 18"),
    ],
)
async def test_what_is_no_token_of_18_decimals_is_refused(someone: Deployer, code: str | None, words: str) -> None:
    token = "0x" + "11" * 20
    if code:
        async with await connect([someone.chain.url]) as connection:
            token = await create(connection, someone, code)
    before = await someone.used_nonces()
    for command in ("plan", "run"):
        result = await someone.deploy(command, "--token", token)
        assert result.exit_code == 1 and words in result.stderr and result.stderr.count("\n") == 1
    assert await someone.used_nonces() == before and not someone.begun.exists()


async def test_a_deployer_without_coins_is_told_how_many_it_needs(chain: DevChain, tmp_path: Path) -> None:
    poor = await make_deployer(chain, tmp_path / "home", coins=0)
    for command in ("plan", "run"):
        result = await poor.deploy(command)
        assert result.exit_code == 1
        assert re.search(rf"balance: 0 wei, needs at most \d+: send {poor.address} \d+ wei or more", result.stderr)


async def test_a_key_with_transactions_on_their_way_waits_for_them(someone: Deployer) -> None:
    await someone.chain.rpc("evm_setAutomine", False)
    try:
        async with await connect([someone.chain.url]) as connection:
            sent = asyncio.ensure_future(create(connection, someone, SIX))
            while int(await someone.chain.rpc("eth_getTransactionCount", someone.address, "pending"), 16) == 0:
                await asyncio.sleep(0.02)
            result = await someone.deploy("run")
            assert result.exit_code == 1 and "1 transactions of the key are on their way" in result.stderr
            await someone.chain.rpc("evm_mine")
            await sent
    finally:
        await someone.chain.rpc("evm_setAutomine", True)
    assert not someone.begun.exists() and (await someone.deploy("run")).exit_code == 0


async def test_mistakes_on_the_command_line_are_one_line_each(someone: Deployer) -> None:
    cases = [
        (("--preset", "testnet"), 2, "--token is missing: only preset dev makes a token of its own"),
        (("--token", "0x1234"), 2, "'0x1234': expected an address, 0x and 40 hex digits"),
        (("--chain-id", "1"), 5, "serves chain id 31337, expected 1"),
        (("--key", str(someone.home / "none.json")), 4, "none.json: No such file or directory"),
    ]
    for arguments, code, words in cases:
        result = await someone.deploy("plan", *arguments)
        assert result.exit_code == code and words in result.stderr.splitlines()[-1], result.output
    (someone.home / "password").write_text("wrong")
    assert "wrong password" in (await someone.deploy("run")).stderr
    assert await someone.used_nonces() == 0
