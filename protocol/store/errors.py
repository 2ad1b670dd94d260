"""What can go wrong with the state folder, each as one line."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from protocol.core.errors import GradmarketError


class StoreError(GradmarketError):
    """The root of everything that protocol.store raises on purpose."""


class AlreadyRunning(StoreError):
    """Another process works on this state folder."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        self.folder, self.pid = folder, pid
        who = f"process {pid}" if pid else "another process"
        super().__init__(f"state folder {folder} is in use by {who}: stop it, or give this one another --home")


class StoreFull(StoreError):
    """Nothing more can be written; what was written before is intact."""


class StoreUnwritable(StoreError):
    """The state folder cannot be made, opened or written."""


class StoreCorrupt(StoreError):
    """The file is no database of ours. It is a cache, cursor and outbox: the chain has the rest."""


class StoreTooNew(StoreError):
    """A newer version of this program wrote the file."""

    def __init__(self, path: Path, have: int, known: int) -> None:
        self.have, self.known = have, known
        super().__init__(f"{path} has schema {have}, this program knows up to {known}: update gradmarket")


class IntentConflict(StoreError):
    """A decision was recorded before and says something else."""


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    """sqlite's error as ours, by its code."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary code
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"{path}: the disk is full: free some space and start again; nothing was lost")
    if code == sqlite3.SQLITE_IOERR:
        return StoreFull(f"{path}: cannot write ({error}): is the disk full? what was stored before is intact")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreUnwritable(f"{path}: cannot write ({error}): check the folder's owner and mode")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorrupt(f"{path}: {error}: move the file away and start again; the chain has the rest")
    return StoreError(f"{path}: {error}")
