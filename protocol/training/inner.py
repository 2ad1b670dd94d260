"""A claim: H AdamW steps from the checkpoint on one shard. Everything it depends on is public, so anyone can replay it.

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
from protocol.training.checkpoint import Checkpoint, Tensors, encode_end_state
from protocol.training.compress import encode_payload
from protocol.training.data import Tokens, batch_order
from protocol.training.errors import DataError, TrainingFailed
from protocol.training.layout import parameter_count, parameter_shapes
from protocol.training.model import build, parameters_in_order
from protocol.training.result import ClaimResult
from protocol.training.spec import InnerSpec, Spec
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
        self._shapes = parameter_shapes(spec)
        self._model = build(spec, device)
        count = parameter_count(spec)
        self._weights, self._gradient, self._first, self._second, self._decay = (
            torch.zeros(count, device=device) for _ in range(5)
        )
        self._device = device
        self._bind_parameters()

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
        batches = self._batches(tokens, job_id, round, shard)
        self.load(base.weights)
        sketch = Sketch(self._weights, job_id, round, shard)
        rows: list[TraceRow] = []
        for step, batch in enumerate(batches, start=1):
            loss, norm = self.step(tokens[batch], step)
            rows.append(
                TraceRow(step, fixed(loss), fixed(norm), sketch.digest(self._weights), self._state_digest(step))
            )
            if on_step is not None:
                on_step(step, loss)
        return self._result(base, rows)

    def step(self, sequences: Tokens, step: int) -> tuple[float, float]:
        """One inner step, the `step`-th since `load`, on sequences [B, T+1]: its loss and its gradient norm."""
        loss = self._accumulate(torch.from_numpy(sequences.astype(np.int64)).to(self._device))
        norm = float(torch.linalg.vector_norm(self._gradient))
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise TrainingFailed(f"inner step {step}: loss {loss}, gradient norm {norm}; expected finite numbers")
        if norm > self.spec.inner.clip:
            self._gradient.mul_(self.spec.inner.clip / norm)
        adamw(self._weights, self._gradient, self._first, self._second, self._decay, self.spec.inner, step)
        return loss, norm

    def load(self, weights: Tensors) -> None:
        """Start from these weights with fresh moments: a claim's state begins with the checkpoint alone."""
        flat = np.concatenate([weights[name].reshape(-1) for name in self._shapes])
        self._weights.copy_(torch.from_numpy(flat))
        self._first.zero_()
        self._second.zero_()

    def weights(self) -> Tensors:
        """The model's present weights, copied."""
        flat = self._weights.cpu().numpy().copy()
        tensors: Tensors = {}
        offset = 0
        for name, shape in self._shapes.items():
            size = math.prod(shape)
            tensors[name] = flat[offset : offset + size].reshape(shape)
            offset += size
        return tensors

    def _bind_parameters(self) -> None:
        """Make every parameter and its gradient a view of the flat buffers. Norm weights are not decayed."""
        offset = 0
        for _, parameter in parameters_in_order(self.spec, self._model):
            place = slice(offset, offset + parameter.numel())
            parameter.data = self._weights[place].view(parameter.shape)
            parameter.grad = self._gradient[place].view(parameter.shape)
            self._decay[place] = float(parameter.dim() > 1)
            offset += parameter.numel()

    def _batches(self, tokens: Tokens, job_id: bytes, round: int, shard: int) -> npt.NDArray[np.int64]:
        inner, vocab = self.spec.inner, self.spec.model.vocab
        if tokens.ndim != 2 or tokens.shape[1] != inner.sequence + 1 or not len(tokens):
            raise DataError(f"shard: expected sequences of {inner.sequence + 1} tokens, have shape {tokens.shape}")
        if int(tokens.max()) >= vocab or int(tokens.min()) < 0:
            raise DataError(f"shard: tokens must be in 0…{vocab - 1}, have {tokens.min()}…{tokens.max()}")
        return batch_order(job_id, round, shard, len(tokens), inner.steps, inner.batch)

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
        """Mean cross-entropy in nats a token, float32."""
        with self._precision():
            logits_BTV = self._model(input_ids=sequences[:, :-1]).logits
        flat = logits_BTV.float().reshape(-1, self.spec.model.vocab)
        return torch.nn.functional.cross_entropy(flat, sequences[:, 1:].reshape(-1))

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

    def _state_digest(self, step: int) -> bytes:
        """Taken every `state_every` steps and after the last."""
        if step % self.spec.verify.state_every and step != self.spec.inner.steps:
            return NO_STATE
        state = {"first_moment": self._first, "second_moment": self._second, "weights": self._weights}
        return full_state_digest(self._shapes, state)

    def _result(self, base: Checkpoint, rows: list[TraceRow]) -> ClaimResult:
        end = self.weights()
        pseudo_gradient = compute_pseudo_gradient(base.weights, end)
        payload, end_state = encode_payload(self.spec, pseudo_gradient), encode_end_state(self.spec, end)
        digests = [hashlib.sha256(data).hexdigest() for data in (payload, end_state)]
        return ClaimResult(payload, digests[0], rows, end_state, digests[1], pseudo_gradient)


def compute_pseudo_gradient(start: Tensors, end: Tensors) -> Tensors:
    """θ₀ − θ_H, one float32 subtraction for each value."""
    return {name: start[name] - end[name] for name in start}


def learning_rate(inner: InnerSpec, step: int) -> float:
    """Rate of an inner step, counted from 1."""
    return inner.lr * min(1.0, step / inner.warmup_steps) if inner.warmup_steps else inner.lr


def adamw(
    weights: torch.Tensor,
    gradient: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    decay: torch.Tensor,
    inner: InnerSpec,
    step: int,
) -> None:
    """One AdamW update of flat float32 [P] tensors in place. decay: 1 where weight decay acts, else 0."""
    lr = learning_rate(inner, step)
    first.mul_(inner.beta1).add_(gradient, alpha=1 - inner.beta1)
    second.mul_(inner.beta2).addcmul_(gradient, gradient, value=1 - inner.beta2)
    spread = second.div(1 - inner.beta2**step).sqrt_().add_(inner.epsilon)
    weights.addcmul_(weights, decay, value=-lr * inner.weight_decay)
    weights.addcdiv_(first, spread, value=-lr / (1 - inner.beta1**step))
