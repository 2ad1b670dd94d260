"""fp16 by blocks: IEEE halves times a power of two that puts the block's largest magnitude in [2^14, 2^15]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protocol.training.canonical import Array, Table
from protocol.training.compress.blocks import Blocks, Floats, as_blocks, block_count, check_scales, outside
from protocol.training.errors import PayloadError

UNITS = 2**24  # a half is a whole number of 2^-24
_SMALLEST_EXPONENT = -86  # of a block's maximum: its unit stays a normal float32
_TOP = 15 + 24  # maximum < 2^exponent is sent as up to 2^15 halves of 2^24 units


@dataclass(frozen=True)
class Half:
    block: int

    def table(self, count: int) -> Table:
        return {"values": ("F16", (count,)), "scales": ("F32", (block_count(count, self.block),))}

    def encode(self, flat: Floats) -> dict[str, Array]:
        """scale = 2^(e − 39) with max|v| < 2^e; the value is v · 2^(15 − e) as a half, ties to even."""
        rows = as_blocks(flat, self.block)
        largest = np.abs(rows).max(axis=1)
        exponents = np.maximum(np.frexp(largest)[1], _SMALLEST_EXPONENT).astype(np.int32)
        scales = np.ldexp(np.float32(1), exponents - _TOP).astype(np.float32)
        scales[largest == 0] = 0
        values = np.ldexp(rows, (15 - exponents)[:, None]).astype(np.float16)
        return {"values": values.reshape(-1)[: flat.size], "scales": scales}

    def decode(self, parts: dict[str, Array], count: int, what: str) -> Blocks:
        halves = parts["values"].astype(np.float64)
        scales = parts["scales"].astype(np.float32, copy=False)
        if not np.isfinite(halves).all():
            raise PayloadError(f"{what}: expected finite values, have infinities or NaN")
        check_scales(scales, what)
        if (np.frexp(scales[scales != 0])[0] != 0.5).any():
            raise PayloadError(f"{what}: a scale must be a power of two")
        integers = as_blocks((halves * UNITS).astype(np.int64), self.block)
        if integers[scales == 0].any():
            raise PayloadError(f"{what}: a block with scale 0 must hold zeros")
        return Blocks(integers, scales, self.block, count)

    def squared_distance(self, flat: Floats, sent: Blocks) -> float:
        """Each value to half a unit in the last place of its half."""
        values = as_blocks(flat, self.block).astype(np.float64)
        scales = sent.scales.astype(np.float64)[:, None]
        centres = sent.integers.astype(np.float64) * scales
        reach = np.maximum(np.abs(centres) * 2.0**-11, 0.5 * scales)
        return float((outside(values, centres - reach, centres + reach) ** 2).sum())
