"""Transactions that wait for a block, with the rules and words of geth's pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class PoolError(Exception):
    """A transaction that the pool does not take."""


class Pool:
    """By sender and nonce; later nonces wait for the missing ones."""

    def __init__(self) -> None:
        self._by_sender: dict[bytes, dict[int, Any]] = {}

    def add(self, transaction: Any, next_nonce: int) -> None:
        """`next_nonce`: the first that the sender has not used on chain."""
        if transaction.nonce < next_nonce:
            raise PoolError(f"nonce too low: next nonce {next_nonce}, tx nonce {transaction.nonce}")
        waiting = self._by_sender.setdefault(bytes(transaction.sender), {})
        old = waiting.get(transaction.nonce)
        if old is not None:
            if old.hash == transaction.hash:
                raise PoolError("already known")
            if not _outbids(transaction, old):
                raise PoolError("replacement transaction underpriced")
        waiting[transaction.nonce] = transaction

    def remove(self, transaction: Any) -> None:
        """Forget a nonce: whatever waited under it can no longer be mined."""
        waiting = self._by_sender.get(bytes(transaction.sender), {})
        waiting.pop(transaction.nonce, None)

    def find(self, tx_hash: bytes) -> Any | None:
        return next((t for waiting in self._by_sender.values() for t in waiting.values() if t.hash == tx_hash), None)

    def pending_nonce(self, sender: bytes, next_nonce: int) -> int:
        """The first nonce after those that are on chain or wait without a gap."""
        waiting = self._by_sender.get(sender, {})
        while next_nonce in waiting:
            next_nonce += 1
        return next_nonce

    def ready(self, nonce_of: Callable[[bytes], int], base_fee: int) -> Iterator[Any]:
        """What a block may take now, each sender's in order of nonce."""
        for sender, waiting in self._by_sender.items():
            nonce = nonce_of(sender)
            while nonce in waiting and waiting[nonce].max_fee_per_gas >= base_fee:
                yield waiting[nonce]
                nonce += 1


def _outbids(new: Any, old: Any) -> bool:
    """Geth's rule: both fees at least 10 % higher."""
    return bool(
        new.max_fee_per_gas * 10 >= old.max_fee_per_gas * 11
        and new.max_priority_fee_per_gas * 10 >= old.max_priority_fee_per_gas * 11
    )
