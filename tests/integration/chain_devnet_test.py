"""The dev chain: both backends keep wall-clock time, their state, and to themselves."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from node.devnet.chain import DevChain, DevChainError, dev_accounts, devchain

BACKENDS = pytest.mark.parametrize("backend", ("anvil", "eth-tester"))


async def latest(chain: DevChain) -> tuple[int, int]:
    block = await chain.rpc("eth_getBlockByNumber", "latest", False)
    return int(block["number"], 16), int(block["timestamp"], 16)


async def send(chain: DevChain, nonce: int, key: int = 0) -> str:
    fields = {"to": dev_accounts()[9].address, "value": 1, "gas": 21_000, "nonce": nonce, "chainId": 31337}
    fields |= {"maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9}
    raw = dev_accounts()[key].sign_transaction(fields).raw_transaction
    return str(await chain.rpc("eth_sendRawTransaction", raw.to_0x_hex()))


async def mined(chain: DevChain, tx_hash: str) -> Any:
    for _ in range(250):
        if receipt := await chain.rpc("eth_getTransactionReceipt", tx_hash):
            return receipt
        await asyncio.sleep(0.02)
    raise AssertionError(f"{tx_hash} was not mined")


@BACKENDS
async def test_the_same_accounts_are_funded_and_the_chain_id_is_the_same(backend: str) -> None:
    async with devchain(backend=backend) as chain:
        assert int(await chain.rpc("eth_chainId"), 16) == 31337
        for account in dev_accounts():
            assert int(await chain.rpc("eth_getBalance", account.address, "latest"), 16) == 10**22


@BACKENDS
async def test_many_transactions_do_not_run_ahead_of_the_clock(backend: str) -> None:
    async with devchain(backend=backend) as chain:
        for nonce in range(30):
            last = await send(chain, nonce)
        await mined(chain, last)
        number, timestamp = await latest(chain)
        assert number == 30 and abs(timestamp - time.time()) <= 2


@BACKENDS
async def test_with_a_block_time_the_clock_moves_and_transactions_do_not_wait(backend: str) -> None:
    async with devchain(backend=backend, block_time=1) as chain:
        begin = time.monotonic()
        tx_hash = await send(chain, 0)
        await mined(chain, tx_hash)
        assert time.monotonic() - begin < 0.7
        number, _ = await latest(chain)
        await asyncio.sleep(2.3)
        later, timestamp = await latest(chain)
        assert later - number in (2, 3) and abs(timestamp - time.time()) <= 2


@BACKENDS
async def test_a_later_nonce_waits_for_the_missing_one(backend: str) -> None:
    async with devchain(backend=backend) as chain:
        late = await send(chain, 1)
        assert await chain.rpc("eth_getTransactionReceipt", late) is None
        await send(chain, 0)
        assert (await mined(chain, late))["status"] == "0x1"


@BACKENDS
async def test_the_chain_goes_on_after_a_restart(backend: str, tmp_path: Path) -> None:
    async with devchain(tmp_path, backend=backend) as chain:
        tx_hash = await send(chain, 0)
        await mined(chain, tx_hash)
        before = await chain.rpc("eth_getBlockByNumber", "latest", False)
    async with devchain(tmp_path, backend=backend) as chain:
        after = await chain.rpc("eth_getBlockByNumber", "latest", False)
        assert after["hash"] == before["hash"]
        assert (await chain.rpc("eth_getTransactionReceipt", tx_hash))["status"] == "0x1"
        await send(chain, 1)


async def test_the_embedded_chain_survives_a_kill(tmp_path: Path) -> None:
    async with devchain(tmp_path, backend="eth-tester") as chain:
        for nonce in range(3):
            await send(chain, nonce)
        os.kill(chain.pid, signal.SIGKILL)
    with (tmp_path / "chain.frames").open("ab") as file:
        file.write(b"\0\0\1\0cut short")
    async with devchain(tmp_path, backend="eth-tester") as chain:
        assert (await latest(chain))[0] == 3
        await send(chain, 3)


@BACKENDS
async def test_the_chain_listens_on_loopback_only(backend: str) -> None:
    async with devchain(backend=backend) as chain:
        port = int(chain.url.rsplit(":", 1)[1])
        wildcard = socket.socket()
        # 127.0.0.2 is loopback too, but another address: refused when the chain bound 127.0.0.1 alone.
        assert wildcard.connect_ex(("127.0.0.2", port)) != 0
        wildcard.close()


async def test_a_port_in_use_is_one_clear_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DevChainError, match=f"port {port} on 127.0.0.1: Address already in use"):
            async with devchain(port=port):
                pass


async def test_an_unknown_backend_and_a_missing_anvil_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DevChainError, match="no backend 'ganache', expected one of auto, anvil, eth-tester"):
        async with devchain(backend="ganache"):
            pass
    monkeypatch.setenv("ANVIL", "/bin/false")
    with pytest.raises(DevChainError, match="anvil ended at once with code 1"):
        async with devchain(backend="anvil"):
            pass
    monkeypatch.setenv("ANVIL", "/nowhere/anvil")
    with pytest.raises(DevChainError, match="cannot run /nowhere/anvil: No such file"):
        async with devchain(backend="anvil"):
            pass


ORPHAN = """
import asyncio, os, signal, sys
from node.devnet.chain import devchain
async def main():
    async with devchain(backend=sys.argv[1]) as chain:
        print(chain.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG")
@BACKENDS
def test_a_killed_program_leaves_no_chain_behind(backend: str) -> None:
    done = subprocess.run([sys.executable, "-c", ORPHAN, backend], capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or ") Z " in Path(f"/proc/{pid}/stat").read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is still there")


async def test_the_embedded_chain_refuses_what_a_node_refuses() -> None:
    async with devchain(backend="eth-tester") as chain:
        await send(chain, 0)
        with pytest.raises(DevChainError, match="nonce too low"):
            await chain.rpc("eth_sendRawTransaction", _signed(0, gas=22_000))
        with pytest.raises(DevChainError, match="intrinsic gas too low"):
            await chain.rpc("eth_sendRawTransaction", _signed(1, gas=20_000))
        with pytest.raises(DevChainError, match=r"insufficient funds .* have .* want"):
            await chain.rpc("eth_sendRawTransaction", _signed(1, value=10**23))
        with pytest.raises(DevChainError, match="invalid chain id"):
            await chain.rpc("eth_sendRawTransaction", _signed(1, chainId=1))
        with pytest.raises(DevChainError, match="invalid transaction"):
            await chain.rpc("eth_sendRawTransaction", "0x02ff")
        with pytest.raises(DevChainError, match="no method"):
            await chain.rpc("eth_nonsense")
        waiting = _signed(5)
        await chain.rpc("eth_sendRawTransaction", waiting)
        with pytest.raises(DevChainError, match="already known"):
            await chain.rpc("eth_sendRawTransaction", waiting)
        with pytest.raises(DevChainError, match="replacement transaction underpriced"):
            await chain.rpc("eth_sendRawTransaction", _signed(5, value=2))


def _signed(nonce: int, **changes: int) -> str:
    fields = {"to": dev_accounts()[9].address, "value": 1, "gas": 21_000, "nonce": nonce, "chainId": 31337}
    fields |= {"maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9}
    return str(dev_accounts()[0].sign_transaction(fields | changes).raw_transaction.to_0x_hex())
