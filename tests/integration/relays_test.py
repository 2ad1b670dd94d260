"""Relays of drand that stall, swell, redirect or lie, or lie where this device must not look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from protocol.core.beacon import QUICKNET
from protocol.runtime.config import load_config
from protocol.transport import relays as module
from protocol.transport.addresses import LOCAL, PUBLIC, AddressPolicy
from protocol.transport.blobs import BlobStore
from protocol.transport.client import BlobClient
from protocol.transport.relays import PUBLIC_RELAYS, Relays
from tests.unit.core_beacon_test import POINTS, answer
from verifier.station import HomeConfig

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest_asyncio.fixture
async def relay() -> AsyncIterator[Callable[[Handler], Awaitable[str]]]:
    """Starts servers that answer for every round as they are told."""
    servers = []

    async def start(handler: Handler) -> str:
        app = web.Application()
        app.router.add_get(f"/{QUICKNET}/public/1000", handler)
        servers.append(TestServer(app))
        await servers[-1].start_server()
        return f"http://127.0.0.1:{servers[-1].port}"

    yield start
    for server in servers:
        await server.close()


async def asked(folder: Path, policy: AddressPolicy, *urls: str) -> tuple[list[tuple[str, bytes]], dict[str, str]]:
    reasons: dict[str, str] = {}
    async with BlobClient(BlobStore(folder / "blobs"), policy) as client:
        found = [entry async for entry in Relays(client, urls).proofs(1000, reasons)]
    return found, reasons


async def honest(request: web.Request) -> web.Response:
    return web.Response(body=answer())


async def swollen(request: web.Request) -> web.Response:
    return web.Response(body=answer() + b" " * 2**20)


async def moved(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": "http://169.254.169.254/"})


async def absent(request: web.Request) -> web.Response:
    return web.Response(status=404, text="no such round")


async def stalling(request: web.Request) -> web.Response:
    await asyncio.sleep(30)
    raise AssertionError


async def another(request: web.Request) -> web.Response:
    return web.Response(body=answer(round=1001))


async def test_a_relay_that_gives_nothing_is_passed_over_with_its_reason(
    relay: Callable[[Handler], Awaitable[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.5)
    bad = {handler: await relay(handler) for handler in (swollen, moved, absent, stalling, another)}
    good = await relay(honest)
    found, reasons = await asked(tmp_path, LOCAL, *bad.values(), good)
    assert found == [(good, bytes.fromhex(POINTS[1000]))]
    words = {swollen: "at most 4096", moved: "redirect", absent: "404", stalling: "no answer", another: "round 1001"}
    for handler, word in words.items():
        assert word in reasons[bad[handler]], reasons


async def test_a_relay_on_this_machine_is_not_dialled_unless_private_peers_are_allowed(
    relay: Callable[[Handler], Awaitable[str]], tmp_path: Path
) -> None:
    url = await relay(honest)
    found, reasons = await asked(tmp_path, PUBLIC, url, "http://169.254.169.254", "file:///etc/passwd")
    assert found == [] and "expected a public address" in reasons[url]
    assert len(reasons) == 3
    assert (await asked(tmp_path, LOCAL, url))[0]


def test_relays_are_public_ones_unless_the_configuration_names_others(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    chain = '[chain]\nrpc = ["http://127.0.0.1:1"]\nid = 1\ndeployment = "d.json"\n'
    path.write_text(chain)
    assert load_config(path, HomeConfig).beacon.relays == PUBLIC_RELAYS
    path.write_text(chain + '[beacon]\nrelays = ["https://drand.example"]\n')
    assert load_config(path, HomeConfig).beacon.relays == ("https://drand.example",)
