"""A claim: H inner steps from the checkpoint on one shard. Everything it depends on is public, so anyone can replay it.

Shapes: P all parameters, flat, in sorted order of their names; S sequences of a shard; T tokens of a sequence.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import numpy.typing as npt
import torch

from protocol.core.trace import NO_STATE, TraceRow, fixed
from protocol.training.arithmetic import prepare_process
from protocol.training.checkpoint import Checkpoint, EndState, Tensors, encode_end_state
from protocol.training.compress import compute_update, encode_payload
from protocol.training.data import Tokens, batch_order
from protocol.training.errors import TrainingFailed
from protocol.training.families import family_of
from protocol.training.layout import muon_parameters, parameter_count, parameter_shapes
from protocol.training.model import build, parameters_in_order
from protocol.training.moments import expand, factor
from protocol.training.optimizers import Optimizer, Place, learning_rate
from protocol.training.result import ClaimResult
from protocol.training.spec import Spec, inner_steps, steps_before, trace_rows
from protocol.training.trace import Sketch, full_state_digest

OnStep = Callable[[int, float], None]  # (inner step from 1, its loss)


def train_claim(
    spec: Spec,
    base: Checkpoint,
    tokens: Tokens,
    *,
    job_id: bytes,
    round: int,
    shard: int,
    on_step: OnStep | None = None,
) -> ClaimResult:
    """One claim with a model of its own. A process that trains many keeps a Trainer instead."""
    return Trainer(spec).train(base, tokens, job_id=job_id, round=round, shard=shard, on_step=on_step)


class Trainer:
    """A model and its optimizer state in flat buffers, built once and used claim after claim.

    Flat, because AdamW, the norm and the digests are then a handful of operations instead of hundreds.
    """

    def __init__(self, spec: Spec, device: str = "cpu", threads: int = 1) -> None:
        prepare_process(threads)
        self.spec = spec
        self._shapes, self._muon = parameter_shapes(spec), muon_parameters(spec)
        self._model = build(spec, device)
        count = parameter_count(spec)
        self._weights, self._gradient = torch.zeros(count, device=device), torch.zeros(count, device=device)
        self._device = device
        self._optimizer = Optimizer(spec.inner, self._bind_parameters(), self._weights, self._gradient)
        self._before = 0  # inner steps of the job before the loaded checkpoint

    def train(
        self,
        base: Checkpoint,
        tokens: Tokens,
        *,
        job_id: bytes,
        round: int,
        shard: int,
        on_step: OnStep | None = None,
    ) -> ClaimResult:
        """tokens: integers [S, T+1]. Raises TrainingFailed when a loss or a gradient is no longer finite."""
        steps, rows = inner_steps(self.spec, base.progress), trace_rows(self.spec)
        batches = self._batches(tokens, job_id, round, shard, steps)
        self.load(base)
        sketch = Sketch(self._weights, job_id, round, shard)
        trace: list[TraceRow] = []
        losses: list[float] = []
        for step, batch in enumerate(batches, start=1):
            loss, norm = self.step(tokens[batch], step)
            losses.append(loss)
            if on_step is not None:
                on_step(step, loss)
            if step % (steps // rows) == 0:
                number, mean = len(trace) + 1, math.fsum(losses) / len(losses)
                anchors = sketch.digest(self._weights), self._state_digest(number)
                trace.append(TraceRow(number, fixed(mean), fixed(norm), *anchors))
                losses.clear()
        return finish_claim(self.spec, base, self.end_state(), trace)

    def try_out(self, base: Checkpoint, tokens: Tokens, clock: Callable[[], float]) -> float:
        """Two steps on the first examples; what a claim takes in units of `clock`, by the second of them."""
        batch = tokens[np.arange(self.spec.inner.batch) % len(tokens)]
        self.load(base)
        self.step(batch, 1)
        began = clock()
        self.step(batch, 2)
        return (clock() - began) * inner_steps(self.spec, base.progress)

    def step(self, sequences: Tokens, step: int) -> tuple[float, float]:
        """One inner step, the `step`-th since `load`, on sequences [B, T+1]: its loss and its gradient norm."""
        inner, moments = self.spec.inner, self.spec.inner.moments
        loss = self._accumulate(torch.from_numpy(sequences.astype(np.int64)).to(self._device))
        norm = float(torch.linalg.vector_norm(self._gradient))
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise TrainingFailed(f"inner step {step}: loss {loss}, gradient norm {norm}; expected finite numbers")
        if norm > inner.clip:
            self._gradient.mul_(inner.clip / norm)
        seen = self._before + step
        first_count = seen if moments is not None and moments.first is not None else step
        second_count = seen if moments is not None else step
        self._optimizer.step(learning_rate(inner, step, self._before), first_count, second_count)
        return loss, norm

    def load(self, base: Checkpoint) -> None:
        """Start from a checkpoint: its weights, its moments where the job shares them, and zeros for the rest.

        A second moment is at least the square of the first, as in any mean of squares: factors know only means.
        """
        inner, self._before = self.spec.inner, steps_before(self.spec, base.progress)
        self._weights.copy_(self._flat(base.weights))
        self._optimizer.first.zero_()
        self._optimizer.second.zero_()
        if base.first:
            self._optimizer.first.copy_(self._flat(base.first))
        if base.second:
            adamw = {n: s for n, s in self._shapes.items() if n not in self._muon}
            self._optimizer.second.copy_(self._flat(expand(base.second, adamw)))
            if base.first and self._before:
                share = (1 - inner.beta2**self._before) / (1 - inner.beta1**self._before) ** 2
                least = self._optimizer.first.square().mul_(share)
                torch.maximum(self._optimizer.second, least, out=self._optimizer.second)

    def weights(self) -> Tensors:
        """The model's present weights, copied."""
        return self._named(self._weights)

    def end_state(self) -> EndState:
        """Weights, and the moments that the job shares, copied."""
        moments = self.spec.inner.moments
        if moments is None:
            return EndState(self.weights())
        second = {n: v for n, v in self._named(self._optimizer.second).items() if n not in self._muon}
        first = self._named(self._optimizer.first) if moments.first is not None else {}
        return EndState(self.weights(), first, factor(second))

    def _flat(self, tensors: Tensors) -> torch.Tensor:
        """float32 [P] in sorted order of the names; zeros for a parameter that is not there."""
        zeros = (np.zeros(math.prod(shape), np.float32) for shape in self._shapes.values())
        parts = [tensors[n].reshape(-1) if n in tensors else zero for n, zero in zip(self._shapes, zeros, strict=True)]
        return torch.from_numpy(np.concatenate(parts))

    def _named(self, values: torch.Tensor) -> Tensors:
        flat = values.cpu().numpy().copy()
        tensors: Tensors = {}
        offset = 0
        for name, shape in self._shapes.items():
            size = math.prod(shape)
            tensors[name] = flat[offset : offset + size].reshape(shape)
            offset += size
        return tensors

    def _bind_parameters(self) -> list[Place]:
        """Make every parameter and its gradient a view of the flat buffers."""
        places: list[Place] = []
        offset = 0
        for name, parameter in parameters_in_order(self.spec, self._model):
            place = Place(offset, tuple(parameter.shape), name in self._muon)
            parameter.data = self._weights[place.slice].view(parameter.shape)
            parameter.grad = self._gradient[place.slice].view(parameter.shape)
            places.append(place)
            offset += parameter.numel()
        return places

    def _batches(self, tokens: Tokens, job_id: bytes, round: int, shard: int, steps: int) -> npt.NDArray[np.int64]:
        inner = self.spec.inner
        family_of(self.spec.model).check_rows(self.spec.model, inner.sequence, tokens)
        return batch_order(job_id, round, shard, len(tokens), steps, inner.batch)

    def _accumulate(self, sequences: torch.Tensor) -> float:
        """Mean loss of a batch; its gradient in the flat buffer, micro-batches added in order. sequences: [B, T+1]."""
        micro = self.spec.inner.micro_batch
        parts = len(sequences) // micro
        self._gradient.zero_()
        total = 0.0
        for part in range(parts):
            loss = self._loss(sequences[part * micro : (part + 1) * micro])
            (loss / parts).backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        return total / parts

    def _loss(self, sequences: torch.Tensor) -> torch.Tensor:
        """Mean loss in nats, float32. sequences: rows [B, E] of the family's examples."""
        model = self.spec.model
        return family_of(model).loss(self._model, model, sequences, self._precision())

    def validation_loss(self, tokens: Tokens) -> float:
        """Mean loss over all sequences of a split, in the job's precision, with the present weights."""
        total = 0.0
        with torch.no_grad():
            for start in range(0, len(tokens), self.spec.inner.micro_batch):
                part = torch.from_numpy(tokens[start : start + self.spec.inner.micro_batch].astype(np.int64))
                total += float(self._loss(part.to(self._device))) * len(part)
        return total / len(tokens)

    def _precision(self) -> AbstractContextManager[object]:
        if self.spec.verify.tolerance_class == "bf16":
            return torch.autocast(torch.device(self._device).type, dtype=torch.bfloat16)
        return nullcontext()

    def _state_digest(self, row: int) -> bytes:
        """Taken every `state_every` rows and after the last."""
        if row % self.spec.verify.state_every and row != trace_rows(self.spec):
            return NO_STATE
        first, second = self._optimizer.first, self._optimizer.second
        state = {"first_moment": first, "second_moment": second, "weights": self._weights}
        return full_state_digest(self.spec, state)


def finish_claim(spec: Spec, base: Checkpoint, end: EndState, rows: list[TraceRow]) -> ClaimResult:
    """What follows from where a claim ended: its payload, and the digests that its commitment binds."""
    update = compute_update(base.weights, end)
    payload, end_state = encode_payload(spec, update), encode_end_state(spec, end)
    digests = [hashlib.sha256(data).hexdigest() for data in (payload, end_state)]
    return ClaimResult(payload, digests[0], rows, end_state, digests[1], update)
