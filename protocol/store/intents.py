"""What a service has decided and done, so that a restart neither decides it again nor decides otherwise."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlite_utils import Database as Tables

from protocol.store.database import Database
from protocol.store.errors import IntentConflict


class Intents:
    """Key to JSON value. Keys read like paths, e.g. "claim/3/7/12/result"."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, key: str, value: Any) -> None:
        """Write once. Recording the same value again changes nothing; another value raises IntentConflict.

        For what must never be done twice in two ways: a trained result, a salt, a finding.
        """
        data = _encode(value)

        def change(db: Tables) -> None:
            found = _find(db, key)
            if found is not None and found != data:
                raise IntentConflict(f"{key} is recorded as {_short(found)}, refused to record {_short(data)}")
            if found is None:
                db.table("intents").insert({"key": key, "value": data})

        await self._database.write(change)

    async def note(self, key: str, value: Any) -> None:
        """Write or overwrite: for progress, not for decisions."""
        data = _encode(value)
        await self._database.write(lambda db: db.table("intents").insert({"key": key, "value": data}, replace=True))

    async def get(self, key: str) -> Any:
        """The value, or None when nothing is recorded."""
        found = await self._database.read(lambda db: _find(db, key))
        return None if found is None else msgspec.json.decode(found)

    async def under(self, prefix: str) -> dict[str, Any]:
        """Every key that starts with `prefix`, in order."""

        def question(db: Tables) -> list[tuple[str, bytes]]:
            upper = prefix + "\U0010ffff"
            query = "SELECT key, value FROM intents WHERE key >= ? AND key < ? ORDER BY key"
            return list(db.execute(query, [prefix, upper]))

        return {key: msgspec.json.decode(bytes(value)) for key, value in await self._database.read(question)}

    async def forget(self, key: str) -> None:
        """Remove a key, if it is there."""
        await self._database.write(lambda db: db.execute("DELETE FROM intents WHERE key = ?", [key]) and None)


def _find(db: Tables, key: str) -> bytes | None:
    row = db.execute("SELECT value FROM intents WHERE key = ?", [key]).fetchone()
    return None if row is None else bytes(row[0])


def _encode(value: Any) -> bytes:
    # Sorted keys: the same decision is the same bytes.
    return msgspec.json.encode(value, order="sorted")


def _short(data: bytes) -> str:
    text = data.decode()
    return text if len(text) <= 60 else text[:57] + "..."
