"""The outer step: every operator computes the next checkpoint alone and must get the same bytes.

So nothing here leaves the order of an operation open: numpy, element-wise, float64 accumulators in shard order, one
division, one rounding to float32, then float32 operations one by one. No sum over elements is done in floating point
except the norms, whose terms are added in block order. Normative text: docs/spec/training.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from protocol.training.checkpoint import Checkpoint, Tensor, Tensors
from protocol.training.compress import Blocks, Decoded, decode_payload
from protocol.training.compress.blocks import Doubles
from protocol.training.errors import OuterStepError
from protocol.training.layout import parameter_shapes
from protocol.training.spec import Spec, claim_tokens

_SPLIT = 20  # bits: integers below 2^40 are split in two halves whose squares fit 64 bits for blocks of 4096


def compute_outer_step(spec: Spec, base: Checkpoint, payloads: Sequence[tuple[int, bytes]]) -> Checkpoint:
    """The checkpoint after `base` from (shard, payload) pairs in any order. Each shard counts once.

    Raises PayloadError for a payload that does not decode (attesters leave it out), OuterStepError for no payload,
    a shard given twice or a result that is not finite.
    """
    shards = [shard for shard, _ in payloads]
    if not shards or len(set(shards)) != len(shards):
        raise OuterStepError(f"outer step: expected at least one payload and each shard once, have shards {shards}")
    check_float_environment()
    decoded = [decode_payload(spec, data) for _, data in sorted(payloads, key=lambda pair: pair[0])]
    tokens = [claim_tokens(spec)] * len(decoded)
    weights = [np.float64(t) * c for t, c in zip(tokens, _clip_factors(decoded), strict=True)]
    total = np.float64(sum(tokens))  # exact: at most 256 shards below 2^29
    lr, momentum = np.float32(spec.outer.lr), np.float32(spec.outer.momentum)
    new_weights: Tensors = {}
    new_momentum: Tensors = {}
    for name, shape in parameter_shapes(spec).items():
        mean = _weighted_mean([update[name] for update in decoded], weights, total).reshape(shape)
        with np.errstate(over="ignore"):  # what overflows is refused below
            step = _nesterov(base.weights[name], base.momentum[name], mean, lr, momentum)
        new_weights[name], new_momentum[name] = step
        if not (np.isfinite(new_weights[name]).all() and np.isfinite(new_momentum[name]).all()):
            raise OuterStepError(f"outer step: {name} is no longer finite; the updates of this round are too large")
    return Checkpoint(new_weights, new_momentum)


def norm(update: Decoded) -> np.float64:
    """L2 norm of a decoded payload: the same bits everywhere.

    Per block: the integers' sum of squares S in int64, times the squared scale (exact in float64). Blocks are added
    one after the other, in float64, in the order of the sorted names; then one square root (correctly rounded).
    """
    terms = [_square_sums(blocks) for blocks in update.values()]
    return np.float64(np.sqrt(np.add.accumulate(np.concatenate(terms))[-1]))


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


def _clip_factors(updates: Sequence[Decoded]) -> list[np.float64]:
    """1 for norms up to the median, median / norm above it: a payload a hundred times too large counts once."""
    norms = [norm(update) for update in updates]
    middle = median(norms)
    return [np.float64(1.0) if n <= middle else middle / n for n in norms]


def _square_sums(blocks: Blocks) -> Doubles:
    """scale² · Σ integer², float64 [blocks]. Integers of more than 20 bits (fp16) are split: hi·2^20 + lo."""
    scales = blocks.scales.astype(np.float64)
    integers = np.abs(blocks.integers.astype(np.int64))
    high, low = integers >> _SPLIT, integers & (2**_SPLIT - 1)
    sums = (low * low).sum(axis=1, dtype=np.int64).astype(np.float64)
    if high.any():
        crossed = (high * low).sum(axis=1, dtype=np.int64).astype(np.float64) * 2.0 ** (_SPLIT + 1)
        squares = (high * high).sum(axis=1, dtype=np.int64).astype(np.float64) * 2.0 ** (2 * _SPLIT)
        sums = (squares + crossed) + sums
    terms: Doubles = (scales * scales) * sums
    return terms


def _weighted_mean(updates: Sequence[Blocks], weights: Sequence[np.float64], total: np.float64) -> Tensor:
    """float32 [count]: (Σ weight · (integer · scale)) / total, the sum in shard order, rounded once at the end."""
    count, block = updates[0].count, updates[0].block
    sums = np.zeros((updates[0].scales.size, block), np.float64)
    for update, weight in zip(updates, weights, strict=True):
        values = update.integers.astype(np.float64)
        values *= update.scales.astype(np.float64)[:, None]  # exact: at most 40 + 24 significant bits, halves have 11
        values *= weight
        if update.indices is None:
            sums += values
        else:
            _add_at(sums, update, values)
    sums /= total
    return sums.reshape(-1)[:count].astype(np.float32)


def _add_at(sums: Doubles, update: Blocks, values: Doubles) -> None:
    """Add each value at its place. Unused slots carry 0 at a place that is used as well: skip them."""
    assert update.indices is not None
    row, slot = np.nonzero(update.integers)
    sums[row, update.indices[row, slot]] += values[row, slot]  # places of a chunk are unique


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
