"""Signed transactions, stored before they are sent: after a crash the same bytes go out again, never new ones."""

from __future__ import annotations

from dataclasses import dataclass

from sqlite_utils import Database as Tables

from protocol.store.database import Database

_COLUMNS = "hash, nonce, purpose, raw, max_fee, tip"


@dataclass(frozen=True)
class StoredTransaction:
    """A signed transaction that is not settled yet. Fees in wei per gas."""

    hash: str
    nonce: int
    purpose: str
    raw: bytes
    max_fee: int
    tip: int


@dataclass(frozen=True)
class GasUse:
    """Gas of the mined transactions of one kind."""

    count: int
    total: int
    largest: int


class Outbox:
    """The journal of one chain and one key; `chain` is a connection's key, `sender` an address."""

    def __init__(self, database: Database, chain: str, sender: str) -> None:
        self._database, self._chain, self._sender = database, chain, sender

    async def store(self, *, hash: str, nonce: int, purpose: str, raw: bytes, max_fee: int, tip: int) -> None:
        """Remember a transaction before it is sent; again, if the chain gave up the block that it had been in."""
        row = {
            "hash": hash,
            "chain": self._chain,
            "sender": self._sender,
            "nonce": nonce,
            "purpose": purpose,
            "raw": raw,
            "max_fee": str(max_fee),
            "tip": str(tip),
            "outcome": "pending",
        }
        await self._database.write(lambda db: db.table("outbox").insert(row, replace=True))

    async def pending(self) -> list[StoredTransaction]:
        """Everything without an outcome, by nonce, in the order it was signed."""

        def question(db: Tables) -> list[StoredTransaction]:
            rows = db.execute(
                f"SELECT {_COLUMNS} FROM outbox WHERE chain = ? AND sender = ? AND outcome = 'pending' "
                "ORDER BY nonce, rowid",
                [self._chain, self._sender],
            )
            return [StoredTransaction(h, n, p, bytes(raw), int(fee), int(tip)) for h, n, p, raw, fee, tip in rows]

        return await self._database.read(question)

    async def finish(self, hash: str, outcome: str, *, gas_used: int | None = None, block: int | None = None) -> None:
        """Record how it ended: confirmed, reverted, replaced or dropped."""
        change = {"outcome": outcome, "gas_used": gas_used, "block": block}
        await self._database.write(lambda db: db.table("outbox").update(hash, change))

    async def confirmed(self, purpose: str) -> str | None:
        """The hash of the newest transaction of a purpose that was mined and succeeded."""

        def question(db: Tables) -> str | None:
            rows = db.execute(
                "SELECT hash FROM outbox WHERE chain = ? AND sender = ? AND purpose = ? AND outcome = 'confirmed' "
                "ORDER BY rowid DESC LIMIT 1",
                [self._chain, self._sender, purpose],
            )
            return next((str(row[0]) for row in rows), None)

        return await self._database.read(question)

    async def gas_by_kind(self) -> dict[str, GasUse]:
        """Gas used by kind of purpose: the part before the first colon."""

        def question(db: Tables) -> dict[str, GasUse]:
            rows = db.execute(
                "SELECT substr(purpose, 1, instr(purpose || ':', ':') - 1) AS kind, count(*), sum(gas_used), "
                "max(gas_used) FROM outbox WHERE chain = ? AND sender = ? AND gas_used IS NOT NULL GROUP BY kind",
                [self._chain, self._sender],
            )
            return {kind: GasUse(count, total, largest) for kind, count, total, largest in rows}

        return await self._database.read(question)
