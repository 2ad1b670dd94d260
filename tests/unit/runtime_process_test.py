"""The compute process: its answers, its failures, its deaths, and what happens when either side is killed."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.runtime.errors import ChildDied, ChildFailed
from protocol.runtime.process import ComputeProcess

CHILD = "tests.unit.runtime_compute_child"
ROOT = Path(__file__).parents[2]


@pytest.fixture
async def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ComputeProcess]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    async with ComputeProcess(CHILD, log_path=tmp_path / "compute.log", backoff_seconds=0.05) as process:
        yield process


def gone(pid: int) -> bool:
    """Whether the process has ended (a zombie that nobody waits for has ended too)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


async def until(condition: object, seconds: float = 5.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < ends, "it took too long"
        await asyncio.sleep(0.01)


async def test_a_call_returns_the_handlers_value_and_the_process_stays(process: ComputeProcess) -> None:
    assert await process.call("add", a=1, b=2) == 3
    pid = process.pid
    assert await process.call("add", a=3, b=4) == 7
    assert process.pid == pid
    assert process.deaths == 0


async def test_calls_wait_their_turn(process: ComputeProcess) -> None:
    assert await asyncio.gather(*(process.call("add", a=n, b=n) for n in range(20))) == [2 * n for n in range(20)]


async def test_progress_arrives_in_order_and_prints_do_not_disturb_it(process: ComputeProcess, tmp_path: Path) -> None:
    seen: list[int] = []
    heard: list[int] = []
    process.heard = lambda: heard.append(1)
    assert await process.call("count", to=50, on_progress=lambda data: seen.append(data["step"])) == 50
    assert len(heard) == 50  # a service knows by it that a long call is alive
    assert seen == list(range(1, 51))
    assert "noise on standard output 50" in (tmp_path / "compute.log").read_text()


async def test_a_handlers_error_comes_back_as_one_line_and_the_process_lives(process: ComputeProcess) -> None:
    with pytest.raises(ChildFailed, match="fail failed in the compute process: ValueError: loss is NaN at step 3") as e:
        await process.call("fail", text="loss is NaN\nat step 3")
    assert (e.value.method, e.value.kind, e.value.message) == ("fail", "ValueError", "loss is NaN at step 3")
    assert await process.call("add", a=1, b=1) == 2
    assert process.deaths == 0


@pytest.mark.parametrize(
    ("method", "line"),
    [
        ("nothing", "LookupError: no method 'nothing'; known: add, big"),
        ("add", "TypeError: add\\(\\) missing"),
        ("big", "ValueError: message of 16777"),
        ("unsendable", "TypeError: Encoding objects of type object is unsupported"),
    ],
)
async def test_a_call_that_cannot_be_answered_says_why(process: ComputeProcess, method: str, line: str) -> None:
    with pytest.raises(ChildFailed, match=line):
        await process.call(method)
    assert await process.call("add", a=1, b=1) == 2


async def test_a_child_killed_in_a_call_is_reported_and_the_next_call_starts_another(process: ComputeProcess) -> None:
    await process.call("add", a=0, b=0)
    pid = process.pid
    assert pid is not None
    call = asyncio.create_task(process.call("sleep", seconds=30))
    await asyncio.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ChildDied, match=r"it ended during sleep \(signal SIGKILL; its log .* is empty\)"):
        await call
    assert await process.call("add", a=1, b=1) == 2
    assert process.deaths == 1
    assert process.pid != pid


async def test_a_child_that_exits_is_reported_with_its_status_and_last_words(process: ComputeProcess) -> None:
    with pytest.raises(ChildDied, match="exit status 7; its log ends with 'out of memory, says the driver'"):
        await process.call("die", status=7)


async def test_each_death_in_a_row_doubles_the_wait(process: ComputeProcess) -> None:
    for pause in ("0.05", "0.1", "0.2"):
        with pytest.raises(ChildDied, match=f"a new one starts in {pause} s"):
            await process.call("die", status=1)
    started = time.monotonic()
    assert await process.call("add", a=1, b=1) == 2
    assert time.monotonic() - started >= 0.2
    with pytest.raises(ChildDied, match=r"a new one starts in 0\.05 s"):
        await process.call("die", status=1)
    assert process.deaths == 4


async def test_a_child_that_died_while_idle_is_counted_and_replaced(process: ComputeProcess) -> None:
    await process.call("add", a=0, b=0)
    running = process._running
    assert running is not None
    os.kill(running.process.pid, signal.SIGKILL)
    await until(lambda: running.process.returncode is not None)
    assert await process.call("add", a=1, b=1) == 2
    assert process.deaths == 1


async def test_a_module_that_does_not_start_says_why(tmp_path: Path) -> None:
    async with ComputeProcess("no.such.module", log_path=tmp_path / "log") as process:
        with pytest.raises(ChildDied, match=r"before it was ready .*ModuleNotFoundError"):
            await process.call("add", a=1, b=1)


async def test_a_call_past_its_time_ends_the_child(process: ComputeProcess) -> None:
    await process.call("add", a=0, b=0)
    pid = process.pid
    assert pid is not None
    with pytest.raises(ChildDied, match=r"sleep took more than 0\.1 s"):
        await process.call("sleep", seconds=30, timeout=0.1)
    assert gone(pid)


async def test_a_cancelled_call_ends_the_child_and_the_next_answer_is_its_own(process: ComputeProcess) -> None:
    call = asyncio.create_task(process.call("sleep", seconds=30))
    await until(lambda: process.pid is not None)
    pid = process.pid
    assert pid is not None
    await asyncio.sleep(0.3)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert gone(pid)
    assert await process.call("add", a=1, b=1) == 2
    assert process.deaths == 0


async def test_closing_ends_the_child_in_the_middle_of_a_call(process: ComputeProcess) -> None:
    await process.call("add", a=0, b=0)
    pid = process.pid
    assert pid is not None
    call = asyncio.create_task(process.call("sleep", seconds=30))
    await asyncio.sleep(0.05)
    await process.close()
    with pytest.raises(ChildDied, match="it was closed"):
        await call
    assert gone(pid)
    assert process.deaths == 0


async def test_the_child_sees_no_secret_of_the_environment(
    process: ComputeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WALLET_PASSWORD", "hunter2")
    seen = await process.call("environment")
    assert "hunter2" not in str(seen)
    assert (seen["OMP_NUM_THREADS"], seen["OMP_WAIT_POLICY"], seen["MKL_NUM_THREADS"]) == ("1", "PASSIVE", "1")
    assert "GRADMARKET_CHANNEL" not in seen


async def test_the_child_is_as_nice_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    async with ComputeProcess(CHILD, log_path=tmp_path / "log", nice=7) as process:
        await process.call("add", a=0, b=0)
        assert process.pid is not None
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == 7


PARENT = f"""
import asyncio, sys
from pathlib import Path
from protocol.runtime.process import ComputeProcess
async def main():
    process = ComputeProcess("{CHILD}", log_path=Path(sys.argv[1]))
    await process.call("add", a=0, b=0)
    print(process.pid, flush=True)
    await process.call(sys.argv[2], seconds=60)
asyncio.run(main())
"""


@pytest.mark.parametrize("busy", ["sleep", "hold"])
async def test_a_killed_parent_takes_its_child_along(tmp_path: Path, busy: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log"), busy],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    await asyncio.sleep(0.1)
    assert not gone(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    await until(lambda: gone(child))
