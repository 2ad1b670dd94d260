"""Who makes a move that anyone may make: all would pay gas for it, one is enough, and that one may be dead."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence

from protocol.core.operator import Operator
from verifier.actions import Action

SECONDS_PER_RANK = 2.0
MOST_RANK = 8  # registering costs no stake: a thousand names must not make the honest wait


class Duty:
    """Ranks the operators anew for each move; each waits two seconds a rank for those before it."""

    def __init__(self, me: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._me, self._clock = me, clock
        self._first_seen: dict[str, float] = {}

    def choose(self, due: Iterable[Action], operators: Sequence[Operator]) -> list[Action]:
        """Of the due moves those that are ours to make now. Forgets moves that are no longer due."""
        moves = {move.key: move for move in due}
        now = self._clock()
        self._first_seen = {key: self._first_seen.get(key, now) for key in moves}
        addresses = [operator.address for operator in operators]
        waited = {key: now - seen for key, seen in self._first_seen.items()}
        return [move for key, move in moves.items() if waited[key] >= SECONDS_PER_RANK * self._rank(key, addresses)]

    def _rank(self, key: str, addresses: Sequence[str]) -> int:
        def order(address: str) -> bytes:
            return hashlib.sha256(f"{key} {address}".encode()).digest()

        mine = order(self._me)
        return min(MOST_RANK, sum(order(address) < mine for address in addresses))
