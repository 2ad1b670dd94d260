"""Markets whose seeds must be proved to the chain: the upkeep of ordinary nodes does it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from protocol.chain.beacon import SeedReader
from protocol.chain.connection import Connection, Head
from protocol.core.audit import Outcome
from protocol.core.beacon import DRAND, PREVRANDAO, QUICKNET, Unread, moment_of, round_time
from protocol.core.claim import ClaimStatus
from protocol.core.round import Round, RoundStatus
from protocol.runtime.errors import ConfigError
from protocol.transport.relays import Relays
from tests.helpers.market import Node, World, open_nodes, open_world
from tests.helpers.prague import dev_with, prague_chain
from verifier.actions import ProveSeed
from verifier.prover import MOST_GAS, Prover, SeedUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")
LEAD, MARGIN, PATIENCE = 128, 60, 600
ROUND = 1000
# Published rounds of quicknet, as in hardhat/sol/Drand.t.sol
SIGNATURES = {
    42: "95a9f9f5b231b7714de1553105d8ffdf3dcda24cfdb1e689319bccf79a9c8ce430a91b811fbfaf763900bc998b5d686a",
    1000: "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
}


async def _any_head(self: Connection, max_age_seconds: int) -> Head:
    return await self.head()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def by_randao(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    options = {"running": prague_chain(), "preset": dev_with(PREVRANDAO, lead=LEAD)}
    async with open_world(tmp_path_factory.mktemp("randao"), **options) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def by_drand(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A chain of 2023, a quarter of an hour before the round."""
    preset = dev_with(DRAND, margin=MARGIN, patience=PATIENCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "check_fresh", _any_head)
        running = prague_chain(round_time(ROUND) - MARGIN - 900)
        async with open_world(tmp_path_factory.mktemp("drand"), running=running, preset=preset) as made:
            yield made


class Relay:
    """A server that answers what it is told to, and counts."""

    def __init__(self, answer: Callable[[int], bytes]) -> None:
        self.asked: list[int] = []
        self._answer = answer
        app = web.Application()
        app.router.add_get(f"/{QUICKNET}/public/{{round}}", self._serve)
        self.server = TestServer(app)

    async def _serve(self, request: web.Request) -> web.Response:
        self.asked.append(int(request.match_info["round"]))
        return web.Response(body=self._answer(self.asked[-1]), content_type="application/json")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"


def published(round: int, of: int | None = None) -> bytes:
    """What a relay says of a round; `of`: with the signature of another one."""
    return said(round, SIGNATURES[of or round])


def said(round: int, signature: str) -> bytes:
    randomness = hashlib.sha256(bytes.fromhex(signature)).hexdigest()
    return json.dumps({"round": round, "randomness": randomness, "signature": signature}).encode()


async def turns(world: World, nodes: list[Node], job: bytes, until: Callable[[Round], bool]) -> Round:
    """Turns without the passing of time."""
    for _ in range(30):
        for node in nodes:
            await node.turn()
            found = await world.round(job)
            if until(found):
                return found
    raise AssertionError(f"{found}; {[node.failures for node in nodes]}")


async def proofs(world: World) -> list[int]:
    """The moments that were proved so far."""
    logs = await world.bench.market.block_beacon.events.Proved().get_logs(from_block=0)
    return [log["args"]["moment"] for log in logs]


async def test_a_whole_round_is_drawn_and_judged_by_the_randao_of_blocks_that_nodes_prove(by_randao: World) -> None:
    world, chain = by_randao, by_randao.bench.chain
    job = await world.post(world.job_terms(rounds=1, windows={"challenge": 40}))
    async with open_nodes(world, job, 0, 1, 2, 3, 4, 5) as nodes:
        closed = await world.run(job, lambda round: round.closed_at > 0)
        assert moment_of(closed.draw.beacon_ticket) > await world.bench.market.connection.block_number() + LEAD // 2
        for _ in range(3):
            for node in nodes:
                await node.turn()
        assert not (await world.round(job)).draw.drawn and await proofs(world) == []
        for _ in range(25):
            await chain.rpc("anvil_mine", hex(LEAD + 1), hex(0))
            for _ in range(3):
                for node in nodes:
                    await node.turn()
            found = await world.round(job)
            if found.status == RoundStatus.SETTLED:
                break
            await chain.advance(5)
    assert found.status == RoundStatus.SETTLED, found
    assert found.draw.drawn and found.cases and all(c.outcome == Outcome.MATCH for c in found.cases.values())
    assert {claim.status for claim in found.claims} == {ClaimStatus.PAID}
    proved = await proofs(world)
    assert moment_of(closed.draw.beacon_ticket) in proved and len(proved) == len(set(proved)), "one proof a moment"
    assert len(proved) > 1, "of the rows that seats show, too"


