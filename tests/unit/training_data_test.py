"""Packing text, and what a shard, a manifest or a checkpoint from a stranger may be."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from protocol.training.checkpoint import (
    checkpoint_bytes,
    checkpoint_digest,
    decode_checkpoint,
    encode_checkpoint,
    genesis_checkpoint,
)
from protocol.training.data import (
    TokenManifest,
    check_manifest,
    decode_manifest,
    encode_manifest,
    load_shard,
    load_validation,
    shard_bytes,
    shard_digest,
)
from protocol.training.errors import CheckpointError, DataError
from protocol.training.families import LlamaSpec
from protocol.training.pack import PackResult, load_tokenizer, pack_text
from protocol.training.spec import DataSpec, InnerSpec
from tests.unit.training_fixtures import a_checkpoint, a_spec

ROOT = Path(__file__).parents[2]
WORDS = (
    "the quick brown fox jumps over a lazy dog",
    "while seven wise owls",
    "watch from an old oak tree",
)


def a_text(number: int) -> str:
    chance = np.random.default_rng(number)
    lines = (" ".join(chance.choice(WORDS, 9)) for _ in range(400))
    return "\n".join(lines) + f"\nthe end of text {number}\n"


def a_pack(folder: Path, name: str = "out", seed: int = 0, max_shards: int | None = None) -> PackResult:
    paths = [folder / f"{number}.txt" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_text(a_text(number), encoding="utf-8")
    return pack_text(paths, folder / name, vocab=300, sequence=16, shard_sequences=8, seed=seed, max_shards=max_shards)


def test_a_pack_is_repeatable_and_everything_is_named_by_its_digest(tmp_path: Path) -> None:
    pack = a_pack(tmp_path)
    assert a_pack(tmp_path, "again").manifest_digest == pack.manifest_digest
    assert a_pack(tmp_path, "other", seed=1).manifest.shards != pack.manifest.shards
    for path in pack.out_dir.glob("[!.]*"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
    manifest = decode_manifest((pack.out_dir / pack.manifest_digest).read_bytes())
    assert manifest == pack.manifest
    assert manifest.shard_tokens == 8 * 16
    assert {len((pack.out_dir / name).read_bytes()) for name in manifest.shards} == {shard_bytes(manifest)}


def test_the_held_out_tail_is_never_trained(tmp_path: Path) -> None:
    pack = a_pack(tmp_path)
    tokenizer = load_tokenizer((pack.out_dir / pack.manifest.tokenizer).read_bytes())
    shards = [load_shard((pack.out_dir / d).read_bytes(), pack.manifest) for d in pack.manifest.shards]
    trained = " ".join(tokenizer.decode(row.tolist()) for shard in shards for row in shard)
    held = load_validation((pack.out_dir / pack.manifest.validation).read_bytes(), pack.manifest)
    kept = " ".join(tokenizer.decode(row.tolist()) for row in held)
    assert "text" not in trained and "text" in kept
    assert all(len(shard) == 8 and shard.shape[1] == 17 for shard in shards)


def test_every_token_is_a_target_once_and_the_rest_is_dropped(tmp_path: Path) -> None:
    pack = a_pack(tmp_path, max_shards=2)
    assert len(pack.manifest.shards) == 2
    full = a_pack(tmp_path, "full")
    assert full.manifest.shards[:2] == pack.manifest.shards


def test_a_given_tokenizer_is_used_and_text_survives_it(tmp_path: Path) -> None:
    pack = a_pack(tmp_path)
    blob = (pack.out_dir / pack.manifest.tokenizer).read_bytes()
    text = tmp_path / "own.txt"
    text.write_text("Æthelred, naïve owls — and ☃!\n" * 80, encoding="utf-8")
    own = pack_text([text], tmp_path / "own", vocab=300, sequence=16, shard_sequences=4, tokenizer=blob)
    assert own.manifest.tokenizer == pack.manifest.tokenizer
    tokenizer = load_tokenizer(blob)
    assert tokenizer.decode(tokenizer.encode("naïve ☃\n").ids) == "naïve ☃\n"


def test_too_little_text_and_unreadable_files_are_answered_in_one_line(tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("not much", encoding="utf-8")
    with pytest.raises(DataError, match="give more text"):
        pack_text([short], tmp_path / "o", vocab=300, sequence=16, shard_sequences=8)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, words in (("binary", "not UTF-8 text: byte 0 is 0xff"), ("absent", "cannot be read: No such file")):
        with pytest.raises(DataError, match=words):
            pack_text([tmp_path / name], tmp_path / "o", vocab=300, sequence=16, shard_sequences=8)
    with pytest.raises(DataError, match=r"bytes alone need \d+ tokens, asked for 100"):
        pack_text([short], tmp_path / "o", vocab=100, sequence=16, shard_sequences=8)
    with pytest.raises(DataError, match=r"not a tokenizer.json"):
        load_tokenizer(b"\x80\x04.")


def test_a_shard_that_is_not_the_named_one_is_refused(tmp_path: Path) -> None:
    pack = a_pack(tmp_path)
    good = (pack.out_dir / pack.manifest.shards[0]).read_bytes()
    turned = bytearray(good)
    turned[-2] ^= 1
    for bad in (b"", good[:-2], good + b"\0\0", b"\x80\x04" + good, good.replace(b"U16", b"F16"), bytes(turned)):
        with pytest.raises(DataError) as caught:
            load_shard(bad, pack.manifest)
        assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="does not name a blob"):
        load_shard(bytes(turned), pack.manifest)


def test_a_manifest_is_strict(tmp_path: Path) -> None:
    data = encode_manifest(a_pack(tmp_path).manifest)
    table = json.loads(data)
    bad = [
        b"[]",
        b"not json",
        data + b" ",
        json.dumps(table | {"shards": []}).encode(),
        json.dumps(table | {"sequence": 10**9}).encode(),
        json.dumps(table | {"shards": ["../x"]}).encode(),
        json.dumps(table | {"more": 1}).encode(),
    ]
    for entry in bad:
        with pytest.raises(DataError):
            decode_manifest(entry)


def test_a_spec_and_a_manifest_that_do_not_fit_are_told_before_anything_is_claimed(tmp_path: Path) -> None:
    manifest = a_pack(tmp_path).manifest
    with pytest.raises(DataError, match="manifest vocab: expected the spec's 96, have 300"):
        check_manifest(a_spec(), manifest)
    spec = a_spec(
        model=LlamaSpec(vocab=300, width=32, layers=2, heads=2, kv_heads=1, feed_forward=48),
        tokenizer=manifest.tokenizer,
        data=DataSpec(manifest="0" * 64, validation=manifest.validation),
        inner=InnerSpec(lr=1e-3, steps=2, batch=4, micro_batch=4, sequence=16),
    )
    check_manifest(spec, manifest)


def test_claims_walk_through_the_shards_and_start_again() -> None:
    names = tuple(f"{number:064x}" for number in range(5))
    manifest = TokenManifest(
        vocab=300,
        sequence=16,
        shard_sequences=8,
        shards=names,
        validation=names[0],
        validation_sequences=1,
        tokenizer=names[0],
    )
    walked = [shard_digest(manifest, r, s, 3) for r in range(2) for s in range(3)]
    assert walked == [*names, names[0]]


def test_a_checkpoint_survives_encoding_and_the_library_reads_it() -> None:
    from safetensors.numpy import load

    spec = a_spec()
    data = encode_checkpoint(spec, a_checkpoint(spec))
    assert len(data) == checkpoint_bytes(spec)
    assert encode_checkpoint(spec, decode_checkpoint(spec, data)) == data
    assert checkpoint_digest(spec, a_checkpoint(spec)) == hashlib.sha256(data).hexdigest()
    assert (load(data)["weights/model.norm.weight"] == a_checkpoint(spec).weights["model.norm.weight"]).all()


def test_a_checkpoint_that_is_not_exactly_this_jobs_is_refused() -> None:
    spec = a_spec()
    good = encode_checkpoint(spec, a_checkpoint(spec))
    nan = good[:-4] + np.array([np.nan], "<f4").tobytes()
    for bad in (b"", b"\x80\x04.", good[:-4], good + b"\0" * 4, good.replace(b"F32", b"I32"), nan):
        with pytest.raises(CheckpointError) as caught:
            decode_checkpoint(spec, bad)
        assert "\n" not in str(caught.value)
    with pytest.raises(CheckpointError, match="fetch it instead"):
        genesis_checkpoint(a_spec(genesis="ab" * 32))


def test_judging_and_the_outer_step_load_no_torch() -> None:
    """A node that only plans, attests or judges starts in a fraction of a second."""
    modules = ["spec", "layout", "data", "checkpoint", "compress", "outer", "compare", "result"]
    script = "import sys\n" + "".join(f"import protocol.training.{name}\n" for name in modules)
    script += "print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout.split() == ["False", "False"], done.stderr
