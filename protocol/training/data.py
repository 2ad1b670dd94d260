"""The data of a job as its operators see it: a manifest of token shards, each a blob named by its sha256."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from protocol.training import seeds
from protocol.training.canonical import Array, Table, decode_tensors, encode_tensors, encoded_bytes
from protocol.training.documents import canonical_json, parse_json
from protocol.training.errors import DataError
from protocol.training.spec import Digest, Spec

MAX_MANIFEST_BYTES = 64 * 2**20  # 900 thousand shards
METADATA = {"format": "gradmarket-shard-1"}
_SMALL_VOCAB = 2**16  # tokens below fit 16 bits

Tokens = npt.NDArray[np.integer[Any]]


class Manifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every shard holds `shard_sequences` sequences of `sequence` + 1 tokens, the last of which is only a target."""

    version: Annotated[int, Meta(ge=1, le=1)] = 1
    vocab: Annotated[int, Meta(ge=16, le=2**18)]
    sequence: Annotated[int, Meta(ge=8, le=2**17)]
    shard_sequences: Annotated[int, Meta(ge=1, le=2**22)]
    shards: Annotated[tuple[Digest, ...], Meta(min_length=1, max_length=900_000)]
    validation: Digest
    validation_sequences: Annotated[int, Meta(ge=1, le=2**22)]
    tokenizer: Digest

    @property
    def shard_tokens(self) -> int:
        """Training tokens (targets) of a shard."""
        return self.shard_sequences * self.sequence


def encode_manifest(manifest: Manifest) -> bytes:
    """Canonical JSON."""
    return canonical_json(manifest)


def decode_manifest(data: bytes) -> Manifest:
    """Strict and canonical. Raises DataError in one line."""
    manifest = parse_json(data, Manifest, DataError, "manifest", MAX_MANIFEST_BYTES)
    if encode_manifest(manifest) != data:
        raise DataError("manifest: expected canonical JSON (sorted keys, no spaces)")
    return manifest


def check_manifest(spec: Spec, manifest: Manifest) -> None:
    """Raise DataError where a job's spec and its data do not fit: found at posting, or before anything is claimed."""
    pairs = {
        "vocab": (spec.model.vocab, manifest.vocab),
        "sequence": (spec.inner.sequence, manifest.sequence),
        "validation": (spec.data.validation, manifest.validation),
        "tokenizer": (spec.tokenizer, manifest.tokenizer),
    }
    for field, (expected, have) in pairs.items():
        if expected != have:
            raise DataError(
                f"manifest {field}: expected the spec's {expected}, have {have}; pack again or fix the spec"
            )


def shard_digest(manifest: Manifest, round: int, shard: int, shards_per_round: int) -> str:
    """The data shard that a claim trains: one after the other, and from the start again when all are used."""
    return manifest.shards[(round * shards_per_round + shard) % len(manifest.shards)]


def shard_bytes(manifest: Manifest) -> int:
    """The exact size of every training shard's blob."""
    return encoded_bytes(_table(manifest.vocab, manifest.sequence, manifest.shard_sequences), METADATA)


def encode_tokens(tokens: Tokens, vocab: int) -> bytes:
    """Canonical bytes of sequences [S, T+1]."""
    table = _table(vocab, tokens.shape[1] - 1, len(tokens))
    kind = "<u2" if vocab <= _SMALL_VOCAB else "<i4"
    array: Array = tokens.astype(kind)
    return encode_tensors(table, METADATA, {"tokens": array})


def load_shard(data: bytes, manifest: Manifest) -> Tokens:
    """Sequences [S, T+1] of a training shard that the manifest names. Raises DataError."""
    return _load(data, manifest, manifest.shard_sequences, manifest.shards, "shard")


def load_validation(data: bytes, manifest: Manifest) -> Tokens:
    """Sequences [S, T+1] of the validation split. Raises DataError."""
    return _load(data, manifest, manifest.validation_sequences, (manifest.validation,), "validation split")


def batch_order(job_id: bytes, round: int, shard: int, sequences: int, steps: int, batch: int) -> npt.NDArray[np.int64]:
    """[steps, batch] indices of sequences: a permutation of the shard by H(job, round, shard), again for each pass."""
    passes = -(-steps * batch // sequences)
    seed = seeds.claim_seed("batches", job_id, round, shard)
    orders = [seeds.order(seed + number.to_bytes(4, "big"), sequences) for number in range(passes)]
    return np.concatenate(orders)[: steps * batch].reshape(steps, batch)


def _load(data: bytes, manifest: Manifest, sequences: int, names: tuple[str, ...], what: str) -> Tokens:
    digest = hashlib.sha256(data).hexdigest()
    table = _table(manifest.vocab, manifest.sequence, sequences)
    tokens = decode_tensors(data, table, METADATA, DataError, what)["tokens"]
    if digest not in names:
        raise DataError(f"{what}: the manifest does not name a blob with sha256 {digest}")
    integers: Tokens = tokens.astype(np.int32)
    if int(integers.max()) >= manifest.vocab or int(integers.min()) < 0:
        raise DataError(f"{what}: tokens must be in 0…{manifest.vocab - 1}, have up to {integers.max()}")
    return integers


def _table(vocab: int, sequence: int, sequences: int) -> Table:
    kind = "U16" if vocab <= _SMALL_VOCAB else "I32"
    return {"tokens": (kind, (sequences, sequence + 1))}
