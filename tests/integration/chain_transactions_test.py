"""The transaction engine on real chains: the same tests on anvil and on the embedded one."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from node.devnet.chain import DevChain, dev_accounts, devchain
from protocol.chain.calls import read
from protocol.chain.connection import connect
from protocol.chain.errors import ChainUnavailable, NonceTaken, OutOfGasMoney, Reverted, Unconfirmed, UnknownTransaction
from protocol.chain.fees import GWEI, FeePolicy
from protocol.chain.transactions import Sender
from protocol.store.outbox import StoredTransaction
from tests.helpers.probe import Bench, bench, errors
from tests.helpers.rpc_proxy import rpc_proxy

BACKENDS = ("anvil", "eth-tester")


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=BACKENDS)
async def chain(request: pytest.FixtureRequest) -> AsyncIterator[DevChain]:
    async with devchain(backend=request.param) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def here(chain: DevChain, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(chain, tmp_path) as made:
        yield made


async def test_a_transaction_is_sent_mined_and_counted_by_kind(here: Bench) -> None:
    receipt = await here.sender.submit_and_confirm("note:7", here.probe.functions.note(7), value=5)
    assert receipt.ok and await here.noted() == [7]
    use = (await here.outbox.gas_by_kind())["note"]
    assert (use.count, use.total) == (1, receipt.gas_used)
    assert await here.connection.w3.eth.get_balance(here.probe.address) == 5


async def test_concurrent_submits_get_consecutive_nonces(here: Bench) -> None:
    calls = [here.sender.submit_and_confirm(f"note:{i}", here.probe.functions.note(i)) for i in range(12)]
    receipts = await asyncio.gather(*calls)
    assert sorted(await here.noted()) == list(range(12))
    assert len({receipt.hash for receipt in receipts}) == 12


async def test_one_purpose_is_one_transaction_while_it_is_pending(here: Bench) -> None:
    call = here.probe.functions.note(1)
    hashes = await asyncio.gather(*(here.sender.submit("note:same", call) for _ in range(5)))
    assert len(set(hashes)) == 1
    await asyncio.gather(*(here.sender.confirm(hashes[0]) for _ in range(3)))
    assert await here.noted() == [1]
    await here.sender.submit_and_confirm("note:same", call)
    assert await here.noted() == [1, 1]


async def test_a_refusal_has_its_name_and_numbers_and_uses_no_nonce(here: Bench) -> None:
    before = await here.connection.w3.eth.get_transaction_count(here.sender.address)
    with pytest.raises(Reverted, match=r"BondTooSmall\(have=5, need=13\)") as caught:
        await here.sender.submit("refuse", here.probe.functions.refuse(5, 13))
    assert caught.value.arguments == {"have": 5, "need": 13}
    assert await here.connection.w3.eth.get_transaction_count(here.sender.address) == before


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        ("refuse", (5, 13), r"BondTooSmall\(have=5, need=13\)"),
        ("refusePair", ("0x" + "11" * 20,), r"BadPair\(pair=\[0x1111.*, 7\], proof=\[0x0000"),
        ("refuseWithReason", (), r"Error\(reason=not today\)"),
        ("refuseSilently", (), r"NoReason\(\)"),
        ("overflow", (0,), r"Panic\(code=17, meaning=arithmetic overflow\)"),
    ],
)
async def test_a_read_names_every_kind_of_refusal(
    here: Bench, function: str, arguments: tuple[object], text: str
) -> None:
    with pytest.raises(Reverted, match=text):
        await read(here.probe.functions[function](*arguments), errors=errors())


async def test_a_key_without_money_is_told_how_much_it_needs(here: Bench) -> None:
    poor, rich = here.sender_of(3), dev_accounts()[3]
    w3 = here.connection.w3
    price = 20 * 10**9
    rest = await w3.eth.get_balance(rich.address) - 21_000 * price
    fields = {"to": dev_accounts()[4].address, "value": rest, "gas": 21_000, "nonce": 0, "chainId": 31337}
    signed = rich.sign_transaction(fields | {"maxFeePerGas": price, "maxPriorityFeePerGas": price})
    await w3.eth.wait_for_transaction_receipt(await w3.eth.send_raw_transaction(signed.raw_transaction))
    with pytest.raises(OutOfGasMoney, match="for gas, needs") as caught:
        await poor.submit("note:1", here.probe.functions.note(1))
    assert caught.value.need > caught.value.have >= 0
    assert await poor.resume() == []


async def test_too_little_gas_is_met_with_more(here: Bench) -> None:
    await here.sender.submit_and_confirm("note:40", here.probe.functions.note(40))
    tight = here.again(FeePolicy(gas_margin=0.6))
    receipt = await tight.submit_and_confirm("work", here.probe.functions.work())
    assert receipt.ok and (await here.outbox.gas_by_kind())["work"].count == 2


async def test_a_contract_can_draw_by_the_last_block_hash_and_prevrandao(here: Bench) -> None:
    drawn = set()
    for number in range(3):
        await here.sender.submit_and_confirm(f"draw:{number}", here.probe.functions.draw())
        drawn.add(await read(here.probe.functions.value()))
    assert len(drawn) == 3


async def test_an_outage_while_waiting_is_sat_out(here: Bench) -> None:
    down = False

    def outage(method: str, params: list[Any]) -> web.Response | None:
        return web.Response(status=503) if down else None

    async with rpc_proxy(here.chain.url, outage) as proxy, await connect([proxy.url]) as connection:
        sender = Sender(connection, dev_accounts()[1], here.outbox, None, errors())
        probe = connection.w3.eth.contract(address=here.probe.address, abi=here.probe.abi)
        tx_hash = await sender.submit("note:1", probe.functions.note(1))
        down = True
        waiting = asyncio.ensure_future(sender.confirm(tx_hash, timeout=20))
        await asyncio.sleep(1.2)
        down = False
        assert (await waiting).ok
        down = True
        with pytest.raises(ChainUnavailable, match="HTTP 503"):
            await sender.submit("note:2", probe.functions.note(2))


async def test_a_hash_that_nobody_knows_is_refused(here: Bench) -> None:
    with pytest.raises(UnknownTransaction, match="not in the outbox"):
        await here.sender.confirm("0x" + "ab" * 32)


@pytest_asyncio.fixture(loop_scope="module")
async def idle(tmp_path: Path) -> AsyncIterator[Bench]:
    """anvil that mines only on demand, once the probe is there."""
    policy = FeePolicy(replace_after=0.2, rebroadcast_after=0.1, poll_seconds=0.1)
    async with devchain(backend="anvil") as chain, bench(chain, tmp_path, policy) as made:
        await chain.rpc("evm_setAutomine", False)
        yield made


async def test_a_stuck_transaction_is_replaced_and_every_hash_watched(idle: Bench) -> None:
    first = await idle.sender.submit("note:1", idle.probe.functions.note(1))
    with pytest.raises(Unconfirmed, match="still followed"):
        await idle.sender.confirm(first, timeout=1.0)
    rows = await idle.outbox.pending()
    assert len(rows) >= 2 and len({row.nonce for row in rows}) == 1
    for old, new in itertools.pairwise(rows):
        assert new.max_fee * 8 >= old.max_fee * 9 and new.tip * 8 >= old.tip * 9
    await idle.chain.rpc("evm_mine")
    receipt = await idle.sender.confirm(first)
    assert receipt.ok and receipt.hash != first and await idle.noted() == [1]
    assert (await idle.sender.confirm(first)).hash == receipt.hash
    assert await idle.outbox.pending() == []


async def test_a_replacement_never_exceeds_the_cap(idle: Bench) -> None:
    policy = FeePolicy(replace_after=0.05, rebroadcast_after=0.05, poll_seconds=0.05, max_fee_cap=3 * 10**9)
    sender = idle.again(policy)
    with pytest.raises(Unconfirmed):
        await sender.confirm(await sender.submit("note:1", idle.probe.functions.note(1)), timeout=1.5)
    assert all(row.max_fee <= 3 * 10**9 for row in await idle.outbox.pending())


async def test_what_the_chain_forgot_is_sent_again(idle: Bench) -> None:
    tx_hash = await idle.sender.submit("note:9", idle.probe.functions.note(9))
    await idle.chain.rpc("anvil_dropTransaction", tx_hash)
    await idle.chain.rpc("evm_setAutomine", True)
    assert (await idle.sender.confirm(tx_hash, timeout=10)).ok
    assert await idle.noted() == [9]


async def test_what_was_in_a_block_that_was_given_up_is_sent_again_byte_by_byte(tmp_path: Path) -> None:
    same_fees = FeePolicy(max_fee_cap=2 * GWEI, min_tip=2 * GWEI)
    async with devchain(backend="anvil") as chain, bench(chain, tmp_path, same_fees) as here:
        before = await chain.rpc("evm_snapshot")
        note = here.probe.functions.note(1)
        first = await here.sender.submit_and_confirm("note:1", note)
        assert await chain.rpc("evm_revert", before)
        assert await here.sender.mined("note:1") is None
        again = await here.sender.submit_and_confirm("note:1", note)
        assert again.hash == first.hash and await here.noted() == [1]
        assert (await here.outbox.gas_by_kind())["note"].count == 1


async def test_a_refusal_after_the_estimate_is_explained_from_the_receipt(idle: Bench) -> None:
    rival = idle.sender_of(2)
    first = await idle.sender.submit("below:a", idle.probe.functions.noteBelow(1))
    second = await rival.submit("below:b", idle.probe.functions.noteBelow(1))
    await idle.chain.rpc("evm_mine")
    outcomes = await asyncio.gather(idle.sender.confirm(first), rival.confirm(second), return_exceptions=True)
    failures = [one for one in outcomes if isinstance(one, Reverted)]
    assert len(failures) == 1 and failures[0].name == "BondTooSmall"


async def test_a_foreign_transaction_with_our_nonce_is_named_and_the_next_one_works(idle: Bench) -> None:
    tx_hash = await idle.sender.submit("note:1", idle.probe.functions.note(1))
    stranger = Sender(idle.connection, dev_accounts()[1], NoOutbox(), FeePolicy(min_tip=10**11), errors())
    await idle.chain.rpc("anvil_dropTransaction", tx_hash)
    await stranger.submit("note:2", idle.probe.functions.note(2))
    await idle.chain.rpc("evm_mine")
    with pytest.raises(NonceTaken, match="do not use one key in two programs"):
        await idle.sender.confirm(tx_hash, timeout=10)
    await idle.chain.rpc("evm_setAutomine", True)
    await idle.sender.submit_and_confirm("note:3", idle.probe.functions.note(3))
    assert await idle.noted() == [2, 3]


async def test_tend_settles_what_nobody_waits_for(here: Bench) -> None:
    await here.sender.submit("note:1", here.probe.functions.note(1))
    async with asyncio.timeout(10):  # the chain mines after it has answered
        while await here.sender.tend() == ["note:1"]:
            await asyncio.sleep(0.02)
    assert await here.sender.tend() == [] and await here.outbox.pending() == []
    assert await here.noted() == [1]


@pytest.mark.parametrize("point", ["stored", "sent"])
async def test_a_kill_between_store_and_send_still_sends_exactly_once(
    chain: DevChain, point: str, tmp_path: Path
) -> None:
    async with bench(chain, tmp_path / "parent") as first:
        address = first.probe.address
    arguments = [sys.executable, "-m", "tests.helpers.killed_sender", chain.url, str(tmp_path / "killed")]
    child = await asyncio.create_subprocess_exec(*arguments, address, point)
    assert await child.wait() == -signal.SIGKILL
    async with bench(chain, tmp_path / "killed") as after:
        probe = after.connection.w3.eth.contract(address=address, abi=after.probe.abi)
        pending = await after.sender.resume()
        if pending:  # how a service goes on: it decides the same again
            await after.sender.submit_and_confirm("note:42", probe.functions.note(42))
        assert [log["args"]["value"] for log in await probe.events.Noted().get_logs(from_block=0)] == [42]
        assert await after.outbox.pending() == []


class NoOutbox:
    """Another program with the same key, which remembers nothing."""

    async def store(self, **_: object) -> None:
        return None

    async def pending(self) -> list[StoredTransaction]:
        return []

    async def finish(self, hash: str, outcome: str, **_: object) -> None:
        return None
