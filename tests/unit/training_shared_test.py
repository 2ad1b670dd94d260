"""Judging claims that share moments: the honest match whatever their optimizer, and a poisoned moment is a fraud."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from protocol.core.trace import trace_root
from protocol.training.checkpoint import Checkpoint, EndState, decode_end_state, encode_end_state, genesis_checkpoint
from protocol.training.compare import T1, T1_CELL, T3, Committed, Judgement, judge_claim, relative_distance
from protocol.training.inner import Trainer, finish_claim
from protocol.training.outer import compute_outer_step
from protocol.training.result import ClaimResult
from protocol.training.spec import Spec
from tests.unit.training_fixtures import JOB, METHODS, a_shard, a_sharing_spec, random_update

SPECS = {
    "adamw, both moments": a_sharing_spec(first="int8"),
    "adamw, second moments": a_sharing_spec(first=None),
    "muon, both moments": a_sharing_spec(first="int8", optimizer="muon"),
    "muon, one bit": a_sharing_spec(first="sign", exchange="sign", optimizer="muon"),
}
POISONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "zero": np.zeros_like,
    "a hundred times": lambda values: values * np.float32(100),
    "a tenth more": lambda values: values * np.float32(1.1),
    "another order": lambda values: np.ascontiguousarray(values[::-1]),
}


@pytest.fixture(autouse=True)
def one_thread_afterwards() -> Iterator[None]:
    yield
    torch.set_num_threads(1)


def run(spec: Spec, base: Checkpoint, shard: int = 0, threads: int = 1, **inner: Any) -> ClaimResult:
    secret = msgspec.structs.replace(spec, inner=msgspec.structs.replace(spec.inner, **inner))
    return Trainer(secret, threads=threads).train(base, a_shard(spec, shard), job_id=JOB, round=0, shard=shard)


@cache
def later(name: str) -> Checkpoint:
    """After two rounds of three claims: a base whose moments are those of the market."""
    spec = SPECS[name]
    base = genesis_checkpoint(spec)
    for _ in range(2):
        base = compute_outer_step(spec, base, [(shard, run(spec, base, shard).payload) for shard in range(3)])
    return base


def judge(spec: Spec, base: Checkpoint, own: ClaimResult, theirs: ClaimResult, state: bool = True) -> Judgement:
    committed = Committed(theirs.payload_digest, trace_root(theirs.rows), theirs.state_digest)
    return judge_claim(spec, base, own, committed, theirs.payload, theirs.rows, theirs.end_state if state else None)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("is_later", [False, True])
def test_honest_claims_match_at_the_protocol_s_table(name: str, is_later: bool) -> None:
    spec = SPECS[name]
    base = later(name) if is_later else genesis_checkpoint(spec)
    own = run(spec, base)
    for theirs in (run(spec, base, threads=2), run(spec, base, micro_batch=1), run(spec, base, micro_batch=4)):
        for state in (True, False):
            judgement = judge(spec, base, own, theirs, state)
            assert judgement.finding == "match", judgement


@pytest.mark.parametrize("name", SPECS)
def test_the_moments_of_a_base_are_part_of_the_claim(name: str) -> None:
    """Starting from moments that are not the base's is a cheat like any other."""
    spec, base = SPECS[name], later(name)
    own = run(spec, base)
    fresh = replace(base, **{p: {n: np.zeros_like(a) for n, a in base.part(p).items()} for p in ("first", "second")})
    assert judge(spec, base, own, run(spec, fresh)).finding == "fraud"
    assert judge(spec, base, own, run(spec, fresh), state=False).finding != "match"
    younger = replace(base, progress=0)
    assert judge(spec, base, own, run(spec, younger)).finding == "fraud"


