"""The tables, and how a file of an older version becomes one of this version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlite_utils import Database as Tables

from protocol.store.errors import StoreTooNew

Migration = Callable[[Tables], None]


def _first(db: Tables) -> None:
    db.table("outbox").create(
        {
            "hash": str,  # 0x hex of the signed transaction
            "chain": str,  # chain id and genesis: a reset dev chain is another chain
            "sender": str,
            "nonce": int,
            "purpose": str,
            "raw": bytes,  # signed: sent as it is, after any number of restarts
            "max_fee": str,  # wei per gas; text, as 2**63 is not enough for every chain
            "tip": str,
            "outcome": str,  # pending, confirmed, reverted, replaced, dropped
            "gas_used": int,
            "block": int,
        },
        pk="hash",
        not_null={"chain", "sender", "nonce", "purpose", "raw", "outcome"},
    )
    db.table("outbox").create_index(["chain", "sender", "outcome", "nonce"])
    db.table("intents").create({"key": str, "value": bytes}, pk="key", not_null={"value"})
    db.table("cursors").create({"name": str, "value": bytes}, pk="name", not_null={"value"})


MIGRATIONS: tuple[Migration, ...] = (_first,)


def migrate(db: Tables, path: Path) -> None:
    """Bring the file to the newest schema, each step and its version number in one transaction."""
    have = int(db.execute("PRAGMA user_version").fetchone()[0])
    if have > len(MIGRATIONS):
        raise StoreTooNew(path, have, len(MIGRATIONS))
    for version, step in enumerate(MIGRATIONS[have:], start=have + 1):
        with db.atomic():
            step(db)
            db.execute(f"PRAGMA user_version = {version}")
