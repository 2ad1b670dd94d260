"""Peers that lie, stall, swell, redirect or send junk: each costs one bounded try, and the next source serves."""

import asyncio
import gzip
import hashlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from aiohttp import web

from protocol.transport.addresses import LOCAL, PUBLIC
from protocol.transport.blobs import CHUNK_BYTES, BlobStore
from protocol.transport.client import BlobClient
from protocol.transport.errors import BadDigest, DiskFull, Unavailable
from protocol.transport.peer import FetchLimits
from protocol.transport.server import BlobServer, ServerLimits

LIMITS = FetchLimits(connect_seconds=1, stall_seconds=0.3, chunk_seconds=0.8, pause_seconds=0.02)
DATA = os.urandom(6 * CHUNK_BYTES + 99)
DIGEST = hashlib.sha256(DATA).hexdigest()
CHUNKS = [hashlib.sha256(DATA[at : at + CHUNK_BYTES]).hexdigest() for at in range(0, len(DATA), CHUNK_BYTES)]
SMALL = os.urandom(1000)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def part(request: web.Request, data: bytes = DATA) -> web.Response:
    asked = request.http_range
    start, stop, _ = asked.indices(len(data))
    told = f"bytes {start}-{stop - 1}/{len(data)}"
    return web.Response(status=206, body=data[start:stop], headers={"Content-Range": told})


async def honest_blob(request: web.Request) -> web.StreamResponse:
    return part(request)


async def honest_chunks(request: web.Request) -> web.StreamResponse:
    return web.json_response({"size": len(DATA), "chunks": CHUNKS})


