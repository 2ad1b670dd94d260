"""Second moments as means of rows and columns, and claims that go on from the moments of a checkpoint."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from protocol.training.checkpoint import Checkpoint, Tensors, genesis_checkpoint
from protocol.training.inner import Trainer, finish_claim
from protocol.training.layout import factor_shapes
from protocol.training.moments import expand, factor
from protocol.training.outer import compute_outer_step
from protocol.training.spec import OuterSpec, RateSpec, Spec
from tests.unit.training_fixtures import a_checkpoint, a_shard, a_sharing_spec, a_spec, random_tensors

HALF = 5


def again(matrix: np.ndarray) -> np.ndarray:
    """A matrix after it was sent."""
    return expand(factor({"m": matrix}), {"m": matrix.shape})["m"]


def positive(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(0, 2, shape)).astype(np.float32)


def test_a_matrix_of_rank_one_comes_back_and_anything_else_is_sent_as_it_is() -> None:
    matrix = positive((30, 1), 1) * positive((1, 50), 2)
    assert np.allclose(again(matrix), matrix, rtol=1e-6, atol=0)
    by_hand = np.array([[1, 2, 3], [5, 6, 7]], np.float32)
    factors = factor({"m": by_hand, "v": by_hand[0]})
    assert {n: a.tolist() for n, a in factors.items()} == {"m/rows": [2, 6], "m/columns": [3, 4, 5], "v": [1, 2, 3]}
    assert factors.keys() == factor_shapes({"m": (2, 3), "v": (3,)}).keys()
    assert expand(factors, {"m": (2, 3)})["m"].tolist() == [[1.5, 2.0, 2.5], [4.5, 6.0, 7.5]]


def test_what_nobody_saw_stays_zero() -> None:
    assert not again(np.zeros((3, 4), np.float32)).any()
    matrix = positive((6, 5), 3)
    matrix[2] = 0
    matrix[:, 1] = 0
    assert not again(matrix)[2].any() and not again(matrix)[:, 1].any()
    assert (np.delete(np.delete(again(matrix), 2, 0), 1, 1) > 0).all()


def test_a_huge_range_keeps_all_that_lies_within_forty_bits_of_the_largest() -> None:
    rows = np.ldexp(1.0, -np.arange(0, 60, 4))[:, None]
    matrix = (rows * np.ones((1, 8))).astype(np.float32)
    sent = again(matrix)
    near = rows[:, 0] > 2.0**-30
    assert np.allclose(sent[near], matrix[near], rtol=2e-3, atol=0)
    assert not sent[rows[:, 0] < 2.0**-40].any()
    tiny = (positive((4, 4), 5) * np.float32(1e-36)).astype(np.float32)
    assert np.isfinite(again(tiny)).all() and again(tiny).sum() == pytest.approx(float(tiny.sum()), rel=1e-3)
    assert np.isfinite(again(np.full((4, 4), 2.0**39, np.float32))).all()


def test_noise_on_a_matrix_of_rank_one_is_averaged_and_never_amplified() -> None:
    smooth = positive((64, 1), 1) * positive((1, 96), 2)
    noise = np.random.default_rng(3).uniform(0.9, 1.1, smooth.shape)
    sent = again((smooth * noise).astype(np.float32))
    ratio = sent / smooth
    assert ratio.min() > 0.85 and ratio.max() < 1.15
    assert np.abs(sent - smooth).sum() < np.abs(smooth * noise - smooth).sum()
    assert float(sent.sum(dtype=np.float64)) == pytest.approx(float((smooth * noise).sum()), rel=1e-5)


def test_equal_values_give_equal_factors_whatever_the_memory_layout() -> None:
    matrix = positive((37, 53), 4)
    turned = factor({"m": np.asfortranarray(matrix)})
    strided = factor({"m": np.repeat(matrix, 2, axis=1)[:, ::2]})
    for other in (turned, strided):
        assert {n: a.tobytes() for n, a in other.items()} == {n: a.tobytes() for n, a in factor({"m": matrix}).items()}
    sideways = factor({"m": np.ascontiguousarray(matrix.T)})
    assert sideways["m/rows"].tobytes() == factor({"m": matrix})["m/columns"].tobytes()


def test_a_second_moment_is_at_least_the_square_of_the_first_when_a_claim_begins() -> None:
    """Both as they act: corrected for what the counts say is missing. Elsewhere it is what the factors say."""
    spec = a_sharing_spec(first="fp32")
    inner, base = spec.inner, a_checkpoint(spec)
    steps = base.progress * inner.steps
    trainer = Trainer(spec)
    trainer.load(base)
    first = trainer._optimizer.first / (1 - inner.beta1**steps)
    second = trainer._optimizer.second / (1 - inner.beta2**steps)
    assert bool((second >= first**2 * (1 - 1e-5)).all())
    sent = trainer._flat(expand(base.second, trainer._shapes)) / (1 - inner.beta2**steps)
    raised = second > sent * (1 + 1e-5)
    assert 0.01 < float(raised.float().mean()) < 0.99
    assert bool((second[raised] <= first[raised] ** 2 * (1 + 1e-5)).all())
    poor = Checkpoint(base.weights, {}, base.first, {n: np.zeros_like(a) for n, a in base.second.items()}, 3)
    trainer.load(poor)
    before = trainer.weights()
    trainer.step(a_shard(spec)[:4], 1)
    most = max(float(np.abs(trainer.weights()[n] - before[n]).max()) for n in before)
    assert most < 4 * inner.lr  # without the square a carried first moment would meet a second of nearly nothing


def test_a_used_trainer_forgets_the_moments_of_its_last_claim() -> None:
    spec = a_sharing_spec(first=None)
    trainer, tokens = Trainer(spec), a_shard(spec)
    place = {"job_id": b"j", "round": 0, "shard": 0}
    fresh = trainer.train(genesis_checkpoint(spec), tokens, **place)
    trainer.train(a_checkpoint(spec), tokens, **place)
    assert trainer.train(genesis_checkpoint(spec), tokens, **place).state_digest == fresh.state_digest


def whole_run(spec: Spec) -> Tensors:
    trainer = Trainer(spec)
    trainer.load(genesis_checkpoint(spec))
    for step, batch in enumerate(a_shard(spec).reshape(-1, 4, 33)[: 2 * HALF], start=1):
        trainer.step(batch, step)
    return trainer.weights()


def two_halves(spec: Spec) -> Tensors:
    """The same steps as two claims: payload, outer step and checkpoint lie between."""
    trainer, base = Trainer(spec), genesis_checkpoint(spec)
    batches = a_shard(spec).reshape(-1, 4, 33)
    for number in range(2):
        trainer.load(base)
        for step, batch in enumerate(batches[number * HALF : (number + 1) * HALF], start=1):
            trainer.step(batch, step)
        payload = finish_claim(spec, base, trainer.end_state(), []).payload
        base = compute_outer_step(spec, base, [(0, payload)])
    return base.weights


def apart(spec: Spec, split: Spec | None = None) -> float:
    """Between one run and two halves of it, relative to the way of the run."""
    start, whole, halves = genesis_checkpoint(spec).weights, whole_run(spec), two_halves(split or spec)
    away = sum(float(((whole[n] - halves[n]) ** 2).sum()) for n in start)
    return float(np.sqrt(away / sum(float(((whole[n] - start[n]) ** 2).sum()) for n in start)))


def a_split_spec(**inner: Any) -> Spec:
    rate = RateSpec(warmup=3, decay="cosine", steps=2 * HALF, floor=0.1)
    spec = a_sharing_spec(first="fp32", exchange="fp32", steps=HALF, rate=rate, **inner)
    return msgspec.structs.replace(spec, outer=OuterSpec(lr=1.0, momentum=0.0))


def without_rate_over_the_job(spec: Spec) -> Spec:
    return msgspec.structs.replace(spec, inner=msgspec.structs.replace(spec.inner, rate=None))


def test_two_halves_of_a_run_are_the_run_where_every_moment_is_sent_as_it_is() -> None:
    """beta2 0 leaves no second moment to carry; epsilon keeps rounding small. Rates and counts go on over the job."""
    for optimizer in ("adamw", "muon"):
        spec = a_split_spec(beta2=0.0, epsilon=1e-3, optimizer=optimizer)
        assert apart(spec) < 1e-5
        assert apart(spec, without_rate_over_the_job(spec)) > 0.05


def test_two_halves_of_a_run_are_near_it_with_factored_second_moments_and_far_with_fresh_ones() -> None:
    for changes in ({}, {"optimizer": "muon"}):
        spec = a_split_spec(**changes)
        fresh = msgspec.structs.replace(spec, inner=msgspec.structs.replace(spec.inner, moments=None))
        shared = apart(spec)
        assert shared < 0.15
        assert shared < 0.5 * apart(spec, fresh)


def test_the_moments_of_vectors_go_through_the_market_exactly() -> None:
    spec = a_split_spec()
    trainer, base = Trainer(spec), genesis_checkpoint(spec)
    trainer.load(base)
    for step, batch in enumerate(a_shard(spec).reshape(-1, 4, 33)[:HALF], start=1):
        trainer.step(batch, step)
    end = trainer.end_state()
    after = compute_outer_step(spec, base, [(0, finish_claim(spec, base, end, []).payload)])
    vectors = [n for n, a in base.weights.items() if a.ndim == 1]
    assert vectors and all((after.second[n] == end.second[n]).all() for n in vectors)
    assert all((after.first[n] == end.first[n]).all() for n in end.first)
    assert all(after.second[n].any() for n in after.second)
    assert after.progress == 1 and not after.momentum


def test_muon_shares_no_second_moment_of_its_matrices() -> None:
    spec = a_sharing_spec(optimizer="muon")
    names = {n.partition("/")[0] for n in genesis_checkpoint(spec).second}
    assert "model.embed_tokens.weight" in names and "model.norm.weight" in names
    assert not any(n.endswith("_proj.weight") for n in names)
    assert genesis_checkpoint(spec).first.keys() == random_tensors(a_spec(), 1).keys()
