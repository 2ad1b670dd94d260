"""The inner optimizers, over flat float32 buffers [P] of all parameters in sorted order of their names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from protocol.training.spec import InnerSpec

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # Keller Jordan's quintic: singular values end in about 0.7…1.2
_ROUNDS = 5
_MATCHED_RMS = 0.2  # of an update, as AdamW's: one rate and one decay serve both (arXiv:2502.16982)


@dataclass(frozen=True)
class Place:
    """A parameter in the flat buffers."""

    start: int
    shape: tuple[int, ...]
    is_muon: bool

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + math.prod(self.shape))


class Optimizer:
    """AdamW, and Muon for the places that say so. Buffers: weights, gradient, first and second moments, all [P]."""

    def __init__(
        self, inner: InnerSpec, places: Sequence[Place], weights: torch.Tensor, gradient: torch.Tensor
    ) -> None:
        self.first, self.second = torch.zeros_like(weights), torch.zeros_like(weights)
        self._inner, self._weights, self._gradient = inner, weights, gradient
        self._muon = [place for place in places if place.is_muon]
        self._runs = _runs([place for place in places if not place.is_muon])
        self._decay = torch.zeros_like(weights)  # 1 where weight decay acts: not on vectors
        for place in places:
            self._decay[place.slice] = float(len(place.shape) > 1)

    def step(self, rate: float, first_count: int, second_count: int) -> None:
        """One update in place. The counts, this step included, tell how much of each moment is still missing."""
        for run in self._runs:
            self._adamw(run, rate, first_count, second_count)
        for place in self._muon:
            self._orthogonal(place, rate)

    def _adamw(self, run: slice, rate: float, first_count: int, second_count: int) -> None:
        inner, weights, gradient = self._inner, self._weights[run], self._gradient[run]
        first, second = self.first[run], self.second[run]
        first.mul_(inner.beta1).add_(gradient, alpha=1 - inner.beta1)
        second.mul_(inner.beta2).addcmul_(gradient, gradient, value=1 - inner.beta2)
        spread = second.div(1 - inner.beta2**second_count).sqrt_().add_(inner.epsilon)
        weights.addcmul_(weights, self._decay[run], value=-rate * inner.weight_decay)
        weights.addcdiv_(first, spread, value=-rate / (1 - inner.beta1**first_count))

    def _orthogonal(self, place: Place, rate: float) -> None:
        """Muon with Nesterov momentum: the nearest orthogonal matrix, of AdamW's size."""
        inner, mu = self._inner, self._inner.muon_momentum
        weights, gradient, momentum = self._weights[place.slice], self._gradient[place.slice], self.first[place.slice]
        momentum.mul_(mu).add_(gradient, alpha=1 - mu)
        ahead = gradient.mul(1 - mu).add_(momentum, alpha=mu).view(place.shape)
        weights.mul_(1 - rate * inner.weight_decay)
        size = _MATCHED_RMS * math.sqrt(max(place.shape))
        weights.add_(orthogonalise(ahead).reshape(-1), alpha=-rate * size)


def orthogonalise(matrix: torch.Tensor) -> torch.Tensor:
    """[R, C] → about U·Vᵀ of its singular value decomposition, by five Newton–Schulz rounds in the matrix's type."""
    a, b, c = _NEWTON_SCHULZ
    turned = matrix.shape[0] > matrix.shape[1]
    near: torch.Tensor = matrix.T if turned else matrix
    near = near / (near.norm() + 1e-7)
    for _ in range(_ROUNDS):
        square = near @ near.T
        near = a * near + (b * square + c * square @ square) @ near
    result: torch.Tensor = near.T if turned else near
    return result


def learning_rate(inner: InnerSpec, step: int, before: int = 0) -> float:
    """Rate of a claim's inner step, counted from 1, after `before` earlier inner steps of the job."""
    rate = inner.lr * (min(1.0, step / inner.warmup_steps) if inner.warmup_steps else 1.0)
    plan = inner.rate
    if plan is None:
        return rate
    total = before + step
    if total <= plan.warmup:
        return rate * total / plan.warmup
    if plan.decay == "none":
        return rate
    done = min(1.0, (total - plan.warmup) / (plan.steps - plan.warmup))
    fall = 1 - done if plan.decay == "linear" else 0.5 * (1 + math.cos(math.pi * done))
    return rate * (plan.floor + (1 - plan.floor) * fall)


def _runs(places: Sequence[Place]) -> list[slice]:
    """Neighbouring places joined: AdamW is then a handful of operations instead of hundreds."""
    runs: list[slice] = []
    for place in places:
        if runs and runs[-1].stop == place.start:
            runs[-1] = slice(runs[-1].start, place.slice.stop)
        else:
            runs.append(place.slice)
    return runs
