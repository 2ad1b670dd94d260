"""Images as a job's data: packed, named by digest, and refused when they are another's."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from protocol.training.data import (
    check_manifest,
    decode_manifest,
    encode_manifest,
    load_shard,
    load_validation,
    shard_bytes,
    shard_digest,
    validation_bytes,
)
from protocol.training.errors import DataError
from protocol.training.families import VitSpec
from protocol.training.images import encode_images
from protocol.training.inner import Trainer
from protocol.training.pack import ImagePack, pack_images
from protocol.training.spec import DataSpec, Spec
from tests.helpers.digits import CLASSES, digit_rows, load_digits
from tests.unit.training_families_test import VIT, spec_of
from tests.unit.training_fixtures import a_checkpoint, a_spec


def a_pack(folder: Path, seed: int = 0, max_shards: int | None = None) -> ImagePack:
    pixels, labels = load_digits()
    return pack_images(pixels, labels, folder, classes=CLASSES, shard_images=200, seed=seed, max_shards=max_shards)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> ImagePack:
    return a_pack(tmp_path_factory.mktemp("images"))


def blob(pack: ImagePack, digest: str) -> bytes:
    return (pack.out_dir / digest).read_bytes()


def a_job(pack: ImagePack, **changes: Any) -> Spec:
    data = DataSpec(manifest=pack.manifest_digest, validation=pack.manifest.validation)
    return msgspec.structs.replace(spec_of(VIT), data=data, **changes)


def test_a_pack_is_repeatable_and_everything_is_named_by_its_digest(pack: ImagePack, tmp_path: Path) -> None:
    assert a_pack(tmp_path / "again").manifest_digest == pack.manifest_digest
    assert a_pack(tmp_path / "other", seed=1).manifest.shards != pack.manifest.shards
    assert a_pack(tmp_path / "few", max_shards=2).manifest.shards == pack.manifest.shards[:2]
    assert {hashlib.sha256(path.read_bytes()).hexdigest() for path in pack.out_dir.iterdir()} == {
        path.name for path in pack.out_dir.iterdir()
    }
    manifest = decode_manifest(blob(pack, pack.manifest_digest))
    assert manifest == pack.manifest
    assert {len(blob(pack, name)) for name in manifest.shards} == {shard_bytes(manifest)}
    assert len(blob(pack, manifest.validation)) == validation_bytes(manifest)
    assert (manifest.kind, manifest.shard_examples, manifest.validation_examples) == ("images", 200, 89)
    assert shard_digest(manifest, 1, 0, 8) == manifest.shards[0]


def test_every_image_comes_back_with_its_label_and_none_is_both_trained_and_held_out(pack: ImagePack) -> None:
    shards = [load_shard(blob(pack, name), pack.manifest) for name in pack.manifest.shards]
    held = load_validation(blob(pack, pack.manifest.validation), pack.manifest)
    assert {rows.shape for rows in shards} == {(200, 65)} and held.shape == (89, 65)
    everything = {row.tobytes() for row in digit_rows()}
    trained = {row.tobytes() for rows in shards for row in rows}
    kept = {row.tobytes() for row in held}
    assert trained | kept <= everything and not trained & kept
    assert len(trained) == 1600


def test_packed_images_can_be_trained_and_measured(pack: ImagePack) -> None:
    spec = a_job(pack)
    check_manifest(spec, pack.manifest)
    trainer = Trainer(spec)
    rows = load_shard(blob(pack, pack.manifest.shards[0]), pack.manifest)
    result = trainer.train(a_checkpoint(spec), rows, job_id=b"images", round=0, shard=0)
    assert len(result.rows) == spec.inner.steps
    assert trainer.validation_loss(load_validation(blob(pack, pack.manifest.validation), pack.manifest)) > 0


def test_a_shard_that_is_not_the_named_one_is_refused(pack: ImagePack) -> None:
    good = blob(pack, pack.manifest.shards[0])
    turned = bytearray(good)
    turned[-1] ^= 1
    for bad in (b"", good[:-1], good + b"\0", b"\x80\x04" + good, good.replace(b"U8", b"I8"), bytes(turned)):
        with pytest.raises(DataError) as caught:
            load_shard(bad, pack.manifest)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="does not name a blob"):
        load_shard(bytes(turned), pack.manifest)
    with pytest.raises(DataError, match=r"tensor labels: expected U16 \[200\], have U16 \[89\]"):
        load_shard(blob(pack, pack.manifest.validation), pack.manifest)


def test_a_label_that_is_no_class_is_refused_also_under_its_own_name(pack: ImagePack) -> None:
    wrong = encode_images(np.zeros((200, 1, 8, 8), np.uint8), np.full(200, CLASSES))
    named = msgspec.structs.replace(pack.manifest, shards=(hashlib.sha256(wrong).hexdigest(),))
    with pytest.raises(DataError, match="shard: labels must be in 0…9, have up to 10"):
        load_shard(wrong, named)


def test_a_manifest_is_strict_and_names_its_kind(pack: ImagePack) -> None:
    data = encode_manifest(pack.manifest)
    table = json.loads(data)
    assert table["kind"] == "images"
    bad: list[dict[str, Any]] = [
        {"kind": "sounds"},
        {"kind": "tokens"},
        {"kind": 3},
        {"vocab": 300},
        {"size": 10**6},
        {"classes": 2**17},
        {"channels": 0},
        {"shards": []},
    ]
    for changes in bad:
        with pytest.raises(DataError) as caught:
            decode_manifest(json.dumps(table | changes, sort_keys=True, separators=(",", ":")).encode())
        assert "\n" not in str(caught.value)
    del table["kind"]
    with pytest.raises(DataError):  # a manifest that names no kind is one of tokens
        decode_manifest(json.dumps(table, sort_keys=True, separators=(",", ":")).encode())


def test_data_of_another_kind_or_size_than_the_model_takes_is_told_before_anything_is_claimed(pack: ImagePack) -> None:
    larger = VitSpec(channels=1, size=16, patch=4, classes=CLASSES, width=32, layers=1, heads=2, feed_forward=64)
    more = msgspec.structs.replace(VIT, classes=12)
    cases: list[tuple[Spec, str]] = [
        (a_spec(), "manifest kind: expected the spec's tokens, have images"),
        (a_job(pack, model=larger), "manifest size: expected the spec's 16, have 8"),
        (a_job(pack, model=more), "manifest classes: expected the spec's 12, have 10"),
        (spec_of(VIT), "manifest validation: expected the spec's 0000"),
    ]
    for spec, words in cases:
        with pytest.raises(DataError, match=words):
            check_manifest(spec, pack.manifest)


def test_rows_that_the_model_cannot_take_are_refused_by_the_trainer() -> None:
    spec, rows = spec_of(VIT), digit_rows()[:40]
    bright, strange = rows.copy(), rows.copy()
    bright[0, 0], strange[0, -1] = 256, CLASSES
    for bad in (rows[:, :-1], rows[:0], bright, strange, rows.astype(np.int64) - 1):
        with pytest.raises(DataError):
            Trainer(spec).train(a_checkpoint(spec), bad, job_id=b"images", round=0, shard=0)


def test_images_that_cannot_be_packed_are_answered_in_one_line(tmp_path: Path) -> None:
    pixels, labels = load_digits()
    bad: list[tuple[Any, Any, int, str]] = [
        (pixels.astype(np.float32), labels, 200, "square images .* of bytes, have float32"),
        (pixels[:, :, :4], labels, 200, r"have uint8 \(1797, 1, 4, 8\)"),
        (pixels, labels + 1, 200, "a label in 0…9 for each of 1797 images"),
        (pixels, labels[:-1], 200, "a label in 0…9 for each of 1797 images"),
        (pixels[:50], labels[:50], 200, "48 images to train, a shard needs 200"),
        (pixels[:0], labels[:0], 1, "0 images to train, a shard needs 1"),
    ]
    for images, names, size, words in bad:
        with pytest.raises(DataError, match=words):
            pack_images(images, names, tmp_path, classes=CLASSES, shard_images=size)
