"""Serves blobs to peers: ranges, sizes, chunk lists; and what an application mounts beside them.

A blob that the caller may not have answers exactly as one that is not here. Every limit is refused with 503 and a
Retry-After, never queued: a waiting reader would hold memory for as long as it likes.
"""

import asyncio
import contextlib
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

import msgspec
from aiohttp import web

from protocol.transport.blobs import DIGEST, BlobFacts, BlobStore
from protocol.transport.errors import BlobMissing, PortInUse, RequestRefused, StoreUnusable
from protocol.transport.signing import Request, RequestVerifier, is_signed
from protocol.transport.traffic import Traffic

Access = Callable[[str, str | None], bool]  # (digest, caller's address or None) -> may have it
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PROTOCOL: Final = 1  # of these routes; told by /health, so that a client can name a mismatch
PIECE_BYTES: Final = 2**18  # 256 KiB: one read and one write


@dataclass(frozen=True)
class ServerLimits:
    """Seconds and counts. piece_seconds: to take PIECE_BYTES (slower readers are cut off)."""

    transfers: int = 64
    transfers_per_peer: int = 16
    piece_seconds: float = 20.0
    request_seconds: float = 30.0
    body_bytes: int = 2**20  # 1 MiB for mounted routes


class BlobServer:
    """`async with BlobServer(store, host, port) as server`; port 0 takes a free one, `server.url` tells it."""

    def __init__(
        self,
        store: BlobStore,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        access: Access | None = None,
        verifier: RequestVerifier | None = None,
        traffic: Traffic | None = None,
        limits: ServerLimits = ServerLimits(),
        health: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.host, self.port = host, port
        self.traffic = traffic if traffic is not None else Traffic()
        self._store, self._access, self._verifier = store, access, verifier
        self._limits, self._health = limits, health
        self._busy: Counter[str] = Counter()
        self._app = web.Application(client_max_size=limits.body_bytes, middlewares=[self._bounded])
        self._app.router.add_get("/health", self._get_health)
        self._app.router.add_get("/blobs/{digest}", self._get_blob)  # HEAD as well
        self._app.router.add_get("/blobs/{digest}/chunks", self._get_chunks)
        self._runner = web.AppRunner(self._app, access_log=None, keepalive_timeout=limits.request_seconds)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def mount(self, path: str, handler: Handler, *, method: str = "GET") -> None:
        """Add a route of the application; before start. `caller` tells the handler who signed."""
        self._app.router.add_route(method, path, handler)

    async def start(self) -> None:
        listener = _listen(self.host, self.port)
        self.port = listener.getsockname()[1]
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()
        if self._verifier is not None:
            self._verifier.servers.add(f"{self.host}:{self.port}")

    async def close(self) -> None:
        await self._runner.cleanup()

    async def __aenter__(self) -> "BlobServer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def caller(self, request: web.Request) -> str | None:
        """The address that signed this request, None when it is not signed; 401 when the signature does not hold."""
        if not is_signed(request.headers):
            return None
        try:
            if self._verifier is None:
                raise RequestRefused("this server takes no signed requests")
            body = await request.read()
            signed = Request(request.method, request.host, request.raw_path, body)
            return self._verifier.check(signed, request.headers)
        except RequestRefused as refused:
            raise web.HTTPUnauthorized(text=f"{refused}\n") from refused

    async def _get_health(self, request: web.Request) -> web.Response:
        return web.json_response({"service": "gradmarket-blobs", "protocol": PROTOCOL, **self._health()})

    async def _get_chunks(self, request: web.Request) -> web.Response:
        _, facts = await self._allowed(request)
        body = msgspec.json.encode({"size": facts.size, "chunks": facts.chunks})
        self.traffic.sent["chunk-list"] += len(body)
        return web.Response(body=body, content_type="application/json")

    async def _get_blob(self, request: web.Request) -> web.StreamResponse:
        digest, facts = await self._allowed(request)
        start, stop = _range(request, facts.size)
        response = web.StreamResponse(status=206 if "Range" in request.headers and facts.size else 200)
        response.content_type = "application/octet-stream"
        response.content_length = stop - start
        response.headers["Accept-Ranges"] = "bytes"
        response.headers["ETag"] = f'"{digest}"'
        if response.status == 206:
            response.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{facts.size}"
        if request.method == "HEAD":
            await response.prepare(request)
            return response
        with self._transfer(request), self._open(digest) as file:
            await response.prepare(request)
            try:
                await self._send(response, file, start, stop, facts.kind)
            except TimeoutError:
                _cut_off(request)
        return response

    async def _send(self, response: web.StreamResponse, file: IO[bytes], start: int, stop: int, kind: str) -> None:
        file.seek(start)
        while start < stop:
            piece = file.read(min(PIECE_BYTES, stop - start))
            if not piece:
                raise ConnectionAbortedError("the blob's file was cut short while it was sent")
            async with asyncio.timeout(self._limits.piece_seconds):
                await response.write(piece)
            start += len(piece)
            self.traffic.sent[kind] += len(piece)

    async def _allowed(self, request: web.Request) -> tuple[str, BlobFacts]:
        """The blob's facts; one and the same 404 for what is absent, forbidden or no digest at all."""
        caller = await self.caller(request)
        digest = request.match_info["digest"]
        if DIGEST.fullmatch(digest) and (self._access is None or self._access(digest, caller)):
            with contextlib.suppress(BlobMissing):
                return digest, await asyncio.to_thread(self._store.facts, digest)
        raise _not_here()

    def _open(self, digest: str) -> IO[bytes]:
        try:
            return self._store.path(digest).open("rb")
        except FileNotFoundError:
            raise _not_here() from None

    @contextlib.contextmanager
    def _transfer(self, request: web.Request) -> Iterator[None]:
        peer = request.remote or "unknown"
        if self._busy.total() >= self._limits.transfers or self._busy[peer] >= self._limits.transfers_per_peer:
            text = "too many transfers at once; try again\n"
            raise web.HTTPServiceUnavailable(text=text, headers={"Retry-After": "1"})
        self._busy[peer] += 1
        try:
            yield
        finally:
            self._busy[peer] -= 1
            if not self._busy[peer]:
                del self._busy[peer]

    @web.middleware
    async def _bounded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A body that trickles in must not hold a handler for ever; transfers are bounded piece by piece instead."""
        try:
            async with asyncio.timeout(self._limits.request_seconds):
                await request.read()
        except TimeoutError:
            _cut_off(request)
            raise web.HTTPRequestTimeout() from None
        try:
            return await handler(request)
        except StoreUnusable as broken:
            raise web.HTTPInternalServerError(text="the blob store cannot be read\n") from broken


def _not_here() -> web.HTTPNotFound:
    return web.HTTPNotFound(text="no such blob here\n")


def _cut_off(request: web.Request) -> None:
    """End the connection at once: a polite close would wait for a peer that reads or writes nothing."""
    if request.transport is not None:
        request.transport.abort()


def _range(request: web.Request, size: int) -> tuple[int, int]:
    """The bytes asked for, [start, stop). An empty blob has no range: it is sent whole."""
    if size == 0:
        return 0, 0
    try:
        start, stop, _ = request.http_range.indices(size)
    except ValueError:
        start = stop = size
    if start >= stop:
        raise web.HTTPRequestRangeNotSatisfiable(headers={"Content-Range": f"bytes */{size}"})
    return start, stop


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror  # a host has no errno
        raise PortInUse(f"cannot listen on {host} port {port}: {why}; choose another port") from error
    with contextlib.suppress(OSError, AttributeError):  # 25 MiB at 100 ms and 2 % loss: 6.6 s, over 90 s without
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")
    return listener
