"""The inner optimizers are the ones that their names promise, and the rate follows the plan."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
import torch

from protocol.training.optimizers import Optimizer, Place, learning_rate, orthogonalise
from protocol.training.spec import InnerSpec, RateSpec
from tests.unit.training_fixtures import a_spec

SHAPES = [(20, 12), (12,), (8, 30), (6, 6)]
MUON = {0, 2}


def an_inner(**changes: Any) -> InnerSpec:
    return msgspec.structs.replace(a_spec().inner, **changes)


class Run:
    """Our optimizer beside parameters of torch's, fed with the same gradients."""

    def __init__(self, inner: InnerSpec, muon: set[int]) -> None:
        self.chance = torch.Generator().manual_seed(0)
        places, start = [], 0
        for number, shape in enumerate(SHAPES):
            places.append(Place(start, shape, number in muon))
            start += math.prod(shape)
        self.places = places
        self.weights = 0.02 * torch.randn(start, generator=self.chance)
        self.gradient = torch.zeros(start)
        self.ours = Optimizer(inner, places, self.weights, self.gradient)
        self.theirs = [torch.nn.Parameter(self.weights[p.slice].view(p.shape).clone()) for p in places]

    def draw(self) -> None:
        self.gradient.copy_(torch.randn(self.gradient.shape, generator=self.chance))
        for place, parameter in zip(self.places, self.theirs, strict=True):
            parameter.grad = self.gradient[place.slice].view(place.shape).clone()

    def apart(self, number: int, since: torch.Tensor) -> float:
        """Distance between our and their parameter, relative to how far theirs moved."""
        place, theirs = self.places[number], self.theirs[number].detach().reshape(-1)
        return float((self.weights[place.slice] - theirs).norm() / (theirs - since[place.slice]).norm())


