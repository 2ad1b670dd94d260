"""A trace: one row per inner step, and the hashes that bind it (twin of contracts/libraries/TraceLib.sol)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from protocol.core import merkle
from protocol.core.encoding import abi_encode, keccak, typehash
from protocol.core.errors import GradmarketError
from protocol.core.units import FIXED_POINT

ROW_TYPEHASH = typehash("TraceRow(uint32 step,uint64 loss,uint64 gradNorm,bytes32 sketch,bytes32 state)")
AUDIT_ROW_TYPEHASH = typehash("AuditRow(bytes32 caseId,uint16 seat,address auditor,bytes32 salt,bytes32 row)")
NO_STATE = bytes(32)
_UINT64_MAX = 2**64 - 1


class TraceError(GradmarketError):
    """A trace that cannot be what was committed."""


@dataclass(frozen=True)
class TraceRow:
    """What one inner step left behind. `step` counts from 1; `loss` and `grad_norm` are in units of 1e-9."""

    step: int
    loss: int
    grad_norm: int
    sketch: bytes  # sha256 of the count-sketch of θ₀ − θ_t
    state: bytes  # sha256 of the full state, or NO_STATE where none was taken


@dataclass(frozen=True)
class Seat:
    """Who an auditor's row belongs to: without it a root could be copied from another seat."""

    case_id: bytes
    seat: int
    auditor: str
    salt: bytes


def fixed(x: float) -> int:
    """`x` in units of 1e-9, ties to even. Raises TraceError for what has no such number."""
    if not math.isfinite(x) or x < 0:
        raise TraceError(f"trace value {x!r}: expected a finite number that is not negative")
    value = round(x * FIXED_POINT)
    if value > _UINT64_MAX:
        raise TraceError(f"trace value {x!r}: too large for 64 bits in units of 1e-9")
    return value


def row_hash(row: TraceRow) -> bytes:
    """The leaf of an operator's trace: hashed twice, so that no inner node can be presented as a leaf."""
    types = ("bytes32", "uint32", "uint64", "uint64", "bytes32", "bytes32")
    return keccak(keccak(abi_encode(types, (ROW_TYPEHASH, row.step, row.loss, row.grad_norm, row.sketch, row.state))))


def audit_row_hash(row: TraceRow, seat: Seat) -> bytes:
    """The leaf of an auditor's trace: the same row, bound to one seat of one case and to a salt."""
    types = ("bytes32", "bytes32", "uint16", "address", "bytes32", "bytes32")
    values = (AUDIT_ROW_TYPEHASH, seat.case_id, seat.seat, seat.auditor, seat.salt, row_hash(row))
    return keccak(keccak(abi_encode(types, values)))


def trace_root(rows: Sequence[TraceRow]) -> bytes:
    """The root that a commitment carries."""
    return merkle.compute_root([row_hash(row) for row in rows])


def trace_proof(rows: Sequence[TraceRow], step: int) -> list[bytes]:
    """The path of the row of `step` (counted from 1)."""
    return merkle.compute_proof([row_hash(row) for row in rows], step - 1)


def audit_root(rows: Sequence[TraceRow], seat: Seat) -> bytes:
    """The root that an auditor commits before the operator opens its trace."""
    return merkle.compute_root([audit_row_hash(row, seat) for row in rows])


def audit_proof(rows: Sequence[TraceRow], seat: Seat, step: int) -> list[bytes]:
    """The path of the auditor's row of `step` (counted from 1)."""
    return merkle.compute_proof([audit_row_hash(row, seat) for row in rows], step - 1)


def encode_trace(rows: Sequence[TraceRow]) -> bytes:
    """Canonical JSON: one list of rows, keys sorted, no spaces."""
    table = [
        {"gradNorm": r.grad_norm, "loss": r.loss, "sketch": r.sketch.hex(), "state": r.state.hex(), "step": r.step}
        for r in rows
    ]
    return json.dumps(table, sort_keys=True, separators=(",", ":")).encode()


def max_trace_bytes(inner_steps: int) -> int:
    """The most that `encode_trace` makes of so many rows: what an operator may send at most."""
    widest = TraceRow(inner_steps, _UINT64_MAX, _UINT64_MAX, NO_STATE, NO_STATE)
    return len(encode_trace([widest])) * inner_steps + 2


def decode_trace(data: bytes, inner_steps: int) -> list[TraceRow]:
    """Read exactly `inner_steps` rows, numbered from 1, in `encode_trace`'s own bytes, or raise TraceError."""
    rows = _decode_table(data, inner_steps)
    if encode_trace(rows) != data:
        raise TraceError("trace: expected canonical JSON: sorted keys, lower-case hex, no spaces")
    return rows


class _WireRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"grad_norm": "gradNorm"}):
    """A row as it is sent. Typed decoding stops at the first wrong byte: nesting cannot exhaust the stack."""

    grad_norm: int
    loss: int
    sketch: str
    state: str
    step: int


def _decode_table(data: bytes, inner_steps: int) -> list[TraceRow]:
    try:
        table = msgspec.json.decode(data, type=list[_WireRow])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"trace: expected a JSON list of rows: {error}") from None
    if len(table) != inner_steps:
        raise TraceError(f"trace: expected {inner_steps} rows, have {len(table)}")
    return [_decode_row(entry, step) for step, entry in enumerate(table, start=1)]


def _decode_row(entry: _WireRow, step: int) -> TraceRow:
    if entry.step != step:
        raise TraceError(f"trace row {step}: it says step {entry.step}")
    for name, value in (("loss", entry.loss), ("gradNorm", entry.grad_norm)):
        if not 0 <= value <= _UINT64_MAX:
            raise TraceError(f"trace row {step}: {name} must be a whole number of 64 bits")
    try:
        sketch, state = bytes.fromhex(entry.sketch), bytes.fromhex(entry.state)
    except ValueError:
        raise TraceError(f"trace row {step}: digests must be hex") from None
    if len(sketch) != 32 or len(state) != 32:
        raise TraceError(f"trace row {step}: digests must have 32 bytes")
    return TraceRow(step, entry.loss, entry.grad_norm, sketch, state)
