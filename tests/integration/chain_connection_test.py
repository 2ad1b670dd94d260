"""Connections: the right chain, a fresh head, more than one endpoint, and the address book."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from node.devnet.chain import DevChain, dev_accounts, devchain
from protocol.chain.bindings import Deployment, check_deployed
from protocol.chain.connection import connect
from protocol.chain.errors import ChainUnavailable, DeploymentError, StaleHead, WrongChain
from protocol.chain.transactions import Sender
from tests.helpers.probe import bench, errors
from tests.helpers.rpc_proxy import rpc_proxy

NOBODY = "http://127.0.0.1:9"  # the discard port: nothing listens


@pytest.fixture
async def chain() -> AsyncIterator[DevChain]:
    async with devchain(backend="anvil") as made:
        yield made


async def test_another_chain_is_refused_with_both_ids(chain: DevChain) -> None:
    with pytest.raises(WrongChain, match="serves chain id 31337, expected 1"):
        await connect([chain.url], 1)


async def test_a_second_endpoint_of_another_chain_is_refused_when_it_is_first_used(chain: DevChain) -> None:
    def other_chain(method: str, params: list[Any]) -> str | None:
        return "0x1" if method == "eth_chainId" else None

    working = True

    def sometimes(method: str, params: list[Any]) -> web.Response | None:
        return None if working else web.Response(status=503)

    async with (
        rpc_proxy(chain.url, sometimes) as first,
        rpc_proxy(chain.url, other_chain) as second,
        await connect([first.url, second.url], 31337) as connection,
    ):
        working = False
        with pytest.raises(WrongChain, match="serves chain id 1, expected 31337"):
            await connection.block_number()


async def test_no_endpoint_is_one_clear_line() -> None:
    with pytest.raises(ChainUnavailable, match="the chain does not answer") as caught:
        await connect([NOBODY, NOBODY.replace("//", "//user:pass@") + "/v3/secret-key"])
    assert "secret-key" not in str(caught.value) and "pass" not in str(caught.value)


@pytest.mark.parametrize(
    "broken",
    [
        web.Response(status=429),
        web.Response(status=500, text="<html>"),
        web.Response(text="not json"),
        web.Response(text="[]"),
    ],
)
async def test_a_broken_endpoint_is_left_for_the_next(chain: DevChain, broken: web.Response) -> None:
    def fault(method: str, params: list[Any]) -> web.Response:
        return web.Response(status=broken.status, text=broken.text)

    async with (
        rpc_proxy(chain.url, fault) as proxy,
        await connect([proxy.url, NOBODY, chain.url], 31337) as connection,
    ):
        assert await connection.block_number() == 0
        asked = len(proxy.seen)
        await connection.block_number()
        assert len(proxy.seen) == asked  # the one that answered stays preferred


async def test_an_old_head_is_refused_unless_another_endpoint_is_fresh(chain: DevChain) -> None:
    old = {"timestamp": hex(int(time.time()) - 900)}

    async with await connect([chain.url]) as honest:
        block = await chain.rpc("eth_getBlockByNumber", "latest", False)

        def stale(method: str, params: list[Any]) -> Any:
            return block | old if method == "eth_getBlockByNumber" and params[0] == "latest" else None

        assert (await honest.check_fresh(600)).number == 0
        async with rpc_proxy(chain.url, stale) as proxy:
            async with await connect([proxy.url]) as connection:
                with pytest.raises(StaleHead, match=r"the newest block 0 is 90\d s old, at most 600 s"):
                    await connection.check_fresh(600)
            async with await connect([proxy.url, chain.url]) as connection:
                assert (await connection.check_fresh(600)).number == 0


async def test_time_is_the_newest_block_s(chain: DevChain) -> None:
    async with await connect([chain.url]) as connection:
        before = await connection.now()
        await chain.advance(1000)
        assert 1000 <= await connection.now() - before <= 1010


async def test_a_cancelled_request_leaves_the_connection_usable(chain: DevChain) -> None:
    async with await connect([chain.url]) as connection:
        for _ in range(20):
            waiting = [asyncio.ensure_future(connection.head()) for _ in range(10)]
            await asyncio.sleep(0)
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        assert await asyncio.wait_for(connection.block_number(), 5) == 0


async def test_a_reset_dev_chain_is_another_chain() -> None:
    keys = []
    for _ in range(2):
        async with devchain(backend="eth-tester") as chain, await connect([chain.url]) as connection:
            keys.append(connection.key)
            await asyncio.sleep(1.05 if len(keys) == 1 else 0)  # a genesis bears its second
    assert keys[0] != keys[1]


async def test_an_address_without_a_contract_is_named(chain: DevChain, tmp_path: Path) -> None:
    book = Deployment(31337, 0, "dev", {"RoundBook": "0x00000000000000000000000000000000DeaDBeef"})
    book.save(tmp_path / "deployment.json")
    assert Deployment.load(tmp_path / "deployment.json") == book
    async with await connect([chain.url]) as connection:
        with pytest.raises(DeploymentError, match=r"RoundBook: no contract at 0x0.*the dev chain was reset"):
            await check_deployed(connection, book)


async def test_an_endpoint_that_dies_after_taking_a_transaction_does_not_double_it(
    chain: DevChain, tmp_path: Path
) -> None:
    async with (
        bench(chain, tmp_path) as here,
        rpc_proxy(chain.url, lambda method, params: None) as proxy,
        await connect([proxy.url, chain.url]) as connection,
    ):
        proxy.swallow = "eth_sendRawTransaction"
        sender = Sender(connection, dev_accounts()[1], here.outbox, None, errors())
        probe = connection.w3.eth.contract(address=here.probe.address, abi=here.probe.abi)
        await sender.submit_and_confirm("note:1", probe.functions.note(1))
        assert proxy.seen.count("eth_sendRawTransaction") == 1 and await here.noted() == [1]
