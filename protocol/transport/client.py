"""Fetches blobs by digest from peers that may lie, stall, shrink, swell or leave.

One source is used at a time, with several requests at once; what was verified is kept when the next source, or the
next process, goes on. A chunk list is a peer's claim: it finds a bad source early, but only the sha256 of the whole
decides.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from protocol.transport.addresses import PUBLIC, AddressPolicy
from protocol.transport.blobs import CHUNK_BYTES, BlobStore, check_digest
from protocol.transport.errors import BlobTooLarge, PeerFailed, Unavailable, WrongDigest
from protocol.transport.partial import Partial
from protocol.transport.peer import DEFAULT_LIMITS, FetchLimits, PeerSession, check_status
from protocol.transport.signing import RequestSigner
from protocol.transport.source import Source, Want
from protocol.transport.traffic import Traffic

MOST_SOURCES: Final = 12  # asked in one fetch, beside the first
EMPTY_DIGEST: Final = hashlib.sha256(b"").hexdigest()


class BlobClient:
    """Use as `async with`, or `close()` it. `strikes` counts each source's faults since its last success."""

    def __init__(
        self,
        store: BlobStore,
        policy: AddressPolicy = PUBLIC,
        *,
        limits: FetchLimits = DEFAULT_LIMITS,
        traffic: Traffic | None = None,
    ) -> None:
        self.traffic = traffic if traffic is not None else Traffic()
        self.strikes: Counter[str] = Counter()
        self._store, self._limits = store, limits
        self._peers = PeerSession(policy, limits)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._turn = 0

    async def fetch(
        self,
        digest: str,
        sources: Sequence[str],
        *,
        max_bytes: int,
        kind: str = "other",
        signer: RequestSigner | None = None,
        timeout: float | None = None,
        first: str | None = None,
    ) -> Path:
        """The path of the whole, verified blob in the store; `sources` are base URLs, of peers or of static servers.

        `first` is asked first and has half of the time; then some of the others, and always the last one.

        Raises Unavailable with a reason per source, BlobTooLarge when the store's own copy is above `max_bytes`,
        DiskFull. `timeout` (seconds) is shared out among the sources, so that a slow one cannot eat it all.
        """
        lock = self._locks.setdefault(check_digest(digest), asyncio.Lock())
        async with lock:
            if digest == EMPTY_DIGEST:
                self._store.put(b"", kind=kind)
            if not self._store.has(digest):
                return await self._fetch(Want(digest, max_bytes, kind, signer), sources, timeout, first)
            if (size := self._store.size(digest)) > max_bytes:
                raise BlobTooLarge(f"blob {digest[:12]}… has {size} bytes, expected at most {max_bytes}")
            return self._store.path(digest)

    async def call(
        self,
        source: str,
        path: str,
        *,
        method: str = "GET",
        body: bytes = b"",
        max_bytes: int = 2**20,
        signer: RequestSigner | None = None,
    ) -> bytes:
        """One request to a route that a peer's application mounted; PeerFailed unless it answers 200."""
        reply = await self._peers.request(source, path, method=method, body=body, max_bytes=max_bytes, signer=signer)
        check_status(reply)
        return reply.body

    async def close(self) -> None:
        await self._peers.close()

    async def __aenter__(self) -> "BlobClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _fetch(self, want: Want, sources: Sequence[str], timeout: float | None, first: str | None) -> Path:
        clock = asyncio.get_running_loop().time
        ends = None if timeout is None else clock() + timeout
        reasons: dict[str, str] = {}
        waiting = self._ordered(sources, first)
        for number in range(self._limits.passes):
            await asyncio.sleep(self._limits.pause_seconds if number else 0)
            again = []
            for index, source in enumerate(waiting):
                parts = 2 if source == first and len(waiting) > 1 else len(waiting) - index
                share = None if ends is None else max(0.0, ends - clock()) / parts
                try:
                    path = await self._bounded(source, want, share)
                except (PeerFailed, WrongDigest) as failed:
                    reasons[source] = str(failed)
                    again += [source] * (isinstance(failed, PeerFailed) and failed.transient)
                    self.strikes[source] += not isinstance(failed, PeerFailed) or failed.blame
                else:
                    del self.strikes[source]
                    return path
            waiting = again
        raise Unavailable(want.digest, reasons)

    def _ordered(self, sources: Sequence[str], first: str | None) -> list[str]:
        """Fewest strikes first; among equals each fetch starts with another one, to spread the load.

        Not all of them: names cost nothing, and a thousand that stall must not use up the time of who has the blob.
        """
        known = [source for source in dict.fromkeys(sources) if source != first]
        self._turn += 1
        turn = self._turn % len(known) if known else 0
        turned = sorted(known[turn:] + known[:turn], key=lambda source: self.strikes[source])
        chosen = turned if len(turned) <= MOST_SOURCES else [*turned[: MOST_SOURCES - 1], known[-1]]
        return [*([first] if first else []), *dict.fromkeys(chosen)]

    async def _bounded(self, source: str, want: Want, share: float | None) -> Path:
        slowest = self._limits.chunk_seconds + want.max_bytes / self._limits.slowest_rate
        try:
            async with asyncio.timeout(slowest if share is None else min(share, slowest)):
                return await self._fetch_from(source, want)
        except TimeoutError:
            raise PeerFailed("too slow for the time there was", transient=False, blame=True) from None

    async def _fetch_from(self, url: str, want: Want) -> Path:
        source = Source(self._peers, url, want, self.traffic)
        first, size = await source.chunk(0)
        if size <= CHUNK_BYTES:
            if hashlib.sha256(first).hexdigest() != want.digest:
                raise WrongDigest(f"sent {size} bytes that are not the blob")
            await asyncio.to_thread(self._store.put, first, kind=want.kind)
            return self._store.path(want.digest)
        chunks = await source.chunk_list(size)
        with await asyncio.to_thread(Partial, self._store, want.digest, size) as partial:
            inherited = any(partial.digests)
            await self._fill(source, partial, chunks, first)
            try:
                return await self._adopt(partial, want)
            except WrongDigest:
                if chunks is not None or not inherited:
                    raise WrongDigest(f"sent {size} bytes that are not the blob") from None
            # A static server has no chunk list to show which inherited chunk is bad: all of it, once more.
            partial.reset()
            await self._fill(source, partial, None, first)
            return await self._adopt(partial, want)

    async def _adopt(self, partial: Partial, want: Want) -> Path:
        return await asyncio.to_thread(self._store.adopt, partial.path, want.digest, kind=want.kind)

    async def _fill(self, source: Source, partial: Partial, chunks: Sequence[str] | None, first: bytes) -> None:
        """Fetch what is missing; on failure, whatever chunks were verified stay in the partial file."""
        _keep(partial, chunks, 0, first)
        todo = iter(partial.missing(chunks))

        async def work() -> None:
            for index in todo:
                data, _ = await source.chunk(index, partial.size)
                _keep(partial, chunks, index, data)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._limits.parallel):
                    group.create_task(work())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None


def _keep(partial: Partial, chunks: Sequence[str] | None, index: int, data: bytes) -> None:
    found = hashlib.sha256(data).hexdigest()
    if chunks is not None and chunks[index] != found:
        raise PeerFailed(f"chunk {index} is not what its own chunk list says", transient=False, blame=True)
    if partial.digests[index] != found:
        partial.write(index, data, found)
