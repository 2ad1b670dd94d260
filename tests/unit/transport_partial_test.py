"""Unfinished downloads: what is found again, and who may write."""

import fcntl
import hashlib
import os
from pathlib import Path

import pytest

from protocol.transport.blobs import CHUNK_BYTES, BlobStore
from protocol.transport.partial import Partial

DATA = os.urandom(2 * CHUNK_BYTES + 10)
DIGEST = hashlib.sha256(DATA).hexdigest()
PARTS = [DATA[:CHUNK_BYTES], DATA[CHUNK_BYTES : 2 * CHUNK_BYTES], DATA[2 * CHUNK_BYTES :]]
CHUNKS = [hashlib.sha256(part).hexdigest() for part in PARTS]


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path)


def test_what_was_written_is_found_again_by_its_bytes(store: BlobStore) -> None:
    with Partial(store, DIGEST, len(DATA)) as partial:
        assert partial.missing(CHUNKS) == partial.missing(None) == [0, 1, 2]
        partial.write(2, PARTS[2], CHUNKS[2])
        partial.write(0, PARTS[0], CHUNKS[0])
    with Partial(store, DIGEST, len(DATA)) as again:
        assert again.digests == [CHUNKS[0], None, CHUNKS[2]]
        assert again.missing(CHUNKS) == [1]


def test_a_chunk_torn_by_a_crash_is_fetched_again(store: BlobStore) -> None:
    with Partial(store, DIGEST, len(DATA)) as partial:
        partial.write(0, PARTS[0][:1000], CHUNKS[0])
    with Partial(store, DIGEST, len(DATA)) as again:
        assert again.missing(CHUNKS) == [0, 1, 2]


def test_a_second_writer_gets_a_file_of_its_own(store: BlobStore) -> None:
    with Partial(store, DIGEST, len(DATA)) as first, Partial(store, DIGEST, len(DATA)) as second:
        assert first.path != second.path
        second.write(0, PARTS[0], CHUNKS[0])
        assert first.path.read_bytes() == bytes(len(DATA))


def test_a_file_that_was_published_before_it_was_locked_is_not_written(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, published = store.partial_path(DIGEST, len(DATA)), store.root / "published"
    lock = fcntl.flock

    def published_first(descriptor: int, operation: int) -> None:
        if not published.exists():
            path.rename(published)
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", published_first)
    with Partial(store, DIGEST, len(DATA)) as partial:
        partial.write(0, PARTS[0], CHUNKS[0])
    assert published.read_bytes() == b""
    assert path.read_bytes()[:CHUNK_BYTES] == PARTS[0]
