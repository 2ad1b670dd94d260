"""A claim can be replayed: to the bit on the same machine, within the tolerance on another one."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from protocol.core.trace import NO_STATE, trace_root
from protocol.training.checkpoint import (
    MAX_PROGRESS,
    Checkpoint,
    EndState,
    checkpoint_bytes,
    decode_checkpoint,
    decode_end_state,
    encode_checkpoint,
    encode_end_state,
    end_state_bytes,
    genesis_checkpoint,
)
from protocol.training.compress import compute_update, encode_payload, max_payload_bytes
from protocol.training.data import batch_order
from protocol.training.determinism import determinism_class, self_test_digest
from protocol.training.errors import CheckpointError, DataError, TrainingFailed
from protocol.training.inner import Trainer, train_claim
from protocol.training.layout import parameter_shapes
from protocol.training.model import build, parameters_in_order
from protocol.training.result import ClaimResult
from protocol.training.spec import PhaseSpec, RateSpec, Spec, VerifySpec
from tests.unit.training_fixtures import JOB, a_checkpoint, a_shard, a_sharing_spec, a_spec

ROOT = Path(__file__).parents[2]


def a_claim(spec: Spec, round: int = 0, shard: int = 0) -> ClaimResult:
    return train_claim(spec, genesis_checkpoint(spec), a_shard(spec), job_id=JOB, round=round, shard=shard)


def names_of(result: ClaimResult) -> list[str]:
    return [result.payload_digest, result.state_digest, trace_root(result.rows).hex()]


def test_the_same_claim_again_has_the_same_bytes_also_with_a_used_trainer() -> None:
    spec = a_spec()
    trainer = Trainer(spec)
    base, tokens = genesis_checkpoint(spec), a_shard(spec)
    trainer.train(base, a_shard(spec, 5), job_id=JOB, round=3, shard=1)
    again = trainer.train(base, tokens, job_id=JOB, round=0, shard=0)
    assert names_of(again) == names_of(a_claim(spec))


def test_another_process_computes_the_same_bytes() -> None:
    script = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.unit.training_claim_test import a_claim, a_spec, names_of
print(*names_of(a_claim(a_spec())))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ.copy(), capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == names_of(a_claim(a_spec())), done.stderr


def test_what_a_claim_leaves_belongs_together() -> None:
    spec = a_spec()
    base, result = genesis_checkpoint(spec), a_claim(spec)
    end = decode_end_state(spec, result.end_state)
    assert set(end.weights) == set(base.weights)
    assert all((result.update.pseudo_gradient[n] == base.weights[n] - end.weights[n]).all() for n in base.weights)
    assert encode_payload(spec, compute_update(base.weights, end)) == result.payload
    assert hashlib.sha256(result.payload).hexdigest() == result.payload_digest
    assert hashlib.sha256(result.end_state).hexdigest() == result.state_digest
    assert [row.step for row in result.rows] == list(range(1, 11))
    assert [row.step for row in result.rows if row.state != NO_STATE] == [2, 4, 6, 8, 10]
    assert result.rows[-1].loss < 0.9 * result.rows[0].loss
    assert len({row.sketch for row in result.rows}) == 10


def test_round_and_shard_decide_the_order_of_the_data() -> None:
    spec = a_spec()
    assert a_claim(spec, shard=1).payload != a_claim(spec).payload
    order = batch_order(JOB, 0, 0, 40, 25, 4)
    assert sorted(order.reshape(-1)[:40]) == sorted(order.reshape(-1)[40:80]) == list(range(40))
    assert order.reshape(-1)[:40].tolist() != order.reshape(-1)[40:80].tolist()
    assert batch_order(JOB, 0, 0, 8, 2, 4).tolist() == [[4, 3, 2, 5], [1, 6, 7, 0]]


def test_on_step_sees_every_loss() -> None:
    spec, seen = a_spec(), []
    Trainer(spec).train(
        genesis_checkpoint(spec),
        a_shard(spec),
        job_id=JOB,
        round=0,
        shard=0,
        on_step=lambda step, loss: seen.append((step, loss)),
    )
    assert [step for step, _ in seen] == list(range(1, 11))


def test_a_row_of_several_steps_has_the_mean_of_their_losses_and_the_last_norm() -> None:
    every = a_spec(inner=msgspec.structs.replace(a_spec().inner, steps=12))
    fourth = msgspec.structs.replace(every, verify=msgspec.structs.replace(every.verify, rows=3))
    one, few = a_claim(every), a_claim(fourth)
    assert (few.payload, few.end_state) == (one.payload, one.end_state)
    assert [row.step for row in few.rows] == [1, 2, 3]
    for number, row in enumerate(few.rows):
        steps = one.rows[4 * number : 4 * number + 4]
        assert abs(row.loss - sum(step.loss for step in steps) / 4) <= 1
        assert row.grad_norm == steps[-1].grad_norm
        assert row.sketch == steps[-1].sketch
    assert [row.state != NO_STATE for row in few.rows] == [False, True, True]  # every second row and the last
    assert few.rows[2].state == one.rows[11].state


def test_claims_of_every_phase_have_the_same_rows_and_their_own_steps() -> None:
    inner = msgspec.structs.replace(a_spec().inner, steps=20, phases=(PhaseSpec(rounds=2, steps=5),))
    spec = a_spec(inner=inner, verify=VerifySpec(tolerance_class="fp32", rows=5, state_every=5))
    trainer, start = Trainer(spec), genesis_checkpoint(spec)
    for progress, steps in ((0, 5), (1, 5), (2, 20), (9, 20)):
        seen: list[int] = []
        made = trainer.train(
            dataclasses.replace(start, progress=progress),
            a_shard(spec),
            job_id=JOB,
            round=0,
            shard=0,
            on_step=lambda step, loss, seen=seen: seen.append(step),  # type: ignore[misc]
        )
        assert seen == list(range(1, steps + 1))
        assert [row.step for row in made.rows] == [1, 2, 3, 4, 5]
        assert len(made.payload) == max_payload_bytes(spec)


def test_a_checkpoint_knows_how_far_the_job_is() -> None:
    """With a rate over the job, equal weights after other outer steps give another claim."""
    inner = msgspec.structs.replace(a_spec().inner, rate=RateSpec(warmup=40))
    spec = a_spec(inner=inner)
    base, tokens = genesis_checkpoint(spec), a_shard(spec)
    early, late = (
        train_claim(spec, dataclasses.replace(base, progress=done), tokens, job_id=JOB, round=0, shard=0)
        for done in (0, 4)
    )
    whole = train_claim(a_spec(), base, tokens, job_id=JOB, round=0, shard=0)
    assert early.payload != late.payload
    assert late.payload == whole.payload  # 40 steps are made: the full rate


@pytest.mark.parametrize("spec", [a_spec(), a_sharing_spec(), a_sharing_spec(first=None, momentum=0.5)])
def test_a_checkpoint_is_read_strictly_and_has_one_size(spec: Spec) -> None:
    base = a_checkpoint(spec)
    data = encode_checkpoint(spec, base)
    again = decode_checkpoint(spec, data)
    assert encode_checkpoint(spec, again) == data and again.progress == base.progress == 3
    assert len(data) == checkpoint_bytes(spec) == len(encode_checkpoint(spec, genesis_checkpoint(spec)))
    for progress in (-1, MAX_PROGRESS + 1):
        with pytest.raises(CheckpointError, match=f"expected 0…{MAX_PROGRESS} outer steps, have {progress}"):
            decode_checkpoint(spec, encode_checkpoint(spec, dataclasses.replace(base, progress=progress)))
    base.weights["model.norm.weight"][0] = np.inf
    with pytest.raises(CheckpointError, match=r"checkpoint weights/model.norm.weight: expected finite"):
        decode_checkpoint(spec, encode_checkpoint(spec, base))


def test_a_second_moment_below_zero_is_no_checkpoint_and_no_end_state() -> None:
    spec = a_sharing_spec()
    base = a_checkpoint(spec)
    base.second["model.norm.weight"][0] = -1e-9
    with pytest.raises(CheckpointError, match=r"checkpoint second/model.norm.weight: expected values of at least 0"):
        decode_checkpoint(spec, encode_checkpoint(spec, base))
    end = EndState(base.weights, base.first, base.second)
    assert len(encode_end_state(spec, end)) == end_state_bytes(spec)
    with pytest.raises(CheckpointError, match=r"end state second/model.norm.weight: expected values of at least 0"):
        decode_end_state(spec, encode_end_state(spec, end))


def test_a_loss_that_is_no_number_stops_the_claim_in_one_line() -> None:
    spec = a_spec()
    base = genesis_checkpoint(spec)
    base.weights["model.norm.weight"][:] = np.float32(3e38)
    with pytest.raises(TrainingFailed, match=r"inner step 1: loss .*expected finite"):
        train_claim(spec, base, a_shard(spec), job_id=JOB, round=0, shard=0)


def test_tokens_that_the_model_does_not_know_are_refused() -> None:
    spec = a_spec()
    for bad in (a_shard(spec) + 96, a_shard(spec)[:, :-1], a_shard(spec)[:0]):
        with pytest.raises(DataError):
            train_claim(spec, genesis_checkpoint(spec), bad, job_id=JOB, round=0, shard=0)


@pytest.mark.parametrize("tied", [True, False])
def test_the_library_builds_exactly_the_parameters_of_the_layout(tied: bool) -> None:
    spec = a_spec()
    spec = a_spec(model=msgspec.structs.replace(spec.model, tie_embeddings=tied, rope_theta=500.0))
    model = build(spec)
    assert [name for name, _ in parameters_in_order(spec, model)] == list(parameter_shapes(spec))
    frequencies = dict(model.named_buffers())["model.rotary_emb.inv_freq"]
    assert float(frequencies[1]) == pytest.approx(500.0 ** (-2 / 16))


def test_first_weights_come_from_the_seed_and_look_normal() -> None:
    spec = a_spec()
    first = genesis_checkpoint(spec)
    weights = first.weights["model.embed_tokens.weight"]
    assert abs(float(weights.std()) / 0.02 - 1) < 0.05 and abs(float(weights.mean())) < 2e-3
    assert (first.weights["model.norm.weight"] == 1).all()
    again = genesis_checkpoint(spec)
    assert all((again.weights[n] == first.weights[n]).all() for n in first.weights)
    other = genesis_checkpoint(a_spec(genesis=8))
    assert (other.weights["model.embed_tokens.weight"] != weights).mean() > 0.99
    digest = hashlib.sha256(weights.tobytes()).hexdigest()
    assert digest == "42bd39e57a1221cba42edd08eb063d0e0ed9886fd23ba68d5bd5f91e08ba8e43"


def test_a_determinism_class_names_precision_and_proves_itself() -> None:
    assert self_test_digest() == self_test_digest()
    assert determinism_class() == determinism_class()
    assert determinism_class() != determinism_class("bf16")


def test_trainer_starts_from_the_checkpoint_alone() -> None:
    spec = a_spec()
    base = genesis_checkpoint(spec)
    moved = Checkpoint(base.weights, {n: a + 1 for n, a in base.momentum.items()})
    same = train_claim(spec, moved, a_shard(spec), job_id=JOB, round=0, shard=0)
    assert names_of(same) == names_of(a_claim(spec))  # the outer momentum is no business of the inner steps
