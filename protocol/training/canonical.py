"""Canonical safetensors: for one table of names, types and shapes there is exactly one header and one length.

So a strict decoder need not parse a stranger's header at all: it compares it with the only one that is right.
Files can be read by the safetensors library; tensors lie in sorted order of their names, little-endian, no gaps.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Mapping
from math import prod

import numpy as np
import numpy.typing as npt

from protocol.training.errors import TrainingError

Array = npt.NDArray[np.generic]
Buffer = bytes | mmap.mmap  # a file's bytes, in memory or as they lie on the disk
Table = Mapping[str, tuple[str, tuple[int, ...]]]  # name → (safetensors type, shape)

TYPES: dict[str, np.dtype[np.generic]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I32": np.dtype("<i4"),
    "U16": np.dtype("<u2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
}
MAX_HEADER_BYTES = 2**20
_ALIGNMENT = 8  # bytes; the safetensors library pads its headers likewise


def encode_header(table: Table, metadata: Mapping[str, str]) -> bytes:
    """The one header of a table: length (8 bytes, little-endian), then JSON with sorted keys, padded with spaces."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    offset = 0
    for name in sorted(table):
        kind, shape = table[name]
        size = prod(shape) * TYPES[kind].itemsize
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > MAX_HEADER_BYTES:
        raise TrainingError(f"safetensors header: {len(text)} bytes, at most {MAX_HEADER_BYTES}")
    return struct.pack("<Q", len(text)) + text


def encoded_bytes(table: Table, metadata: Mapping[str, str]) -> int:
    """The exact size of every file of this table."""
    return len(encode_header(table, metadata)) + sum(prod(s) * TYPES[k].itemsize for k, s in table.values())


def tensor_offsets(table: Table, metadata: Mapping[str, str]) -> dict[str, int]:
    """Where each tensor of a file of this table begins, in bytes."""
    offset = len(encode_header(table, metadata))
    offsets: dict[str, int] = {}
    for name in sorted(table):
        kind, shape = table[name]
        offsets[name] = offset
        offset += prod(shape) * TYPES[kind].itemsize
    return offsets


def encode_tensors(table: Table, metadata: Mapping[str, str], tensors: Mapping[str, Array]) -> bytes:
    """Canonical bytes. The tensors must be those of the table, in type and shape."""
    parts = [encode_header(table, metadata)]
    if tensors.keys() != table.keys():
        raise TrainingError(f"tensors: expected exactly {len(table)} names of the table, have {len(tensors)}")
    for name in sorted(table):
        kind, shape = table[name]
        array = tensors[name]
        if array.dtype != TYPES[kind] or array.shape != shape:
            raise TrainingError(f"tensor {name}: expected {kind} {list(shape)}, have {array.dtype} {list(array.shape)}")
        parts.append(np.ascontiguousarray(array).tobytes())
    return b"".join(parts)


def decode_tensors(
    data: Buffer, table: Table, metadata: Mapping[str, str], error: type[TrainingError], what: str
) -> dict[str, Array]:
    """Read-only views into `data`. Anything but the canonical bytes of this table raises `error`, in one line."""
    header = encode_header(table, metadata)
    if data[: len(header)] != header:
        raise error(f"{what}: {_explain(data, table, metadata)}")
    expected = encoded_bytes(table, metadata)
    if len(data) != expected:
        raise error(f"{what}: expected exactly {expected} bytes, have {len(data)}")
    return {
        name: np.frombuffer(data, TYPES[kind], prod(shape), offset).reshape(shape)
        for (name, offset), (kind, shape) in zip(
            tensor_offsets(table, metadata).items(), (table[name] for name in sorted(table)), strict=True
        )
    }


def _explain(data: Buffer, table: Table, metadata: Mapping[str, str]) -> str:
    """Why a header is not the expected one. It is parsed for this sentence only, and never trusted."""
    size = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else MAX_HEADER_BYTES + 1
    if size > min(MAX_HEADER_BYTES, len(data) - 8):
        return "not a safetensors file (its header does not fit)"
    try:
        have = json.loads(data[8 : 8 + size])
    except (ValueError, RecursionError):
        return "not a safetensors file (its header is not JSON)"
    if not isinstance(have, dict):
        return "not a safetensors file (its header is no object)"
    if have.get("__metadata__") != dict(metadata):
        return f"expected the metadata {dict(metadata)}, have {str(have.get('__metadata__'))[:200]}"
    for name in sorted(table):
        kind, shape = table[name]
        entry = have.get(name)
        if not isinstance(entry, dict):
            return f"the tensor {name} is missing"
        if entry.get("dtype") != kind or entry.get("shape") != list(shape):
            found = f"{str(entry.get('dtype'))[:20]} {str(entry.get('shape'))[:80]}"
            return f"tensor {name}: expected {kind} {list(shape)}, have {found}"
    return "the header is not canonical (other tensors, offsets, order or padding)"
