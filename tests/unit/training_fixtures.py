"""A job small enough to train in a tenth of a second, with every part real."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from protocol.training.checkpoint import Checkpoint, Tensors
from protocol.training.compress import Update
from protocol.training.data import Tokens
from protocol.training.families import LlamaSpec
from protocol.training.layout import Layout, state_parts
from protocol.training.spec import (
    DataSpec,
    EncodingSpec,
    InnerSpec,
    MomentsSpec,
    OuterSpec,
    Spec,
    VerifySpec,
)

JOB = bytes.fromhex("11" * 32)
ZEROS = "0" * 64
METHODS = ["fp32", "fp16", "int8", "int4", "int2", "ternary", "sign", "topk"]


def a_spec(**changes: Any) -> Spec:
    """`changes` replace whole fields."""
    spec = Spec(
        name="tiny",
        model=LlamaSpec(vocab=96, width=32, layers=2, heads=2, kv_heads=1, feed_forward=48),
        tokenizer=ZEROS,
        data=DataSpec(manifest=ZEROS, validation=ZEROS),
        inner=InnerSpec(lr=3e-3, steps=10, batch=4, micro_batch=2, sequence=32),
        outer=OuterSpec(lr=0.7, momentum=0.5),
        exchange=EncodingSpec(compressor="int8", block=64),
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


def encoding(method: str, keep: int = 128) -> EncodingSpec:
    """A compressor by its name."""
    return EncodingSpec(compressor=method, block=64, keep=keep)  # type: ignore[arg-type]


def a_sharing_spec(first: str | None = "int4", exchange: str = "int8", momentum: float = 0.0, **inner: Any) -> Spec:
    """A job that shares second moments, and first ones in this encoding. `inner` changes single values."""
    moments = MomentsSpec(first=None if first is None else encoding(first))
    return a_spec(
        inner=msgspec.structs.replace(a_spec().inner, moments=moments, **inner),
        outer=OuterSpec(lr=0.7, momentum=momentum),
        exchange=encoding(exchange),
    )


def random_tensors(spec: Spec, seed: int, size: float = 1e-3) -> Tensors:
    """One heavy-tailed value for every weight, as pseudo-gradients have them."""
    return _drawn(state_parts(spec)["weights"], seed, size)


def random_update(spec: Spec, seed: int, size: float = 1e-3) -> Update:
    """A pseudo-gradient, and the moments that the job shares."""
    first, second = (_drawn(state_parts(spec).get(part, {}), seed + 100, size) for part in ("first", "second"))
    return Update(random_tensors(spec, seed, size), first, {n: a**2 for n, a in second.items()})


def plain(pseudo_gradient: Tensors) -> Update:
    """Of a job that shares no moments."""
    return Update(pseudo_gradient, {}, {})


def a_checkpoint(spec: Spec, seed: int = 3) -> Checkpoint:
    """No part of it is zero."""
    parts, other = state_parts(spec), random_update(spec, seed + 2)
    momentum = random_tensors(spec, seed + 1) if "momentum" in parts else {}
    return Checkpoint(random_tensors(spec, seed, 0.02), momentum, other.first, other.second, progress=3)


def _drawn(layout: Layout, seed: int, size: float) -> Tensors:
    chance = np.random.default_rng(seed)
    return {name: (chance.standard_t(4, shape) * size).astype(np.float32) for name, shape in layout.items()}
