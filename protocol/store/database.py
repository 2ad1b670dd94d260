"""SQLite in WAL mode with one writer thread: concurrent writes share one commit, and so one fsync."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlite_utils import Database as Tables

from protocol.store.errors import StoreError, explain
from protocol.store.lock import lock_folder
from protocol.store.schema import migrate

T = TypeVar("T")
MAX_GROUP = 256  # writes that may share a commit
_Write = tuple[Callable[[Tables], Any], "Future[Any]"]


class Database:
    """`write` and `read` take a function of sqlite-utils' Database, run in another thread.

    A write is durable when it returns: the commit was synced. A write that raises changes nothing, and neither
    harms the others of its group nor the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        try:
            self._writer = _open(path)
            try:
                migrate(self._writer, path)
            except BaseException:
                self._writer.close()
                raise
            self._reader = _open(path)
        except sqlite3.Error as error:
            raise explain(error, path) from error
        self._reads = ThreadPoolExecutor(1, thread_name_prefix="store-read")
        self._thread = threading.Thread(target=self._work, name="store-write", daemon=True)
        self._thread.start()
        self._closed = False

    async def write(self, change: Callable[[Tables], T]) -> T:
        """Run `change` in a transaction and return its value once it is on disk. A cancelled wait still writes."""
        if self._closed:
            raise StoreError(f"{self.path}: the store is closed")
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # from here on nobody can take the write back
        self._queue.put((change, future))
        return await asyncio.shield(asyncio.wrap_future(future))

    async def read(self, question: Callable[[Tables], T]) -> T:
        """Run `question` on committed state."""
        return await asyncio.get_running_loop().run_in_executor(self._reads, self._ask, question)

    def _ask(self, question: Callable[[Tables], T]) -> T:
        try:
            return question(self._reader)
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def close(self) -> None:
        """Finish what was handed in, then close."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self._reads.shutdown()
        self._reader.close()
        self._writer.close()

    def _work(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            group, last = [first], False
            while len(group) < MAX_GROUP and not self._queue.empty():
                item = self._queue.get()
                if item is None:
                    last = True
                    break
                group.append(item)
            self._commit(group)
            if last:
                return

    def _commit(self, group: list[_Write]) -> None:
        results: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with self._writer.atomic():
                results = [(future, *self._apply(change)) for change, future in group]
        except sqlite3.Error as error:
            # The transaction is gone as a whole: no write of the group happened.
            for _, future in group:
                future.set_exception(explain(error, self.path))
            return
        for future, value, failure in results:
            if failure is None:
                future.set_result(value)
            else:
                future.set_exception(failure)

    def _apply(self, change: Callable[[Tables], Any]) -> tuple[Any, BaseException | None]:
        """One write in a savepoint of its own. A fault of the disk ends the group; any other fault only itself."""
        try:
            with self._writer.atomic():
                return change(self._writer), None
        except sqlite3.OperationalError as error:
            if not self._writer.conn.in_transaction:
                raise
            return None, explain(error, self.path)
        except sqlite3.Error as error:
            return None, explain(error, self.path)
        except Exception as error:  # whatever the caller's function raised goes back to the caller
            return None, error


def _open(path: Path) -> Tables:
    connection = sqlite3.connect(path, check_same_thread=False, timeout=10.0)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a returned write survives a power cut
        return Tables(connection)
    except BaseException:
        connection.close()
        raise


@asynccontextmanager
async def open_store(folder: Path) -> AsyncIterator[Database]:
    """Lock a state folder and open its database. Raises AlreadyRunning, StoreUnwritable, StoreFull, StoreTooNew."""
    with ExitStack() as stack:
        stack.enter_context(lock_folder(folder))
        database = Database(folder / "state.sqlite")
        stack.callback(database.close)
        yield database
