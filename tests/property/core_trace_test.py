"""Traces and their trees: what was committed is proven, and nothing else is; hostile bytes end in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.core import merkle
from protocol.core.audit import ROWS_OPENED, steps_to_open
from protocol.core.commitment import case_id, commitment, round_pot
from protocol.core.trace import (
    NO_STATE,
    Seat,
    TraceError,
    TraceRow,
    audit_proof,
    audit_root,
    audit_row_hash,
    decode_trace,
    encode_trace,
    fixed,
    max_trace_bytes,
    row_hash,
    trace_proof,
    trace_root,
)

WORD, UINT64 = st.binary(min_size=32, max_size=32), st.integers(0, 2**64 - 1)
AUDITOR, STRANGER = "0x" + "11" * 20, "0x" + "22" * 20
SEAT = Seat(b"\1" * 32, 0, AUDITOR, b"\2" * 32)


@st.composite
def traces(draw: st.DrawFn, longest: int = 20) -> list[TraceRow]:
    count = draw(st.integers(1, longest))
    states = st.one_of(st.just(NO_STATE), WORD)
    return [TraceRow(step, draw(UINT64), draw(UINT64), draw(WORD), draw(states)) for step in range(1, count + 1)]


@given(traces(), st.data())
def test_every_row_is_proven_at_its_own_place_and_nowhere_else(rows: list[TraceRow], data: st.DataObject) -> None:
    root, count = trace_root(rows), len(rows)
    step = data.draw(st.integers(1, count))
    proof, leaf = trace_proof(rows, step), row_hash(rows[step - 1])
    assert merkle.is_proof(root, leaf, step - 1, count, proof)
    for index in range(count):
        same = row_hash(rows[index]) == leaf
        assert merkle.is_proof(root, leaf, index, count, proof) == (index == step - 1) or same
    assert not merkle.is_proof(root, leaf, count, count, proof)
    assert not merkle.is_proof(root, leaf, step - 1, count, [*proof, bytes(32)])


@given(traces(), st.data())
def test_no_change_of_a_row_or_of_its_path_is_proven(rows: list[TraceRow], data: st.DataObject) -> None:
    root, count = trace_root(rows), len(rows)
    step = data.draw(st.integers(1, count))
    row, proof = rows[step - 1], trace_proof(rows, step)
    name = data.draw(st.sampled_from(["step", "loss", "grad_norm", "sketch", "state"]))
    old = getattr(row, name)
    new = old ^ 1 if isinstance(old, int) else bytes([old[0] ^ 1]) + old[1:]
    assert not merkle.is_proof(root, row_hash(replace(row, **{name: new})), step - 1, count, proof)
    if proof:
        at = data.draw(st.integers(0, len(proof) - 1))
        bent = [*proof[:at], bytes([proof[at][0] ^ 1]) + proof[at][1:], *proof[at + 1 :]]
        assert not merkle.is_proof(root, row_hash(row), step - 1, count, bent)


def test_a_node_of_the_tree_is_no_leaf() -> None:
    rows = [TraceRow(step, step, step, NO_STATE, NO_STATE) for step in range(1, 5)]
    pair = merkle.compute_root([row_hash(rows[0]), row_hash(rows[1])])
    assert not merkle.is_proof(trace_root(rows), pair, 0, 4, trace_proof(rows, 1)[1:])


@pytest.mark.parametrize(
    "other",
    [
        replace(SEAT, case_id=b"\3" * 32),
        replace(SEAT, seat=1),
        replace(SEAT, auditor=STRANGER),
        replace(SEAT, salt=b"\4" * 32),
    ],
    ids=["case", "seat", "auditor", "salt"],
)
def test_an_auditors_rows_prove_nothing_for_another(other: Seat) -> None:
    rows = [TraceRow(step, step, step, NO_STATE, NO_STATE) for step in range(1, 6)]
    root, proof = audit_root(rows, SEAT), audit_proof(rows, SEAT, 3)
    assert merkle.is_proof(root, audit_row_hash(rows[2], SEAT), 2, 5, proof)
    assert not merkle.is_proof(root, audit_row_hash(rows[2], other), 2, 5, proof)
    assert audit_root(rows, other) != root


@given(traces())
def test_a_trace_is_read_as_it_was_written_and_fits_its_limit(rows: list[TraceRow]) -> None:
    data = encode_trace(rows)
    assert decode_trace(data, len(rows)) == rows
    assert len(data) <= max_trace_bytes(len(rows))
    for steps in (len(rows) - 1, len(rows) + 1):
        with pytest.raises(TraceError, match=f"expected {steps} rows"):
            decode_trace(data, steps)


@given(traces(5), st.data())
def test_one_changed_byte_is_another_trace_or_none(rows: list[TraceRow], data: st.DataObject) -> None:
    good = bytearray(encode_trace(rows))
    at = data.draw(st.integers(0, len(good) - 1))
    good[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != good[at]))
    try:
        assert decode_trace(bytes(good), len(rows)) != rows
    except TraceError as error:
        assert "\n" not in str(error)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["loss", "step", "state"]), inner),
    max_leaves=12,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()), st.integers(1, 4))
def test_whatever_a_peer_sends_is_a_trace_or_one_line(data: bytes, steps: int) -> None:
    with pytest.raises(TraceError):
        decode_trace(data, steps)


def a_row(**changes: Any) -> bytes:
    entry = {"gradNorm": 1, "loss": 1, "sketch": "00" * 32, "state": "00" * 32, "step": 1} | changes
    return json.dumps([entry], sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "data",
    [
        a_row(loss=-1),
        a_row(loss=2**64),
        a_row(loss=1.0),
        a_row(loss=True),
        a_row(loss=float("nan")),
        a_row(step=True),
        a_row(step=1.0),
        a_row(step=2),
        a_row(extra=1),
        a_row(sketch="00" * 31),
        a_row(sketch="00 " * 32),
        a_row(sketch="AA" * 32),
        a_row(sketch=7),
        a_row(state=None),
        a_row() + b" ",
        b"\xff\xfe" + a_row(),
        b"[" * 100_000,
        b"9" * 100_000,
    ],
)
def test_a_trace_in_any_other_form_is_refused(data: bytes) -> None:
    assert decode_trace(a_row(), 1)
    with pytest.raises(TraceError):
        decode_trace(data, 1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e-9, 1.9e10])
def test_a_value_that_has_no_fixed_point_is_refused(value: float) -> None:
    with pytest.raises(TraceError):
        fixed(value)


def test_a_value_halfway_between_two_units_goes_to_the_even_one() -> None:
    assert [fixed(0.5e-9), fixed(1.5e-9), fixed(2.5e-9)] == [0, 2, 2]


@given(WORD, WORD, st.integers(3, 1024))
def test_a_seat_opens_one_row_in_each_third_of_the_steps(seed: bytes, case: bytes, inner_steps: int) -> None:
    steps = steps_to_open(seed, case, inner_steps)
    assert len(set(steps)) == ROWS_OPENED
    for third, step in enumerate(steps):
        assert third * inner_steps // 3 < step <= (third + 1) * inner_steps // 3


def test_the_steps_to_open_differ_from_case_to_case() -> None:
    opened = {steps_to_open(b"\1" * 32, bytes([case]) * 32, 300) for case in range(50)}
    assert len(opened) > 45


def test_a_commitment_is_bound_to_every_field() -> None:
    fields: dict[str, Any] = {
        "chain_id": 1,
        "round_book": AUDITOR,
        "job_id": b"\1" * 32,
        "round": 2,
        "shard": 3,
        "operator": AUDITOR,
        "base": b"\4" * 32,
        "payload_digest": b"\5" * 32,
        "trace_root": b"\6" * 32,
        "state_digest": b"\7" * 32,
    }
    others = [
        fields | {name: STRANGER if value == AUDITOR else value + 1 if isinstance(value, int) else b"\xaa" * 32}
        for name, value in fields.items()
    ]
    made = {commitment(**values) for values in (fields, *others)}
    assert len(made) == len(fields) + 1


@given(WORD, st.integers(0, 2**32 - 1), st.integers(0, 255))
def test_the_pots_of_a_round_and_of_its_cases_differ(job_id: bytes, round: int, shard: int) -> None:
    ids = {round_pot(job_id, round), round_pot(job_id, round ^ 1), case_id(job_id, round, shard)}
    assert len(ids | {case_id(job_id, round, shard ^ 1)}) == 4
