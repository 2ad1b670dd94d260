"""The transactions of one key that are not settled, by nonce, in memory and in an outbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from protocol.chain.fees import Fees
from protocol.chain.signer import Signed


class Stored(Protocol):
    """What an outbox gives back."""

    @property
    def hash(self) -> str: ...
    @property
    def nonce(self) -> int: ...
    @property
    def purpose(self) -> str: ...
    @property
    def raw(self) -> bytes: ...
    @property
    def max_fee(self) -> int: ...
    @property
    def tip(self) -> int: ...


class Outbox(Protocol):
    """Durable memory of one key on one chain: when `store` returns, a power cut does not lose the transaction."""

    async def store(self, *, hash: str, nonce: int, purpose: str, raw: bytes, max_fee: int, tip: int) -> None: ...

    async def pending(self) -> Sequence[Stored]: ...

    async def finish(
        self, hash: str, outcome: str, *, gas_used: int | None = None, block: int | None = None
    ) -> None: ...

    async def confirmed(self, purpose: str) -> str | None: ...


@dataclass
class Slot:
    """One nonce: one purpose, and the transactions that compete for it, oldest first. At most one can be mined."""

    nonce: int
    purpose: str
    signed: list[Signed] = field(default_factory=list)
    sent_at: float = 0.0  # when it was last sent, and
    priced_at: float = 0.0  # when its newest fees were chosen: monotonic seconds of this process
    trouble: str = ""  # why a node did not want it when it was sent again
    lost: int = 0  # how often in a row the chain's count had passed the nonce and no receipt of ours was found

    @property
    def newest(self) -> Signed:
        return self.signed[-1]


class Journal:
    """Slots by nonce, kept in step with the outbox; the outbox is written first."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.slots: dict[int, Slot] = {}
        self._winners: dict[str, str] = {}  # every settled hash of this process -> the one that was mined

    async def load(self) -> None:
        for row in await self._outbox.pending():
            slot = self.slots.setdefault(row.nonce, Slot(row.nonce, row.purpose))
            if all(known.hash != row.hash for known in slot.signed):
                slot.signed.append(Signed(row.hash, row.raw, Fees(row.max_fee, row.tip)))

    async def add(self, nonce: int, purpose: str, signed: Signed) -> Slot:
        """Store a transaction; only after this may it be sent."""
        await self._outbox.store(
            hash=signed.hash,
            nonce=nonce,
            purpose=purpose,
            raw=signed.raw,
            max_fee=signed.fees.max_fee,
            tip=signed.fees.tip,
        )
        slot = self.slots.setdefault(nonce, Slot(nonce, purpose))
        slot.signed.append(signed)
        return slot

    async def settle(self, slot: Slot, mined: str | None, outcome: str, gas_used: int = 0, block: int = 0) -> None:
        """Close a nonce: `mined` had this outcome, its rivals were replaced; with none mined all were dropped."""
        for signed in slot.signed:
            if mined is None:
                await self._outbox.finish(signed.hash, outcome)
            elif signed.hash == mined:
                await self._outbox.finish(signed.hash, outcome, gas_used=gas_used, block=block)
            else:
                await self._outbox.finish(signed.hash, "replaced")
            if mined is not None:
                self._winners[signed.hash] = mined
        if self.slots.get(slot.nonce) is slot:
            del self.slots[slot.nonce]

    def winner(self, tx_hash: str) -> str:
        """The hash to look up: a replaced transaction's nonce was used by a sibling."""
        return self._winners.get(tx_hash, tx_hash)

    async def confirmed(self, purpose: str) -> str | None:
        """The newest transaction that succeeded for a purpose, of this process or an earlier one."""
        return await self._outbox.confirmed(purpose)

    def of_purpose(self, purpose: str) -> Slot | None:
        return next((slot for slot in self.slots.values() if slot.purpose == purpose), None)

    def of_hash(self, tx_hash: str) -> Slot | None:
        for slot in self.slots.values():
            if any(signed.hash == tx_hash for signed in slot.signed):
                return slot
        return None

    def next_nonce(self, chain_count: int) -> int:
        """The first nonce that neither the chain nor a stored transaction uses."""
        nonce = chain_count
        while nonce in self.slots:
            nonce += 1
        return nonce
