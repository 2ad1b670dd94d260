"""A pack from its files to its manifest: the stages in their order, each from where it was left."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from protocol.training.data import (
    MAX_SHARDS,
    MAX_VALIDATION,
    TokenManifest,
    decode_manifest,
    encode_manifest,
)
from protocol.training.errors import DataError
from protocol.training.pack.folder import OTHER_FILES, Command, PackFolder, State
from protocol.training.pack.progress import Progress, Stage, Watch, nobody
from protocol.training.pack.shards import Windows
from protocol.training.pack.sources import check_unchanged, find_sources
from protocol.training.pack.split import Split, parts, survey
from protocol.training.pack.tokenizer import Encoder, train_tokenizer
from protocol.training.pack.tokens import open_tokens, write_tokens

SAMPLE = 2**25  # characters that a tokenizer is trained on, about


@dataclass(frozen=True)
class PackResult:
    """Where the pack lies (`out_dir`/sha256) and what names it."""

    manifest: TokenManifest
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
    field: str = "text",
    end_of_text: str | None = None,
    watch: Watch = nobody,
) -> PackResult:
    """Tokenize files and folders, hold text out, shuffle by `seed`, cut into equal shards; drop the rest.

    `tokenizer`: a tokenizer.json to use; without it a byte-level BPE of `vocab` tokens is trained on the training part.
    `max_validation`: held-out sequences; a twentieth of the text without it. `field`: of records, where their text is.
    `end_of_text`: the token after each document, "" for none, the tokenizer's own by default.
    Same files, same arguments, same bytes, also when it was killed in between and called again.
    Raises DataError for what cannot be packed, PackStopped when the disk is full.
    """
    command = Command(
        sources=find_sources(paths),
        field=field,
        vocab=vocab,
        sequence=sequence,
        shard_sequences=shard_sequences,
        seed=seed,
        max_shards=max_shards,
        validation=max_validation,
        tokenizer=None if tokenizer is None else hashlib.sha256(tokenizer).hexdigest(),
        end_of_text=end_of_text,
        library=importlib.metadata.version("tokenizers"),
    )
    folder = PackFolder(out_dir)
    with folder.locked():
        state = folder.load(command)
        if state is not None and state.command != command:  # the files were written again: perhaps with the same text
            if _survey(command, watch) != state.split:
                raise folder.other_command(OTHER_FILES)
            state = replace(state, command=command)
            folder.save(state)
        if state is not None and (done := _finished(folder, state)):
            return done
        try:
            return _Pack(folder, command, watch).run(state, tokenizer)
        except DataError:  # it would come again: leave nothing that stands in another command's way
            folder.forget()
            raise


def _survey(command: Command, watch: Watch) -> Split:
    wanted = None if command.validation is None else command.validation * (command.sequence + 1)
    return survey(command.sources, command.field, command.seed, wanted, watch)


def _finished(folder: PackFolder, state: State) -> PackResult | None:
    """The pack, if all of it lies in the folder, byte by byte."""
    if state.manifest is None or not folder.has(state.manifest):
        return None
    manifest = decode_manifest((folder.path / state.manifest).read_bytes())
    if not isinstance(manifest, TokenManifest):
        return None
    blobs = {*manifest.shards, manifest.validation, manifest.tokenizer}
    return PackResult(manifest, state.manifest, folder.path) if all(map(folder.has, blobs)) else None


class _Pack:
    def __init__(self, folder: PackFolder, command: Command, watch: Watch) -> None:
        self._folder, self._command, self._watch = folder, command, watch

    def run(self, state: State | None, given: bytes | None) -> PackResult:
        command, folder = self._command, self._folder
        blob = None if state is None or state.manifest else folder.kept_tokenizer(state.tokenizer)
        if state is None or blob is None:
            state, blob = self._begin(given)
        files = open_tokens(folder, command.vocab)
        with files[0], files[1]:
            if not state.whole or len(files[0]) != state.training or len(files[1]) != state.held_out:
                text = parts(command.sources, command.field, command.seed, state.split)
                encoder = Encoder(blob, command.vocab, command.end_of_text)
                state = write_tokens(folder, replace(state, whole=False), files, text, encoder, self._watch)
                check_unchanged(command.sources)
            training, held_out = (Windows(file, command.vocab, command.sequence, command.seed) for file in files)
            manifest = self._shards(training, held_out, blob)
        os.sync()  # the manifest is the last to come: whoever finds it finds everything
        digest = folder.put(encode_manifest(manifest))
        folder.save(replace(state, manifest=digest))
        folder.tidy()
        return PackResult(manifest, digest, folder.path)

    def _begin(self, given: bytes | None) -> tuple[State, bytes]:
        """Survey the text, train or take the tokenizer; from here on the folder belongs to this command."""
        command, folder = self._command, self._folder
        if given is not None:
            Encoder(given, command.vocab, command.end_of_text)  # raises before anything takes time
        split = _survey(command, self._watch)
        blob = train_tokenizer(self._sample(split), command.vocab) if given is None else given
        Encoder(blob, command.vocab, command.end_of_text)
        check_unchanged(command.sources)
        folder.tidy()
        folder.keep_tokenizer(blob)
        state = State(command=command, split=split, tokenizer=hashlib.sha256(blob).hexdigest())
        folder.save(state)
        return state, blob

    def _sample(self, split: Split) -> Iterator[str]:
        """Every k-th piece of the training part, k the least that keeps them under SAMPLE characters, about."""
        command, done, taken = self._command, 0, 0
        step = -(-split.characters // SAMPLE)
        for part in parts(command.sources, command.field, command.seed, split):
            done += len(part.text.encode())
            self._watch(Progress(Stage.TOKENIZER, done, split.bytes))
            if not part.held_out:
                if taken % step == 0:
                    yield part.text
                taken += 1

    def _shards(self, training: Windows, held_out: Windows, tokenizer: bytes) -> TokenManifest:
        """Write what an earlier run has not written: the shards in their order, then the other blobs."""
        command, folder = self._command, self._folder
        count = min(training.count // command.shard_sequences, command.max_shards or training.count)
        validation = min(held_out.count, command.validation or held_out.count, MAX_VALIDATION)
        self._check(count, training, held_out)
        sequences = count * command.shard_sequences

        def written(done: int) -> None:
            size = training.row_bytes
            self._watch(Progress(Stage.SHARDS, done * size, sequences * size, done * command.sequence))

        shards = folder.finished_shards()[:count]
        for start in range(len(shards) * command.shard_sequences, sequences, command.shard_sequences):
            shards.append(folder.put_parts(training.blob(start, start + command.shard_sequences, written)))
            folder.add_shard(shards[-1])
        digest = folder.put_parts(held_out.blob(0, validation, lambda _: None))
        return TokenManifest(
            vocab=command.vocab,
            sequence=command.sequence,
            shard_sequences=command.shard_sequences,
            shards=tuple(shards),
            validation=digest,
            validation_sequences=validation,
            tokenizer=folder.put(tokenizer),
        )

    def _check(self, count: int, training: Windows, held_out: Windows) -> None:
        command = self._command
        if not count or not held_out.count:
            raise DataError(
                f"pack: {training.count} training and {held_out.count} held-out sequences of {command.sequence} "
                f"tokens, a shard needs {command.shard_sequences} and the validation split one; "
                "give more text or smaller shards"
            )
        if count > MAX_SHARDS:
            raise DataError(
                f"pack: {count:,} shards, a manifest names at most {MAX_SHARDS:,}; give larger shards or --max-shards"
            )
