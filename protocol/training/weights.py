"""Weights that others published: one safetensors file of a Hugging Face model becomes a job's first weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from protocol.core.text import one_line
from protocol.training.checkpoint import Tensor, Tensors
from protocol.training.errors import CheckpointError
from protocol.training.families import family_of
from protocol.training.layout import parameter_shapes
from protocol.training.spec import Spec

_HEAD = "lm_head.weight"  # in some files beside the embedding that it is tied to
_EMBEDDINGS = ("model.embed_tokens.weight", "transformer.wte.weight")


def weights_from_safetensors(spec: Spec, data: bytes) -> Tensors:
    """float32 arrays by parameter name. F32, F16 and BF16 are read, and widened exactly.

    Raises CheckpointError in one line for anything but this model's weights: a name, a shape or a type that is not
    expected, values that are not finite, frozen parameters that are not zero, a head that is not the tied embedding.
    """
    family = family_of(spec.model)
    stored = _read(data)
    weights = {name: _take(stored, name, shape, family.published) for name, shape in parameter_shapes(spec).items()}
    for name, shape in family.frozen(spec.model).items():
        if _stored_name(stored, name, family.published) and _take(stored, name, shape, family.published).any():
            raise CheckpointError(f"weights {name}: expected zeros or nothing (it is not trained), have other values")
    for name, entry in stored.items():
        if name == _HEAD and family.kind == "tokens":
            _check_head(entry, weights)
        elif not family.ignored(spec.model, name):
            raise CheckpointError(f"weights {one_line(name, 80)}: the model of the spec has no such parameter")
    return weights


def _read(data: bytes) -> dict[str, dict[str, Any]]:
    """Tensors by name: dtype, shape and bytes, as the library checked them. No pickle is ever read."""
    from safetensors import SafetensorError, deserialize

    try:
        return dict(deserialize(data))  # type: ignore[no-untyped-call]
    except (SafetensorError, ValueError) as failure:
        if data[:1] == b"{":
            raise CheckpointError(
                "weights: expected one safetensors file, have JSON (an index?); join the files"
            ) from None
        raise CheckpointError(f"weights: not a safetensors file: {one_line(str(failure), 120)}") from None


def _stored_name(stored: dict[str, Any], name: str, published: Callable[[str], tuple[str, ...]]) -> str | None:
    return next((other for other in (name, *published(name)) if other in stored), None)


def _take(
    stored: dict[str, dict[str, Any]], name: str, shape: tuple[int, ...], published: Callable[[str], tuple[str, ...]]
) -> Tensor:
    """One parameter; its entry leaves `stored`."""
    own = _stored_name(stored, name, published)
    if own is None:
        raise CheckpointError(f"weights {name}: missing, expected {list(shape)}")
    entry = stored.pop(own)
    if tuple(entry["shape"]) != shape:
        raise CheckpointError(f"weights {name}: expected {list(shape)}, have {entry['shape']}")
    return _widen(entry, name)


def _widen(entry: dict[str, Any], name: str) -> Tensor:
    raw, kind = entry["data"], entry["dtype"]
    match kind:
        case "F32":
            values = np.frombuffer(raw, "<f4").astype(np.float32)
        case "F16":
            values = np.frombuffer(raw, "<f2").astype(np.float32)
        case "BF16":  # the upper half of a float32
            values = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
        case _:
            raise CheckpointError(f"weights {name}: expected F32, F16 or BF16, have {kind}")
    if not np.isfinite(values).all():
        raise CheckpointError(f"weights {name}: expected finite values, have infinities or NaN")
    return values.reshape(entry["shape"])


def _check_head(head: dict[str, Any], weights: Tensors) -> None:
    """A head beside the embedding that it is tied to must have the same values."""
    embedding = next(weights[name] for name in _EMBEDDINGS if name in weights)
    if tuple(head["shape"]) != embedding.shape or not np.array_equal(_widen(head, _HEAD), embedding):
        raise CheckpointError(f"weights {_HEAD}: expected the embedding, which it is tied to, have other values")
