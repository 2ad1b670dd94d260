"""int8 and int4 by blocks: integers in ±levels times the block's largest magnitude over `levels`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocol.training.canonical import Array, Table
from protocol.training.compress.blocks import (
    SMALLEST_SCALE,
    Blocks,
    Floats,
    Integers,
    as_blocks,
    block_count,
    check_integers,
    check_scales,
    outside,
)
from protocol.training.errors import PayloadError


@dataclass(frozen=True)
class Levels:
    """levels: 127 for int8, 7 for int4 (two to a byte, the first in the low half, two's complement)."""

    levels: int
    block: int

    @property
    def _packed(self) -> bool:
        return self.levels == 7

    def table(self, count: int) -> Table:
        values: tuple[str, tuple[int, ...]] = ("U8", ((count + 1) // 2,)) if self._packed else ("I8", (count,))
        return {"values": values, "scales": ("F32", (block_count(count, self.block),))}

    def encode(self, flat: Floats) -> dict[str, Array]:
        """scale = max|v| / levels (one float32 division); integer = v / scale, rounded to even on ties."""
        rows = as_blocks(flat, self.block)
        scales = (np.abs(rows).max(axis=1) / np.float32(self.levels)).astype(np.float32)
        scales[scales < SMALLEST_SCALE] = 0
        safe = np.where(scales == 0, np.float32(1), scales)
        integers = np.rint(rows / safe[:, None])
        integers[scales == 0] = 0
        limit = np.float32(self.levels)
        values = np.clip(integers, -limit, limit).astype(np.int8).reshape(-1)[: flat.size]
        return {"values": _pack(values) if self._packed else values, "scales": scales}

    def decode(self, parts: dict[str, Array], count: int, what: str) -> Blocks:
        values = _unpack(parts["values"], count, what) if self._packed else parts["values"].astype(np.int8, copy=False)
        scales = parts["scales"].astype(np.float32, copy=False)
        check_scales(scales, what)
        integers = as_blocks(values, self.block)
        check_integers(integers, scales, self.levels, what)
        return Blocks(integers, scales, self.block, count)

    def squared_distance(self, flat: Floats, sent: Blocks) -> float:
        """Each value to its rounding cell; in each block one value of the outermost level must be the maximum itself.

        The second rule sees a scaled copy, whose integers are right and whose scales are not.
        """
        values = as_blocks(flat, self.block).astype(np.float64)
        integers = sent.integers.astype(np.float64)
        scales = sent.scales.astype(np.float64)[:, None]
        limit = self.levels * scales
        lower = np.maximum((integers - 0.5) * scales, -limit)
        upper = np.minimum((integers + 0.5) * scales, limit)
        squares = outside(values, lower, upper) ** 2
        outermost = np.abs(integers) == self.levels
        at_limit = outside(values, integers * scales, integers * scales) ** 2
        extra = np.where(outermost, at_limit - squares, np.inf).min(axis=1)
        extra[sent.scales == 0] = 0.0
        total = float(squares.sum() + extra.sum())  # inf where no value is outermost: nothing encodes to such a block
        return total if not math.isnan(total) else math.inf


def _pack(values: Integers) -> Array:
    nibbles = (values.astype(np.int8) & 0x0F).astype(np.uint8)
    padded = np.zeros((nibbles.size + 1) // 2 * 2, np.uint8)
    padded[: nibbles.size] = nibbles
    return (padded[0::2] | (padded[1::2] << 4)).astype(np.uint8)


def _unpack(packed: Array, count: int, what: str) -> Integers:
    values = np.take(_PAIRS, packed.astype(np.uint8, copy=False)).view(np.int8)
    if values[count:].any():
        raise PayloadError(f"{what}: the unused half of the last byte must be zero")
    return values[:count]


def _pairs() -> npt.NDArray[np.uint16]:
    """Byte → its two integers, side by side in memory."""
    octets = np.arange(256)
    halves = np.stack([octets & 0x0F, octets >> 4], axis=1)
    return np.where(halves > 7, halves - 16, halves).astype(np.int8).view(np.uint16).reshape(-1)


_PAIRS = _pairs()
