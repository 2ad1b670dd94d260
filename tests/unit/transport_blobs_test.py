"""The content-addressed store: names, digests, full disks, damaged disks."""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from protocol.transport.blobs import CHUNK_BYTES, STALE_SECONDS, BlobStore
from protocol.transport.errors import BadDigest, BlobMissing, BlobTooLarge, StoreUnusable, WrongDigest


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "store")


def test_what_is_put_is_read_back_under_its_sha256(store: BlobStore) -> None:
    data = os.urandom(1000)
    digest = store.put(data)
    assert digest == hashlib.sha256(data).hexdigest()
    assert store.has(digest)
    assert store.size(digest) == 1000
    assert store.read(digest, 1000) == data
    assert list(store.digests()) == [digest]


def test_putting_twice_is_no_error(store: BlobStore) -> None:
    assert store.put(b"same") == store.put(b"same")


def test_a_file_is_copied_with_its_chunk_list(store: BlobStore, tmp_path: Path) -> None:
    data = os.urandom(CHUNK_BYTES + 5)
    (tmp_path / "big").write_bytes(data)
    digest = store.put_file(tmp_path / "big", kind="checkpoint")
    facts = store.facts(digest)
    assert (facts.size, facts.kind) == (len(data), "checkpoint")
    assert facts.chunks == [hashlib.sha256(part).hexdigest() for part in (data[:CHUNK_BYTES], data[CHUNK_BYTES:])]


def test_facts_are_rebuilt_when_their_file_is_damaged(store: BlobStore) -> None:
    digest = store.put(b"x" * 10)
    whole = store.facts(digest)
    (store.root / "facts" / f"{digest}.json").write_bytes(b'{"size": 10, "ki')
    assert store.facts(digest).chunks == whole.chunks


@pytest.mark.parametrize(
    "name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n", "/" + "0" * 63, "0x" + "0" * 62]
)
def test_a_name_that_is_no_digest_never_becomes_a_path(store: BlobStore, name: str) -> None:
    for use in (store.path, store.has, store.delete, store.size, lambda digest: store.partial_path(digest, 1)):
        with pytest.raises(BadDigest, match="64 lower-case hex"):
            use(name)


def test_a_missing_blob_is_named_in_the_error(store: BlobStore) -> None:
    with pytest.raises(BlobMissing, match="0000"):
        store.read("0" * 64, 10)


def test_reading_stops_at_the_cap(store: BlobStore) -> None:
    digest = store.put(b"12345")
    with pytest.raises(BlobTooLarge, match="5 bytes, expected at most 4"):
        store.read(digest, 4)


def test_a_blob_that_rotted_on_disk_is_removed_when_read(store: BlobStore) -> None:
    digest = store.put(b"12345")
    store.path(digest).write_bytes(b"12346")
    with pytest.raises(WrongDigest, match="damaged on this disk"):
        store.read(digest, 10)
    assert not store.has(digest)


def test_a_deleted_blob_is_gone_and_deleting_it_again_is_no_error(store: BlobStore) -> None:
    digest = store.put(b"12345")
    store.delete(digest)
    store.delete(digest)
    assert not store.has(digest)


def test_a_wrong_download_is_not_adopted(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"other")
    with pytest.raises(WrongDigest):
        store.adopt(tmp_path / "part", hashlib.sha256(b"wanted").hexdigest())
    assert list(store.digests()) == []


def test_of_two_finished_downloads_the_second_is_no_error(store: BlobStore, tmp_path: Path) -> None:
    digest = hashlib.sha256(b"wanted").hexdigest()
    (tmp_path / "part").write_bytes(b"wanted")
    for _ in range(2):
        assert store.adopt(tmp_path / "part", digest).read_bytes() == b"wanted"


def test_writes_that_nobody_finished_are_swept_after_a_week(store: BlobStore) -> None:
    old, fresh = store.root / "tmp" / "old", store.root / "partial" / ("0" * 64 + ".9")
    for path in (old, fresh):
        path.write_bytes(b"?")
    ago = time.time() - STALE_SECONDS - 60
    os.utime(old, (ago, ago))
    BlobStore(store.root)
    assert not old.exists()
    assert fresh.exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnusable, match="Not a directory"):
        BlobStore(tmp_path / "file")


FULL = """
import os, resource, sys
from pathlib import Path
from protocol.transport.blobs import BlobStore
from protocol.transport.errors import DiskFull
store = BlobStore(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
(Path(sys.argv[1]) / "source").write_bytes(bytes(4096))
try:
    store.put(os.urandom(10_000))
except DiskFull as full:
    print(full)
assert list(store.digests()) == [] and list((store.root / "tmp").iterdir()) == []
store.put(b"small enough")
"""


def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "no space left for blob" in done.stdout
    assert "of 10000 bytes; free some and try again" in done.stdout
    assert len(done.stdout.splitlines()) == 1
