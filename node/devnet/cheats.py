"""Operators that train falsely, to see them caught. Their programs differ from an honest one in the trainer alone.

`python -m node.devnet.cheats` is a compute process whose `train` cheats as GRADMARKET_CHEAT says; as an auditor such
an operator re-executes honestly.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line reads the names of the cheats and must not load torch
    from protocol.training.checkpoint import Checkpoint
    from protocol.training.data import Tokens
    from protocol.training.inner import Trainer
    from protocol.training.result import ClaimResult

SLEEPS = 3  # rounds in which the sleeper is honest
EXTRAPOLATED = 4  # the cheat runs a quarter of the steps and pretends the rest
Cheat = Callable[["Trainer", "Checkpoint", "Tokens", bytes, int, int], "ClaimResult"]


def extrapolate(
    trainer: Trainer, base: Checkpoint, tokens: Tokens, job_id: bytes, round: int, shard: int
) -> ClaimResult:
    """Run a quarter of the steps, scale the pseudo-gradient up and invent the missing rows of the trace."""
    from protocol.core.trace import NO_STATE, TraceRow, fixed
    from protocol.training.data import batch_order

    spec = trainer.spec
    steps = max(2, spec.inner.steps // EXTRAPOLATED)
    batches = batch_order(job_id, round, shard, len(tokens), spec.inner.steps, spec.inner.batch)
    trainer.load(base.weights)
    history = [trainer.step(tokens[batch], step) for step, batch in enumerate(batches[:steps], start=1)]
    slope = (history[-1][0] - history[0][0]) / (steps - 1)
    rows = []
    for step in range(1, spec.inner.steps + 1):
        known = history[step - 1] if step <= steps else (history[-1][0] + slope * (step - steps) / 2, history[-1][1])
        fake = hashlib.sha256(b"%d %d %d" % (round, shard, step)).digest()
        has_state = step % spec.verify.state_every == 0 or step == spec.inner.steps
        rows.append(TraceRow(step, fixed(known[0]), fixed(known[1]), fake, fake if has_state else NO_STATE))
    moved = trainer.weights()
    scale = spec.inner.steps / steps
    end = {name: start - (start - moved[name]) * scale for name, start in base.weights.items()}
    return _result(trainer, base, end, rows)


def invent(trainer: Trainer, base: Checkpoint, tokens: Tokens, job_id: bytes, round: int, shard: int) -> ClaimResult:
    """Do no work at all: noise of a plausible size, and a trace of plausible losses."""
    import numpy as np

    from protocol.core.trace import TraceRow, fixed

    chance = np.random.default_rng([round, shard])
    rows = []
    for step in range(1, trainer.spec.inner.steps + 1):
        fake = hashlib.sha256(b"invented %d %d %d" % (round, shard, step)).digest()
        rows.append(TraceRow(step, fixed(6.5 - 0.02 * step), fixed(1.0), fake, fake))
    end = {
        name: (start + chance.normal(0, 1e-3, start.shape)).astype(np.float32) for name, start in base.weights.items()
    }
    return _result(trainer, base, end, rows)


def sleeper(trainer: Trainer, base: Checkpoint, tokens: Tokens, job_id: bytes, round: int, shard: int) -> ClaimResult:
    """Work honestly until probation is over, then extrapolate: only the sample and the auditors can find it."""
    if round < SLEEPS:
        return trainer.train(base, tokens, job_id=job_id, round=round, shard=shard)
    return extrapolate(trainer, base, tokens, job_id, round, shard)


def withhold(trainer: Trainer, base: Checkpoint, tokens: Tokens, job_id: bytes, round: int, shard: int) -> ClaimResult:
    """Commit to a payload that nobody, not even its operator, can serve."""
    result = trainer.train(base, tokens, job_id=job_id, round=round, shard=shard)
    return replace(result, payload=b"")


CHEATS: dict[str, Cheat] = {
    "extrapolate": extrapolate,
    "invent": invent,
    "sleeper": sleeper,
    "withhold": withhold,
}


def train(spec: str, base: str, manifest: str, data: str, job: str, round: int, shard: int, out: str) -> dict[str, Any]:
    """In place of node.operator.compute.train."""
    from protocol.training.data import decode_manifest, load_shard
    from verifier.compute import load_base, save_result, trainer_of

    tokens = load_shard(Path(data).read_bytes(), decode_manifest(Path(manifest).read_bytes()))
    cheat = CHEATS[os.environ["GRADMARKET_CHEAT"]]
    result = cheat(trainer_of(spec), load_base(spec, base), tokens, bytes.fromhex(job), round, shard)
    return save_result(result, Path(out))


def _result(trainer: Trainer, base: Checkpoint, end: Any, rows: list[Any]) -> ClaimResult:
    from protocol.training.checkpoint import encode_end_state
    from protocol.training.compress import encode_payload
    from protocol.training.inner import compute_pseudo_gradient
    from protocol.training.result import ClaimResult

    difference = compute_pseudo_gradient(base.weights, end)
    payload, end_state = encode_payload(trainer.spec, difference), encode_end_state(trainer.spec, end)
    digests = [hashlib.sha256(blob).hexdigest() for blob in (payload, end_state)]
    return ClaimResult(payload, digests[0], rows, end_state, digests[1], difference)


if __name__ == "__main__":
    from protocol.runtime.child import serve
    from verifier.compute import HANDLERS

    serve({**HANDLERS, "train": train})
