"""The follower over long ranges, reorgs, restarts and providers with faults."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from node.devnet.chain import DevChain, devchain
from protocol.chain.connection import connect
from protocol.chain.errors import ChainUnavailable
from protocol.chain.follower import Follower, Rollback
from protocol.chain.logs import Event
from protocol.store.cursor import Cursors
from tests.helpers.probe import Bench, bench
from tests.helpers.rpc_proxy import refusal, rpc_proxy

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=("anvil", "eth-tester"))
async def chain(request: pytest.FixtureRequest) -> AsyncIterator[DevChain]:
    async with devchain(backend=request.param) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def here(chain: DevChain, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(chain, tmp_path) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def anvil(tmp_path: Path) -> AsyncIterator[Bench]:
    async with devchain(backend="anvil") as chain, bench(chain, tmp_path) as made:
        yield made


def follower(here: Bench, **options: Any) -> Follower:
    return Follower(here.connection, {"Probe": here.probe}, 0, Cursors(here.database), **options)


async def drain(follower: Follower) -> list[Event | Rollback]:
    found: list[Event | Rollback] = []
    while batch := await follower.poll():
        found += batch
    return found


def values(items: list[Event | Rollback]) -> list[int]:
    return [item.args["value"] for item in items if isinstance(item, Event)]


async def note(here: Bench, *numbers: int) -> None:
    for number in numbers:
        await here.sender.submit_and_confirm(f"note:{number}", here.probe.functions.note(number))


async def test_every_event_arrives_once_with_its_names_and_arguments(here: Bench) -> None:
    await note(here, *range(14))
    reader = follower(here)
    items = await drain(reader)
    assert values(items) == list(range(14))
    first = items[0]
    assert isinstance(first, Event) and (first.contract, first.name) == ("Probe", "Noted")
    assert first.args["who"] == here.sender.address
    await note(here, 14)
    assert values(await drain(reader)) == [14]
    assert len({item.key for item in items if isinstance(item, Event)}) == 14


async def test_a_restart_goes_on_at_the_cursor_and_repeats_what_was_not_acknowledged(here: Bench) -> None:
    await note(here, 1, 2)
    reader = follower(here)
    await drain(reader)
    await reader.acknowledge()
    await note(here, 3)
    assert values(await drain(reader)) == [3]
    assert values(await drain(follower(here))) == [3]
    assert values(await drain(follower(here, name="other"))) == [1, 2, 3]


async def test_a_reorg_rolls_back_and_delivers_the_new_branch(anvil: Bench) -> None:
    await note(anvil, 1, 2, 3)
    reader = follower(anvil)
    assert values(await drain(reader)) == [1, 2, 3]
    before = await anvil.connection.block_number()
    await anvil.chain.rpc("anvil_reorg", 2, [])  # the last two blocks are replaced by empty ones
    items = await drain(reader)
    assert items[0] == Rollback(before - 2)
    await note(anvil, 4)
    assert values(await drain(reader)) == [4]
    assert values(await drain(follower(anvil, name="fresh"))) == [1, 4]


async def test_a_reorg_while_the_program_was_off_is_noticed_at_the_start(anvil: Bench) -> None:
    await note(anvil, 1, 2, 3)
    reader = follower(anvil)
    await drain(reader)
    await reader.acknowledge()
    await anvil.chain.rpc("anvil_reorg", 1, [])
    items = await drain(follower(anvil))
    assert isinstance(items[0], Rollback) and values(items) == []


async def test_confirmations_hold_back_the_newest_blocks(here: Bench) -> None:
    await note(here, 1, 2, 3)
    reader = follower(here, confirmations=2)
    assert values(await drain(reader)) == [1]
    await here.chain.rpc("evm_mine")
    assert values(await drain(reader)) == [2]


async def test_a_range_that_a_provider_refuses_is_halved(here: Bench) -> None:
    await note(here, *range(6))
    for _ in range(30):
        await here.chain.rpc("evm_mine")

    def at_most_seven_blocks(method: str, params: list[Any]) -> web.Response | None:
        where = params[0] if method == "eth_getLogs" and "fromBlock" in params[0] else None
        too_many = where and int(where["toBlock"], 16) - int(where["fromBlock"], 16) >= 7
        return refusal("query exceeds max block range 7") if too_many else None

    async with rpc_proxy(here.chain.url, at_most_seven_blocks) as proxy, await connect([proxy.url]) as connection:
        probe = connection.w3.eth.contract(address=here.probe.address, abi=here.probe.abi)
        reader = Follower(connection, {"Probe": probe}, 0, Cursors(here.database))
        found: list[Event | Rollback] = []
        while reader.next_block <= await connection.block_number():
            found += await reader.poll()
        assert values(found) == list(range(6))


async def test_a_provider_that_lags_rolls_nothing_back(here: Bench) -> None:
    await note(here, 1, 2, 3)
    lag = 0

    def behind(method: str, params: list[Any]) -> Any:
        if method == "eth_blockNumber" and lag:
            return hex(lag)
        if method == "eth_getBlockByNumber" and lag and params[0].startswith("0x") and int(params[0], 16) > lag:
            return web.json_response({"jsonrpc": "2.0", "id": 0, "result": None})
        return None

    async with rpc_proxy(here.chain.url, behind) as proxy, await connect([proxy.url]) as connection:
        probe = connection.w3.eth.contract(address=here.probe.address, abi=here.probe.abi)
        reader = Follower(connection, {"Probe": probe}, 0, Cursors(here.database))
        assert values(await drain(reader)) == [1, 2, 3]
        lag = 2
        assert await drain(reader) == []
        lag = 0
        await note(here, 4)
        assert values(await drain(reader)) == [4]


async def test_a_poll_that_fails_loses_nothing(here: Bench) -> None:
    await note(here, 1, 2)
    down = False

    def dies_on_logs(method: str, params: list[Any]) -> web.Response | None:
        return web.Response(status=502, text="<html>bad gateway</html>") if down and method == "eth_getLogs" else None

    async with rpc_proxy(here.chain.url, dies_on_logs) as proxy, await connect([proxy.url]) as connection:
        probe = connection.w3.eth.contract(address=here.probe.address, abi=here.probe.abi)
        reader = Follower(connection, {"Probe": probe}, 0, Cursors(here.database))
        down = True
        with pytest.raises(ChainUnavailable, match="502"):
            await reader.poll()
        down = False
        assert values(await drain(reader)) == [1, 2]


@pytest.mark.parametrize("seed", range(3))
async def test_after_any_walk_of_writes_reorgs_and_restarts_the_reader_knows_exactly_the_chain(
    anvil: Bench, seed: int
) -> None:
    dice = random.Random(seed)
    known: dict[tuple[str, int], Event] = {}
    reader = follower(anvil)

    async def read_all() -> None:
        while batch := await reader.poll():
            for item in batch:
                if isinstance(item, Rollback):
                    for key in [key for key, event in known.items() if event.block_number > item.to_block]:
                        del known[key]
                else:
                    known[item.key] = item
            await reader.acknowledge()

    for step in range(40):
        action = dice.choice(("note", "note", "note", "mine", "reorg", "read", "read", "lost", "restart"))
        if action == "note":
            await note(anvil, step)
        elif action == "mine":
            await anvil.chain.rpc("anvil_mine", hex(dice.randrange(1, 5)))
        elif action == "reorg":
            depth = dice.randrange(1, 6)
            if await anvil.connection.block_number() > depth + 2:  # the probe stays
                await anvil.chain.rpc("anvil_reorg", depth, [])
        elif action == "read":
            await read_all()
        elif action == "lost":
            await reader.poll()  # a crash before what it returned was handled
            reader = follower(anvil)
        else:
            reader = follower(anvil)
    await read_all()
    logs = await anvil.probe.events.Noted().get_logs(from_block=0)
    assert sorted(known) == sorted((log["blockHash"].to_0x_hex(), log["logIndex"]) for log in logs)
