"""A checkpoint: weights, outer momentum and shared inner moments after a round: all that the next claim needs.

Its digest (sha256 of the canonical bytes) is what operators attest, so every byte is determined.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from protocol.training import seeds
from protocol.training.canonical import Array, Buffer, Table, decode_tensors, encode_tensors, encoded_bytes
from protocol.training.errors import CheckpointError
from protocol.training.families import ModelSpec, family_of
from protocol.training.layout import Layout, parameter_shapes, state_parts
from protocol.training.spec import Spec

Tensor = npt.NDArray[np.float32]
Tensors = dict[str, Tensor]

METADATA = {"format": "gradmarket-checkpoint-2"}
STATE_METADATA = {"format": "gradmarket-end-state-2"}
PROGRESS = "progress"
MAX_PROGRESS = 2**24  # outer steps: a count that a stranger's genesis starts from leaves room to go on
PARTS = ("weights", "momentum", "first", "second")


@dataclass(frozen=True)
class Checkpoint:
    """float32 arrays by name: what `layout.state_parts` lists; a part that the job does not share is empty.

    `momentum` is the outer optimizer's; `first` and `second` are the inner moments that claims start from.
    `progress` counts the outer steps so far: rates and phases follow from it.
    """

    weights: Tensors
    momentum: Tensors = field(default_factory=dict)
    first: Tensors = field(default_factory=dict)
    second: Tensors = field(default_factory=dict)
    progress: int = 0

    def part(self, name: str) -> Tensors:
        return {"weights": self.weights, "momentum": self.momentum, "first": self.first, "second": self.second}[name]


@dataclass(frozen=True)
class EndState:
    """What a claim's inner steps end in: `weights`, and the moments that the job shares."""

    weights: Tensors
    first: Tensors = field(default_factory=dict)
    second: Tensors = field(default_factory=dict)


def checkpoint_bytes(spec: Spec) -> int:
    """The exact size of every checkpoint of this job."""
    return encoded_bytes(checkpoint_table(spec), METADATA)


def encode_checkpoint(spec: Spec, checkpoint: Checkpoint) -> bytes:
    """Canonical bytes."""
    tensors: dict[str, Array] = {PROGRESS: np.array([checkpoint.progress], np.int32)}
    for part in state_parts(spec):
        tensors |= {f"{part}/{name}": array for name, array in checkpoint.part(part).items()}
    return encode_tensors(checkpoint_table(spec), METADATA, tensors)


def decode_checkpoint(spec: Spec, data: Buffer) -> Checkpoint:
    """Strict: exactly this job's names and shapes, finite values, no second moment below 0. Raises CheckpointError."""
    tensors = decode_tensors(data, checkpoint_table(spec), METADATA, CheckpointError, "checkpoint")
    progress = int(tensors[PROGRESS][0])
    if not 0 <= progress <= MAX_PROGRESS:
        raise CheckpointError(f"checkpoint: expected 0…{MAX_PROGRESS} outer steps, have {progress}")
    parts = _parts(tensors, state_parts(spec), "checkpoint")
    weights, momentum, first, second = (parts.get(part, {}) for part in PARTS)
    return Checkpoint(weights, momentum, first, second, progress)


def checkpoint_table(spec: Spec) -> Table:
    """Types and shapes of a checkpoint's tensors, `<part>/<name>` and the count of outer steps."""
    return {**_table_of(state_parts(spec)), PROGRESS: ("I32", (1,))}


def checkpoint_digest(spec: Spec, checkpoint: Checkpoint) -> str:
    """sha256 of the canonical bytes, hex."""
    return hashlib.sha256(encode_checkpoint(spec, checkpoint)).hexdigest()


def encode_end_state(spec: Spec, state: EndState) -> bytes:
    """The end of a claim, as its operator commits and later opens it."""
    parts = {"weights": state.weights, "first": state.first, "second": state.second}
    tensors = {f"{part}/{name}": array for part in _end_parts(spec) for name, array in parts[part].items()}
    return encode_tensors(_state_table(spec), STATE_METADATA, tensors)


def decode_end_state(spec: Spec, data: bytes) -> EndState:
    """Strict. Raises CheckpointError."""
    tensors = decode_tensors(data, _state_table(spec), STATE_METADATA, CheckpointError, "end state")
    return EndState(**_parts(tensors, _end_parts(spec), "end state"))


def end_state_bytes(spec: Spec) -> int:
    """The exact size of every end state of this job."""
    return encoded_bytes(_state_table(spec), STATE_METADATA)


def genesis_checkpoint(spec: Spec) -> Checkpoint:
    """Checkpoint 0 from the spec's seed: the same bits on every machine. Norm weights are 1, biases 0."""
    if isinstance(spec.genesis, str):
        raise CheckpointError(f"genesis: the spec names the blob {spec.genesis}; fetch it instead of drawing weights")
    shapes = parameter_shapes(spec)
    root = hashlib.sha256(b"gradmarket/genesis\0" + spec.genesis.to_bytes(8, "big")).digest()
    weights = {name: _initial(root, name, shape, spec.model) for name, shape in shapes.items()}
    return first_checkpoint(spec, weights)


def first_checkpoint(spec: Spec, weights: Tensors) -> Checkpoint:
    """Checkpoint 0 with these weights: everything else that the job shares is zero."""
    layouts = state_parts(spec)
    zeros = ({n: np.zeros(s, np.float32) for n, s in layouts.get(part, {}).items()} for part in PARTS[1:])
    momentum, first, second = zeros
    return Checkpoint(weights, momentum, first, second)


def _initial(root: bytes, name: str, shape: tuple[int, ...], model: ModelSpec) -> Tensor:
    if len(shape) == 1:
        return np.full(shape, 0 if name.endswith(".bias") else 1, np.float32)
    deviation = family_of(model).deviation(model, name)
    drawn = seeds.near_normal(hashlib.sha256(root + name.encode()).digest(), int(np.prod(shape)))
    scale = np.float32(deviation / seeds.NEAR_NORMAL_DEVIATION)
    return (drawn.astype(np.float32) * scale).reshape(shape)


def _state_table(spec: Spec) -> Table:
    return _table_of(_end_parts(spec))


def _end_parts(spec: Spec) -> dict[str, Layout]:
    return {part: layout for part, layout in state_parts(spec).items() if part != "momentum"}


def _table_of(parts: Mapping[str, Layout]) -> Table:
    return {f"{part}/{name}": ("F32", shape) for part, layout in parts.items() for name, shape in layout.items()}


def _parts(tensors: Mapping[str, Array], parts: Mapping[str, Layout], what: str) -> dict[str, Tensors]:
    read = {part: {n: _finite(tensors[f"{part}/{n}"], f"{what} {part}/{n}") for n in parts[part]} for part in parts}
    for name, array in read.get("second", {}).items():
        if (array < 0).any():
            raise CheckpointError(f"{what} second/{name}: expected values of at least 0, have {array.min()}")
    return read


def _finite(array: npt.NDArray[np.generic], what: str) -> Tensor:
    values = array.astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        raise CheckpointError(f"{what}: expected finite values, have infinities or NaN")
    return values
