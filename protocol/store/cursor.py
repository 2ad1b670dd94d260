"""Where a follower stands."""

from __future__ import annotations

from sqlite_utils import Database as Tables

from protocol.store.database import Database


class Cursors:
    """Named positions; what the bytes mean is the follower's affair."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, name: str) -> bytes | None:
        def question(db: Tables) -> bytes | None:
            row = db.execute("SELECT value FROM cursors WHERE name = ?", [name]).fetchone()
            return None if row is None else bytes(row[0])

        return await self._database.read(question)

    async def save(self, name: str, value: bytes) -> None:
        row = {"name": name, "value": value}
        await self._database.write(lambda db: db.table("cursors").insert(row, replace=True))
