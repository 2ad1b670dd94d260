"""The poster's folder of packed data, as `data pack` leaves it: one file a blob, named by its sha256."""

from __future__ import annotations

import hashlib
from pathlib import Path

from node.poster.errors import BlobsIncomplete
from protocol.core.errors import GradmarketError
from protocol.training.data import MAX_MANIFEST_BYTES, Manifest, check_manifest, decode_manifest, shard_bytes
from protocol.training.spec import Spec
from protocol.transport.blobs import BlobStore, check_digest


class FolderStore(BlobStore):
    """The folder, served as it is: nothing is copied. Chunk lists are kept in `.seed` inside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / ".seed")
        self._folder = folder

    def path(self, digest: str) -> Path:
        return self._folder / check_digest(digest)


def open_folder(folder: Path) -> FolderStore:
    """The store over an existing folder. Raises BlobsIncomplete when there is none."""
    if not folder.is_dir():
        raise BlobsIncomplete(f"{folder}: expected the folder of packed data; make it with `gradmarket data pack`")
    return FolderStore(folder)


def check_blobs(folder: Path, spec: Spec) -> Manifest:
    """Read every blob that the spec names and check its bytes. Raises BlobsIncomplete with the first that is wrong."""
    open_folder(folder)
    manifest = _manifest(folder, spec)
    _check(folder, manifest.validation, "the validation split")
    if spec.tokenizer is not None:
        _check(folder, spec.tokenizer, "the tokenizer")
    for number, digest in enumerate(manifest.shards):
        _check(folder, digest, f"shard {number} of {len(manifest.shards)}", shard_bytes(manifest))
    if isinstance(spec.genesis, str):
        _check(folder, spec.genesis, "checkpoint 0")
    return manifest


def _manifest(folder: Path, spec: Spec) -> Manifest:
    path = folder / spec.data.manifest
    _check(folder, spec.data.manifest, "the manifest")
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise BlobsIncomplete(f"{path}: {path.stat().st_size} bytes, a manifest has at most {MAX_MANIFEST_BYTES}")
    try:
        manifest = decode_manifest(path.read_bytes())
        check_manifest(spec, manifest)
    except GradmarketError as error:
        raise BlobsIncomplete(f"{path}: {error}") from None
    return manifest


def _check(folder: Path, digest: str, what: str, size: int | None = None) -> None:
    path = folder / digest
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BlobsIncomplete(
            f"{folder}: {what} ({digest[:12]}…) cannot be read: {error.strerror}; pack the data into this folder again"
        ) from None
    if found != digest:
        raise BlobsIncomplete(f"{path}: {what} was changed (its sha256 is {found[:12]}…); pack the data again")
    if size is not None and path.stat().st_size != size:
        raise BlobsIncomplete(f"{path}: {what} has {path.stat().st_size} bytes, the manifest's shards have {size}")
