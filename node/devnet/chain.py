"""A chain for one machine: anvil where it is found, else the embedded one. Both listen on 127.0.0.1 only."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import os
import platform
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from eth_account import Account
from eth_account.signers.local import LocalAccount

from protocol.core.errors import GradmarketError

CHAIN_ID = 31337
MNEMONIC = "test test test test test test test test test test test junk"  # anvil's and Hardhat's: public, worthless
ACCOUNTS = 20
ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0
STOP_SECONDS = 10.0
PR_SET_PDEATHSIG = 1  # linux/prctl.h
BACKENDS = ("auto", "anvil", "eth-tester")


class DevChainError(GradmarketError):
    """The dev chain cannot start or work."""


@dataclass(frozen=True)
class DevChain:
    """A running chain; the accounts of `dev_accounts` have 10,000 coins each."""

    url: str
    backend: str  # "anvil" or "eth-tester"
    pid: int
    chain_id: int = CHAIN_ID

    async def advance(self, seconds: int) -> None:
        """Move block time forward and mine a block there."""
        await self.rpc("evm_increaseTime", seconds)
        await self.rpc("evm_mine")

    async def rpc(self, method: str, *params: Any) -> Any:
        """A raw request, for what only a dev chain can do. Raises DevChainError with the chain's refusal."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        async with aiohttp.ClientSession() as session, session.post(self.url, json=request) as response:
            answer = await response.json()
        if "error" in answer:
            raise DevChainError(f"dev chain: {method}: {answer['error'].get('message')}")
        return answer["result"]


@functools.cache
def dev_accounts() -> tuple[LocalAccount, ...]:
    """The funded keys, the same on both backends. Never send anything of value to them."""
    Account.enable_unaudited_hdwallet_features()
    return tuple(Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{index}") for index in range(ACCOUNTS))


def find_anvil() -> Path | None:
    """$ANVIL, the one that npm ci installed, or one on PATH."""
    if named := os.environ.get("ANVIL"):
        return Path(named)
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), "")
    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "")
    local = ROOT / f"hardhat/node_modules/@foundry-rs/anvil-{system}-{machine}/bin/anvil"
    if os.access(local, os.X_OK):
        return local
    found = shutil.which("anvil")
    return Path(found) if found else None


@contextlib.asynccontextmanager
async def devchain(
    state_dir: Path | None = None, port: int = 0, backend: str = "auto", block_time: float | None = None
) -> AsyncIterator[DevChain]:
    """Run a chain while the body runs. Every transaction is mined at once; `block_time` adds a block each so many
    seconds, so that deadlines pass without traffic. With `state_dir` the chain goes on where it was.

    Raises DevChainError: port in use, no anvil, or the chain's last words.
    """
    anvil = _choose(backend)
    port = check_port(port)
    command = _anvil_command(anvil, port, state_dir, block_time) if anvil else _own_command(port, state_dir, block_time)
    log = await asyncio.to_thread(_log_file, state_dir)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_end_with_parent(),
            start_new_session=True,  # Ctrl-C is the parent's: it ends the chain last
        )
    except OSError as error:
        os.close(log)
        raise DevChainError(f"dev chain: cannot run {command[0]}: {error.strerror}") from None
    chain = DevChain(f"http://127.0.0.1:{port}", "anvil" if anvil else "eth-tester", process.pid)
    try:
        await _wait_until_up(chain, process, log)
        yield chain
    finally:
        await _stop(process)
        os.close(log)


def _choose(backend: str) -> Path | None:
    if backend not in BACKENDS:
        raise DevChainError(f"dev chain: no backend {backend!r}, expected one of {', '.join(BACKENDS)}")
    if backend == "eth-tester":
        return None
    anvil = find_anvil()
    if anvil is None and backend == "anvil":
        raise DevChainError("dev chain: anvil not found: run npm ci in hardhat/, or set ANVIL to its path")
    return anvil


def check_port(port: int) -> int:
    """The port asked for, or a free one for 0."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise DevChainError(
                f"dev chain: port {port} on 127.0.0.1: {error.strerror}: stop what has it, or choose another"
            ) from None
        return int(probe.getsockname()[1])


def _anvil_command(anvil: Path, port: int, state_dir: Path | None, block_time: float | None) -> list[str]:
    command = [str(anvil), "--silent", "--host", "127.0.0.1", "--port", str(port), "--chain-id", str(CHAIN_ID)]
    command += ["--mnemonic", MNEMONIC, "--accounts", str(ACCOUNTS), "--hardfork", "cancun", "--slots-in-an-epoch", "4"]
    if block_time:
        command += ["--block-time", str(block_time), "--mixed-mining"]
    if state_dir:
        command += ["--state", str(state_dir / "anvil.json"), "--state-interval", "1"]
    return command


def _own_command(port: int, state_dir: Path | None, block_time: float | None) -> list[str]:
    command = [sys.executable, "-m", "node.devnet.ethtester_server", "--port", str(port)]
    if block_time:
        command += ["--block-time", str(block_time)]
    if state_dir:
        command += ["--state", str(state_dir / "chain.frames")]
    return command


def _log_file(state_dir: Path | None) -> int:
    """Where the chain's own words go: a file beside its state, else an unnamed one."""
    if state_dir is None:
        return os.memfd_create("devchain") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
    state_dir.mkdir(parents=True, exist_ok=True)
    return os.open(state_dir / "chain.log", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)


def _end_with_parent() -> Any:
    """On Linux the kernel ends the chain when its parent dies, even by kill -9: nothing is left on the port."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


async def _wait_until_up(chain: DevChain, process: asyncio.subprocess.Process, log: int) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + START_SECONDS
    while loop.time() < deadline:
        if process.returncode is not None:
            words = _last_words(log)
            raise DevChainError(f"dev chain: {chain.backend} ended at once with code {process.returncode}: {words}")
        with contextlib.suppress(aiohttp.ClientError, OSError):
            await chain.rpc("eth_chainId")
            return
        await asyncio.sleep(0.02)
    raise DevChainError(f"dev chain: {chain.backend} did not answer on {chain.url} in {START_SECONDS:.0f} s")


def _last_words(log: int) -> str:
    size = os.fstat(log).st_size
    lines = os.pread(log, 4096, max(0, size - 4096)).decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()  # anvil writes its state file on SIGTERM
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
