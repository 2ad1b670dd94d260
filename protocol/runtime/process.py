"""A long-lived child process that computes, so that a dead GPU context or a full memory ends it and nothing else.

The child gets no keys and no network: a nearly empty environment, a socket pair and whatever paths a call names.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from protocol.runtime.channel import (
    CHANNEL,
    LENGTH_BYTES,
    MAX_FRAME_BYTES,
    Answer,
    Call,
    Failure,
    Progress,
    Ready,
    decode_answer,
    encode_frame,
)
from protocol.runtime.errors import ChildDied, ChildFailed

PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "MKL_NUM_THREADS": "1"}

LOG_BYTES: Final = 2**24  # 16 MiB: then the next child starts a new file and one old one is kept

OnProgress = Callable[[dict[str, Any]], None]


@dataclass
class _Running:
    process: Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class ComputeProcess:
    """Starts `python -m module` at the first call; the module ends in `protocol.runtime.child.serve(handlers)`.

    One call at a time, others wait their turn. `heard` is called with every sign of life of a running call. `deaths`
    counts the ends that nobody asked for. After a death the next
    call waits 1, 2, 4 … 60 s before it starts a new child, until a call succeeds.
    """

    def __init__(
        self,
        module: str,
        *,
        log_path: Path,
        env: Mapping[str, str] | None = None,
        nice: int = 0,
        start_seconds: float = 120.0,
        backoff_seconds: float = 1.0,
    ) -> None:
        self.deaths = 0
        self.heard: Callable[[], None] = lambda: None
        self._module, self._log_path, self._env, self._nice = module, log_path, dict(env or {}), nice
        self._start_seconds, self._backoff_seconds = start_seconds, backoff_seconds
        self._deaths_in_row, self._not_before = 0, 0.0
        self._running: _Running | None = None
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        return self._running.process.pid if self._running else None

    async def call(
        self,
        method: str,
        /,
        *,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
        **params: Any,
    ) -> Any:
        """The handler's value. Raises ChildFailed when it raised, ChildDied when the process ended or was too slow.

        A cancelled call ends the child: there is no other way to stop a computation, and the next call starts anew.
        """
        frame = encode_frame(Call(method, params))
        async with self._turn:
            running = await self._started()
            try:
                async with asyncio.timeout(timeout):
                    answer = await self._exchange(running, frame, on_progress)
            except TimeoutError:
                raise await self._died(running, f"{method} took more than {timeout:g} s and was ended") from None
            except (OSError, EOFError) as error:  # IncompleteReadError is an EOFError
                raise await self._died(running, f"it ended during {method}", grace=0.5) from error
            except BaseException:  # cancelled, or on_progress raised: the rest of the answer must not meet a later call
                await asyncio.shield(self._end())
                raise
            self._deaths_in_row = 0
        if isinstance(answer, Failure):
            raise ChildFailed(method, answer.kind, answer.message)
        return answer.value

    async def close(self) -> None:
        """End the child, in the middle of a call if need be. The object can be used again."""
        await self._end()

    async def __aenter__(self) -> "ComputeProcess":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _exchange(self, running: _Running, frame: bytes, on_progress: OnProgress | None) -> Any:
        running.writer.write(frame)
        await running.writer.drain()
        while isinstance(answer := await _receive(running.reader), Progress):
            self.heard()
            if on_progress is not None:
                on_progress(answer.data)
        return answer

    async def _started(self) -> _Running:
        if self._running is not None:
            if self._running.process.returncode is None:
                return self._running
            await self._died(self._running, "it ended while it was idle")
        await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
        self._running = running = await self._spawn()
        try:
            async with asyncio.timeout(self._start_seconds):
                ready = await _receive(running.reader)
        except TimeoutError:
            raise await self._died(running, f"it was not ready after {self._start_seconds:g} s") from None
        except (OSError, EOFError) as error:
            raise await self._died(running, "it ended before it was ready", grace=0.5) from error
        except asyncio.CancelledError:
            await asyncio.shield(self._end())
            raise
        assert isinstance(ready, Ready)
        return running

    async def _spawn(self) -> _Running:
        ours, theirs = socket.socketpair()
        with theirs, self._opened_log() as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-u",
                "-m",
                self._module,
                env=self._environment(theirs.fileno()),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for the parent, which then closes the child in order
            )
        if self._nice:
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, process.pid, self._nice)
        reader, writer = await asyncio.open_connection(sock=ours)
        return _Running(process, reader, writer)

    def _environment(self, channel: int) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("PYTHON")}
        return {**kept, **ONE_THREAD, **self._env, CHANNEL: str(channel)}

    def _opened_log(self) -> IO[bytes]:
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if self._log_path.stat().st_size > LOG_BYTES:
                self._log_path.replace(self._log_path.with_name(self._log_path.name + ".1"))
        return self._log_path.open("ab")

    async def _end(self) -> int | None:
        """Kill the child and wait for it; its exit status, negative for a signal."""
        running, self._running = self._running, None
        if running is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            running.process.kill()
        running.writer.close()
        return await running.process.wait()

    async def _died(self, running: _Running, what: str, *, grace: float = 0.0) -> ChildDied:
        """Count the death, set the back-off, and say how the child ended and what it said last.

        grace: seconds for a child that has closed its channel to end by itself, so that its own status is told.
        """
        if self._running is not running:
            return ChildDied(f"compute process {self._module}: it was closed, {what}")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(running.process.wait(), grace)
        ending = _status(await self._end())
        self.deaths += 1
        self._deaths_in_row += 1
        pause = min(60.0, self._backoff_seconds * 2 ** min(self._deaths_in_row - 1, 30))
        self._not_before = time.monotonic() + pause
        last = _last_line(self._log_path)
        return ChildDied(
            f"compute process {self._module}: {what} ({ending}; {last}); a new one starts in {pause:g} s or later"
        )


async def _receive(reader: asyncio.StreamReader) -> Answer:
    length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    if length > MAX_FRAME_BYTES:
        raise EOFError(f"frame of {length} bytes")
    try:
        return decode_answer(await reader.readexactly(length))
    except msgspec.DecodeError as error:
        raise EOFError(f"frame that is no answer: {error}") from error


def _status(status: int | None) -> str:
    if status is None or status >= 0:
        return f"exit status {status}"
    return f"signal {signal.Signals(-status).name}"


def _last_line(path: Path) -> str:
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
        if lines := file.read().decode("utf-8", "replace").split("\n")[:-1]:
            return f"its log ends with {lines[-1][:200]!r}"
    return f"its log {path} is empty"
