"""Chunked top-k: of each 4096 values the `keep` largest, as 2-bit values and 12-bit places. After arXiv:2508.15706."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from protocol.training.canonical import Array, Table
from protocol.training.compress.blocks import (
    SMALLEST_SCALE,
    Blocks,
    Doubles,
    Floats,
    as_blocks,
    block_count,
    check_integers,
    check_scales,
    outside,
)
from protocol.training.errors import PayloadError

CHUNK = 4096  # a place has 12 bits
_HALVINGS = 40  # of the threshold's interval: to 1e-12 of the chunk's maximum

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TopK:
    """A short last chunk keeps its share, rounded up."""

    keep: int

    def table(self, count: int) -> Table:
        sent = int(self._kept(count).sum())
        return {
            "values": ("U8", (-(-sent // 4),)),
            "places": ("U8", (-(-sent * 12 // 8),)),
            "scales": ("F32", (block_count(count, CHUNK),)),
        }

    def encode(self, flat: Floats) -> dict[str, Array]:
        """scale = the chunk's max|v| / 3; magnitude 3 if |v| > 2·scale, else 1. A tie keeps the lower place."""
        rows = as_blocks(flat, CHUNK)
        kept = self._kept(flat.size)
        places = _largest(rows, int(kept.max()))
        chosen = np.take_along_axis(rows, places, axis=1)
        scales = (np.abs(rows).max(axis=1) / np.float32(3)).astype(np.float32)
        scales[scales < SMALLEST_SCALE] = 0
        large = np.abs(chosen) > np.float32(2) * scales[:, None]
        codes = np.where(scales[:, None] == 0, 0, large + 2 * (chosen < 0)).astype(np.uint8)
        if kept[-1] < kept.max():  # the last chunk is short: keep its largest only
            short = np.sort(_largest(rows[-1:], int(kept[-1]))[0])
            last = np.isin(places[-1], short)
            places_flat = np.concatenate([places[:-1].reshape(-1), places[-1][last]])
            codes_flat = np.concatenate([codes[:-1].reshape(-1), codes[-1][last]])
        else:
            places_flat, codes_flat = places.reshape(-1), codes.reshape(-1)
        return {"values": _pack(codes_flat, 2), "places": _pack(places_flat, 12), "scales": scales}

    def decode(self, parts: dict[str, Array], count: int, what: str) -> Blocks:
        kept = self._kept(count)
        sent = int(kept.sum())
        codes, places = _unpack(parts["values"], 2, sent, what), _unpack(parts["places"], 12, sent, what)
        scales = parts["scales"].astype(np.float32, copy=False)
        check_scales(scales, what)
        width = int(kept.max())
        used = np.arange(width)[None, :] < kept[:, None]
        indices = np.zeros(used.shape, np.int64)
        integers = np.zeros(used.shape, np.int8)
        indices[used] = places
        integers[used] = (1 - 2 * (codes >> 1)) * (1 + 2 * (codes & 1))
        integers[scales == 0] = np.where(integers[scales == 0] == 1, 0, integers[scales == 0])  # the code of zero is 0
        check_integers(integers, scales, 3, what)
        if (used[:, 1:] & (indices[:, 1:] <= indices[:, :-1])).any():
            raise PayloadError(f"{what}: the places of a chunk must rise strictly")
        if indices[-1].max() >= count - CHUNK * (kept.size - 1):
            raise PayloadError(f"{what}: a place lies beyond the last chunk's {count % CHUNK} values")
        # An unused slot adds integer 0: give it its row's first place, which is always valid.
        indices = np.where(used, indices, indices[:, :1])
        return Blocks(integers, scales, CHUNK, count, indices)

    def squared_distance(self, flat: Floats, sent: Blocks) -> float:
        """Chosen values to their cells above a threshold t, the others to [−t, t], for the best t of each chunk.

        And one chosen value of magnitude 3 must be the maximum itself. Convex in t: found by halving its derivative.
        """
        assert sent.indices is not None
        rows = as_blocks(flat, CHUNK).astype(np.float64)
        scales = sent.scales.astype(np.float64)[:, None]
        used = np.arange(sent.integers.shape[1])[None, :] < self._kept(sent.count)[:, None]
        signed = np.take_along_axis(rows, sent.indices, axis=1) * np.where(sent.integers < 0, -1.0, 1.0)
        magnitude = np.abs(sent.integers.astype(np.float64))
        others = np.abs(rows)
        row_of, slot = np.nonzero(used)
        others[row_of, sent.indices[row_of, slot]] = 0.0
        lower = np.where(magnitude == 3, 2 * scales, 0.0)
        upper = np.where(magnitude == 3, 3 * scales, 2 * scales)
        top = np.where(used, upper, np.inf).min(axis=1, keepdims=True)
        threshold = _best_threshold(signed, lower, others, used, top)
        squares = np.where(used, outside(signed, np.maximum(lower, threshold), upper) ** 2, 0.0)
        at_limit = outside(signed, 3 * scales + 0 * signed, 3 * scales + 0 * signed) ** 2
        extra = np.where(used & (magnitude == 3), at_limit - squares, np.inf).min(axis=1)
        extra[sent.scales == 0] = 0.0
        total = float(squares.sum() + (outside(others, -threshold, threshold) ** 2).sum() + extra.sum())
        return total if not math.isnan(total) else math.inf

    def _kept(self, count: int) -> npt.NDArray[np.int64]:
        """Coordinates sent of each chunk."""
        sizes = np.full(block_count(count, CHUNK), CHUNK, np.int64)
        sizes[-1] = count - CHUNK * (sizes.size - 1)
        return -(-sizes * self.keep // CHUNK)


def _largest(rows: Floats, keep: int) -> Places:
    """[chunks, CHUNK] → [chunks, keep] places of the largest magnitudes, rising. Ties: the lower place.

    The bits of |v| order like |v|; below them the place, reversed, makes all keys different. Padding lies last.
    """
    bits = np.abs(rows).view(np.uint32).astype(np.int64)
    keys = (bits << 12) | (CHUNK - 1 - np.arange(CHUNK, dtype=np.int64))
    best = np.partition(keys, CHUNK - keep, axis=1)[:, CHUNK - keep :] if keep < CHUNK else keys
    return np.sort(CHUNK - 1 - (best & (CHUNK - 1)), axis=1)


def _best_threshold(
    signed: Doubles, lower: Doubles, others: Doubles, used: npt.NDArray[np.bool_], top: Doubles
) -> Doubles:
    """t in [0, top] of each chunk where the derivative of the squared distance changes its sign: [chunks, 1]."""
    low, high = np.zeros_like(top), top.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        raised = used & (middle > lower)
        pull_up = np.where(raised, np.maximum(0.0, middle - signed), 0.0).sum(axis=1, keepdims=True)
        pull_down = np.maximum(0.0, others - middle).sum(axis=1, keepdims=True)
        low, high = np.where(pull_up < pull_down, middle, low), np.where(pull_up < pull_down, high, middle)
    return high


def _pack(values: npt.NDArray[np.integer[Any]], bits: int) -> Array:
    """Fields of `bits` bits, the first in the highest bits of the first byte; zero padding at the end."""
    shifts = np.arange(bits - 1, -1, -1, dtype=np.int64)
    return np.packbits(((values.astype(np.int64)[:, None] >> shifts) & 1).astype(np.uint8).reshape(-1))


def _unpack(packed: Array, bits: int, count: int, what: str) -> Places:
    stream = np.unpackbits(packed.astype(np.uint8, copy=False))
    if stream[count * bits :].any():
        raise PayloadError(f"{what}: unused bits of the last byte must be zero")
    fields = stream[: count * bits].reshape(count, bits).astype(np.int64)
    return fields @ (np.int64(1) << np.arange(bits - 1, -1, -1, dtype=np.int64))
