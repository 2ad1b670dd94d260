"""Blobs on disk, each named by the sha256 of its bytes.

    root/blobs/ab/abcd…    whole, verified and immutable
    root/facts/abcd….json  size, kind and chunk list, computed once and rebuilt when lost
    root/partial/abcd….N   a download of N bytes that is not finished
    root/tmp/              writes in progress, never read by anyone

A name from a peer is matched against DIGEST before it touches a path, so a peer's string never names a file.
"""

import contextlib
import errno
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from protocol.transport.errors import BadDigest, BlobMissing, BlobTooLarge, DiskFull, StoreUnusable, WrongDigest

CHUNK_BYTES: Final = 2**20  # 1 MiB: one verified unit of transfer
STALE_SECONDS: Final = 7 * 24 * 3600  # a partial download nobody resumed for a week
DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class BlobFacts(msgspec.Struct, frozen=True):
    """What a holder tells about a blob. `chunks`: sha256 hex of each CHUNK_BYTES piece, the last one shorter."""

    size: int
    kind: str
    chunks: list[str]


def check_digest(digest: str) -> str:
    if not DIGEST.fullmatch(digest):
        raise BadDigest(f"blob name {digest[:80]!r}: expected 64 lower-case hex digits, the sha256 of the bytes")
    return digest


def chunk_count(size: int) -> int:
    return -(-size // CHUNK_BYTES)


class BlobStore:
    """One folder of blobs. Safe for several processes: names appear whole, by rename, or not at all."""

    def __init__(self, root: Path) -> None:
        self.root = root
        with self._writing("its folders"):
            for name in ("blobs", "facts", "partial", "tmp"):
                (root / name).mkdir(parents=True, exist_ok=True)
        self._remove_stale()

    def path(self, digest: str) -> Path:
        """Where the blob lies or would lie."""
        check_digest(digest)
        return self.root / "blobs" / digest[:2] / digest

    def partial_path(self, digest: str, size: int) -> Path:
        return self.root / "partial" / f"{check_digest(digest)}.{size}"

    def has(self, digest: str) -> bool:
        return self.path(digest).is_file()

    def size(self, digest: str) -> int:
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            raise self._missing(digest) from None

    def put(self, data: bytes, *, kind: str = "other") -> str:
        """Keep the bytes and return their digest. `kind` is only a label under which traffic is counted."""
        digest = hashlib.sha256(data).hexdigest()
        if not self.has(digest):
            with self._writing(f"blob {digest[:12]}… of {len(data)} bytes"), self._temporary() as file:
                file.write(data)
                self._publish(file, self.path(digest))
            self._save_facts(digest, _facts_of(data, kind))
        return digest

    def put_file(self, source: Path, *, kind: str = "other") -> str:
        """Copy a file in, hashing the bytes that are written: a file changed meanwhile still gets its true name."""
        whole, chunks, size = hashlib.sha256(), [], 0
        with self._writing(f"a copy of {source}"), source.open("rb") as reader, self._temporary() as file:
            while chunk := reader.read(CHUNK_BYTES):
                file.write(chunk)
                whole.update(chunk)
                chunks.append(hashlib.sha256(chunk).hexdigest())
                size += len(chunk)
            digest = whole.hexdigest()
            if not self.has(digest):
                self._publish(file, self.path(digest))
        self._save_facts(digest, BlobFacts(size, kind, chunks))
        return digest

    def adopt(self, partial: Path, digest: str, *, kind: str = "other") -> Path:
        """Make a finished download visible under its name, or raise WrongDigest and leave it where it is."""
        if self.has(digest):  # another process was faster, and has swept this partial file away
            partial.unlink(missing_ok=True)
            return self.path(digest)
        with self._writing(f"blob {digest[:12]}…"), partial.open("rb+") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != check_digest(digest):
                raise WrongDigest(f"download of blob {digest[:12]}…: the bytes hash to {found[:12]}…")
            self._publish(file, self.path(digest))
        self._save_facts(digest, self._compute_facts(digest, kind))
        for rest in (self.root / "partial").glob(f"{digest}.*"):
            rest.unlink(missing_ok=True)
        return self.path(digest)

    def read(self, digest: str, max_bytes: int) -> bytes:
        """The bytes, verified again: a blob that rotted on disk is removed, so that the next fetch heals it."""
        if (size := self.size(digest)) > max_bytes:
            raise BlobTooLarge(f"blob {digest[:12]}… has {size} bytes, expected at most {max_bytes}")
        data = self.path(digest).read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            self.delete(digest)
            raise WrongDigest(f"blob {digest[:12]}… was damaged on this disk ({self.root}); removed, fetch it again")
        return data

    def delete(self, digest: str) -> None:
        """Forget the blob; deleting what is not there is no error."""
        self.path(digest).unlink(missing_ok=True)
        self._facts_path(digest).unlink(missing_ok=True)

    def digests(self) -> Iterator[str]:
        """The names of all whole blobs, in no order."""
        return (path.name for path in (self.root / "blobs").glob("??/*") if DIGEST.fullmatch(path.name))

    def facts(self, digest: str) -> BlobFacts:
        """Size, kind and chunk list; recomputed when the cached file is missing or damaged."""
        size = self.size(digest)
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
            facts = msgspec.json.decode(self._facts_path(digest).read_bytes(), type=BlobFacts)
            if facts.size == size:
                return facts
        facts = self._compute_facts(digest, "other")
        self._save_facts(digest, facts)
        return facts

    def _facts_path(self, digest: str) -> Path:
        return self.root / "facts" / f"{check_digest(digest)}.json"

    def _compute_facts(self, digest: str, kind: str) -> BlobFacts:
        with self.path(digest).open("rb") as file:
            chunks = [hashlib.sha256(chunk).hexdigest() for chunk in iter(lambda: file.read(CHUNK_BYTES), b"")]
            return BlobFacts(file.tell(), kind, chunks)

    def _save_facts(self, digest: str, facts: BlobFacts) -> None:
        with self._writing(f"facts of blob {digest[:12]}…"), self._temporary() as file:
            file.write(msgspec.json.encode(facts))
            self._publish(file, self._facts_path(digest))

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[IO[bytes]]:
        with tempfile.NamedTemporaryFile(dir=self.root / "tmp", delete=False) as file:
            try:
                yield file
            finally:
                Path(file.name).unlink(missing_ok=True)

    @staticmethod
    def _publish(file: IO[bytes], target: Path) -> None:
        """Rename only after the bytes are on disk: a power cut leaves the old state or the new one."""
        file.flush()
        os.fsync(file.fileno())
        target.parent.mkdir(exist_ok=True)
        os.replace(file.name, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the name too: a payload may be committed on chain right after this
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _FULL:
                raise DiskFull(f"blob store {self.root}: no space left for {what}; free some and try again") from error
            raise StoreUnusable(f"blob store {self.root}: cannot write {what}: {error.strerror or error}") from error

    def _remove_stale(self) -> None:
        oldest = time.time() - STALE_SECONDS
        for path in [*(self.root / "tmp").iterdir(), *(self.root / "partial").iterdir()]:
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _missing(self, digest: str) -> BlobMissing:
        return BlobMissing(f"blob {digest[:12]}… is not in the store {self.root}; fetch it from a peer first")


def _facts_of(data: bytes, kind: str) -> BlobFacts:
    pieces = (data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES))
    return BlobFacts(len(data), kind, [hashlib.sha256(piece).hexdigest() for piece in pieces])
