"""A job small enough to train in a tenth of a second, with every part real."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from protocol.training.checkpoint import Checkpoint, Tensors
from protocol.training.data import Tokens
from protocol.training.layout import parameter_shapes
from protocol.training.spec import DataSpec, ExchangeSpec, InnerSpec, ModelSpec, OuterSpec, Spec, VerifySpec

JOB = bytes.fromhex("11" * 32)
ZEROS = "0" * 64


def a_spec(**changes: Any) -> Spec:
    """`changes` replace whole fields."""
    spec = Spec(
        name="tiny",
        model=ModelSpec(vocab=96, width=32, layers=2, heads=2, kv_heads=1, feed_forward=48),
        tokenizer=ZEROS,
        data=DataSpec(manifest=ZEROS, validation=ZEROS),
        inner=InnerSpec(lr=3e-3, steps=10, batch=4, micro_batch=2, sequence=32),
        outer=OuterSpec(lr=0.7, momentum=0.5),
        exchange=ExchangeSpec(compressor="int8", block=64),
        verify=VerifySpec(tolerance_class="fp32", state_every=2),
        genesis=7,
    )
    return msgspec.structs.replace(spec, **changes)


def a_shard(spec: Spec, number: int = 0, sequences: int = 40) -> Tokens:
    """Learnable text: a walk whose next token depends on the last one, another walk for each number."""
    chance = np.random.default_rng(number)
    length = sequences * spec.inner.sequence + 1
    steps = chance.integers(1, 4, length)
    stream = np.cumsum(steps) * 7 % spec.model.vocab
    starts = spec.inner.sequence * np.arange(sequences)[:, None]
    tokens: Tokens = stream[starts + np.arange(spec.inner.sequence + 1)[None, :]].astype(np.int32)
    return tokens


def random_update(spec: Spec, seed: int, size: float = 1e-3) -> Tensors:
    """Heavy-tailed values, as pseudo-gradients have them."""
    chance = np.random.default_rng(seed)
    return {
        name: (chance.standard_t(4, shape) * size).astype(np.float32) for name, shape in parameter_shapes(spec).items()
    }


def a_checkpoint(spec: Spec, seed: int = 3) -> Checkpoint:
    """Weights and momentum that are not zero."""
    return Checkpoint(random_update(spec, seed, 0.02), random_update(spec, seed + 1, 1e-3))
