"""The outer step: every operator computes the next checkpoint alone and must get the same bytes.

So nothing here leaves the order of an operation open: numpy, element-wise, float64 accumulators in shard order, one
division, one rounding to float32, then float32 operations one by one. No sum over elements is done in floating point
except the norms, whose terms are added in block order. Normative text: docs/spec/training.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from protocol.training.canonical import Buffer, encode_header, encoded_bytes, tensor_offsets
from protocol.training.checkpoint import (
    METADATA,
    PARTS,
    PROGRESS,
    Checkpoint,
    Tensor,
    Tensors,
    checkpoint_table,
)
from protocol.training.compress import Blocks, Encoded, encodings, open_payload
from protocol.training.compress.blocks import Doubles, Integers
from protocol.training.errors import OuterStepError
from protocol.training.layout import parameter_shapes
from protocol.training.spec import Spec, claim_tokens

_CHUNK = 2**15  # values: 256 KiB of float64
_EXACT = 2**10  # squares of bytes whose sum is exact in float32
_SPLIT = 20  # bits: integers below 2^40 are split in two halves whose squares fit 64 bits for blocks of 4096


def compute_outer_step(spec: Spec, base: Checkpoint, payloads: Sequence[tuple[int, Buffer]]) -> Checkpoint:
    """The checkpoint after `base` from (shard, payload) pairs in any order. Each shard counts once.

    Raises PayloadError for a payload that does not decode (attesters leave it out), OuterStepError for no payload,
    a shard given twice or a result that is not finite.
    """
    parts: dict[str, Tensors] = {part: {} for part in PARTS}
    for part, name, values in outer_tensors(spec, base, payloads):
        parts[part][name] = values
    weights, momentum, first, second = (parts[part] for part in PARTS)
    return Checkpoint(weights, momentum, first, second, base.progress + 1)


def write_outer_step(spec: Spec, base: Checkpoint, payloads: Sequence[tuple[int, Buffer]], path: Path) -> str:
    """The same as a file, tensor by tensor, so that no memory holds the whole; its sha256, hex."""
    table = checkpoint_table(spec)
    offsets = tensor_offsets(table, METADATA)
    with path.open("w+b") as file:
        file.write(encode_header(table, METADATA))
        file.truncate(encoded_bytes(table, METADATA))
        for part, name, values in outer_tensors(spec, base, payloads):
            file.seek(offsets[f"{part}/{name}"])
            file.write(np.ascontiguousarray(values, "<f4").data)
        file.seek(offsets[PROGRESS])
        file.write(np.array([base.progress + 1], "<i4").data)
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def outer_tensors(
    spec: Spec, base: Checkpoint, payloads: Sequence[tuple[int, Buffer]]
) -> Iterator[tuple[str, str, Tensor]]:
    """(part, name, values) of every tensor of the next checkpoint."""
    shards = [shard for shard, _ in payloads]
    if not shards or len(set(shards)) != len(shards):
        raise OuterStepError(f"outer step: expected at least one payload and each shard once, have shards {shards}")
    check_float_environment()
    opened = [open_payload(spec, data) for _, data in sorted(payloads, key=lambda pair: pair[0])]
    factors = {part: _factors(spec, [payload.parts[part] for payload in opened]) for part in encodings(spec)}
    total = np.float64(claim_tokens(spec) * len(opened))  # exact: at most 256 shards below 2^29
    lr, momentum = np.float32(spec.outer.lr), np.float32(spec.outer.momentum)
    for part in factors:
        for name, shape in parameter_shapes(spec).items():
            mean = _weighted_mean([payload.parts[part][name] for payload in opened], factors[part], total)
            mean = mean.reshape(shape)
            if part == "first":
                yield _finite(part, name, mean)
                continue
            with np.errstate(over="ignore"):  # what overflows is refused below
                if spec.outer.momentum > 0:
                    weight, velocity = _nesterov(base.weights[name], base.momentum[name], mean, lr, momentum)
                    yield _finite("momentum", name, velocity)
                else:
                    weight = base.weights[name] - lr * mean
            yield _finite("weights", name, weight)
    for name in opened[0].second:
        yield "second", name, lower_median([payload.second[name] for payload in opened])


def _finite(part: str, name: str, values: Tensor) -> tuple[str, str, Tensor]:
    if not np.isfinite(values).all():
        raise OuterStepError(f"outer step: {part}/{name} is no longer finite; this round's updates are too large")
    return part, name, values


def norm(update: Encoded) -> np.float64:
    """L2 norm of a decoded payload: the same bits everywhere.

    Per block: the integers' sum of squares S in int64, times the squared scale (exact in float64). Blocks are added
    one after the other, in float64, in the order of the sorted names; then one square root (correctly rounded).
    """
    terms = [_square_sums(blocks) for blocks in update.values()]
    return np.float64(np.sqrt(np.add.accumulate(np.concatenate(terms))[-1]))


def lower_median(values: Sequence[Tensor]) -> Tensor:
    """Of every place the lower median of the payloads' values, as `median`: no minority can move it at will."""
    middle: Tensor = np.sort(np.stack(values), axis=0)[(len(values) - 1) // 2]
    return middle


def median(norms: Sequence[np.float64]) -> np.float64:
    """The lower median: of an even number the smaller middle one, so that half of the payloads cannot raise it."""
    return sorted(norms)[(len(norms) - 1) // 2]


def check_float_environment() -> None:
    """Refuse to compute where subnormal numbers are flushed to zero or rounding is not to nearest even."""
    tiny32, tiny64 = np.full(64, 2.0**-126, np.float32), np.full(64, 2.0**-1022, np.float64)
    halves_kept = (tiny32 * np.float32(0.5) > 0).all() and (tiny64 * np.float64(0.5) > 0).all()
    inputs_kept = (np.full(64, 2.0**-149, np.float32) * np.float32(2.0**100) > 0).all()
    ones = np.full(64, 1.0, np.float64)
    to_even = (ones + 2.0**-53 == 1.0).all() and (ones + (2.0**-53 + 2.0**-105) > 1.0).all()
    if not (halves_kept and inputs_kept and to_even):
        raise OuterStepError(
            "floating point: this process flushes subnormals to zero or rounds another way than to nearest even; "
            "its checkpoints would be wrong (unset torch.set_flush_denormal, -ffast-math libraries)"
        )


def _factors(spec: Spec, updates: Sequence[Encoded]) -> list[np.float64]:
    """The weight of each payload: its tokens, less where its norm is above the median."""
    return [np.float64(claim_tokens(spec)) * clip for clip in _clip_factors(updates)]


def _clip_factors(updates: Sequence[Encoded]) -> list[np.float64]:
    """1 for norms up to the median, median / norm above it: a payload a hundred times too large counts once."""
    norms = [norm(update) for update in updates]
    middle = median(norms)
    return [np.float64(1.0) if n <= middle else middle / n for n in norms]


def _square_sums(blocks: Blocks) -> Doubles:
    """scale² · Σ integer², float64 [blocks]. Integers of more than 20 bits are split: hi·2^20 + lo."""
    terms = np.empty(blocks.scales.size, np.float64)
    for rows in _chunks(blocks):
        integers, scales = blocks.integers[rows], blocks.scales[rows].astype(np.float64)
        terms[rows] = (scales * scales) * _squares(integers)
    return terms


def _squares(integers: Integers) -> Doubles:
    """Σ integer² of each row, from sums in int64."""
    if integers.dtype == np.int8 and integers.shape[1] <= _EXACT:
        narrow = integers.astype(np.float32)
        exact: Doubles = np.einsum("ij,ij->i", narrow, narrow).astype(np.float64)  # integers below 2^24, in any order
        return exact
    wide = np.abs(integers.astype(np.int64))
    high, low = wide >> _SPLIT, wide & (2**_SPLIT - 1)
    sums: Doubles = (low * low).sum(axis=1, dtype=np.int64).astype(np.float64)
    if high.any():
        crossed = (high * low).sum(axis=1, dtype=np.int64).astype(np.float64) * 2.0 ** (_SPLIT + 1)
        squares = (high * high).sum(axis=1, dtype=np.int64).astype(np.float64) * 2.0 ** (2 * _SPLIT)
        sums = (squares + crossed) + sums
    return sums


def _weighted_mean(updates: Sequence[Blocks], factors: Sequence[np.float64], total: np.float64) -> Tensor:
    """float32 [count]: (Σ integer · (scale · factor)) / total, the sum in shard order, rounded once at the end."""
    count, block, blocks = updates[0].count, updates[0].block, updates[0].scales.size
    mean = np.empty((blocks, block), np.float32)
    for rows in _chunks(updates[0]):
        sums = np.zeros(mean[rows].shape, np.float64)
        for update, factor in zip(updates, factors, strict=True):
            values = update.integers[rows] * (update.scales[rows].astype(np.float64) * factor)[:, None]
            if update.indices is None:
                sums += values
            else:
                _add_at(sums, update.integers[rows], update.indices[rows], values)
        sums /= total
        mean[rows] = sums
    return mean.reshape(-1)[:count]


def _chunks(blocks: Blocks) -> Iterator[slice]:
    """Rows of blocks whose numbers fit the processor's cache. Where they are cut changes no result."""
    rows, step = blocks.scales.size, max(1, _CHUNK // blocks.block)
    return (slice(start, start + step) for start in range(0, rows, step))


def _add_at(sums: Doubles, integers: Integers, indices: npt.NDArray[np.int64], values: Doubles) -> None:
    """Add each value at its place. Unused slots carry 0 at a place that is used as well: skip them."""
    row, slot = np.nonzero(integers)
    sums[row, indices[row, slot]] += values[row, slot]  # places of a chunk are unique


def _nesterov(
    weight: Tensor, velocity: Tensor, mean: Tensor, lr: np.float32, momentum: np.float32
) -> tuple[Tensor, Tensor]:
    """float32, five operations: v' = μ·v + g;  u = μ·v' + g;  θ' = θ − lr·u. No step may be fused with another."""
    moved = momentum * velocity
    new_velocity = moved + mean
    ahead = momentum * new_velocity
    update = ahead + mean
    step = lr * update
    return weight - step, new_velocity
