"""fp32: every value as it is, decoded to a 24-bit integer and a power of two of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protocol.training.canonical import Array, Table
from protocol.training.compress.blocks import LARGEST_SCALE, Blocks, Floats, outside
from protocol.training.errors import PayloadError

_BITS = 24  # of a float32's significand
_SMALLEST = np.float32(2.0**-102)  # below it the power of two would not be a normal float32


@dataclass(frozen=True)
class Full:
    def table(self, count: int) -> Table:
        return {"values": ("F32", (count,))}

    def encode(self, flat: Floats) -> dict[str, Array]:
        """Values below 2^-102 are sent as zero."""
        return {"values": np.where(np.abs(flat) < _SMALLEST, np.float32(0), flat)}

    def decode(self, parts: dict[str, Array], count: int, what: str) -> Blocks:
        values = parts["values"].astype(np.float32, copy=False)
        sizes = np.abs(values)
        usable = (values == 0) | ((sizes >= _SMALLEST) & (sizes <= LARGEST_SCALE))  # false for NaN
        if not usable.all():
            bad = float(values[~usable][0])
            raise PayloadError(f"{what}: a value must be 0 or of a size in [2^-102, 2^40], have {bad}")
        mantissas, exponents = np.frexp(values)
        scales = np.ldexp(np.float32(1), exponents - _BITS).astype(np.float32)
        scales[values == 0] = 0
        integers = np.ldexp(mantissas, _BITS).astype(np.int32)
        return Blocks(integers[:, None], scales, 1, count)

    def squared_distance(self, flat: Floats, sent: Blocks) -> float:
        """Each value to the one that was sent; a zero stands for all below 2^-102."""
        values = sent.integers.astype(np.float64) * sent.scales.astype(np.float64)[:, None]
        reach = np.where(values == 0, np.float64(_SMALLEST), 0.0)
        return float((outside(flat.astype(np.float64)[:, None], values - reach, values + reach) ** 2).sum())