def torch_adamw(inner: InnerSpec, run: Run) -> torch.optim.AdamW:
    matrices = [p for p in run.theirs if p.ndim == 2]
    vectors = [p for p in run.theirs if p.ndim == 1]
    return torch.optim.AdamW(
        [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
        lr=inner.lr, betas=(inner.beta1, inner.beta2), eps=inner.epsilon, weight_decay=inner.weight_decay,
    )  # fmt: skip


@pytest.mark.parametrize("before", [0, 7])
def test_adamw_agrees_with_torch_also_when_both_moments_are_carried(before: int) -> None:
    """A run of ours that begins with another optimizer's moments and counts goes on as the other one does."""
    inner = an_inner(warmup_steps=3)
    run = Run(inner, set())
    theirs = torch_adamw(inner, run)

    def step(count: int) -> None:
        for group in theirs.param_groups:
            group["lr"] = learning_rate(inner, count)
        theirs.step()

    for count in range(1, before + 1):
        run.draw()
        step(count)
    start = torch.cat([p.detach().reshape(-1) for p in run.theirs])
    run.weights.copy_(start)
    if before:
        for name, buffer in (("exp_avg", run.ours.first), ("exp_avg_sq", run.ours.second)):
            buffer.copy_(torch.cat([theirs.state[p][name].reshape(-1) for p in run.theirs]))
    for count in range(before + 1, before + 6):
        run.draw()
        step(count)
        run.ours.step(learning_rate(inner, count), count, count)
    assert max(run.apart(number, start) for number in range(len(SHAPES))) < 1e-5


def test_each_moment_is_corrected_by_its_own_count() -> None:
    """Carried second moments, fresh first ones: the first step goes −rate · g / (sqrt(v') + ε), v' after 8 steps."""
    inner = an_inner(weight_decay=0.0)
    run = Run(inner, set())
    run.draw()
    carried = torch.rand(run.gradient.shape, generator=run.chance)
    run.ours.second.copy_(carried)
    before = run.weights.clone()
    run.ours.step(0.5, 1, 8)
    second = (inner.beta2 * carried + (1 - inner.beta2) * run.gradient**2) / (1 - inner.beta2**8)
    expected = before - 0.5 * run.gradient / (second.sqrt() + inner.epsilon)
    assert torch.allclose(run.weights, expected, rtol=1e-5, atol=1e-6)


def test_muon_agrees_with_torch_and_leaves_the_rest_to_adamw() -> None:
    """torch runs the Newton–Schulz rounds in bfloat16, so their matrices differ by its rounding: 2^-8 a value."""
    inner = an_inner(optimizer="muon", lr=0.02)
    run = Run(inner, MUON)
    start = run.weights.clone()
    adamw = torch_adamw(inner, run)
    muon = torch.optim.Muon(
        [run.theirs[number] for number in sorted(MUON)],
        lr=inner.lr, weight_decay=inner.weight_decay, momentum=inner.muon_momentum, nesterov=True,
        ns_coefficients=(3.4445, -4.7750, 2.0315), ns_steps=5, adjust_lr_fn="match_rms_adamw",
    )  # fmt: skip
    for group in adamw.param_groups:
        group["params"] = [p for p in group["params"] if all(p is not run.theirs[number] for number in MUON)]
    for count in range(1, 6):
        run.draw()
        adamw.step()
        muon.step()
        run.ours.step(inner.lr, count, count)
    assert max(run.apart(number, start) for number in MUON) < 0.02
    assert max(run.apart(number, start) for number in {0, 1, 2, 3} - MUON) < 1e-5


def test_muon_agrees_with_its_definition() -> None:
    """M' = μM + (1−μ)G; W' = (1 − rate·decay)W − rate · 0.2·sqrt(larger side) · NS((1−μ)G + μM'), in float64."""
    inner = an_inner(optimizer="muon", lr=0.02)
    run = Run(inner, MUON)
    start, mu = run.weights.clone(), inner.muon_momentum
    matrices = {number: run.theirs[number].detach().double() for number in MUON}
    momenta = {number: torch.zeros_like(matrices[number]) for number in MUON}
    for count in range(1, 4):
        run.draw()
        run.ours.step(inner.lr, count, count)
        for number in MUON:
            gradient = run.theirs[number].grad
            assert gradient is not None
            momenta[number] = mu * momenta[number] + (1 - mu) * gradient.double()
            turned = orthogonalise((1 - mu) * gradient.double() + mu * momenta[number])
            size = 0.2 * math.sqrt(max(SHAPES[number]))
            matrices[number] = (1 - inner.lr * inner.weight_decay) * matrices[number] - inner.lr * size * turned
    for number in MUON:
        run.theirs[number].data.copy_(matrices[number])
        assert run.apart(number, start) < 1e-4
        assert torch.allclose(run.ours.first[run.places[number].slice], momenta[number].float().reshape(-1), atol=1e-6)


@pytest.mark.parametrize("shape", [(16, 40), (40, 16), (24, 24)])
def test_orthogonalising_keeps_the_singular_vectors_and_brings_the_values_near_one(shape: tuple[int, int]) -> None:
    chance = torch.Generator().manual_seed(1)
    u, _, vh = torch.linalg.svd(torch.randn(shape, generator=chance, dtype=torch.float64), full_matrices=False)
    values = torch.logspace(0, -1, min(shape), dtype=torch.float64)
    made = orthogonalise(u @ torch.diag(values) @ vh)
    inside = u.T @ made @ vh.T  # diagonal where the singular vectors are the same
    assert float((inside - torch.diag(inside.diagonal())).abs().max()) < 1e-9
    assert float(inside.diagonal().min()) > 0.6 and float(inside.diagonal().max()) < 1.3
    assert float((made - u @ inside @ vh).norm()) < 1e-9
    assert not orthogonalise(torch.zeros(shape)).any()
    half = orthogonalise((u @ torch.diag(values) @ vh).float()).double()
    assert float((half - made).norm() / made.norm()) < 1e-4


def test_the_rate_warms_up_in_the_claim_and_over_the_job() -> None:
    assert [learning_rate(an_inner(lr=1.0), step) for step in (1, 9)] == [1.0, 1.0]
    assert [learning_rate(an_inner(lr=1.0, warmup_steps=4), s) for s in (1, 2, 4, 5)] == [0.25, 0.5, 1.0, 1.0]
    job = an_inner(lr=1.0, rate=RateSpec(warmup=20))
    assert [learning_rate(job, s, b) for s, b in ((1, 0), (5, 0), (5, 5), (10, 10), (1, 20))] == [0.05, 0.25, 0.5, 1, 1]
    both = an_inner(lr=1.0, warmup_steps=4, rate=RateSpec(warmup=20))
    assert learning_rate(both, 2, 8) == 0.5 * 10 / 20  # the claim's warm-up times the job's


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ("none", [1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [1.0, 0.775, 0.55, 0.1, 0.1]),
        ("cosine", [1.0, 0.1 + 0.9 * (2 + math.sqrt(2)) / 4, 0.55, 0.1, 0.1]),
    ],
)
def test_the_rate_falls_to_its_floor_at_the_last_step(decay: Any, expected: list[float]) -> None:
    inner = an_inner(lr=2.0, rate=RateSpec(warmup=10, decay=decay, steps=50, floor=0.1))
    rates = [learning_rate(inner, 10, before) for before in (0, 10, 20, 40, 400)]
    assert rates == pytest.approx([2 * value for value in expected], rel=1e-12)
    assert learning_rate(inner, 5, 0) == 1.0
    assert learning_rate(inner, 20, 0) == learning_rate(inner, 1, 19)  # only their sum counts
