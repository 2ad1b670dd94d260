"""A payload: the pseudo-gradient and the shared moments of a claim, compressed to canonical bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from protocol.training.canonical import Array, Buffer, Table, decode_tensors, encode_tensors, encoded_bytes
from protocol.training.checkpoint import EndState, Tensor, Tensors
from protocol.training.compress.blocks import LARGEST_SCALE, Blocks, Compressor
from protocol.training.compress.full import Full
from protocol.training.compress.half import Half
from protocol.training.compress.levels import Levels
from protocol.training.compress.normal import LAWS, Normal
from protocol.training.compress.topk import TopK
from protocol.training.errors import PayloadError, TrainingFailed
from protocol.training.layout import Layout, parameter_shapes, state_parts
from protocol.training.spec import EncodingSpec, Spec, claim_tokens

__all__ = [
    "Blocks",
    "Compressor",
    "Decoded",
    "Encoded",
    "Update",
    "check_payload",
    "compressor",
    "compute_update",
    "decode_payload",
    "encode_payload",
    "encodings",
    "max_payload_bytes",
    "open_payload",
]

Encoded = Mapping[str, Blocks]  # parameter name → integers and scales


@dataclass(frozen=True)
class Update:
    """What a claim gives, before compression: float32 by name. `first`, `second`: empty where the job shares none."""

    pseudo_gradient: Tensors  # θ₀ − θ_H
    first: Tensors
    second: Tensors


@dataclass(frozen=True)
class Decoded:
    """A payload as it is used. `parts`: "update", and "first" where the job shares it; `second` is sent as it is."""

    parts: dict[str, Encoded]
    second: Tensors


class _Lazy(Mapping[str, Blocks]):
    """Tensors of one part, each decoded when it is looked at: a whole payload is far larger decoded than sent."""

    def __init__(self, part: str, encoding: EncodingSpec, shapes: Layout, tensors: Mapping[str, Array]) -> None:
        self._part, self._method, self._shapes, self._tensors = part, compressor(encoding), shapes, tensors

    def __getitem__(self, name: str) -> Blocks:
        count = prod(self._shapes[name])
        pieces = {piece: self._tensors[f"{self._part}/{name}/{piece}"] for piece in self._method.table(count)}
        return self._method.decode(pieces, count, f"payload {self._part}/{name}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


def compute_update(start: Tensors, end: EndState) -> Update:
    """θ₀ − θ_H, one float32 subtraction for each value; the moments as they are."""
    return Update({name: start[name] - end.weights[name] for name in start}, end.first, end.second)


def compressor(encoding: EncodingSpec) -> Compressor:
    """A way to send tensors, with its parameters."""
    match encoding.compressor:
        case "fp32":
            return Full()
        case "fp16":
            return Half(encoding.block)
        case "int8":
            return Levels(127, encoding.block)
        case "int4":
            return Levels(7, encoding.block)
        case "topk":
            return TopK(encoding.keep)
        case law:
            return Normal(LAWS[law], encoding.block)


def encodings(spec: Spec) -> dict[str, EncodingSpec]:
    """Part of a payload → how it is compressed."""
    moments = spec.inner.moments
    first = {"first": moments.first} if moments is not None and moments.first is not None else {}
    return {"update": spec.exchange, **first}


def encode_payload(spec: Spec, update: Update) -> bytes:
    """Canonical bytes. Same input, same bytes, on every machine."""
    tensors: dict[str, Array] = {f"second/{name}": array for name, array in _second(spec, update.second).items()}
    for part, encoding in encodings(spec).items():
        values, method = (update.pseudo_gradient if part == "update" else update.first), compressor(encoding)
        for name in parameter_shapes(spec):
            flat = np.ascontiguousarray(values[name], np.float32).reshape(-1)
            if not (np.abs(flat) < LARGEST_SCALE).all():  # false for NaN too
                raise TrainingFailed(f"{part} of {name}: not finite or above 2^40; the inner steps diverged")
            tensors |= {f"{part}/{name}/{piece}": array for piece, array in method.encode(flat).items()}
    return encode_tensors(_table(spec), _metadata(spec), tensors)


def decode_payload(spec: Spec, data: Buffer) -> Decoded:
    """Strict: exact size, names, shapes and types, finite scales, integers and places in range. Raises PayloadError."""
    opened = open_payload(spec, data)
    for part in opened.parts.values():
        for name in part:
            part[name]  # decodes, or raises
    return opened


def open_payload(spec: Spec, data: Buffer) -> Decoded:
    """As `decode_payload`, but a tensor of the parts is decoded, and refused, when it is looked at, every time."""
    limit = max_payload_bytes(spec)
    if len(data) > limit:
        raise PayloadError(f"payload: {len(data)} bytes, a payload of this job has exactly {limit}")
    tensors = decode_tensors(data, _table(spec), _metadata(spec), PayloadError, "payload")
    shapes = parameter_shapes(spec)
    parts: dict[str, Encoded] = {
        part: _Lazy(part, encoding, shapes, tensors) for part, encoding in encodings(spec).items()
    }
    return Decoded(parts, {name: _moment(tensors[f"second/{name}"], name) for name in _factors(spec)})


def check_payload(spec: Spec, data: Buffer) -> None:
    """Raise PayloadError for the bytes that an attester marks with bit 0. Norms are clipped later, never judged."""
    decode_payload(spec, data)


def max_payload_bytes(spec: Spec) -> int:
    """The exact size of every payload of this job: what a peer may send at most."""
    return encoded_bytes(_table(spec), _metadata(spec))


def _second(spec: Spec, second: Tensors) -> Tensors:
    for name, array in second.items():
        if not ((array >= 0) & (array < LARGEST_SCALE)).all():
            raise TrainingFailed(f"second moment of {name}: not finite or above 2^40; the inner steps diverged")
    return {name: second[name] for name in _factors(spec)}


def _moment(array: Array, name: str) -> Tensor:
    values = array.astype(np.float32, copy=False)
    if not ((values >= 0) & (values < LARGEST_SCALE)).all():  # false for NaN too
        raise PayloadError(f"payload second/{name}: a second moment must be in [0, 2^40)")
    return values


def _factors(spec: Spec) -> Layout:
    return state_parts(spec).get("second", {})


def _table(spec: Spec) -> Table:
    table: dict[str, tuple[str, tuple[int, ...]]] = {f"second/{n}": ("F32", s) for n, s in _factors(spec).items()}
    for part, encoding in encodings(spec).items():
        method = compressor(encoding)
        for name, shape in parameter_shapes(spec).items():
            table |= {f"{part}/{name}/{piece}": entry for piece, entry in method.table(prod(shape)).items()}
    return table


def _metadata(spec: Spec) -> Mapping[str, str]:
    return {
        "format": "gradmarket-payload-2",
        "compressor": spec.exchange.compressor,
        "tokens": str(claim_tokens(spec)),
    }
