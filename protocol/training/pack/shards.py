"""Blobs of windows: gathered from a flat file by the keyed permutation, so that each shard mixes the whole corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from protocol.training.data import Tokens, shard_header, token_type
from protocol.training.pack.permutation import Permutation
from protocol.training.pack.tokens import TokenFile

BLOCK_BYTES = 2**22  # of a blob, in memory at a time


class Windows:
    """The sequences of a flat file, T+1 tokens each: they overlap by one, so that every token is a target once."""

    def __init__(self, file: TokenFile, vocab: int, sequence: int, seed: int) -> None:
        self._file, self._vocab, self._sequence = file, vocab, sequence
        self._type = token_type(vocab)
        self.count = max(0, (len(file) - 1) // sequence)
        self._order = Permutation(seed, self.count)

    @property
    def row_bytes(self) -> int:
        """Of a sequence in a blob."""
        return (self._sequence + 1) * self._type.itemsize

    def blob(self, start: int, stop: int, written: Callable[[int], None]) -> Iterator[bytes]:
        """The blob of places start…stop-1 in shuffled order, in parts; `written` is told the place after each."""
        yield shard_header(self._vocab, self._sequence, stop - start)
        rows = max(1, BLOCK_BYTES // self.row_bytes)
        for first in range(start, stop, rows):
            after = min(first + rows, stop)
            yield self._block(self._order(first, after)).tobytes()
            written(after)

    def _block(self, numbers: npt.NDArray[np.int64]) -> Tokens:
        """The windows of these numbers, read in the order in which they lie on the disk."""
        block: Tokens = np.empty((len(numbers), self._sequence + 1), self._type)
        for place in np.argsort(numbers):
            block[place] = self._file.window(int(numbers[place]) * self._sequence, self._sequence + 1)
        return block
