"""A download that is not finished: one sparse file, whose own bytes say how far it is.

There is no journal to keep in step with the file. On resume each chunk is hashed where it lies; what a chunk list
asks for and is already there is not fetched again. A lying list therefore costs the chunks it lied about, no more.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from protocol.transport.blobs import CHUNK_BYTES, BlobStore, chunk_count
from protocol.transport.errors import DiskFull

_EMPTY: Final = bytes(CHUNK_BYTES)


class Partial:
    """Chunks of one blob of one claimed size, under an exclusive lock; a second process uses a file of its own.

    The claimed size is part of the name: a source that lies about it cannot truncate what others have sent.
    `digests[i]`: sha256 hex of what lies in chunk i, None where nothing does.
    """

    def __init__(self, store: BlobStore, digest: str, size: int) -> None:
        self.size = size
        self.path = store.partial_path(digest, size)
        descriptor = _open_locked(self.path)
        if descriptor is None:
            self.path = self.path.with_name(f"{self.path.name}.{os.getpid()}")
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._owner = os.fdopen(descriptor, "r+b", buffering=0)  # closed even when a cancelled fetch forgets it
        self._file = descriptor
        missing = size - os.fstat(descriptor).st_blocks * 512
        if shutil.disk_usage(self.path.parent).free < missing:
            self.close()
            raise self._full()
        os.ftruncate(descriptor, size)
        self.digests = [self._digest_at(index) for index in range(chunk_count(size))]

    def reset(self) -> None:
        """Trust nothing that is there."""
        os.ftruncate(self._file, 0)
        os.ftruncate(self._file, self.size)
        self.digests = [None] * chunk_count(self.size)

    def missing(self, chunks: Sequence[str] | None) -> list[int]:
        """Indices to fetch: where the file differs from the chunk list or, without one, where it has nothing."""
        if chunks is None:
            return [index for index, found in enumerate(self.digests) if found is None]
        return [index for index, (found, want) in enumerate(zip(self.digests, chunks, strict=True)) if found != want]

    def length(self, index: int) -> int:
        return min(CHUNK_BYTES, self.size - index * CHUNK_BYTES)

    def write(self, index: int, data: bytes, digest: str) -> None:
        try:
            os.pwrite(self._file, data, index * CHUNK_BYTES)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise self._full() from error
        self.digests[index] = digest

    def close(self) -> None:
        self._owner.close()

    def __enter__(self) -> "Partial":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        self.close()

    def _full(self) -> DiskFull:
        return DiskFull(f"no room for a blob of {self.size} bytes in {self.path.parent}; free some and try again")

    def _digest_at(self, index: int) -> str | None:
        data = os.pread(self._file, CHUNK_BYTES, index * CHUNK_BYTES)
        return None if data == _EMPTY[: len(data)] else hashlib.sha256(data).hexdigest()


def _open_locked(path: Path) -> int | None:
    """The file under an exclusive lock, None when another process holds it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        # Between open and lock its owner may have published it: writing to that inode would change a whole blob.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        os.close(descriptor)