class Bench:
    """Hostile servers on free ports, one honest server, one client."""

    def __init__(self, folder: Path) -> None:
        self.store = BlobStore(folder / "mine")
        self.client = BlobClient(self.store, LOCAL, limits=LIMITS)
        self.theirs = BlobStore(folder / "theirs")
        self.theirs.put(DATA)
        self.theirs.put(SMALL)
        self.honest = BlobServer(self.theirs)
        self._stack = AsyncExitStack()

    async def hostile(self, blob: Handler = honest_blob, chunks: Handler = honest_chunks) -> str:
        app = web.Application()
        app.router.add_get("/blobs/{digest}", blob)
        app.router.add_get("/blobs/{digest}/chunks", chunks)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def raw(self, answer: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> str:
        """A server below HTTP: it reads a request's head and then does as it likes."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.readuntil(b"\r\n\r\n")
                await answer(writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._stack.callback(server.close)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def refuses(self, source: str, reason: str, digest: str = DIGEST, max_bytes: int = len(DATA)) -> None:
        with pytest.raises(Unavailable, match=reason) as failed:
            await self.client.fetch(digest, [source], max_bytes=max_bytes)
        assert "\n" not in str(failed.value)
        assert not self.store.has(digest)

    async def heals(self, source: str, digest: str = DIGEST) -> int:
        """Ask the hostile source first, then an honest one; the bytes that the honest one had to send."""
        self.client.strikes.update({source: 0, self.honest.url: 1})
        before = self.honest.traffic.sent["other"]
        path = await self.client.fetch(digest, [source, self.honest.url], max_bytes=len(DATA))
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
        assert self.client.strikes[source] > 0
        return self.honest.traffic.sent["other"] - before

    async def __aenter__(self) -> "Bench":
        await self._stack.enter_async_context(self.honest)
        await self._stack.enter_async_context(self.client)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path) as bench:
        yield bench


async def test_wrong_bytes_under_a_digest_are_refused(bench: Bench) -> None:
    wanted = hashlib.sha256(SMALL).hexdigest()

    async def other(request: web.Request) -> web.StreamResponse:
        return part(request, SMALL[:-1] + b"?")

    source = await bench.hostile(other)
    await bench.refuses(source, "sent 1000 bytes that are not the blob", wanted)
    assert await bench.heals(source, wanted) == len(SMALL)


async def test_a_changed_chunk_is_found_at_that_chunk(bench: Bench) -> None:
    async def changed(request: web.Request) -> web.StreamResponse:
        return part(request, DATA[: 3 * CHUNK_BYTES] + b"?" * CHUNK_BYTES + DATA[4 * CHUNK_BYTES :])

    source = await bench.hostile(changed)
    await bench.refuses(source, "chunk 3 is not what its own chunk list says")


async def test_a_chunk_list_that_lies_along_with_its_bytes_costs_the_chunks_it_lied_about(bench: Bench) -> None:
    bad = DATA[: 2 * CHUNK_BYTES] + b"?" * CHUNK_BYTES + DATA[3 * CHUNK_BYTES :]
    lie = [*CHUNKS[:2], hashlib.sha256(b"?" * CHUNK_BYTES).hexdigest(), *CHUNKS[3:]]

    async def bytes_(request: web.Request) -> web.StreamResponse:
        return part(request, bad)

    async def chunks(request: web.Request) -> web.StreamResponse:
        return web.json_response({"size": len(DATA), "chunks": lie})

    source = await bench.hostile(bytes_, chunks)
    await bench.refuses(source, "bytes that are not the blob")
    assert await bench.heals(source) == 2 * CHUNK_BYTES  # the first, which tells the size, and the bad one


async def test_a_false_chunk_list_over_true_bytes_costs_one_try(bench: Bench) -> None:
    async def chunks(request: web.Request) -> web.StreamResponse:
        return web.json_response({"size": len(DATA), "chunks": CHUNKS[::-1]})

    source = await bench.hostile(chunks=chunks)
    await bench.refuses(source, "chunk 0 is not what")
    await bench.heals(source)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"[" * 10_000,
        b'{"size": 1, "chunks": []}',
        b'{"size": %d, "chunks": %s}' % (len(DATA), b'["../../etc/passwd"]'),
        b'{"size": %d, "chunks": [%s]}' % (len(DATA), b",".join([b'"' + b"0" * 63 + b'G"'] * len(CHUNKS))),
        b"x" * 10**6,
    ],
)
async def test_a_chunk_list_out_of_form_is_refused(bench: Bench, body: bytes) -> None:
    async def chunks(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    source = await bench.hostile(chunks=chunks)
    await bench.refuses(source, "chunk list|at once, expected at most")
    await bench.heals(source)


async def test_a_liar_poisons_a_static_servers_download_only_once(bench: Bench) -> None:
    bad = DATA[: 2 * CHUNK_BYTES] + b"?" * CHUNK_BYTES + DATA[3 * CHUNK_BYTES :]
    lie = [*CHUNKS[:2], hashlib.sha256(b"?" * CHUNK_BYTES).hexdigest(), *CHUNKS[3:]]

    async def bytes_(request: web.Request) -> web.StreamResponse:
        return part(request, bad)

    async def chunks(request: web.Request) -> web.StreamResponse:
        return web.json_response({"size": len(DATA), "chunks": lie})

    async def no_chunks(request: web.Request) -> web.StreamResponse:
        raise web.HTTPNotFound

    liar, static = await bench.hostile(bytes_, chunks), await bench.hostile(chunks=no_chunks)
    bench.client.strikes[static] = 1
    path = await bench.client.fetch(DIGEST, [liar, static], max_bytes=len(DATA))
    assert path.read_bytes() == DATA
    assert set(bench.client.strikes) == {liar}


async def test_an_oversize_blob_is_refused_before_it_is_downloaded(bench: Bench) -> None:
    before = bench.client.traffic.received["other"]
    await bench.refuses(bench.honest.url, f"has {len(DATA)} bytes there, expected at most 2000000", max_bytes=2_000_000)
    assert bench.client.traffic.received["other"] - before <= CHUNK_BYTES


async def test_a_false_size_does_not_destroy_what_others_sent(bench: Bench) -> None:
    async def shrunk(request: web.Request) -> web.StreamResponse:
        return part(request, DATA[: 2 * CHUNK_BYTES])

    async def shrunk_chunks(request: web.Request) -> web.StreamResponse:
        return web.json_response({"size": 2 * CHUNK_BYTES, "chunks": CHUNKS[:2]})

    async def broken(request: web.Request) -> web.StreamResponse:
        if (request.http_range.start or 0) >= 5 * CHUNK_BYTES:
            raise web.HTTPInternalServerError
        return part(request)

    first, second = await bench.hostile(broken), await bench.hostile(shrunk, shrunk_chunks)
    await bench.refuses(first, "answers 500")
    await bench.refuses(second, "sent 2097152 bytes that are not the blob")
    assert await bench.heals(second) <= 4 * CHUNK_BYTES
    assert list((bench.store.root / "partial").iterdir()) == []


async def test_an_endless_answer_stops_at_the_cap(bench: Bench) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 2**16)
            sent += 2**16

    await bench.refuses(await bench.hostile(endless), "sends more than 1048576 bytes")
    assert sent < 10 * CHUNK_BYTES  # socket buffers, not memory


async def test_a_compressed_bomb_is_not_unpacked(bench: Bench) -> None:
    bomb = gzip.compress(bytes(2**26))

    async def packed(request: web.Request) -> web.StreamResponse:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    await bench.refuses(await bench.hostile(packed), f"sent {len(bomb)} bytes that are not the blob")


async def test_a_truncated_answer_is_refused(bench: Bench) -> None:
    async def cut(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 206 OK\r\nContent-Length: 1000\r\nContent-Range: bytes 0-999/1000\r\n\r\n" + b"x" * 500)
        await writer.drain()

    await bench.refuses(await bench.raw(cut), "broke off in the middle")


async def silent(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def stalled(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 206 OK\r\nContent-Length: 1000\r\nContent-Range: bytes 0-999/1000\r\n\r\nx")
    await asyncio.sleep(30)


async def trickling(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 206 OK\r\nContent-Length: 1000\r\nContent-Range: bytes 0-999/1000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def trickling_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 206 OK\r\n")
    while True:
        writer.write(b"X-A: b\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("answer", [silent, stalled, trickling, trickling_head])
async def test_a_slow_source_is_left_in_bounded_time(
    bench: Bench, answer: Callable[[asyncio.StreamWriter], Awaitable[None]]
) -> None:
    source = await bench.raw(answer)
    started = time.monotonic()
    await bench.heals(source)
    assert time.monotonic() - started < 2
    client = BlobClient(BlobStore(bench.store.root / "other"), LOCAL)  # with the ordinary, long limits
    with pytest.raises(Unavailable, match="too slow for the time there was"):
        await client.fetch(DIGEST, [source], max_bytes=len(DATA), timeout=0.2)
    await client.close()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "redirect"),
        (b"HTTP/1.1 206 OK\r\nContent-Length: 1\r\n\r\nx", "without a Content-Range"),
        (b"HTTP/1.1 206 OK\r\nContent-Length: 1\r\nContent-Range: bytes 5-5/9\r\n\r\nx", "another range"),
        (b"HTTP/1.1 206 OK\r\nContent-Length: 1\r\nContent-Range: bytes 0-0/-1\r\n\r\nx", "without a Content-Range"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "does not speak HTTP"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "does not speak HTTP|connection failed"),
        (b"HTTP/1.1 403 No\r\nContent-Length: 12\r\n\r\n\x1b[31mroot\n# ", r"answers 403: \[31mroot #"),
        (b"", "connection failed"),
    ],
)
async def test_junk_instead_of_an_answer_is_one_clear_line(bench: Bench, answer: bytes, reason: str) -> None:
    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    await bench.refuses(await bench.raw(send), reason)


async def test_a_peer_on_this_machine_is_refused_in_public_mode(bench: Bench) -> None:
    port = bench.honest.port
    client = BlobClient(bench.store, PUBLIC)
    sources = [f"http://127.0.0.1:{port}", f"http://localhost:{port}", f"http://[::ffff:127.0.0.1]:{port}"]
    sources += [f"http://2130706433:{port}", f"http://127.1:{port}", "http://169.254.169.254", "file:///etc/passwd"]
    with pytest.raises(Unavailable) as failed:
        await client.fetch(DIGEST, sources, max_bytes=len(DATA))
    assert set(failed.value.reasons) == set(sources)
    assert bench.honest.traffic.sent.total() == 0
    await client.close()


async def test_no_request_of_a_proxy_setting_is_followed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    await bench.client.fetch(DIGEST, [bench.honest.url], max_bytes=len(DATA))


async def test_a_name_that_is_no_digest_asks_nobody(bench: Bench) -> None:
    with pytest.raises(BadDigest):
        await bench.client.fetch("../../etc/passwd", [bench.honest.url], max_bytes=10)


@pytest.mark.parametrize(
    "path",
    ["/blobs/../../etc/passwd", "/blobs/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/blobs/..%2f" + DIGEST, "/blobs/" + "A" * 64],
    ids=["out of the folder", "out of the folder, escaped", "above a blob", "capital letters"],
)
async def test_a_server_gives_no_file_but_its_blobs(bench: Bench, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.honest.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert (await reader.read()).startswith(b"HTTP/1.1 404")
    writer.close()


async def test_a_full_disk_stops_a_fetch_with_one_line(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(DiskFull, match=f"no room for a blob of {len(DATA)} bytes"):
        await bench.client.fetch(DIGEST, [bench.honest.url], max_bytes=len(DATA))


async def test_a_reader_that_stops_reading_is_cut_off(bench: Bench) -> None:
    big = bench.theirs.put(os.urandom(16 * CHUNK_BYTES))
    async with BlobServer(bench.theirs, limits=ServerLimits(transfers=1, piece_seconds=0.2)) as server:
        _reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
        writer.write(f"GET /blobs/{big} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await asyncio.sleep(0.6)
        small = hashlib.sha256(SMALL).hexdigest()
        assert await bench.client.fetch(small, [server.url], max_bytes=1000)  # the one place is free again
        writer.close()


@pytest.mark.parametrize(
    "head",
    [b"", b"GET /blo", b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"],
    ids=["mute", "head", "body"],
)
async def test_a_request_that_never_ends_is_cut_off(bench: Bench, head: bytes) -> None:
    async with BlobServer(bench.theirs, limits=ServerLimits(request_seconds=0.3)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(head)
        async with asyncio.timeout(3):
            with suppress(ConnectionResetError):
                assert not (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
