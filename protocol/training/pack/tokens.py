"""Two flat files of tokens: the training part and what is held out, each document followed by its ending."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from protocol.training.data import Tokens, token_type
from protocol.training.pack.folder import PackFolder, State, write_all
from protocol.training.pack.progress import Progress, Stage, Watch
from protocol.training.pack.split import Part
from protocol.training.pack.tokenizer import Encoder

BATCH_CHARACTERS = 2**20  # encoded at a time; the pack does not depend on it
BATCH_PARTS = 2**12
SAVED_TOKENS = 2**22  # that a kill can cost, about


class TokenFile:
    """Tokens one after the other, of 2 bytes where the vocabulary allows it, else of 4. Read without being mapped."""

    def __init__(self, path: Path, vocab: int) -> None:
        self._type = token_type(vocab)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def __enter__(self) -> TokenFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def __len__(self) -> int:
        return os.fstat(self._descriptor).st_size // self._type.itemsize

    def truncate(self, count: int) -> None:
        """Keep the first `count`; what is appended goes behind them."""
        os.ftruncate(self._descriptor, count * self._type.itemsize)
        os.lseek(self._descriptor, 0, os.SEEK_END)

    def append(self, tokens: Tokens) -> None:
        write_all(self._descriptor, tokens.astype(self._type).tobytes())

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def window(self, start: int, count: int) -> Tokens:
        data = os.pread(self._descriptor, count * self._type.itemsize, start * self._type.itemsize)
        tokens: Tokens = np.frombuffer(data, self._type)
        return tokens


def open_tokens(folder: PackFolder, vocab: int) -> tuple[TokenFile, TokenFile]:
    """The training part's file and the held-out one's."""
    with folder.writing():
        training, held_out = (TokenFile(folder.work / name, vocab) for name in ("training.tokens", "held-out.tokens"))
        return training, held_out


def write_tokens(
    folder: PackFolder,
    state: State,
    files: tuple[TokenFile, TokenFile],
    parts: Iterable[Part],
    encoder: Encoder,
    watch: Watch,
) -> State:
    """Encode what `state` says is still missing, saving the state from time to time; the last one is whole."""
    if len(files[0]) < state.training or len(files[1]) < state.held_out:  # somebody took a file away
        state = msgspec.structs.replace(state, parts=0, text_bytes=0, training=0, held_out=0)
    with folder.writing():
        files[0].truncate(state.training)
        files[1].truncate(state.held_out)
    saved = state.training + state.held_out
    for batch in _batches(parts, state.parts):
        state = _append(folder, state, files, batch, encoder)
        done = state.training + state.held_out
        watch(Progress(Stage.TOKENS, state.text_bytes, state.split.bytes, done))
        if done - saved >= SAVED_TOKENS:
            _save(folder, state, files)
            saved = done
    state = msgspec.structs.replace(state, whole=True)
    _save(folder, state, files)
    return state


def _append(
    folder: PackFolder, state: State, files: tuple[TokenFile, TokenFile], batch: list[Part], encoder: Encoder
) -> State:
    sides: tuple[list[Tokens], list[Tokens]] = ([], [])
    for part, tokens in zip(batch, encoder.encode([part.text for part in batch]), strict=True):
        sides[part.held_out].extend([tokens, encoder.ending] if part.last else [tokens])
    joined = [np.concatenate(side) if side else encoder.ending[:0] for side in sides]
    with folder.writing():
        for file, tokens in zip(files, joined, strict=True):
            file.append(tokens)
    return msgspec.structs.replace(
        state,
        parts=state.parts + len(batch),
        text_bytes=state.text_bytes + sum(len(part.text.encode()) for part in batch),
        training=state.training + len(joined[0]),
        held_out=state.held_out + len(joined[1]),
    )


def _save(folder: PackFolder, state: State, files: tuple[TokenFile, TokenFile]) -> None:
    """The tokens first: a state never speaks of tokens that a power cut could take."""
    with folder.writing():
        for file in files:
            file.sync()
    folder.save(state)


def _batches(parts: Iterable[Part], skip: int) -> Iterator[list[Part]]:
    batch: list[Part] = []
    size = 0
    for number, part in enumerate(parts):
        if number < skip:
            continue
        batch.append(part)
        size += len(part.text)
        if size >= BATCH_CHARACTERS or len(batch) >= BATCH_PARTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
