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
    from protocol.training.inner import finish_claim
    from protocol.training.spec import inner_steps, trace_rows

    spec = trainer.spec
    whole, rows = inner_steps(spec, base.progress), trace_rows(spec)
    steps = max(2, whole // EXTRAPOLATED)
    batches = batch_order(job_id, round, shard, len(tokens), whole, spec.inner.batch)
    trainer.load(base)
    history = [trainer.step(tokens[batch], step) for step, batch in enumerate(batches[:steps], start=1)]
    slope = (history[-1][0] - history[0][0]) / (steps - 1)
    trace = []
    for row in range(1, rows + 1):
        step = row * whole // rows
        known = history[step - 1] if step <= steps else (history[-1][0] + slope * (step - steps) / 2, history[-1][1])
        fake = hashlib.sha256(b"%d %d %d" % (round, shard, row)).digest()
        has_state = row % spec.verify.state_every == 0 or row == rows
        trace.append(TraceRow(row, fixed(known[0]), fixed(known[1]), fake, fake if has_state else NO_STATE))
    moved = trainer.end_state()
    weights = {n: start - (start - moved.weights[n]) * (whole / steps) for n, start in base.weights.items()}
    return finish_claim(spec, base, replace(moved, weights=weights), trace)


def invent(trainer: Trainer, base: Checkpoint, tokens: Tokens, job_id: bytes, round: int, shard: int) -> ClaimResult:
    """Do no work at all: noise of a plausible size, and a trace of plausible losses."""
    import numpy as np

    from protocol.core.trace import TraceRow, fixed
    from protocol.training.inner import finish_claim
    from protocol.training.spec import trace_rows

    chance = np.random.default_rng([round, shard])
    rows = []
    for row in range(1, trace_rows(trainer.spec) + 1):
        fake = hashlib.sha256(b"invented %d %d %d" % (round, shard, row)).digest()
        rows.append(TraceRow(row, fixed(6.5 - 0.02 * row), fixed(1.0), fake, fake))
    weights = {n: (start + chance.normal(0, 1e-3, start.shape)).astype(np.float32) for n, start in base.weights.items()}
    trainer.load(base)
    return finish_claim(trainer.spec, base, replace(trainer.end_state(), weights=weights), rows)


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


if __name__ == "__main__":
    from node.operator.compute import TRAINING
    from protocol.runtime.child import serve

    serve({**TRAINING, "train": train})
