"""What the chain says of a market's beacon: which kind it is, and which tickets give no seed yet."""

from __future__ import annotations

from collections.abc import Iterable

from protocol.chain.connection import Head
from protocol.chain.errors import Reverted
from protocol.chain.market import Market
from protocol.core.beacon import PROVEN, Unread, has_happened, moment_of, needs_proof


class SeedReader:
    """Asks nothing where the beacon needs no proofs. Nothing is remembered: a reorg can take a proof back."""

    def __init__(self, market: Market) -> None:
        self._market = market

    @property
    def needs_proofs(self) -> bool:
        return self._market.beacon_kind in PROVEN

    async def unread(self, tickets: Iterable[int], head: Head) -> dict[int, Unread]:
        """Those that give no seed yet, and why. Expired ones are left out: who draws next replaces them."""
        found = {}
        for ticket in tickets:
            why = await self._why(ticket, head)
            if why is not None:
                found[ticket] = why
        return found

    async def _why(self, ticket: int, head: Head) -> Unread | None:
        moment = moment_of(ticket)
        if not needs_proof(ticket):
            return Unread.TO_COME if head.number <= moment else None
        if not has_happened(self._market.beacon_kind, moment, head.number, head.timestamp):
            return Unread.TO_COME
        beacon = self._market.block_beacon.functions
        try:
            if any(await self._market.call(beacon.outcomeOf(moment))):
                return None
            return None if await self._market.call(beacon.expired(ticket)) else Unread.UNPROVED
        except Reverted:  # no ticket of this beacon: whoever draws with it is told
            return None
