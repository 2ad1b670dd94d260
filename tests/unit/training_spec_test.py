"""A spec is a stranger's data: what it may say, and the line that answers it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from protocol.training.errors import SpecError
from protocol.training.layout import claim_flops, muon_parameters, parameter_count, parameter_shapes, state_parts
from protocol.training.spec import (
    claim_tokens,
    decode_spec,
    encode_spec,
    inner_steps,
    loss_tolerance,
    parse_spec,
    spec_digest,
    steps_before,
    tolerances,
    trace_rows,
)
from tests.unit.training_fixtures import a_sharing_spec, a_spec


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
        ("verify.state_every", 11, r"spec verify.state_every: expected at most the 10 rows of a trace, have 11"),
        ("version", 2, r"spec version"),
        ("genesis", -1, r"spec genesis"),
    ],
)
def test_a_value_out_of_bounds_is_answered_with_field_bound_and_value(path: str, value: Any, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        parse_spec(changed(path, value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def changed_inner(**values: Any) -> bytes:
    table = json.loads(encode_spec(a_spec()))
    table["inner"] |= values
    return json.dumps(table).encode()


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        ({"optimizer": "sgd"}, r"spec inner.optimizer: .*have \"sgd\""),
        ({"muon_momentum": 1.0}, r"spec inner.muon_momentum: .*< 1.0.*have 1.0"),
        ({"rate": {"decay": "steps"}}, r"spec inner.rate.decay: .*have \"steps\""),
        ({"rate": {"floor": 1.5}}, r"spec inner.rate.floor: .*<= 1.0.*have 1.5"),
        (
            {"rate": {"warmup": 50, "decay": "linear", "steps": 50}},
            r"spec inner.rate.steps: expected more than its warmup \(50\), have 50",
        ),
        ({"phases": [{"rounds": 0, "steps": 5}]}, r"spec inner.phases\[0\].rounds: .*>= 1.*have 0"),
        (
            {"phases": [{"rounds": 1, "steps": 10}, {"rounds": 1, "steps": 15}]},
            r"spec inner.phases\[1\].steps: expected a multiple of the 10 rows of a trace \(verify.rows\), have 15",
        ),
        (
            {"phases": [{"rounds": 1, "steps": 2**16 - 6}], "batch": 512, "micro_batch": 2},
            r"spec inner.phases\[0\].steps: expected at most 536870911 tokens a claim, have 65530",
        ),
        ({"phases": [{"rounds": 1, "steps": 10}] * 17}, r"spec inner.phases: .*length <= 16"),
        ({"moments": {"first": {"compressor": "zip"}}}, r"spec inner.moments.first.compressor: .*have \"zip\""),
    ],
)
def test_what_an_optimizer_may_not_do_is_answered_with_field_bound_and_value(inner: Any, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        parse_spec(changed_inner(**inner))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_a_warm_up_may_reach_beyond_the_steps_of_a_plan_that_does_not_fall() -> None:
    plan = parse_spec(changed_inner(rate={"warmup": 50})).inner.rate
    assert plan is not None and (plan.warmup, plan.decay) == (50, "none")


def test_rows_divide_the_steps_of_every_phase_and_are_what_the_chain_counts() -> None:
    table = json.loads(changed_inner(steps=60, phases=[{"rounds": 2, "steps": 20}]))
    table["verify"] |= {"rows": 5, "state_every": 5}
    assert trace_rows(parse_spec(json.dumps(table))) == 5
    assert trace_rows(a_spec()) == a_spec().inner.steps == 10
    table["verify"]["rows"] = 8
    with pytest.raises(SpecError, match=r"spec inner.phases\[0\].steps: expected a multiple of the 8 rows .*have 20"):
        parse_spec(json.dumps(table))
    table["verify"] |= {"rows": 4, "state_every": 5}
    with pytest.raises(SpecError, match=r"spec verify.state_every: expected at most the 4 rows of a trace, have 5"):
        parse_spec(json.dumps(table))


def test_steps_of_a_claim_follow_the_phases() -> None:
    phases = [{"rounds": 3, "steps": 10}, {"rounds": 2, "steps": 20}]
    table = json.loads(changed_inner(steps=50, phases=phases))
    table["verify"]["rows"] = 10
    spec = parse_spec(json.dumps(table))
    assert [inner_steps(spec, done) for done in range(7)] == [10, 10, 10, 20, 20, 50, 50]
    assert [steps_before(spec, done) for done in range(8)] == [0, 10, 20, 30, 50, 70, 120, 170]
    assert [steps_before(a_spec(), done) for done in (0, 1, 7)] == [0, 10, 70]
    assert claim_tokens(spec) == 50 * 4 * 32  # one weight for every claim: those of a round are equal anyway


def test_what_a_job_shares_follows_from_its_spec() -> None:
    assert list(state_parts(a_spec())) == ["weights", "momentum"]
    assert list(state_parts(a_sharing_spec(first=None))) == ["weights", "second"]
    assert list(state_parts(a_sharing_spec(momentum=0.9))) == ["weights", "momentum", "first", "second"]
    shapes, second = parameter_shapes(a_spec()), state_parts(a_sharing_spec())["second"]
    assert second["model.embed_tokens.weight/rows"] == (96,) and second["model.embed_tokens.weight/columns"] == (32,)
    assert second["model.norm.weight"] == (32,) and list(second) == sorted(second)
    inside = {n for n, shape in shapes.items() if len(shape) == 2 and "embed" not in n}
    assert muon_parameters(a_sharing_spec(optimizer="muon")) == inside
    assert muon_parameters(a_spec()) == frozenset()
    assert not any(n.partition("/")[0] in inside for n in state_parts(a_sharing_spec(optimizer="muon"))["second"])


def test_a_model_that_is_too_large_only_as_a_whole_is_refused() -> None:
    table = json.loads(encode_spec(a_spec()))
    table["model"] |= {"width": 2**14, "layers": 128, "heads": 128, "kv_heads": 128, "feed_forward": 2**16}
    with pytest.raises(SpecError, match=r"spec model: expected at most 8589934592 parameters, have \d+"):
        parse_spec(json.dumps(table))


def test_a_model_whose_files_would_have_too_long_a_header_is_refused_before_anybody_trains_it() -> None:
    table = json.loads(encode_spec(a_spec()))
    table["model"] = {
        "architecture": "qwen3", "vocab": 16, "width": 8, "layers": 120, "heads": 1, "kv_heads": 1, "head_width": 8,
        "feed_forward": 8,
    }  # fmt: skip
    table["exchange"] |= {"compressor": "topk"}
    table["inner"] |= {"moments": {"first": {"compressor": "topk"}}}
    with pytest.raises(SpecError, match=r"too many tensors for one file \(.*1048576\); give it fewer layers"):
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
