"""Compression of a pseudo-gradient: one payload of canonical bytes, decoded to integers and float32 scales."""

from __future__ import annotations

from math import prod

import numpy as np

from protocol.training.canonical import Array, Table, decode_tensors, encode_tensors, encoded_bytes
from protocol.training.checkpoint import Tensors
from protocol.training.compress.blocks import LARGEST_SCALE, Blocks, Compressor
from protocol.training.compress.half import Half
from protocol.training.compress.levels import Levels
from protocol.training.compress.topk import TopK
from protocol.training.errors import PayloadError, TrainingFailed
from protocol.training.layout import parameter_shapes
from protocol.training.spec import Spec, claim_tokens

Decoded = dict[str, Blocks]  # parameter name → integers and scales

__all__ = [
    "Blocks",
    "Compressor",
    "Decoded",
    "check_payload",
    "compressor",
    "decode_payload",
    "encode_payload",
    "max_payload_bytes",
]


def compressor(spec: Spec) -> Compressor:
    """The job's compressor, with its parameters."""
    exchange = spec.exchange
    match exchange.compressor:
        case "fp16":
            return Half(exchange.block)
        case "int8":
            return Levels(127, exchange.block)
        case "int4":
            return Levels(7, exchange.block)
        case "topk":
            return TopK(exchange.keep)


def encode_payload(spec: Spec, pseudo_gradient: Tensors) -> bytes:
    """Canonical bytes of θ₀ − θ_H (float32 arrays by parameter name). Same input, same bytes, on every machine."""
    method = compressor(spec)
    tensors: dict[str, Array] = {}
    for name in parameter_shapes(spec):
        flat = np.ascontiguousarray(pseudo_gradient[name], np.float32).reshape(-1)
        if not (np.abs(flat) < LARGEST_SCALE).all():  # false for NaN too
            raise TrainingFailed(f"pseudo-gradient of {name}: not finite or above 2^40; the inner steps diverged")
        tensors |= {f"{name}/{part}": array for part, array in method.encode(flat).items()}
    return encode_tensors(_table(spec), _metadata(spec), tensors)


def decode_payload(spec: Spec, data: bytes) -> Decoded:
    """Strict: exact size, names, shapes and types, finite scales, integers and places in range. Raises PayloadError."""
    limit = max_payload_bytes(spec)
    if len(data) > limit:
        raise PayloadError(f"payload: {len(data)} bytes, a payload of this job has exactly {limit}")
    tensors = decode_tensors(data, _table(spec), _metadata(spec), PayloadError, "payload")
    method = compressor(spec)
    decoded: Decoded = {}
    for name, shape in parameter_shapes(spec).items():
        parts = {part: tensors[f"{name}/{part}"] for part in method.table(prod(shape))}
        decoded[name] = method.decode(parts, prod(shape), f"payload {name}")
    return decoded


def check_payload(spec: Spec, data: bytes) -> None:
    """Raise PayloadError for the bytes that an attester marks with bit 0. Norms are clipped later, never judged."""
    decode_payload(spec, data)


def max_payload_bytes(spec: Spec) -> int:
    """The exact size of every payload of this job: what a peer may send at most."""
    return encoded_bytes(_table(spec), _metadata(spec))


def _table(spec: Spec) -> Table:
    method = compressor(spec)
    return {
        f"{name}/{part}": entry
        for name, shape in parameter_shapes(spec).items()
        for part, entry in method.table(prod(shape)).items()
    }


def _metadata(spec: Spec) -> dict[str, str]:
    return {
        "format": "gradmarket-payload-1",
        "compressor": spec.exchange.compressor,
        "tokens": str(claim_tokens(spec)),
    }
