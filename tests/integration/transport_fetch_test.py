"""A real server and a real client over loopback: ranges, resume, several sources, private blobs, mounted routes."""

import asyncio
import hashlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from protocol.transport.addresses import LOCAL
from protocol.transport.blobs import CHUNK_BYTES, BlobStore
from protocol.transport.client import BlobClient
from protocol.transport.errors import BlobTooLarge, PeerFailed, PortInUse, Unavailable
from protocol.transport.peer import FetchLimits
from protocol.transport.server import BlobServer, ServerLimits
from protocol.transport.signing import RequestSigner, RequestVerifier

LIMITS = FetchLimits(connect_seconds=1, stall_seconds=0.5, chunk_seconds=1, pause_seconds=0.05)
BIG = 5 * CHUNK_BYTES + 321


@pytest.fixture
def theirs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "theirs")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[BlobClient]:
    async with BlobClient(BlobStore(tmp_path / "mine"), LOCAL, limits=LIMITS) as client:
        yield client


# Signatures by a keyed hash: this file is about the wire, tests/unit/transport_signing_test.py is about keys.
ALICE, MALLORY = "0x" + "a1" * 20, "0x" + "b2" * 20


def sign_as(address: str) -> Callable[[bytes], bytes]:
    return lambda digest: bytes.fromhex(address[2:]) + hashlib.sha256(address.encode() + digest).digest()


def recover(digest: bytes, signature: bytes) -> str:
    address = "0x" + signature[:20].hex()
    assert sign_as(address)(digest) == signature
    return address


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, BIG])
async def test_a_blob_of_any_size_arrives_whole(theirs: BlobStore, client: BlobClient, size: int) -> None:
    digest = theirs.put(os.urandom(size), kind="payload")
    async with BlobServer(theirs) as server:
        path = await client.fetch(digest, [server.url], max_bytes=BIG, kind="payload")
        assert path.read_bytes() == theirs.read(digest, BIG)
        assert server.traffic.sent["payload"] == client.traffic.received["payload"] == size


async def test_a_blob_at_hand_is_not_fetched(theirs: BlobStore, client: BlobClient) -> None:
    digest = theirs.put(b"once")
    async with BlobServer(theirs) as server:
        await client.fetch(digest, [server.url], max_bytes=4)
    assert (await client.fetch(digest, [], max_bytes=4)).read_bytes() == b"once"
    with pytest.raises(BlobTooLarge, match="4 bytes, expected at most 3"):
        await client.fetch(digest, [], max_bytes=3)


async def test_two_fetches_of_one_blob_download_it_once(theirs: BlobStore, client: BlobClient) -> None:
    digest = theirs.put(os.urandom(BIG))
    async with BlobServer(theirs) as server:
        await asyncio.gather(*(client.fetch(digest, [server.url], max_bytes=BIG) for _ in range(3)))
    assert client.traffic.received["other"] == BIG


async def test_ranges_and_sizes_follow_http(theirs: BlobStore) -> None:
    data = os.urandom(3 * CHUNK_BYTES)
    digest = theirs.put(data)
    async with BlobServer(theirs) as server, aiohttp.ClientSession() as session:
        url = f"{server.url}/blobs/{digest}"
        async with session.head(url) as reply:
            assert (reply.status, reply.content_length) == (200, len(data))
        for header, status, body in [
            ("bytes=10-19", 206, data[10:20]),
            ("bytes=-5", 206, data[-5:]),
            (f"bytes={len(data) - 3}-{len(data) + 99}", 206, data[-3:]),
            (f"bytes={len(data)}-", 416, None),
            ("bytes=9-3", 416, None),
            ("bytes=0-1,5-6", 416, None),
            ("lines=1-2", 416, None),
        ]:
            async with session.get(url, headers={"Range": header}) as reply:
                assert reply.status == status, header
                assert body is None or await reply.read() == body
        async with session.get(url) as reply:
            assert (reply.status, await reply.read()) == (200, data)
        async with session.get(f"{server.url}/health") as reply:
            assert await reply.json() == {"service": "gradmarket-blobs", "protocol": 1}


async def test_a_taken_port_is_one_line_with_the_port(theirs: BlobStore) -> None:
    async with BlobServer(theirs) as first:
        with pytest.raises(PortInUse, match=f"port {first.port}: Address already in use; choose another port"):
            await BlobServer(theirs, port=first.port).start()


async def test_the_next_source_goes_on_where_the_first_left(
    theirs: BlobStore, client: BlobClient, tmp_path: Path
) -> None:
    data = os.urandom(20 * CHUNK_BYTES)
    digest = theirs.put(data)
    leaving = BlobServer(theirs)
    await leaving.start()

    async def leave() -> None:
        while leaving.traffic.sent["other"] < 8 * CHUNK_BYTES:
            await asyncio.sleep(0.001)
        for connection in list(leaving._runner.server.connections):  # type: ignore[union-attr]
            connection.force_close()
        await leaving.close()

    async with BlobServer(theirs) as staying:
        client.strikes[staying.url] = 1  # so that the leaving one is asked first
        _, path = await asyncio.gather(leave(), client.fetch(digest, [leaving.url, staying.url], max_bytes=len(data)))
        assert path.read_bytes() == data
        assert staying.traffic.sent["other"] < 17 * CHUNK_BYTES
        assert client.strikes == {leaving.url: 1}


FETCH = """
import asyncio, sys
from pathlib import Path
from protocol.transport.addresses import LOCAL
from protocol.transport.blobs import BlobStore
from protocol.transport.client import BlobClient
async def main():
    async with BlobClient(BlobStore(Path(sys.argv[1])), LOCAL) as client:
        await client.fetch(sys.argv[2], [sys.argv[3]], max_bytes=2**30)
asyncio.run(main())
"""


