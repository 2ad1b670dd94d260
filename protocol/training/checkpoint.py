"""A checkpoint: the weights and the outer momentum after a round. All that the next claim needs, and nothing else.

Its digest (sha256 of the canonical bytes) is what operators attest, so every byte is determined.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocol.training import seeds
from protocol.training.canonical import Table, decode_tensors, encode_tensors, encoded_bytes
from protocol.training.errors import CheckpointError
from protocol.training.layout import Layout, parameter_shapes
from protocol.training.spec import Spec

Tensor = npt.NDArray[np.float32]
Tensors = dict[str, Tensor]

METADATA = {"format": "gradmarket-checkpoint-1"}
STATE_METADATA = {"format": "gradmarket-end-state-1"}
INITIAL_DEVIATION = 0.02


@dataclass(frozen=True)
class Checkpoint:
    """float32 arrays by parameter name. `momentum` is the outer optimizer's."""

    weights: Tensors
    momentum: Tensors


def checkpoint_bytes(spec: Spec) -> int:
    """The exact size of every checkpoint of this job."""
    return encoded_bytes(_table(parameter_shapes(spec)), METADATA)


def encode_checkpoint(spec: Spec, checkpoint: Checkpoint) -> bytes:
    """Canonical bytes."""
    tensors = {f"weights/{name}": array for name, array in checkpoint.weights.items()}
    tensors |= {f"momentum/{name}": array for name, array in checkpoint.momentum.items()}
    return encode_tensors(_table(parameter_shapes(spec)), METADATA, tensors)


def decode_checkpoint(spec: Spec, data: bytes) -> Checkpoint:
    """Strict: exactly this job's names and shapes, finite values. Raises CheckpointError."""
    shapes = parameter_shapes(spec)
    tensors = decode_tensors(data, _table(shapes), METADATA, CheckpointError, "checkpoint")
    parts: dict[str, Tensors] = {
        part: {name: _finite(tensors[f"{part}/{name}"], f"checkpoint {part}/{name}") for name in shapes}
        for part in ("weights", "momentum")
    }
    return Checkpoint(parts["weights"], parts["momentum"])


def checkpoint_digest(spec: Spec, checkpoint: Checkpoint) -> str:
    """sha256 of the canonical bytes, hex."""
    return hashlib.sha256(encode_checkpoint(spec, checkpoint)).hexdigest()


def encode_end_state(spec: Spec, weights: Tensors) -> bytes:
    """The weights after a claim's last inner step, as its operator commits and later opens them."""
    return encode_tensors(_state_table(parameter_shapes(spec)), STATE_METADATA, dict(weights))


def decode_end_state(spec: Spec, data: bytes) -> Tensors:
    """Strict. Raises CheckpointError."""
    shapes = parameter_shapes(spec)
    tensors = decode_tensors(data, _state_table(shapes), STATE_METADATA, CheckpointError, "end state")
    return {name: _finite(tensors[name], f"end state {name}") for name in shapes}


def end_state_bytes(spec: Spec) -> int:
    """The exact size of every end state of this job."""
    return encoded_bytes(_state_table(parameter_shapes(spec)), STATE_METADATA)


def genesis_checkpoint(spec: Spec) -> Checkpoint:
    """Checkpoint 0 from the spec's seed: the same bits on every machine. Norm weights are 1, momentum is 0.

    The projections back into the residual stream are smaller by sqrt(2·layers), as in GPT-2.
    """
    if isinstance(spec.genesis, str):
        raise CheckpointError(f"genesis: the spec names the blob {spec.genesis}; fetch it instead of drawing weights")
    shapes = parameter_shapes(spec)
    root = hashlib.sha256(b"gradmarket/genesis\0" + spec.genesis.to_bytes(8, "big")).digest()
    weights = {name: _initial(root, name, shape, spec.model.layers) for name, shape in shapes.items()}
    return Checkpoint(weights, {name: np.zeros(shape, np.float32) for name, shape in shapes.items()})


def _initial(root: bytes, name: str, shape: tuple[int, ...], layers: int) -> Tensor:
    if len(shape) == 1:
        return np.ones(shape, np.float32)
    deviation = INITIAL_DEVIATION
    if name.endswith(("o_proj.weight", "down_proj.weight")):
        deviation /= (2 * layers) ** 0.5
    drawn = seeds.near_normal(hashlib.sha256(root + name.encode()).digest(), int(np.prod(shape)))
    scale = np.float32(deviation / seeds.NEAR_NORMAL_DEVIATION)
    return (drawn.astype(np.float32) * scale).reshape(shape)


def _table(shapes: Layout) -> Table:
    return {f"{part}/{name}": ("F32", shape) for part in ("momentum", "weights") for name, shape in shapes.items()}


def _state_table(shapes: Layout) -> Table:
    return {name: ("F32", shape) for name, shape in shapes.items()}


def _finite(array: npt.NDArray[np.generic], what: str) -> Tensor:
    values = array.astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        raise CheckpointError(f"{what}: expected finite values, have infinities or NaN")
    return values
