"""Chains with the upgrade that proofs of beacons need, and a market on one whose beacon a test chooses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp

from node.devnet.chain import ACCOUNTS, MNEMONIC, DevChain, check_port, find_anvil
from protocol.core.beacon import DRAND, PREVRANDAO
from protocol.core.presets import BeaconChoice, Parameter, Preset, load_preset


@contextlib.asynccontextmanager
async def prague_chain(timestamp: int | None = None) -> AsyncIterator[DevChain]:
    """anvil with Prague, its first block at `timestamp` (now, if none is given)."""
    anvil, port = find_anvil(), check_port(0)
    assert anvil is not None
    command = [str(anvil), "--silent", "--port", str(port), "--hardfork", "prague", "--slots-in-an-epoch", "4"]
    command += ["--mnemonic", MNEMONIC, "--accounts", str(ACCOUNTS)]
    command += ["--timestamp", str(timestamp)] if timestamp else []
    process = await asyncio.create_subprocess_exec(*command)
    chain = DevChain(f"http://127.0.0.1:{port}", "anvil", process.pid)
    try:
        for _ in range(200):
            with contextlib.suppress(aiohttp.ClientConnectionError):  # it does not listen yet
                await chain.rpc("eth_chainId")
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError("anvil did not start")
        yield chain
    finally:
        process.terminate()
        await process.wait()


def dev_with(kind: str, **arguments: int) -> Preset:
    """The dev preset with another beacon."""
    assert kind in (DRAND, PREVRANDAO)
    values = {name: Parameter(name, value, "", "") for name, value in arguments.items()}
    return replace(load_preset("dev"), beacon=BeaconChoice(kind, "a test", (), values))
