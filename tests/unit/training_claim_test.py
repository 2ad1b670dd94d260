"""A claim can be replayed: to the bit on the same machine, within the tolerance on another one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from protocol.core.trace import NO_STATE, trace_root
from protocol.training.checkpoint import Checkpoint, decode_end_state, genesis_checkpoint
from protocol.training.compress import encode_payload
from protocol.training.data import batch_order
from protocol.training.determinism import determinism_class, self_test_digest
from protocol.training.errors import DataError, TrainingFailed
from protocol.training.inner import Trainer, adamw, learning_rate, train_claim
from protocol.training.layout import parameter_shapes
from protocol.training.model import build, parameters_in_order
from protocol.training.result import ClaimResult
from protocol.training.spec import Spec
from tests.unit.training_fixtures import JOB, a_shard, a_spec

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
    update = {name: base.weights[name] - end[name] for name in end}
    assert encode_payload(spec, update) == result.payload
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


def test_adamw_agrees_with_torch() -> None:
    inner = msgspec.structs.replace(a_spec().inner, warmup_steps=3)
    generator = torch.Generator().manual_seed(0)
    ours = torch.randn(500, generator=generator)
    theirs = torch.nn.Parameter(ours.clone())
    optimizer = torch.optim.AdamW(
        [theirs], betas=(inner.beta1, inner.beta2), eps=inner.epsilon, weight_decay=inner.weight_decay, foreach=False
    )
    first, second, decay = torch.zeros(500), torch.zeros(500), torch.ones(500)
    for step in range(1, 6):
        gradient = torch.randn(500, generator=generator)
        optimizer.param_groups[0]["lr"] = learning_rate(inner, step)
        theirs.grad = gradient.clone()
        optimizer.step()
        adamw(ours, gradient, first, second, decay, inner, step)
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-7)


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
