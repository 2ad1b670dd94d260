"""A keyed permutation of any length that takes no memory: a Feistel network, walked along its cycles."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint64]
_ROUNDS = 6


class Permutation:
    """Of 0…count-1, by a seed. Equal arguments give the same order on every machine: integers only."""

    def __init__(self, seed: int, count: int) -> None:
        place = b"gradmarket/pack\0" + seed.to_bytes(8, "big")
        digests = [hashlib.sha256(place + bytes([number])).digest()[:8] for number in range(_ROUNDS)]
        self._keys = [np.uint64(int.from_bytes(digest, "big")) for digest in digests]
        self._count = count
        self._bits = np.uint64(max(1, ((count - 1).bit_length() + 1) // 2))  # of each half
        self._mask = (np.uint64(1) << self._bits) - np.uint64(1)

    def __call__(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """The images of start…stop-1."""
        images = self._network(np.arange(start, stop, dtype=np.uint64))
        while len(outside := np.flatnonzero(images >= self._count)):
            images[outside] = self._network(images[outside])
        return images.astype(np.int64)

    def _network(self, numbers: Numbers) -> Numbers:
        left, right = numbers >> self._bits, numbers & self._mask
        for key in self._keys:
            left, right = right, left ^ (_mixed(right + key) >> (np.uint64(64) - self._bits))
        return (left << self._bits) | right


def _mixed(numbers: Numbers) -> Numbers:
    """The finalizer of splitmix64, modulo 2^64."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