async def test_a_killed_download_resumes_with_what_it_had(
    theirs: BlobStore, client: BlobClient, tmp_path: Path
) -> None:
    data = os.urandom(64 * CHUNK_BYTES)
    digest = theirs.put(data)
    async with BlobServer(theirs) as server:
        arguments = ["-c", FETCH, str(tmp_path / "mine"), digest, server.url]
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments)
        while server.traffic.sent["other"] < 20 * CHUNK_BYTES:
            await asyncio.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        before = server.traffic.sent["other"]
        assert before < len(data)
        path = await client.fetch(digest, [server.url], max_bytes=len(data))
        assert path.read_bytes() == data
        # At most the chunks in flight and the first one, which tells the size, are sent twice.
        assert server.traffic.sent["other"] - before < len(data) - before + 6 * CHUNK_BYTES
    assert list((tmp_path / "mine" / "partial").iterdir()) == []


async def test_a_static_server_without_chunk_lists_will_do(
    theirs: BlobStore, client: BlobClient, tmp_path: Path
) -> None:
    data = os.urandom(BIG)
    digest = hashlib.sha256(data).hexdigest()
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / digest).write_bytes(data)
    app = web.Application()
    app.router.add_static("/seed/blobs", tmp_path / "blobs")
    async with serving(app) as url:
        path = await client.fetch(digest, [url + "/seed/"], max_bytes=BIG)
    assert path.read_bytes() == data


async def test_a_private_blob_looks_absent_to_whom_it_is_not_for(theirs: BlobStore, client: BlobClient) -> None:
    digest, absent = theirs.put(os.urandom(BIG)), "0" * 64
    verifier = RequestVerifier(recover, set())
    access = lambda wanted, caller: caller == ALICE  # noqa: E731
    async with BlobServer(theirs, access=access, verifier=verifier) as server, aiohttp.ClientSession() as session:
        answers = set()
        for name in (digest, absent, "not-a-digest", digest + "/chunks"):
            async with session.get(f"{server.url}/blobs/{name}") as reply:
                kept = frozenset((key, value) for key, value in reply.headers.items() if key != "Date")
                answers.add((reply.status, await reply.text(), kept))
        assert len(answers) == 1
        stranger = RequestSigner(MALLORY, sign_as(MALLORY))
        with pytest.raises(Unavailable, match="no such blob here"):
            await client.fetch(digest, [server.url], max_bytes=BIG, signer=stranger)
        owner = RequestSigner(ALICE, sign_as(ALICE))
        assert (await client.fetch(digest, [server.url], max_bytes=BIG, signer=owner)).stat().st_size == BIG


async def test_an_application_mounts_its_own_routes(theirs: BlobStore, client: BlobClient) -> None:
    server = BlobServer(theirs, verifier=RequestVerifier(recover, set()), limits=ServerLimits(body_bytes=100))

    async def echo(request: web.Request) -> web.Response:
        return web.Response(text=f"{await server.caller(request)} {await request.text()}")

    server.mount("/echo", echo, method="POST")
    async with server:
        call = lambda **more: client.call(server.url, "/echo?x=%20y", method="POST", **more)  # noqa: E731
        assert await call(body=b"hi") == b"None hi"
        signer = RequestSigner(ALICE, sign_as(ALICE))
        assert await call(body=b"hi", signer=signer) == f"{ALICE} hi".encode()
        with pytest.raises(PeerFailed, match="answers 413"):
            await call(body=b"x" * 101)
        with pytest.raises(PeerFailed, match="answers 404"):
            await client.call(server.url, "/nothing")


async def test_a_signed_request_seen_on_the_wire_cannot_be_sent_again(theirs: BlobStore) -> None:
    digest = theirs.put(b"for alice")
    seen: list[dict[str, str]] = []

    def access(wanted: str, caller: str | None) -> bool:
        return caller == ALICE

    class Recording(RequestSigner):
        def headers(self, request: object) -> dict[str, str]:
            seen.append(super().headers(request))  # type: ignore[arg-type]
            return seen[-1]

    async with (
        BlobServer(theirs, access=access, verifier=RequestVerifier(recover, set())) as server,
        BlobClient(BlobStore(theirs.root / "mine"), LOCAL) as client,
        aiohttp.ClientSession() as session,
    ):
        await client.fetch(digest, [server.url], max_bytes=99, signer=Recording(ALICE, sign_as(ALICE)))
        async with session.get(f"{server.url}/blobs/{digest}", headers=seen[0]) as reply:
            assert (reply.status, "used before" in await reply.text()) == (401, True)


async def test_too_many_transfers_are_told_to_wait_and_served_in_the_end(theirs: BlobStore, client: BlobClient) -> None:
    digests = [theirs.put(os.urandom(BIG)) for _ in range(3)]
    async with BlobServer(theirs, limits=ServerLimits(transfers_per_peer=5)) as server:
        limits = FetchLimits(passes=50, pause_seconds=0.02)
        async with BlobClient(BlobStore(theirs.root / "mine"), LOCAL, limits=limits) as patient:
            await asyncio.gather(*(patient.fetch(digest, [server.url], max_bytes=BIG) for digest in digests))
            assert not patient.strikes


class serving:
    """A web application on a free port of this machine, for as long as the block runs."""

    def __init__(self, app: web.Application) -> None:
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def __aenter__(self) -> str:
        await self._runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(self._runner, listener).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
