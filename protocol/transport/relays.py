"""Asks drand's HTTP relays for a round. None of them is believed: one that lies only costs a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from protocol.core.beacon import QUICKNET, BadSignature, proof_of_round
from protocol.transport.client import BlobClient
from protocol.transport.errors import PeerFailed

# docs.drand.love, developer/http-api: several hands, of whom one is enough
PUBLIC_RELAYS: Final = (
    "https://api.drand.sh",
    "https://api2.drand.sh",
    "https://api3.drand.sh",
    "https://drand.cloudflare.com",
)
MOST_BYTES: Final = 4096  # an answer has about 300
SECONDS: Final = 10.0


class Relays:
    """Base URLs, asked in turn through the peers' client and its address policy."""

    def __init__(self, client: BlobClient, urls: Sequence[str]) -> None:
        self.urls = tuple(urls)
        self._client = client

    async def proofs(self, round: int, reasons: dict[str, str]) -> AsyncIterator[tuple[str, bytes]]:
        """Each relay's URL and what it takes for the round's signature, as the contract wants it.

        Ask for the next one when the chain refuses it. `reasons` collects why the others gave nothing.
        """
        for url in self.urls:
            try:
                async with asyncio.timeout(SECONDS):
                    answer = await self._client.call(url, f"/{QUICKNET}/public/{round}", max_bytes=MOST_BYTES)
                yield url, proof_of_round(round, answer)
            except TimeoutError:
                reasons[url] = f"no answer in {SECONDS:.0f} s"
            except (PeerFailed, BadSignature) as error:
                reasons[url] = str(error)
