"""One run of one arm: a unit of minutes whose row is a file, so that a table can be made over many sittings."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.convergence.arms import BATCH, STEP_TOKENS, WORKERS, Arm
from benchmarks.convergence.text import Text, digest_of, load_text
from protocol.training.checkpoint import checkpoint_bytes, genesis_checkpoint
from protocol.training.compress import max_payload_bytes
from protocol.training.data import Tokens
from protocol.training.inner import Trainer
from protocol.training.layout import parameter_count
from protocol.training.outer import compute_outer_step

ROWS = Path(__file__).with_name("rows")
POINTS = 8  # of a curve
Row = dict[str, Any]
_JOB = b"convergence"


class TimeIsUp(Exception):
    """No further unit is begun."""


_until = float("inf")


def stop_after(seconds: float) -> None:
    """Begin no unit after so many seconds from now; rows that are there can still be read."""
    global _until
    _until = time.monotonic() + seconds


def measure(arm: Arm, *, tokens: int, seed: int, is_tuning: bool, say: Callable[[str], None] = print) -> Row:
    """The row of this unit: read where it was run before, else run and kept. `tokens`: of all workers together."""
    what = {"arm": asdict(arm), "tokens": tokens, "seed": seed, "split": "tuning" if is_tuning else "validation"}
    name = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
    path = ROWS / f"{name}.json"
    if path.exists():
        row: Row = json.loads(path.read_text(encoding="utf-8"))
        return row
    if time.monotonic() > _until:
        raise TimeIsUp
    text = load_text()
    total = tokens // STEP_TOKENS // arm.steps * arm.steps  # whole rounds
    if not total:
        raise SystemExit(f"convergence: {tokens:,} tokens are not one round of {arm.name}")
    trainer = Trainer(arm.spec(total, seed))
    started = time.process_time()
    curve = _RUNS[arm.kind](arm, trainer, text, total, seed, text.tuning if is_tuning else text.validation)
    row = what | {
        "text": digest_of(text),
        "parameters": parameter_count(trainer.spec),
        "inner_steps": total,
        "payload_bytes": max_payload_bytes(trainer.spec) if arm.kind == "market" else 0,
        "checkpoint_bytes": checkpoint_bytes(trainer.spec) if arm.kind == "market" else 0,
        "curve": curve,
        "loss": curve[-1][1],
        "cpu_seconds": round(time.process_time() - started, 1),
    }
    ROWS.mkdir(exist_ok=True)
    path.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    say(f"{arm.name:<28} lr {arm.lr:g} seed {seed} {tokens:,} tokens: {row['loss']:.4f} ({row['cpu_seconds']:.0f} s)")
    return row


def batch(text: Text, seed: int, worker: int, step: int, count: int = 1) -> Tokens:
    """Windows of `count` steps of one worker from step `step` (from 0): the workers deal the text like cards."""
    order = np.random.default_rng([seed, 7]).permutation(len(text.training))[worker::WORKERS]
    places = np.arange(step * BATCH, (step + count) * BATCH) % len(order)
    windows: Tokens = text.training[order[places]]
    return windows


def _together(arm: Arm, trainer: Trainer, text: Text, total: int, seed: int, split: Tokens) -> list[list[float]]:
    """All-reduce: each step averages the gradients of the batches of all workers."""
    return _unbroken(trainer, text, total, seed, split, range(WORKERS))


def _alone(arm: Arm, trainer: Trainer, text: Text, total: int, seed: int, split: Tokens) -> list[list[float]]:
    """One worker for the same time: its own share of the tokens."""
    return _unbroken(trainer, text, total, seed, split, range(1))


def _unbroken(trainer: Trainer, text: Text, total: int, seed: int, split: Tokens, workers: range) -> list[list[float]]:
    trainer.load(genesis_checkpoint(trainer.spec))
    curve = []
    for step in range(total):
        trainer.step(np.concatenate([batch(text, seed, worker, step) for worker in workers]), step + 1)
        if (step + 1) % max(1, total // POINTS) == 0 or step + 1 == total:
            curve.append([step + 1, trainer.validation_loss(split)])
    return curve


def _market(arm: Arm, trainer: Trainer, text: Text, total: int, seed: int, split: Tokens) -> list[list[float]]:
    """Claims and exact outer steps as the market makes them, without the chain."""
    spec, checkpoint = trainer.spec, genesis_checkpoint(trainer.spec)
    curve, rounds = [], total // arm.steps
    for number in range(rounds):
        sent = []
        for worker in range(WORKERS):
            tokens = batch(text, seed, worker, number * arm.steps, arm.steps)
            claim = trainer.train(checkpoint, tokens, job_id=_JOB, round=number, shard=worker)
            sent.append((worker, claim.payload))
        checkpoint = compute_outer_step(spec, checkpoint, sent)
        if (number + 1) % max(1, rounds // POINTS) == 0 or number + 1 == rounds:
            trainer.load(checkpoint)
            curve.append([(number + 1) * arm.steps, trainer.validation_loss(split)])
    return curve


_RUNS = {"alone": _alone, "all-reduce": _together, "market": _market}
