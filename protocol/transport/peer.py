"""One bounded request to one peer: nothing that a peer sends or withholds can cost more than its limits."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
from yarl import URL

from protocol.transport.addresses import AddressPolicy, PolicyResolver
from protocol.transport.errors import AddressRefused, PeerFailed
from protocol.transport.signing import Request, RequestSigner

_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]+")


@dataclass(frozen=True)
class FetchLimits:
    """Seconds, counts, and the slowest rate (bytes/s over a whole blob) at which a source is worth waiting for."""

    connect_seconds: float = 5.0
    stall_seconds: float = 10.0
    chunk_seconds: float = 60.0
    slowest_rate: int = 2**16
    parallel: int = 4  # requests at once to one source
    passes: int = 2  # over all sources, before a fetch gives up
    pause_seconds: float = 0.5  # between two passes


DEFAULT_LIMITS: Final = FetchLimits()


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


class PeerSession:
    """An HTTP session that obeys an address policy: no redirect, no proxy, no cookie, no decompression."""

    def __init__(self, policy: AddressPolicy, limits: FetchLimits) -> None:
        self._policy, self._limits = policy, limits
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        source: str,
        path: str,
        *,
        max_bytes: int,
        method: str = "GET",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        signer: RequestSigner | None = None,
    ) -> Reply:
        """Send to `source` + `path` (path and query as they go on the wire) and read at most `max_bytes`."""
        try:
            url = URL(str(self._policy.check_url(source)).rstrip("/") + path, encoded=True)
            signed = Request(method, url.host_port_subcomponent or "", url.raw_path_qs, body)
            sent = {**(headers or {}), **(signer.headers(signed) if signer else {})}
            async with asyncio.timeout(self._limits.chunk_seconds):
                return await self._exchange(method, url, sent, body, max_bytes)
        except AddressRefused as refused:
            raise PeerFailed(str(refused), transient=False, blame=True) from refused
        except TimeoutError as error:
            raise PeerFailed("no answer, or too slow a one", transient=True, blame=True) from error
        except aiohttp.ClientConnectionError as error:
            raise PeerFailed(f"connection failed: {_line(str(error))}", transient=True, blame=True) from error
        except aiohttp.ClientPayloadError as error:
            raise PeerFailed("broke off in the middle of its answer", transient=True, blame=True) from error
        except (aiohttp.ClientError, ValueError) as error:
            raise PeerFailed(f"does not speak HTTP: {_line(str(error))}", transient=False, blame=True) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, method: str, url: URL, headers: Mapping[str, str], body: bytes, max_bytes: int) -> Reply:
        session = self._opened()
        async with session.request(method, url, headers=headers, data=body or None, allow_redirects=False) as response:
            if 300 <= response.status < 400:
                raise PeerFailed("answers with a redirect, which is never followed", transient=False, blame=True)
            length = response.content_length
            if length is not None and length > max_bytes and method != "HEAD":
                raise PeerFailed(
                    f"sends {length} bytes at once, expected at most {max_bytes}", transient=False, blame=True
                )
            return Reply(response.status, response.headers, await _read(response.content, max_bytes))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            limits = self._limits
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=PolicyResolver(self._policy), limit=64),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=limits.connect_seconds, sock_read=limits.stall_seconds
                ),
                headers={"Accept-Encoding": "identity", "User-Agent": "gradmarket"},
                auto_decompress=False,  # a small answer must not become a big one
                trust_env=False,  # a proxy would dial addresses that the policy never saw
            )
        return self._session


def check_status(reply: Reply, *, expected: tuple[int, ...] = (200,)) -> None:
    """Turn an answer that is not the expected one into PeerFailed, with the peer's own line, cut short."""
    if reply.status in expected:
        return
    if reply.status in (429, 503):
        raise PeerFailed("is busy", transient=True, blame=False)
    told = _line(reply.body[:200].decode("utf-8", "replace"))
    absent = reply.status in (401, 403, 404)
    raise PeerFailed(f"answers {reply.status}: {told}", transient=reply.status >= 500, blame=not absent)


async def _read(content: aiohttp.StreamReader, max_bytes: int) -> bytes:
    pieces, size = [], 0
    async for piece in content.iter_any():
        size += len(piece)
        if size > max_bytes:
            raise PeerFailed(f"sends more than {max_bytes} bytes", transient=False, blame=True)
        pieces.append(piece)
    return b"".join(pieces)


def _line(text: str) -> str:
    """A peer's words as one harmless line of a log."""
    return _UNPRINTABLE.sub(" ", text).strip()[:200]
