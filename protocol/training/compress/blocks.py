"""What every compressor decodes to: integers and one float32 scale for each block of a flat tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from protocol.training.canonical import Array, Table
from protocol.training.errors import PayloadError

Integers = npt.NDArray[np.signedinteger[Any]]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

SMALLEST_SCALE = np.float32(2.0**-126)  # the smallest normal float32: scales below act as zero everywhere
LARGEST_SCALE = np.float32(2.0**40)  # no finite model moves this far; keeps every later product finite


@dataclass(frozen=True)
class Blocks:
    """One decoded tensor. Value of a place: integer · scale of its block, exact in float64.

    integers: [blocks, places], zero in the padding of the last block. scales: float32 [blocks].
    indices: int64 [blocks, places], the place of each integer inside its block, or None where places are in order.
    """

    integers: Integers
    scales: Floats
    block: int
    count: int
    indices: npt.NDArray[np.int64] | None = None


class Compressor(Protocol):
    """One way to send a tensor. All arithmetic is element-wise IEEE: no sums, no products of matrices."""

    def table(self, count: int) -> Table:
        """Parts of a tensor of `count` values: name of the part → (safetensors type, shape)."""

    def encode(self, flat: Floats) -> dict[str, Array]:
        """flat: float32 [count], finite and below LARGEST_SCALE."""

    def decode(self, parts: dict[str, Array], count: int, what: str) -> Blocks:
        """Strict; raises PayloadError with `what` in its line."""

    def squared_distance(self, flat: Floats, sent: Blocks) -> float:
        """From `flat` to the nearest vector that encodes to `sent`, or a lower bound of it, squared; may be inf."""


def block_count(count: int, block: int) -> int:
    """Blocks of a flat tensor; the last may be short."""
    return -(-count // block)


def as_blocks(flat: npt.NDArray[Any], block: int) -> npt.NDArray[Any]:
    """[count] → [blocks, block], padded with zeros: a view where nothing has to be padded."""
    if flat.size % block == 0:
        return flat.reshape(-1, block)
    padded = np.zeros(block_count(flat.size, block) * block, flat.dtype)
    padded[: flat.size] = flat
    return padded.reshape(-1, block)


def check_scales(scales: Floats, what: str) -> None:
    """Zero, or a normal number in range. `~(… <= …)` also refuses NaN."""
    usable = (scales == 0) | ((scales >= SMALLEST_SCALE) & (scales <= LARGEST_SCALE))
    if not usable.all():
        bad = float(scales[~usable][0])
        raise PayloadError(f"{what}: a scale must be 0 or in [2^-126, 2^40], have {bad}")


def check_integers(integers: Integers, scales: Floats, limit: int, what: str) -> None:
    """Within ±limit, and zero wherever the scale is zero."""
    if integers.size and (int(integers.max()) > limit or int(integers.min()) < -limit):
        raise PayloadError(f"{what}: integers must be in ±{limit}, have {integers.min()}…{integers.max()}")
    if integers[scales == 0].any():
        raise PayloadError(f"{what}: a block with scale 0 must hold zeros")


def outside(values: Doubles, lower: Doubles, upper: Doubles) -> Doubles:
    """Distance of each value to its interval. Edges are widened by 2^-20 of themselves, for the encoder's rounding."""
    lower = lower - np.abs(lower) * 2.0**-20
    upper = upper + np.abs(upper) * 2.0**-20
    return np.maximum(0.0, np.maximum(lower - values, values - upper))
