"""The state folder: one process, one writer, nothing half written."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlite_utils import Database as Tables

from protocol.store.cursor import Cursors
from protocol.store.database import Database, open_store
from protocol.store.errors import (
    AlreadyRunning,
    IntentConflict,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreTooNew,
    StoreUnwritable,
)
from protocol.store.intents import Intents
from protocol.store.outbox import Outbox


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    made = Database(tmp_path / "state.sqlite")
    yield made
    made.close()


def count(db: Tables) -> int:
    return int(db.execute("SELECT count(*) FROM intents").fetchone()[0])


async def test_concurrent_writes_all_arrive(database: Database) -> None:
    intents = Intents(database)
    await asyncio.gather(*(intents.note(f"key/{i}", i) for i in range(300)))
    assert await database.read(count) == 300


async def test_a_write_that_fails_changes_nothing_and_harms_no_other(database: Database) -> None:
    intents = Intents(database)

    def half(db: Tables) -> None:
        db.table("intents").insert({"key": "half", "value": b"1"})
        raise RuntimeError("in the middle")

    outcomes = await asyncio.gather(
        intents.note("before", 1), database.write(half), intents.note("after", 2), return_exceptions=True
    )
    assert [type(one) for one in outcomes] == [type(None), RuntimeError, type(None)]
    assert await intents.under("") == {"after": 2, "before": 1}


async def test_a_cancelled_wait_still_writes(database: Database) -> None:
    intents = Intents(database)
    writing = asyncio.ensure_future(intents.record("salt", "abc"))
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    await intents.note("later", 1)
    assert await intents.get("salt") == "abc"


async def test_a_decision_is_recorded_once_and_for_all(database: Database) -> None:
    intents = Intents(database)
    await intents.record("claim/1/2/3/result", {"payload": "aa", "loss": 3})
    await intents.record("claim/1/2/3/result", {"loss": 3, "payload": "aa"})
    with pytest.raises(IntentConflict, match="claim/1/2/3/result is recorded as"):
        await intents.record("claim/1/2/3/result", {"payload": "bb", "loss": 3})
    assert await intents.get("claim/1/2/3/result") == {"payload": "aa", "loss": 3}
    await intents.forget("claim/1/2/3/result")
    assert await intents.get("claim/1/2/3/result") is None


async def test_keys_are_found_by_their_beginning(database: Database) -> None:
    intents = Intents(database)
    for key in ("claim/1/a", "claim/1/b", "claim/10/a", "clai", "d"):
        await intents.note(key, key)
    assert list(await intents.under("claim/1/")) == ["claim/1/a", "claim/1/b"]


async def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    async with open_store(tmp_path) as database:
        await Intents(database).record("a", [1, "x"])
        await Cursors(database).save("follower", b"\x01\x02")
        await Outbox(database, "c", "s").store(hash="0x1", nonce=7, purpose="p:1", raw=b"r", max_fee=2**70, tip=1)
    async with open_store(tmp_path) as database:
        assert await Intents(database).get("a") == [1, "x"]
        assert await Cursors(database).load("follower") == b"\x01\x02"
        (row,) = await Outbox(database, "c", "s").pending()
        assert (row.nonce, row.raw, row.max_fee) == (7, b"r", 2**70)
        assert await Outbox(database, "other chain", "s").pending() == []


async def test_a_second_process_on_the_same_folder_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    async with open_store(tmp_path):
        with pytest.raises(AlreadyRunning, match=f"in use by process {os.getpid()}"):
            async with open_store(tmp_path):
                pass
    async with open_store(tmp_path):
        pass  # the first has gone


HOLD = """
import asyncio, sys
from pathlib import Path
from protocol.store.database import open_store
from protocol.store.intents import Intents
async def main():
    async with open_store(Path(sys.argv[1])) as database:
        for number in range(10**9):
            await Intents(database).note("n", number)
            print(number, flush=True)
asyncio.run(main())
"""


async def test_a_kill_leaves_no_lock_and_every_finished_write(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while int(child.stdout.readline()) < 20:
        pass
    child.send_signal(signal.SIGKILL)
    last = int(("19\n" + child.stdout.read()).split("\n")[-2])
    child.wait()
    async with open_store(tmp_path) as database:
        assert await Intents(database).get("n") >= last


FILL = """
import asyncio, os, sys
from pathlib import Path
from protocol.core.errors import GradmarketError
from protocol.store.database import open_store
from protocol.store.intents import Intents
async def main():
    async with open_store(Path(sys.argv[1])) as database:
        done = 0
        try:
            for done in range(10**6):
                await Intents(database).record(f"k/{done:06}", os.urandom(2000).hex())
        except GradmarketError as error:
            print(type(error).__name__, done, error)
asyncio.run(main())
"""


async def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    child = subprocess.run(
        [sys.executable, "-c", FILL, str(tmp_path)], capture_output=True, text=True, preexec_fn=small_files, check=False
    )
    name, done, line = child.stdout.strip().split(" ", 2)
    assert name == StoreFull.__name__ and "disk full" in line and child.stderr == ""
    async with open_store(tmp_path) as database:
        assert len(await Intents(database).under("k/")) == int(done) > 10
        await Intents(database).note("more", 1)


async def test_a_file_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    Database(tmp_path / "state.sqlite").close()
    connection = sqlite3.connect(tmp_path / "state.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreTooNew, match="has schema 99, this program knows up to 1"):
        Database(tmp_path / "state.sqlite")


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_text("something else" * 100)
    with pytest.raises(StoreCorrupt, match=r"state\.sqlite: .*move the file away"):
        Database(tmp_path / "state.sqlite")


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritable, match=r"state folder .*file/state: "):
        async with open_store(tmp_path / "file" / "state"):
            pass


async def test_a_closed_store_takes_no_more(tmp_path: Path) -> None:
    database = Database(tmp_path / "state.sqlite")
    database.close()
    with pytest.raises(StoreError, match="closed"):
        await Intents(database).note("a", 1)
