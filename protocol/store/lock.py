"""One process per state folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from protocol.store.errors import AlreadyRunning, StoreUnwritable


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold `folder`/lock while the body runs; raises AlreadyRunning with the holder's pid.

    flock: the kernel drops it with the process, so a kill -9 leaves nothing to clean up.
    """
    path = folder / "lock"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreUnwritable(f"state folder {folder}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(folder, _pid(descriptor)) from None
        os.ftruncate(descriptor, 0)
        with contextlib.suppress(OSError):  # the pid is a courtesy; a full disk must not stop the start here
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether a process works in this state folder now."""
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None
