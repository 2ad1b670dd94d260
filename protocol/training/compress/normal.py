"""One or two bits a value, for blocks that look drawn from a normal law: levels in units of the block's RMS.

Levels and thresholds are those of least squared error for a normal law (Max, IRE Trans. IT-6, 1960).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

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
    check_scales,
    outside,
)
from protocol.training.errors import PayloadError

_BITS = 24  # of a value when squares are added: 4096 squares of 2^24 fit 64 bits


@dataclass(frozen=True)
class Law:
    """Magnitudes that are sent, as integers of a `unit` (in RMS), and the magnitude (in RMS) where each begins."""

    integers: tuple[int, ...]  # rising
    begins: tuple[float, ...]
    unit: float
    per_byte: int  # values in a byte
    base: int  # codes of a value: a sign and a magnitude, zero has no sign


LAWS = {
    "int2": Law((3, 10), (0.0, 0.9816), 0.1510, 4, 4),
    "ternary": Law((0, 1), (0.0, 0.6120), 1.2240, 5, 3),
    "sign": Law((1,), (0.0,), 0.7979, 8, 2),
}


@dataclass(frozen=True)
class Normal:
    """Integers of the law times a scale for each block. A zero counts as positive."""

    law: Law
    block: int

    def table(self, count: int) -> Table:
        return {
            "values": ("U8", (-(-count // self.law.per_byte),)),
            "scales": ("F32", (block_count(count, self.block),)),
        }

    def encode(self, flat: Floats) -> dict[str, Array]:
        """scale = RMS · unit (RMS from exact integer squares); magnitude by float32 comparisons with RMS · begin."""
        rows, sizes = as_blocks(flat, self.block), self._sizes(flat.size)
        rms = _rms(rows, sizes)
        scales = (rms * self.law.unit).astype(np.float32)
        scales[scales < SMALLEST_SCALE] = 0
        codes = np.zeros(rows.shape, np.uint8)
        for level, begin in enumerate(self.law.begins[1:], start=1):
            codes[np.abs(rows) > (rms * begin).astype(np.float32)[:, None]] = level
        codes = self._signed(codes, rows < 0)
        codes[scales == 0] = 0
        return {"values": self._pack(codes.reshape(-1)[: flat.size]), "scales": scales}

    def decode(self, parts: dict[str, Array], count: int, what: str) -> Blocks:
        scales = parts["scales"].astype(np.float32, copy=False)
        check_scales(scales, what)
        integers = as_blocks(self._unpack(parts["values"], count, what), self.block)
        integers.reshape(-1)[count:] = self.law.integers[0]  # the padding, as code 0
        if (integers[scales == 0] != self.law.integers[0]).any():
            raise PayloadError(f"{what}: a block with scale 0 must hold zeros")
        integers[scales == 0] = 0
        integers.reshape(-1)[count:] = 0
        return Blocks(integers, scales, self.block, count)

    def squared_distance(self, flat: Floats, sent: Blocks) -> float:
        """For each block the larger of two lower bounds: values to their intervals, own RMS to the sent one."""
        values = as_blocks(flat, self.block).astype(np.float64)
        rms = sent.scales.astype(np.float64)[:, None] / self.law.unit
        magnitude = np.abs(sent.integers)
        low, high = np.zeros(values.shape), np.full(values.shape, np.inf)
        for level, integer in enumerate(self.law.integers):
            here = magnitude == integer
            low = np.where(here, self.law.begins[level] * rms, low)
            if level + 1 < len(self.law.integers):
                high = np.where(here, self.law.begins[level + 1] * rms, high)
        negative = sent.integers < 0
        lower, upper = np.where(negative, -high, low), np.where(negative, -low, high)
        if 0 in self.law.integers:
            lower = np.where(magnitude == 0, -high, lower)
        cells = np.minimum(outside(values, lower, upper) ** 2, np.finfo(np.float64).max)
        cells[sent.scales == 0] = values[sent.scales == 0] ** 2
        cells.reshape(-1)[flat.size :] = 0
        sizes = self._sizes(flat.size).astype(np.float64)
        own, theirs = np.sqrt((values**2).sum(axis=1)), rms[:, 0] * np.sqrt(sizes)
        apart = np.maximum(0.0, np.abs(own - theirs) - 2.0**-18 * theirs)
        return float(np.maximum(cells.sum(axis=1), apart**2).sum())

    def _sizes(self, count: int) -> npt.NDArray[np.int64]:
        sizes = np.full(block_count(count, self.block), self.block, np.int64)
        sizes[-1] = count - self.block * (sizes.size - 1)
        return sizes

    def _signed(self, levels: npt.NDArray[np.uint8], negative: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
        """Codes: the integers of the law from the most positive magnitude 0 up, then the negative ones."""
        count = len(self.law.integers)
        shift = count - (self.law.integers[0] == 0)  # zero has no negative twin
        moved = negative & ~((levels == 0) & (self.law.integers[0] == 0))
        return np.where(moved, levels + shift, levels).astype(np.uint8)

    def _pack(self, codes: npt.NDArray[np.uint8]) -> Array:
        """`per_byte` digits to a byte, the first the least significant."""
        padded = np.zeros(-(-codes.size // self.law.per_byte) * self.law.per_byte, np.uint8)
        padded[: codes.size] = codes
        digits = padded.reshape(-1, self.law.per_byte)
        packed = np.zeros(len(digits), np.uint8)
        for place in range(self.law.per_byte):
            packed += digits[:, place] * np.uint8(self.law.base**place)
        return packed

    def _unpack(self, packed: Array, count: int, what: str) -> npt.NDArray[np.int8]:
        law, octets = self.law, packed.astype(np.uint8, copy=False)
        if law.base**law.per_byte < 256 and octets.size and int(octets.max()) >= law.base**law.per_byte:
            raise PayloadError(f"{what}: a byte holds {law.per_byte} digits below {law.base}, have more")
        integers = _take_rows(_integers_of_bytes(law), octets)
        if (integers[count:] != law.integers[0]).any():  # code 0
            raise PayloadError(f"{what}: the unused digits of the last byte must be zero")
        return integers[:count]


@lru_cache
def _integers_of_bytes(law: Law) -> npt.NDArray[np.int8]:
    """[bytes, per_byte]: the integers that a byte's digits stand for, the least significant first."""
    table = np.array([*law.integers, *(-i for i in law.integers if i)], np.int8)  # code → integer
    octets = np.arange(min(256, law.base**law.per_byte))
    return np.stack([table[octets // law.base**place % law.base] for place in range(law.per_byte)], axis=1)


def _take_rows(table: npt.NDArray[np.int8], rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    """The rows joined; rows of 4 or 8 bytes are moved as one word."""
    word = {4: np.uint32, 8: np.uint64}.get(table.shape[1])
    if word is None:
        return np.take(table, rows, axis=0).reshape(-1)
    return np.take(np.ascontiguousarray(table).view(word).reshape(-1), rows).view(np.int8)


def _rms(rows: Floats, sizes: npt.NDArray[np.int64]) -> Doubles:
    """sqrt(Σ v² / n) of each block, the same bits everywhere: v in units of 2^(e−24) with max|v| < 2^e, as integers."""
    largest = np.abs(rows).max(axis=1)
    exponents = np.frexp(largest)[1]
    integers = np.rint(np.ldexp(rows.astype(np.float64), (_BITS - exponents)[:, None])).astype(np.int64)
    sums = (integers * integers).sum(axis=1, dtype=np.int64).astype(np.float64)
    rms: Doubles = np.ldexp(np.sqrt(sums / sizes), exponents - _BITS)
    return rms
