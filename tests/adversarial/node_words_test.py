"""Strings on chain that are no text: anyone may register one, and it must not stop everybody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from eth_abi.abi import encode
from eth_utils.abi import function_signature_to_4byte_selector

from node.ledger import check_books, keep_books, read_events
from protocol.core.round import RoundStatus
from tests.helpers.market import World, open_nodes, open_world

pytestmark = pytest.mark.asyncio(loop_scope="module")
NO_TEXT = b"http://\xff\xfe\x80"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world(tmp_path_factory.mktemp("words")) as made:
        yield made


class Raw:
    """A call by its bytes: no library would encode a string that is none."""

    def __init__(self, to: str, data: bytes) -> None:
        self._to, self._data = to, data

    async def estimate_gas(self, fields: Any) -> int:
        return 200_000

    async def build_transaction(self, fields: Any) -> Any:
        return {**fields, "to": self._to, "data": self._data, "type": 2}


async def test_an_operators_endpoint_that_is_no_text_stops_nobody(world: World) -> None:
    market, hostile = world.bench.market, world.bench.people[5].operator
    selector = function_signature_to_4byte_selector("setEndpoint(address,string)")
    data = selector + encode(["address", "bytes"], [hostile.address, NO_TEXT])
    call: Any = Raw(market.operator_registry.address, data)
    await world.sender(hostile).submit_and_confirm("no-text", call)
    entry = next(entry for entry in await market.operators() if entry.address == hostile.address)
    assert entry.endpoint.startswith("http://") and "\ufffd" in entry.endpoint

    job = await world.post(world.job_terms())
    async with open_nodes(world, job, 0, 1):
        closed = await world.run(job, lambda round: round.closed_at > 0)
    assert closed.status == RoundStatus.CLOSED and closed.accepted_map == 0b11


async def test_the_books_are_read_over_an_event_that_carries_no_text(world: World) -> None:
    await check_books(world.bench.market, keep_books(await read_events(world.bench.market)))
