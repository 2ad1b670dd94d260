"""The data of a job as its operators see it: a manifest of shards of tokens or of images, blobs named by sha256."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from protocol.training import seeds
from protocol.training.canonical import Array, Table, decode_tensors, encode_header, encode_tensors, encoded_bytes
from protocol.training.documents import canonical_json, parse_json
from protocol.training.errors import DataError
from protocol.training.families import family_of
from protocol.training.families.base import Kind, Rows
from protocol.training.images import IMAGE_METADATA, ImageManifest, image_rows, image_table
from protocol.training.spec import Digest, Spec

MAX_SHARDS = 900_000
MAX_MANIFEST_BYTES = 64 * 2**20  # with so many
MAX_VALIDATION = 2**22  # sequences
METADATA = {"format": "gradmarket-shard-1"}
_SMALL_VOCAB = 2**16  # tokens below fit 16 bits

Tokens = Rows  # sequences [S, T+1]


class TokenManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every shard holds `shard_sequences` sequences of `sequence` + 1 tokens, the last of which is only a target."""

    version: Annotated[int, Meta(ge=1, le=1)] = 1
    vocab: Annotated[int, Meta(ge=16, le=2**18)]
    sequence: Annotated[int, Meta(ge=8, le=2**17)]
    shard_sequences: Annotated[int, Meta(ge=1, le=2**22)]
    shards: Annotated[tuple[Digest, ...], Meta(min_length=1, max_length=MAX_SHARDS)]
    validation: Digest
    validation_sequences: Annotated[int, Meta(ge=1, le=MAX_VALIDATION)]
    tokenizer: Digest

    @property
    def shard_tokens(self) -> int:
        """Training tokens (targets) of a shard."""
        return self.shard_sequences * self.sequence

    @property
    def kind(self) -> Kind:
        """Not in the file: a manifest that names no kind is one of tokens."""
        return "tokens"

    @property
    def shard_examples(self) -> int:
        """Examples of a shard."""
        return self.shard_sequences

    @property
    def validation_examples(self) -> int:
        """Examples of the validation split."""
        return self.validation_sequences


Manifest = TokenManifest | ImageManifest


class _Kind(Struct):
    kind: str = "tokens"


def encode_manifest(manifest: Manifest) -> bytes:
    """Canonical JSON."""
    return canonical_json(manifest)


def decode_manifest(data: bytes) -> Manifest:
    """Strict and canonical. Raises DataError in one line."""
    kind = parse_json(data, _Kind, DataError, "manifest", MAX_MANIFEST_BYTES).kind
    manifest: Manifest
    if kind == "images":
        manifest = parse_json(data, ImageManifest, DataError, "manifest", MAX_MANIFEST_BYTES)
    else:
        manifest = parse_json(data, TokenManifest, DataError, "manifest", MAX_MANIFEST_BYTES)
    if encode_manifest(manifest) != data:
        raise DataError("manifest: expected canonical JSON (sorted keys, no spaces)")
    return manifest


def check_manifest(spec: Spec, manifest: Manifest) -> None:
    """Raise DataError where a job's spec and its data do not fit: found at posting, or before anything is claimed."""
    family = family_of(spec.model)
    fields: dict[str, object] = {"kind": family.kind, **family.manifest_fields(spec.model, spec.inner.sequence)}
    fields |= {"validation": spec.data.validation, "tokenizer": spec.tokenizer}
    for field, expected in fields.items():
        if expected != (have := getattr(manifest, field, None)):
            raise DataError(
                f"manifest {field}: expected the spec's {expected}, have {have}; pack again or fix the spec"
            )


def shard_digest(manifest: Manifest, round: int, shard: int, shards_per_round: int) -> str:
    """The data shard that a claim trains: one after the other, and from the start again when all are used."""
    return manifest.shards[(round * shards_per_round + shard) % len(manifest.shards)]


def shard_bytes(manifest: Manifest) -> int:
    """The exact size of every training shard's blob."""
    return _bytes_of(manifest, manifest.shard_examples)


def validation_bytes(manifest: Manifest) -> int:
    """The exact size of the validation split's blob."""
    return _bytes_of(manifest, manifest.validation_examples)


def token_type(vocab: int) -> np.dtype[np.integer[Any]]:
    """How a token is written."""
    return np.dtype("<u2" if vocab <= _SMALL_VOCAB else "<i4")


def shard_header(vocab: int, sequence: int, sequences: int) -> bytes:
    """What a blob of tokens begins with; the rows follow, one after the other."""
    return encode_header(_table(vocab, sequence, sequences), METADATA)


def encode_tokens(tokens: Tokens, vocab: int) -> bytes:
    """Canonical bytes of sequences [S, T+1]."""
    table = _table(vocab, tokens.shape[1] - 1, len(tokens))
    array: Array = tokens.astype(token_type(vocab))
    return encode_tensors(table, METADATA, {"tokens": array})


def load_shard(data: bytes, manifest: Manifest) -> Rows:
    """Examples [S, E] of a training shard that the manifest names. Raises DataError."""
    return _load(data, manifest, manifest.shard_examples, manifest.shards, "shard")


def load_validation(data: bytes, manifest: Manifest) -> Rows:
    """Examples [S, E] of the validation split. Raises DataError."""
    return _load(data, manifest, manifest.validation_examples, (manifest.validation,), "validation split")


def batch_order(job_id: bytes, round: int, shard: int, sequences: int, steps: int, batch: int) -> npt.NDArray[np.int64]:
    """[steps, batch] indices of sequences: a permutation of the shard by H(job, round, shard), again for each pass."""
    passes = -(-steps * batch // sequences)
    seed = seeds.claim_seed("batches", job_id, round, shard)
    orders = [seeds.order(seed + number.to_bytes(4, "big"), sequences) for number in range(passes)]
    return np.concatenate(orders)[: steps * batch].reshape(steps, batch)


def _load(data: bytes, manifest: Manifest, examples: int, names: tuple[str, ...], what: str) -> Rows:
    digest = hashlib.sha256(data).hexdigest()
    table, metadata = _file(manifest, examples)
    tensors = decode_tensors(data, table, metadata, DataError, what)
    if digest not in names:
        raise DataError(f"{what}: the manifest does not name a blob with sha256 {digest}")
    if isinstance(manifest, ImageManifest):
        return image_rows(tensors, manifest.classes, what)
    integers: Tokens = tensors["tokens"].astype(np.int32)
    if int(integers.max()) >= manifest.vocab or int(integers.min()) < 0:
        raise DataError(f"{what}: tokens must be in 0…{manifest.vocab - 1}, have up to {integers.max()}")
    return integers


def _bytes_of(manifest: Manifest, examples: int) -> int:
    return encoded_bytes(*_file(manifest, examples))


def _file(manifest: Manifest, examples: int) -> tuple[Table, dict[str, str]]:
    """Tensors and metadata of a file of so many examples."""
    if isinstance(manifest, ImageManifest):
        return image_table(manifest.channels, manifest.size, examples), IMAGE_METADATA
    return _table(manifest.vocab, manifest.sequence, examples), METADATA


def _table(vocab: int, sequence: int, sequences: int) -> Table:
    kind = "U16" if vocab <= _SMALL_VOCAB else "I32"
    return {"tokens": (kind, (sequences, sequence + 1))}
