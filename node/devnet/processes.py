"""The processes of a demonstration: started, killed, counted. Each is a `gradmarket` command of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from node.devnet.people import Person
from protocol.core.errors import GradmarketError

STOP_SECONDS = 20.0
MIB = 1024  # KiB, as /proc counts


class ProcessEnded(GradmarketError):
    """A process of the demonstration ended although nobody asked it to."""


@dataclass
class Running:
    """One command; `expected` once its end is no surprise."""

    name: str
    process: asyncio.subprocess.Process
    log: Path
    expected: bool = False


@dataclass
class Processes:
    """Everything that runs. `log_folder` takes what each process prints."""

    log_folder: Path
    running: dict[str, Running] = field(default_factory=dict)
    peak_mib: int = 0

    async def start(self, name: str, home: Path, *arguments: str) -> Running:
        """Start `gradmarket --home HOME ARGUMENTS`."""
        self.log_folder.mkdir(parents=True, exist_ok=True)
        log = self.log_folder / f"{name}.log"
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "node.cli", "--home", str(home), *arguments,
                stdin=asyncio.subprocess.DEVNULL, stdout=descriptor, stderr=descriptor,
            )  # fmt: skip
        finally:
            os.close(descriptor)
        running = Running(name, process, log)
        self.running[name] = running
        return running

    async def run(self, name: str, home: Path, *arguments: str) -> str:
        """Run a command to its end and return what it printed; raises ProcessEnded with its last line."""
        running = await self.start(name, home, *arguments)
        running.expected = True
        code = await running.process.wait()
        text = running.log.read_text(errors="replace")
        if code:
            raise ProcessEnded(f"gradmarket {' '.join(arguments)}: exit code {code}: {text.strip().splitlines()[-1:]}")
        return text

    def kill(self, name: str) -> int:
        """SIGKILL, as a power cut would; returns the pid."""
        running = self.running[name]
        running.expected = True
        running.process.kill()
        return running.process.pid

    async def stop(self, name: str) -> None:
        """SIGTERM, then SIGKILL to what does not end."""
        running = self.running.get(name)
        if running is None or running.process.returncode is not None:
            return
        running.expected = True
        with contextlib.suppress(ProcessLookupError):
            running.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(running.process.wait(), STOP_SECONDS)
        except TimeoutError:
            running.process.kill()
            await running.process.wait()

    async def stop_all(self) -> None:
        await asyncio.gather(*(self.stop(name) for name in list(self.running)))

    def check(self) -> None:
        """Raise ProcessEnded when something ended that should run."""
        for running in self.running.values():
            if running.process.returncode is not None and not running.expected:
                last = running.log.read_text(errors="replace").strip().splitlines()[-1:] or ["it printed nothing"]
                raise ProcessEnded(
                    f"{running.name} ended with exit code {running.process.returncode}: {last[0]} (log: {running.log})"
                )

    def measure(self) -> int:
        """MiB that this process and all below it occupy, shared pages counted once; the peak is kept."""
        total = sum(_pss_kib(pid) for pid in _descendants(os.getpid())) // MIB
        self.peak_mib = max(self.peak_mib, total)
        return total


def read_status(person: Person) -> dict[str, object]:
    """What a node wrote last; empty before its first turn."""
    try:
        found: dict[str, object] = msgspec.json.decode((person.home / "status.json").read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
    return found


def _descendants(root: int) -> Iterator[int]:
    """`root` and every process below it (Linux)."""
    yield root
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _descendants(int(child))


def _pss_kib(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
