"""The poster's folder: checked byte by byte before posting, served as it is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from node.poster.blobs import FolderStore, check_blobs, open_folder
from node.poster.errors import BlobsIncomplete
from protocol.training.pack import PackResult, pack_text
from protocol.training.spec import DataSpec, Spec
from protocol.transport.addresses import LOCAL
from protocol.transport.blobs import BlobStore
from protocol.transport.client import BlobClient
from protocol.transport.server import BlobServer
from tests.unit.training_fixtures import a_spec


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> PackResult:
    folder = tmp_path_factory.mktemp("pack")
    (folder / "text.txt").write_text("".join(f"{i} sheep and {i * i % 97} goats.\n" for i in range(400)))
    return pack_text(
        [folder / "text.txt"],
        folder / "blobs",
        vocab=300,
        sequence=32,
        shard_sequences=4,
        max_shards=3,
        max_validation=4,
    )


def spec_of(packed: PackResult, **changes: object) -> Spec:
    data = DataSpec(manifest=packed.manifest_digest, validation=packed.manifest.validation)
    model = msgspec.structs.replace(a_spec().model, vocab=300)
    return a_spec(**{"tokenizer": packed.manifest.tokenizer, "data": data, "model": model} | changes)


def test_a_complete_folder_is_accepted(packed: PackResult) -> None:
    assert check_blobs(packed.out_dir, spec_of(packed)) == packed.manifest


def test_a_missing_or_changed_blob_is_named(packed: PackResult, tmp_path: Path) -> None:
    names = {
        packed.manifest_digest: "the manifest",
        packed.manifest.validation: "the validation split",
        packed.manifest.tokenizer: "the tokenizer",
        packed.manifest.shards[1]: "shard 1 of 3",
    }
    for digest, what in names.items():
        path = packed.out_dir / digest
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(BlobsIncomplete, match=rf"{what} \({digest[:12]}…\) cannot be read: No such file"):
            check_blobs(packed.out_dir, spec_of(packed))
        path.write_bytes(data[:-1] + b"?")
        with pytest.raises(BlobsIncomplete, match=f"{what} was changed"):
            check_blobs(packed.out_dir, spec_of(packed))
        path.write_bytes(data)
    with pytest.raises(
        BlobsIncomplete, match="expected the folder of packed data; make it with `gradmarket data pack`"
    ):
        open_folder(tmp_path / "nowhere")


def test_a_spec_for_other_data_is_refused(packed: PackResult) -> None:
    for changes in ({"model": a_spec().model}, {"tokenizer": "0" * 64}):
        with pytest.raises(BlobsIncomplete, match=r"expected the spec's .*, have .*; pack again or fix the spec"):
            check_blobs(packed.out_dir, spec_of(packed, **changes))


def test_a_spec_that_starts_from_a_blob_needs_it(packed: PackResult) -> None:
    with pytest.raises(BlobsIncomplete, match="checkpoint 0"):
        check_blobs(packed.out_dir, spec_of(packed, genesis="a" * 64))


async def test_a_folder_is_served_without_a_copy_and_with_what_is_added_later(
    packed: PackResult, tmp_path: Path
) -> None:
    async with BlobServer(open_folder(packed.out_dir)) as server, BlobClient(BlobStore(tmp_path), LOCAL) as client:
        digest = packed.manifest.shards[0]
        assert (await client.fetch(digest, [server.url], max_bytes=2**20)).read_bytes() == (
            packed.out_dir / digest
        ).read_bytes()
        late = FolderStore(packed.out_dir).put(b"spec")
        assert (await client.fetch(late, [server.url], max_bytes=2**20)).read_bytes() == b"spec"
    assert not list((packed.out_dir / ".seed" / "blobs").iterdir())
    (packed.out_dir / late).unlink()
