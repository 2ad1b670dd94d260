"""Honest work on other settings is accepted; every cheat lands in the reject or the fraud zone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from protocol.core.trace import trace_root
from protocol.training.checkpoint import Checkpoint, EndState, genesis_checkpoint
from protocol.training.compare import T2, T3, Committed, Judgement, cell_distance, judge_claim, relative_distance
from protocol.training.compress import encode_payload
from protocol.training.errors import CompareError
from protocol.training.inner import Trainer, finish_claim
from protocol.training.result import ClaimResult
from protocol.training.spec import Spec, VerifySpec
from tests.unit.training_fixtures import JOB, METHODS, a_shard, a_spec, encoding, plain, random_tensors


@pytest.fixture(autouse=True)
def one_thread_afterwards() -> Iterator[None]:
    yield
    torch.set_num_threads(1)


def base_of(spec: Spec) -> Checkpoint:
    return genesis_checkpoint(spec)


def run(spec: Spec, shard: int = 0, base: Checkpoint | None = None, threads: int = 1, **inner: Any) -> ClaimResult:
    """A claim as some operator runs it; `inner` changes what it does in secret."""
    secret = msgspec.structs.replace(spec, inner=msgspec.structs.replace(spec.inner, **inner))
    trainer = Trainer(secret, threads=threads)
    return trainer.train(base or base_of(spec), a_shard(spec, shard), job_id=JOB, round=0, shard=0)


def rebuilt(spec: Spec, result: ClaimResult, update: dict[str, np.ndarray]) -> ClaimResult:
    """The same trace with another update: payload, end state and digests all fit it."""
    base = base_of(spec)
    end = EndState({n: (base.weights[n] - update[n]).astype(np.float32) for n in update})
    return finish_claim(spec, base, end, result.rows)


def judge(spec: Spec, own: ClaimResult, theirs: ClaimResult, *, rows: bool = True, state: bool = True) -> Judgement:
    committed = Committed(theirs.payload_digest, trace_root(theirs.rows), theirs.state_digest)
    opened_rows, opened_state = theirs.rows if rows else None, theirs.end_state if state else None
    return judge_claim(spec, base_of(spec), own, committed, theirs.payload, opened_rows, opened_state)


def test_equal_digests_are_a_match_without_anything_opened() -> None:
    spec = a_spec()
    own = run(spec)
    judgement = judge(spec, own, run(spec), rows=False, state=False)
    assert judgement.finding == "match" and judgement.fraud_step is None
    assert [test.value for test in judgement.tests] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("state", [True, False])
def test_honest_work_with_other_rounding_is_a_match(method: str, state: bool) -> None:
    spec = a_spec(exchange=encoding(method))
    own = run(spec)
    for theirs in (run(spec, threads=2), run(spec, micro_batch=1), run(spec, micro_batch=4)):
        judgement = judge(spec, own, theirs, state=state)
        assert judgement.finding == "match", judgement


def cheats(spec: Spec, honest: ClaimResult) -> dict[str, ClaimResult]:
    """What an operator might commit instead of its work."""
    half, moved = run(spec, steps=5), honest.update.pseudo_gradient
    stretched = {n: a * np.float32(2) for n, a in half.update.pseudo_gradient.items()}
    before = run(spec, shard=3).update.pseudo_gradient  # the base of the round before is about one update away
    stale = Checkpoint({n: a + before[n] for n, a in base_of(spec).weights.items()}, {})
    noise = random_tensors(spec, 1, 1e-4)
    noisy = {n: (a + noise[n]).astype(np.float32) for n, a in moved.items()}
    return {
        "half the steps, stretched": replace(rebuilt(spec, half, stretched), rows=half.rows * 2),
        "half the steps, own rows": half,
        "another shard": run(spec, shard=1),
        "learning rate 5 % off": run(spec, lr=spec.inner.lr * 1.05),
        "stale base": rebuilt(spec, honest, run(spec, base=stale).update.pseudo_gradient),
        "noise": rebuilt(spec, honest, noisy),
        "a peer's payload": rebuilt(spec, honest, run(spec, shard=2).update.pseudo_gradient),
        "scaled by 1.05": rebuilt(spec, honest, {n: a * np.float32(1.05) for n, a in moved.items()}),
        "half the batch": run(spec, batch=2),
        "no work at all": rebuilt(spec, honest, {n: np.zeros_like(a) for n, a in moved.items()}),
    }


@pytest.mark.parametrize("method", METHODS)
def test_every_cheat_is_in_the_fraud_zone_with_the_end_state_and_never_accepted_without(method: str) -> None:
    spec = a_spec(exchange=encoding(method))
    own = run(spec, micro_batch=4)
    for name, theirs in cheats(spec, run(spec)).items():
        judgement = judge(spec, own, theirs)
        assert judgement.finding == "fraud", (name, judgement)
        assert judgement.fraud_step is not None and 1 <= judgement.fraud_step <= spec.inner.steps
        for rows, state in ((True, False), (False, True), (False, False)):
            assert judge(spec, own, theirs, rows=rows, state=state).finding != "match", name


def test_a_closed_trace_alone_is_a_reject_and_beside_a_distance_in_the_fraud_zone_a_fraud() -> None:
    spec = a_spec()
    own, honest = run(spec), run(spec, micro_batch=1)
    assert judge(spec, own, honest, rows=False).finding == "reject"
    assert judge(spec, own, run(spec, shard=1), rows=False, state=False).finding == "fraud"


def test_bytes_that_are_not_the_committed_ones_count_as_not_opened() -> None:
    spec = a_spec()
    own, honest = run(spec), run(spec, micro_batch=1)
    committed = Committed(honest.payload_digest, trace_root(honest.rows), honest.state_digest)
    forged = replace(honest.rows[3], loss=honest.rows[3].loss + 10**9)
    rows = [*honest.rows[:3], forged, *honest.rows[4:]]
    judgement = judge_claim(spec, base_of(spec), own, committed, honest.payload, rows, b"not the state")
    assert judgement.finding == "reject"
    assert T2 not in [test.name for test in judgement.tests]
    with pytest.raises(CompareError, match="not the committed one"):
        judge_claim(spec, base_of(spec), own, committed, b"other", rows, None)


def test_wrong_bytes_under_a_committed_digest_are_fraud() -> None:
    spec = a_spec()
    own, honest = run(spec), run(spec, micro_batch=1)
    lies = {
        "nine rows": replace(honest, rows=honest.rows[:9]),
        "rows in another order": replace(honest, rows=honest.rows[::-1]),
    }
    other, moved = random_tensors(spec, 9), honest.update.pseudo_gradient
    shifted = rebuilt(spec, honest, {n: a + np.float32(1e-3) * other[n] for n, a in moved.items()})
    lies["a payload that is not its state's"] = replace(
        honest, payload=shifted.payload, payload_digest=shifted.payload_digest
    )
    for name, theirs in lies.items():
        judgement = judge(spec, own, theirs)
        structure = next(test for test in judgement.tests if test.name == T3)
        assert (judgement.finding, structure.zone) == ("fraud", "fraud"), name


def test_a_false_loss_is_fraud_at_its_step() -> None:
    spec = a_spec()
    own, honest = run(spec), run(spec, micro_batch=1)
    rows = [replace(row, loss=row.loss + (row.loss // 1000 if row.step == 7 else 0)) for row in honest.rows]
    judgement = judge(spec, own, replace(honest, rows=rows))
    assert (judgement.finding, judgement.fraud_step) == ("fraud", 7)


def test_masked_parameters_are_not_compared() -> None:
    name = "model.layers.0.self_attn.k_proj.weight"
    plain_spec = a_spec()
    masking = a_spec(verify=VerifySpec(tolerance_class="fp32", state_every=2, masked=(name,)))
    own = run(plain_spec)
    theirs = plain(own.update.pseudo_gradient | {name: own.update.pseudo_gradient[name] + np.float32(1)})
    assert relative_distance(plain_spec, own.update, theirs) > 1
    assert relative_distance(masking, own.update, theirs) == 0
    assert cell_distance(masking, own.update, encode_payload(masking, theirs)) < 1e-7


def test_bf16_needs_two_tests_in_the_fraud_zone() -> None:
    spec = a_spec(verify=VerifySpec(tolerance_class="bf16", state_every=2))
    own, honest = run(spec), run(spec, micro_batch=1)
    assert judge(spec, own, honest).finding == "match"
    scaled = rebuilt(spec, honest, {n: a * np.float32(1.5) for n, a in honest.update.pseudo_gradient.items()})
    assert judge(spec, own, scaled).finding == "reject"  # the trace is right: one test alone
    assert judge(spec, own, scaled, rows=False).finding == "fraud"  # a closed trace is the second
    assert judge(spec, own, run(spec, shard=1)).finding == "fraud"
