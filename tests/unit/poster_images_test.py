"""A job of images from its folder to its model: what the poster checks, and what the compute process does by paths."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from node.operator.compute import train
from node.poster.blobs import check_blobs
from node.poster.errors import BlobsIncomplete
from protocol.training.checkpoint import encode_checkpoint, genesis_checkpoint
from protocol.training.pack import pack_images
from protocol.training.spec import DataSpec, encode_spec
from tests.helpers.digits import CLASSES, load_digits
from tests.unit.training_families_test import VIT, spec_of
from tests.unit.training_fixtures import a_spec
from verifier.compute import evaluate, export, genesis, outer_step, replay


def test_a_job_of_images_is_checked_trained_replayed_closed_measured_and_exported(tmp_path: Path) -> None:
    pixels, labels = load_digits()
    packed = pack_images(pixels, labels, tmp_path / "blobs", classes=CLASSES, shard_images=500)
    manifest = packed.manifest
    spec = msgspec.structs.replace(
        spec_of(VIT, steps=60), data=DataSpec(manifest=packed.manifest_digest, validation=manifest.validation)
    )
    assert check_blobs(packed.out_dir, spec) == manifest
    path, base = str(tmp_path / "spec"), str(tmp_path / "base")
    Path(path).write_bytes(encode_spec(spec))
    genesis(path, base)
    assert Path(base).read_bytes() == encode_checkpoint(spec, genesis_checkpoint(spec))
    names = {"manifest": packed.manifest_digest, "data": manifest.shards[0], "validation": manifest.validation}
    files = {name: str(packed.out_dir / digest) for name, digest in names.items()}
    place = {"job": "11" * 32, "round": 0, "shard": 0}
    arguments = {"spec": path, "base": base, "manifest": files["manifest"], "data": files["data"]}
    first = train(**arguments, **place, out=str(tmp_path / "first"))  # type: ignore[arg-type]
    again = replay(**arguments, **place, out=str(tmp_path / "again"))  # type: ignore[arg-type]
    assert first == again
    after = str(tmp_path / "after")
    outer_step(path, base, {"0": str(tmp_path / "first" / "payload")}, after)
    losses = [evaluate(path, state, files["manifest"], files["validation"]) for state in (base, after)]
    assert losses[1] < 0.95 * losses[0]
    export(path, after, None, str(tmp_path / "model"), {"job": "11"})
    assert "image-classification" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert not (tmp_path / "model" / "tokenizer.json").exists()


def test_a_folder_of_images_for_a_model_of_text_is_refused(tmp_path: Path) -> None:
    pixels, labels = load_digits()
    packed = pack_images(pixels, labels, tmp_path, classes=CLASSES, shard_images=500)
    data = DataSpec(manifest=packed.manifest_digest, validation=packed.manifest.validation)
    with pytest.raises(BlobsIncomplete, match="manifest kind: expected the spec's tokens, have images"):
        check_blobs(tmp_path, a_spec(data=data))
