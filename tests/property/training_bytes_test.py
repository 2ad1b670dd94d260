"""Whatever bytes a stranger sends, the answer is a value or one line of this package's errors."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from protocol.training.canonical import encode_header
from protocol.training.checkpoint import decode_checkpoint, encode_checkpoint
from protocol.training.compress import compressor, decode_payload, encode_payload
from protocol.training.compress.levels import Levels
from protocol.training.compress.topk import TopK
from protocol.training.errors import TrainingError
from protocol.training.spec import PhaseSpec, RateSpec, decode_spec, encode_spec, parse_spec
from tests.unit.training_fixtures import METHODS, a_checkpoint, a_sharing_spec, a_spec, encoding, random_update

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def paths(table: Any, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [prefix] if prefix else []
    if isinstance(table, dict):
        for key, value in table.items():
            found += paths(value, (*prefix, key))
    return found


def a_full_spec() -> Any:
    """No optional field of it is empty."""
    table = json.loads(encode_spec(a_sharing_spec(rate=RateSpec(), phases=(PhaseSpec(rounds=1, steps=10),))))
    return table | {"verify": table["verify"] | {"rows": 5}}


SPEC_PATHS = paths(a_full_spec())


def refuses_or_accepts(function: Any, *arguments: Any) -> bool:
    """True if accepted. Any error but one line of this package's fails the test."""
    try:
        function(*arguments)
    except TrainingError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 600
        return False
    return True


@given(st.binary(max_size=300))
def test_random_bytes_are_no_spec_payload_or_checkpoint(data: bytes) -> None:
    assert not refuses_or_accepts(decode_spec, data)
    assert not refuses_or_accepts(decode_payload, a_spec(), data)
    assert not refuses_or_accepts(decode_checkpoint, a_spec(), data)


@given(st.sampled_from(SPEC_PATHS), JSON)
@example(("data",), {"\n": None})
def test_a_spec_with_any_value_anywhere_is_refused_or_canonical(path: tuple[str, ...], value: Any) -> None:
    table = a_full_spec()
    place = table
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    data = json.dumps(table).encode()
    if refuses_or_accepts(parse_spec, data):
        again = encode_spec(parse_spec(data))
        assert encode_spec(decode_spec(again)) == again


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60)
@given(position=st.integers(0, 10**6), value=st.integers(0, 255), cut=st.integers(0, 3))
def test_one_changed_byte_gives_another_valid_payload_or_one_line(
    method: str, position: int, value: int, cut: int
) -> None:
    spec = a_sharing_spec(exchange=method)
    data = bytearray(encode_payload(spec, random_update(spec, 1)))
    data[position % len(data)] = value
    accepted = refuses_or_accepts(decode_payload, spec, bytes(data[: len(data) - cut]))
    assert not (accepted and cut)


@given(position=st.integers(0, 10**6), value=st.integers(0, 255))
def test_one_changed_byte_of_a_checkpoint_changes_its_digest_or_is_refused(position: int, value: int) -> None:
    spec = a_sharing_spec(momentum=0.5)
    good = encode_checkpoint(spec, a_checkpoint(spec))
    data = bytearray(good)
    data[position % len(data)] = value
    if refuses_or_accepts(decode_checkpoint, spec, bytes(data)):
        again = encode_checkpoint(spec, decode_checkpoint(spec, bytes(data)))
        assert hashlib.sha256(again).digest() == hashlib.sha256(bytes(data)).digest()


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(count=st.integers(1, 9000), seed=st.integers(0, 2**32 - 1), size=st.sampled_from([1e-30, 1e-6, 1.0, 1e6]))
def test_encoding_any_vector_decodes_and_contains_it(method: str, count: int, seed: int, size: float) -> None:
    flat = (np.random.default_rng(seed).standard_t(3, count) * size).astype(np.float32)
    flat[np.random.default_rng(seed + 1).random(count) < 0.3] = 0
    tool = compressor(encoding(method, keep=100))
    parts = tool.encode(flat)
    table = tool.table(count)
    assert {name: (array.shape) for name, array in parts.items()} == {name: shape for name, (_, shape) in table.items()}
    blocks = tool.decode(parts, count, "x")
    away = tool.squared_distance(flat, blocks)
    assert away <= 1e-12 * max(float((flat.astype(np.float64) ** 2).sum()), 1e-300)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=40)
@given(
    count=st.integers(1, 9000),
    seed=st.integers(0, 2**32 - 1),
    away=st.sampled_from([1e-6, 1e-3, 0.1, 1.0, 30.0]),
    scale=st.sampled_from([0.5, 0.999, 1.0, 1.05, 3.0]),
)
def test_no_vector_is_nearer_to_what_encodes_to_a_payload_than_the_cell_distance(
    method: str, count: int, seed: int, away: float, scale: float
) -> None:
    """It may say too little and never too much: the honest are never accused."""
    chance = np.random.default_rng(seed)
    sent = chance.standard_t(3, count).astype(np.float32)
    sent[chance.random(count) < 0.2] = 0
    own = (sent * scale + away * chance.standard_normal(count)).astype(np.float32)
    tool = compressor(encoding(method, keep=100))
    found = tool.squared_distance(own, tool.decode(tool.encode(sent), count, "x"))
    assert found <= float(((own.astype(np.float64) - sent) ** 2).sum()) * (1 + 1e-9)


@given(st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=80))
def test_levels_are_idempotent(values: list[float]) -> None:
    """What was decoded and sent again is the same: the scale's rounding does not creep."""
    method = Levels(127, 16)
    flat = np.array(values, np.float32)
    first = method.decode(method.encode(flat), flat.size, "x")
    dense = (first.integers * first.scales[:, None]).reshape(-1)[: flat.size].astype(np.float32)
    second = method.decode(method.encode(dense), flat.size, "x")
    assert (second.integers == first.integers).all()


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=60), st.integers(1, 4096))
def test_top_k_ties_keep_the_lowest_places(values: list[int], keep: int) -> None:
    flat = np.array(values, np.float32)
    method = TopK(keep)
    blocks = method.decode(method.encode(flat), flat.size, "x")
    assert blocks.indices is not None
    count = -(-flat.size * keep // 4096)
    expected = sorted(sorted(range(flat.size), key=lambda i: (-abs(values[i]), i))[:count])
    assert blocks.indices[0, :count].tolist() == expected


def test_a_header_that_claims_more_than_it_holds_is_refused_before_it_is_read() -> None:
    spec = a_spec()
    lie = struct.pack("<Q", 2**63) + b"{}"
    assert not refuses_or_accepts(decode_payload, spec, lie)
    assert len(encode_header({"a": ("F32", (2,))}, {})) % 8 == 0
