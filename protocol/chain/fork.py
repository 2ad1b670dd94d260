"""Notices when the chain has given up blocks that a reader had built upon."""

from __future__ import annotations

from collections import deque

from web3.exceptions import BlockNotFound

from protocol.chain.connection import Connection, Head

DEPTH = 64  # blocks: what lies deeper is never given up


class ForkWatch:
    """Remembers the newest heads; a provider that lags has given nothing up."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._seen: deque[Head] = deque(maxlen=DEPTH)

    async def has_forked(self, head: Head) -> bool:
        """Whether what was read up to the last remembered head may no longer hold; then all heads are forgotten."""
        known = next((seen for seen in reversed(self._seen) if seen.number <= head.number), None)
        if known is None:
            gone = bool(self._seen)  # further back than memory goes
        elif known.number == head.number:
            gone = known.hash != head.hash
        else:
            try:
                gone = (await self._connection.head(known.number)).hash != known.hash
            except BlockNotFound:
                gone = False
        if gone:
            self._seen.clear()
        return gone

    async def remember(self) -> None:
        """To be called after reading: the newest block that it may have rested on."""
        head = await self._connection.head()
        if not self._seen or head.number > self._seen[-1].number:
            self._seen.append(head)