def poisoned(spec: Spec, base: Checkpoint, honest: ClaimResult, **parts: Any) -> ClaimResult:
    """The honest pseudo-gradient and trace with other moments: payload, end state and digests all fit them."""
    end = decode_end_state(spec, honest.end_state)
    return finish_claim(spec, base, replace(end, **parts), honest.rows)


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("part", ["first", "second"])
@pytest.mark.parametrize("method", METHODS)
def test_a_poisoned_moment_is_fraud_with_the_end_state_and_never_accepted_without(
    method: str, part: str, poison: str
) -> None:
    spec = a_sharing_spec(first=method)
    base = genesis_checkpoint(spec)
    own, honest = run(spec, base), run(spec, base, micro_batch=1)
    moments = getattr(honest.update, part)
    theirs = poisoned(spec, base, honest, **{part: {n: POISONS[poison](a) for n, a in moments.items()}})
    judgement = judge(spec, base, own, theirs)
    assert judgement.finding == "fraud", judgement
    assert next(test for test in judgement.tests if test.name == T1).zone == "fraud"
    closed = judge(spec, base, own, theirs, state=False)
    assert closed.finding != "match", closed
    assert next(test for test in closed.tests if test.name == T1_CELL).value > 0.01


@pytest.mark.parametrize("part", ["first", "second"])
def test_a_poisoned_moment_of_one_small_tensor_is_as_much_a_fraud(part: str) -> None:
    """In one norm over all tensors it would be lost."""
    spec = a_sharing_spec(first="int8")
    base = genesis_checkpoint(spec)
    own, honest = run(spec, base), run(spec, base, micro_batch=1)
    values: dict[str, np.ndarray] = getattr(honest.update, part)
    sizes = {n: float(np.linalg.norm(a.astype(np.float64))) for n, a in values.items()}
    least = min(sizes, key=lambda n: sizes[n])
    assert sizes[least] < 1e-2 * max(sizes.values())
    for poison in POISONS.values():
        theirs = poisoned(spec, base, honest, **{part: values | {least: poison(values[least])}})
        assert judge(spec, base, own, theirs).finding == "fraud"
        assert judge(spec, base, own, theirs, state=False).finding != "match"


def test_a_payload_whose_moments_are_not_its_end_state_s_is_fraud() -> None:
    spec = a_sharing_spec(first="int4")
    base = genesis_checkpoint(spec)
    own, honest = run(spec, base), run(spec, base, micro_batch=1)
    for part in ("first", "second"):
        values = {n: a * np.float32(2) for n, a in getattr(honest.update, part).items()}
        other = poisoned(spec, base, honest, **{part: values})
        theirs = replace(honest, payload=other.payload, payload_digest=other.payload_digest)
        judgement = judge(spec, base, own, theirs)
        structure = next(test for test in judgement.tests if test.name == T3)
        assert (judgement.finding, structure.zone) == ("fraud", "fraud"), part


def test_an_end_state_that_no_claim_can_end_in_is_fraud_and_no_error() -> None:
    spec = a_sharing_spec(first="int4")
    base = genesis_checkpoint(spec)
    own, honest = run(spec, base), run(spec, base, micro_batch=1)
    end = decode_end_state(spec, honest.end_state)
    huge = EndState(end.weights, {n: np.full_like(a, 2.0**41) for n, a in end.first.items()}, end.second)
    data = encode_end_state(spec, huge)
    theirs = replace(honest, end_state=data, state_digest=hashlib.sha256(data).hexdigest())
    assert judge(spec, base, own, theirs).finding == "fraud"


def test_a_masked_parameter_s_moments_are_not_compared() -> None:
    name = "model.layers.0.self_attn.k_proj.weight"
    plain = a_sharing_spec()
    masking = msgspec.structs.replace(plain, verify=msgspec.structs.replace(plain.verify, masked=(name,)))
    own = random_update(plain, 1)
    changed = {f"{name}/rows": own.second[f"{name}/rows"] + np.float32(1)}
    theirs = replace(own, first=own.first | {name: own.first[name] + np.float32(1)}, second=own.second | changed)
    assert relative_distance(plain, own, theirs) > 1
    assert relative_distance(masking, own, theirs) == 0