async def test_a_draw_waits_for_a_round_of_drand_and_a_relay_that_lies_only_costs_a_request(by_drand: World) -> None:
    world, chain, market = by_drand, by_drand.bench.chain, by_drand.bench.market
    liar = Relay(lambda round: published(round, of=42))
    bloated = Relay(lambda round: published(round) + b" " * 5000)
    honest = Relay(published)
    async with liar.server, bloated.server, honest.server:
        for person in world.bench.people:
            with (person.home / "config.toml").open("a") as file:
                file.write(f'\n[beacon]\nrelays = ["{liar.url}", "{bloated.url}", "{honest.url}"]\n')
        await chain.rpc("anvil_setBlockTimestampInterval", 0)  # from here on time stands still
        await chain.rpc("evm_setNextBlockTimestamp", round_time(ROUND) - MARGIN - 3)
        job = await world.post(world.job_terms(rounds=1))
        async with open_nodes(world, job, 0, 1, 2) as nodes:
            closed = await turns(world, nodes, job, lambda round: round.closed_at > 0)
            ticket = closed.draw.beacon_ticket
            assert ticket == ROUND
            reader = SeedReader(market)
            assert await reader.unread([ticket], await market.connection.head()) == {ticket: Unread.TO_COME}
            for node in nodes:
                await node.turn()
            assert honest.asked == liar.asked == [] and not (await world.round(job)).draw.drawn

            await chain.rpc("evm_setNextBlockTimestamp", round_time(ROUND))
            await chain.rpc("evm_mine")
            assert await reader.unread([ticket], await market.connection.head()) == {ticket: Unread.UNPROVED}
            found = await turns(world, nodes, job, lambda round: round.draw.drawn)
            assert await reader.unread([ticket], await market.connection.head()) == {}
    (log,) = await market.block_beacon.events.Proved().get_logs(from_block=0)
    receipt = await chain.rpc("eth_getTransactionReceipt", log["transactionHash"].to_0x_hex())
    sent = await chain.rpc("eth_getTransactionByHash", log["transactionHash"].to_0x_hex())
    assert log["args"]["moment"] == ROUND
    assert 150_000 < int(receipt["gasUsed"], 16) < 200_000 and int(sent["gas"], 16) <= MOST_GAS
    assert (liar.asked, bloated.asked, honest.asked) == ([ROUND], [ROUND], [ROUND])
    randomness = hashlib.sha256(bytes.fromhex(SIGNATURES[ROUND])).digest()
    assert await market.call(market.block_beacon.functions.outcomeOf(ROUND)) == randomness
    assert found.draw.seed == await market.call(market.block_beacon.functions.seedOf(ticket))


async def test_without_an_honest_relay_nothing_is_sent_and_the_reasons_are_told(by_drand: World) -> None:
    world, chain = by_drand, by_drand.bench.chain
    liar = Relay(lambda round: published(round, of=42))
    outside = Relay(lambda round: said(round, "80" + "00" * 47))  # (0, 2): on the curve, not in the subgroup
    async with liar.server, outside.server, open_nodes(world, None, 5) as (node,):
        person = world.bench.people[5]
        nonce = await chain.rpc("eth_getTransactionCount", person.operator.address, "latest")
        relays = Relays(node.station.client, [liar.url, outside.url, "http://127.0.0.1:1"])
        wanted = rf"{liar.url}: .*WrongSignature.*; {outside.url}: the .* refused.*; .*connection failed"
        with pytest.raises(SeedUnavailable, match=wanted):
            await Prover(node.station.market, node.station.sender, relays).prove(ProveSeed(ROUND - 1))
        assert await chain.rpc("eth_getTransactionCount", person.operator.address, "latest") == nonce


@pytest.mark.parametrize(
    ("relay", "why"),
    [("drand.sh", "expected http://"), ("https://drand.sh/?round=1", "no user"), ("http://169.254.1.1", "leads to")],
)
async def test_a_relay_that_is_no_url_is_told_when_the_node_starts(by_drand: World, relay: str, why: str) -> None:
    person = by_drand.bench.people[4]
    config = person.home / "config.toml"
    config.write_text(f'{config.read_text().partition("[beacon]")[0]}[beacon]\nrelays = ["{relay}"]\n')
    with pytest.raises(ConfigError, match=f"beacon.relays: peer .*{why}"):
        async with open_nodes(by_drand, None, 4):
            raise AssertionError("it started")


async def test_a_ticket_that_nobody_could_prove_in_time_is_replaced_by_whoever_draws(by_drand: World) -> None:
    world, chain = by_drand, by_drand.bench.chain
    silent = Relay(lambda round: b"")
    async with silent.server:
        for person in world.bench.people[:3]:
            config = person.home / "config.toml"
            config.write_text(f'{config.read_text().partition("[beacon]")[0]}[beacon]\nrelays = ["{silent.url}"]\n')
        job = await world.post(world.job_terms(rounds=1), salt=2)
        async with open_nodes(world, job, 0, 1, 2) as nodes:
            closed = await turns(world, nodes, job, lambda round: round.closed_at > 0)
            first = closed.draw.beacon_ticket
            await chain.rpc("evm_setNextBlockTimestamp", round_time(first) + 1)
            await chain.rpc("evm_mine")
            for _ in range(3):
                for node in nodes:
                    await node.turn()
            assert set(silent.asked) == {first}, "a proof was wanted"
            assert any("no proof of the beacon" in text for node in nodes for text in node.failures.values())
            assert (await world.round(job)).draw.beacon_ticket == first

            await chain.rpc("evm_setNextBlockTimestamp", round_time(first) + PATIENCE + 1)
            await chain.rpc("evm_mine")
            found = await turns(world, nodes, job, lambda round: round.draw.beacon_ticket != first)
    assert found.draw.beacon_ticket >> 64 == 1 and not found.draw.drawn
    assert moment_of(found.draw.beacon_ticket) > first
