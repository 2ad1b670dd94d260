"""What one source says about one blob: every answer is checked for form, none is believed."""

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from protocol.transport.blobs import CHUNK_BYTES, DIGEST, chunk_count
from protocol.transport.errors import PeerFailed
from protocol.transport.peer import PeerSession, Reply, check_status
from protocol.transport.signing import RequestSigner
from protocol.transport.traffic import Traffic

_RANGE: Final = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")


class _ChunkList(msgspec.Struct):
    size: int
    chunks: list[str]


@dataclass(frozen=True)
class Want:
    """A blob that is looked for. `kind` labels its traffic."""

    digest: str
    max_bytes: int
    kind: str
    signer: RequestSigner | None


@dataclass(frozen=True)
class Source:
    peers: PeerSession
    url: str
    want: Want
    traffic: Traffic

    async def chunk(self, index: int, size: int | None = None) -> tuple[bytes, int]:
        """One chunk and the blob's size; `size` is what this source told before, None at first."""
        start = index * CHUNK_BYTES
        stop = min(start + CHUNK_BYTES, size or max(self.want.max_bytes, 1))
        reply = await self.peers.request(
            self.url,
            f"/blobs/{self.want.digest}",
            max_bytes=CHUNK_BYTES,
            headers={"Range": f"bytes={start}-{stop - 1}"},
            signer=self.want.signer,
        )
        check_status(reply, expected=(200, 206))
        self.traffic.received[self.want.kind] += len(reply.body)
        told_start, told_size = _told(reply)
        if told_size > self.want.max_bytes:
            raise _fault(f"the blob has {told_size} bytes there, expected at most {self.want.max_bytes}")
        expected = min(start + CHUNK_BYTES, told_size) - start
        if told_start != start or told_size != (size or told_size) or len(reply.body) != expected:
            raise _fault(f"sent another range than bytes {start} to {stop}")
        return reply.body, told_size

    async def chunk_list(self, size: int) -> list[str] | None:
        """The sha256 of each chunk, by this source's word; None from a static server, which has no such list."""
        count = chunk_count(size)
        path, room = f"/blobs/{self.want.digest}/chunks", 256 + 70 * count
        reply = await self.peers.request(self.url, path, max_bytes=room, signer=self.want.signer)
        if reply.status in (403, 404):
            return None
        check_status(reply)
        self.traffic.received["chunk-list"] += len(reply.body)
        try:
            told = msgspec.json.decode(reply.body, type=_ChunkList)
        except msgspec.DecodeError as error:
            raise _fault(f"sent a malformed chunk list: {error}") from None
        if told.size != size or len(told.chunks) != count or not all(map(DIGEST.fullmatch, told.chunks)):
            raise _fault("sent a chunk list that does not fit the blob's size")
        return told.chunks


def _told(reply: Reply) -> tuple[int, int]:
    """(start of the bytes sent, size of the whole blob), by the peer's word."""
    if reply.status == 200:
        return 0, len(reply.body)
    if not (match := _RANGE.fullmatch(reply.headers.get("Content-Range", ""))):
        raise _fault("answers 206 without a Content-Range")
    return int(match[1]), int(match[3])


def _fault(reason: str) -> PeerFailed:
    return PeerFailed(reason, transient=False, blame=True)
