"""Commands that run until they are told to stop, and a watch whose chain hesitates."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.helpers.rpc_proxy import Fault, refusal, rpc_proxy
from tests.integration.poster_fixtures import Bench, pack_tiny, poster_bench, write_job

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOT = Path(__file__).parents[2]
PROGRAM = "from tests.integration.poster_fixtures import gradmarket; gradmarket()"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    folder = tmp_path_factory.mktemp("processes")
    async with poster_bench(folder) as made:
        yield made


@asynccontextmanager
async def running(home: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, "--home", str(home), *arguments,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_seed_tells_its_url_and_ends_on_sigterm(bench: Bench) -> None:
    packed, _ = pack_tiny(bench.folder / "blobs")
    async with running(bench.poster.home, "job", "seed", str(packed.out_dir), "--port", "0") as process:
        assert process.stdout is not None
        said = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
        assert said.startswith(f"serving {packed.out_dir} at http://127.0.0.1:")
        port = int(said.rsplit(":", 1)[1])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 20) == 0


async def test_a_verifier_serves_until_sigterm_and_logs_to_its_home(bench: Bench) -> None:
    home = bench.person("auditor").home
    log = home / "log" / "verifier.jsonl"
    async with running(home, "verifier", "run", "--quiet") as process:
        for _ in range(300):
            if log.exists() and "serving_panels" in log.read_text():
                break
            await asyncio.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 20) == 0
    assert "serving_panels" in log.read_text()


async def test_a_verifier_without_a_key_says_which_is_missing(bench: Bench) -> None:
    home = bench.person("keyless").home
    config = home / "config.toml"
    config.write_text(config.read_text().replace('operator = "keys/operator.json"\n', ""))
    refused = await bench.run("verifier", "run", "--quiet", home=home)
    assert refused.exit_code == 3 and "keys.operator is missing" in refused.stderr


async def test_a_watch_sits_out_a_chain_that_refuses_for_a_while(bench: Bench) -> None:
    _, spec = pack_tiny(bench.folder / "blobs")
    posted = await bench.run("job", "post", "--anyway", str(write_job(bench.folder, spec)))
    assert posted.exit_code == 0, posted.stderr
    home = bench.person("watcher").home
    async with rpc_proxy(bench.chain.url, lambda method, params: None) as proxy:
        config = home / "config.toml"
        config.write_text(config.read_text().replace(bench.chain.url, proxy.url))
        proxy.fault = refuse_some()
        told = await bench.run("job", "watch", posted.stdout.split()[1], "--once", home=home)
    assert told.exit_code == 0, told.output + told.stderr
    assert "waiting: " in told.stderr and "job is paused (auditors)" in told.stdout


def refuse_some() -> Fault:
    """The first two calls at one block, which only the books make: a node that lags knows no such block yet."""
    refused = 0

    def fault(method: str, params: list[Any]) -> Any:
        nonlocal refused
        if method != "eth_call" or params[1] == "latest" or refused == 2:
            return None
        refused += 1
        return refusal("header not found")

    return fault
