"""A spec is a stranger's data: what it may say, and the line that answers it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protocol.training.errors import SpecError
from protocol.training.layout import claim_flops, parameter_count, parameter_shapes
from protocol.training.spec import (
    claim_tokens,
    decode_spec,
    encode_spec,
    loss_tolerance,
    parse_spec,
    spec_digest,
    tolerances,
)
from tests.unit.training_fixtures import a_spec


def changed(path: str, value: Any) -> bytes:
    table = json.loads(encode_spec(a_spec()))
    *parents, last = path.split(".")
    place = table
    for parent in parents:
        place = place[parent]
    place[last] = value
    return json.dumps(table).encode()


def test_a_spec_survives_encoding_and_its_bytes_are_canonical() -> None:
    data = encode_spec(a_spec())
    assert decode_spec(data) == a_spec()
    assert encode_spec(decode_spec(data)) == data
    assert b" " not in data
    assert list(json.loads(data)) == sorted(json.loads(data))
    assert len(spec_digest(a_spec())) == 64


def test_bytes_that_are_not_canonical_are_refused_by_decode_and_accepted_by_parse() -> None:
    spaced = json.dumps(json.loads(encode_spec(a_spec())), indent=1).encode()
    assert parse_spec(spaced) == a_spec()
    with pytest.raises(SpecError, match="canonical JSON"):
        decode_spec(spaced)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("model.layers", 10**9, r"spec model.layers: .*<= 128.*have 1000000000"),
        ("model.vocab", 2, r"spec model.vocab: .*>= 16.*have 2"),
        ("model.width", "wide", r"spec model.width: .*int.*have \"wide\""),
        ("model.architecture", "mamba", r"spec model.architecture: .*mamba"),
        ("model.surprise", 1, r"spec model: .*surprise"),
        ("inner.lr", -1.0, r"spec inner.lr: .*> 0.*have -1"),
        ("inner.steps", 0, r"spec inner.steps: .*>= 1.*have 0"),
        ("exchange.compressor", "pickle", r"spec exchange.compressor: .*pickle"),
        ("tokenizer", "../../etc/passwd", r"spec tokenizer: .*have \"../../etc/passwd\""),
        ("verify.masked", ["lm_tail"], r"spec verify.masked: expected names of parameters, have lm_tail"),
        ("inner.micro_batch", 3, r"spec inner.micro_batch: expected a divisor of batch \(4\), have 3"),
        ("model.heads", 3, r"spec model.width: expected a multiple of model.heads \(3\), have 32"),
        ("verify.state_every", 11, r"spec verify.state_every: expected at most inner.steps \(10\), have 11"),
        ("version", 2, r"spec version"),
        ("genesis", -1, r"spec genesis"),
    ],
)
def test_a_value_out_of_bounds_is_answered_with_field_bound_and_value(path: str, value: Any, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        parse_spec(changed(path, value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_model_that_is_too_large_only_as_a_whole_is_refused() -> None:
    table = json.loads(encode_spec(a_spec()))
    table["model"] |= {"width": 2**14, "layers": 128, "heads": 128, "kv_heads": 128, "feed_forward": 2**16}
    with pytest.raises(SpecError, match=r"spec model: expected at most 8589934592 parameters, have \d+"):
        parse_spec(json.dumps(table))


def test_a_spec_may_widen_the_tolerance_table_and_never_narrow_it() -> None:
    wider = {"t1_accept": 1e-3, "t1_reject": 1e-2, "t2_accept": 1e-5, "t2_reject": 1e-3}
    assert tolerances(parse_spec(changed("verify.tolerances", wider))).t1_accept == 1e-3
    assert tolerances(a_spec()).t1_accept == 5e-4
    assert loss_tolerance(a_spec()) == 5_000  # the least that the terms on chain allow
    with pytest.raises(SpecError, match=r"verify.tolerances.t2_reject: expected at least the protocol's 0.0005"):
        parse_spec(changed("verify.tolerances", wider | {"t2_reject": 1e-4}))
    with pytest.raises(SpecError, match="t1_accept: expected below t1_reject"):
        parse_spec(changed("verify.tolerances", wider | {"t1_accept": 0.5, "t1_reject": 0.4}))


@pytest.mark.parametrize("data", [b"", b"\x80\x04.", b"[]", b"{" * 5000, b"null", b"\xff\xfe", b" " * 70_000])
def test_bytes_that_are_no_spec_raise_one_short_line(data: bytes) -> None:
    with pytest.raises(SpecError) as caught:
        decode_spec(data)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_counts_follow_from_the_shapes() -> None:
    spec = a_spec()
    shapes = parameter_shapes(spec)
    assert shapes["model.layers.1.self_attn.k_proj.weight"] == (16, 32)
    assert list(shapes) == sorted(shapes)
    by_hand = 96 * 32 + 32 + 2 * (2 * 32 + 2 * 32 * 32 + 2 * 16 * 32 + 3 * 32 * 48)
    assert parameter_count(spec) == by_hand
    assert claim_tokens(spec) == 10 * 4 * 32
    assert claim_flops(spec) == claim_tokens(spec) * (6 * by_hand + 12 * 2 * 32 * 32)
