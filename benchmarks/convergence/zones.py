"""How far honest runs of the demo's claim lie apart, and how far every cheat lies from them.

    python -m benchmarks.convergence.zones        # 2 minutes; writes zones.json beside this file

Honest runs differ in threads, micro-batch and instruction sets on one machine: a stand-in for others, not a proof.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from benchmarks.convergence.elsewhere import JOB, MACHINES, claim_elsewhere
from benchmarks.convergence.runs import Data, load_data
from protocol.training.checkpoint import Checkpoint, Tensors, genesis_checkpoint
from protocol.training.compare import cell_distance, loss_differences, relative_distance
from protocol.training.compress import encode_payload
from protocol.training.inner import Trainer
from protocol.training.layout import parameter_shapes
from protocol.training.outer import compute_outer_step
from protocol.training.result import ClaimResult
from protocol.training.spec import EncodingSpec, Spec, VerifySpec, tolerances

RESULT = Path(__file__).with_name("zones.json")
METHODS = ("fp16", "int8", "int4", "topk")
ROUND = 4  # whose data every claim here trains
Row = dict[str, Any]


def main() -> None:
    data = load_data(100)
    rows: list[Row] = []
    for name, base, stale in _bases(data):
        own = _claim(data, base)
        for kind, runs in (("honest", _honest(data, base)), ("cheat", _cheats(data, base, stale, own))):
            rows += [{"base": name, "kind": kind, "run": run} | _measure(data.spec, own, runs[run]) for run in runs]
    for row in rows:
        print(f"{row['base']:<8} {row['kind']:<7} {row['run']:<26}", *(f"{_number(row, t):>9}" for t in _tests()))
    _summary(data.spec, rows)
    RESULT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _bases(data: Data) -> list[tuple[str, Checkpoint, Checkpoint]]:
    """(name, base, another base): the first weights, and those one and three rounds later, each with the one before."""
    checkpoints = [genesis_checkpoint(data.spec)]
    for number in range(3):
        claims = [_claim(data, checkpoints[-1], shard=s, round=number) for s in range(6)]
        sent = [(s, claim.payload) for s, claim in enumerate(claims)]
        checkpoints.append(compute_outer_step(data.spec, checkpoints[-1], sent))
    return [(f"round {number}", checkpoints[number], checkpoints[abs(number - 1)]) for number in (0, 1, 3)]


def _honest(data: Data, base: Checkpoint) -> dict[str, ClaimResult]:
    tokens = data.rounds[ROUND][0]
    return {
        "again": _claim(data, base),
        "two threads": _claim(data, base, threads=2),
        "micro-batch 1": _claim(data, base, micro_batch=1),
        "micro-batch 2": _claim(data, base, micro_batch=2),
        **{name: claim_elsewhere(data.spec, base, tokens, ROUND, other) for name, other in MACHINES.items()},
    }


def _cheats(data: Data, base: Checkpoint, stale: Checkpoint, own: ClaimResult) -> dict[str, ClaimResult]:
    inner, update = data.spec.inner, own.update.pseudo_gradient
    short = _claim(data, base, steps=inner.steps - 1)
    half = _claim(data, base, steps=inner.steps // 2)
    double = {n: 2 * a for n, a in half.update.pseudo_gradient.items()}
    noise = np.random.default_rng(0)
    size = math.sqrt(sum(float((a**2).sum()) for a in update.values()) / sum(a.size for a in update.values()))
    noisy = {n: a + (0.05 * size * noise.standard_normal(a.shape)).astype(np.float32) for n, a in update.items()}
    bf16 = msgspec.structs.replace(data.spec, verify=VerifySpec(tolerance_class="bf16", state_every=4))
    return {
        "one step skipped": short,
        "half the steps, stretched": _with(half, double, half.rows * 2),
        "lr × 1.01": _claim(data, base, lr=inner.lr * 1.01),
        "lr × 1.05": _claim(data, base, lr=inner.lr * 1.05),
        "half the batch": _claim(data, base, batch=inner.batch // 2, micro_batch=inner.batch // 2),
        "another shard": _claim(data, base, shard=1),
        "a peer's payload": _with(own, _claim(data, base, shard=2).update.pseudo_gradient, own.rows),
        "stale base": _claim(data, stale),
        "5 % noise, right trace": _with(own, noisy, own.rows),
        "undeclared bf16": _train(bf16, data, base),
        "no weight decay": _claim(data, base, weight_decay=0.0),
    }


def _claim(
    data: Data, base: Checkpoint, *, shard: int = 0, round: int = ROUND, threads: int = 1, **inner: Any
) -> ClaimResult:
    spec = msgspec.structs.replace(data.spec, inner=msgspec.structs.replace(data.spec.inner, **inner))
    return _train(spec, data, base, shard, round, threads)


def _train(
    spec: Spec, data: Data, base: Checkpoint, shard: int = 0, round: int = ROUND, threads: int = 1
) -> ClaimResult:
    trainer = Trainer(spec, threads=threads)
    result = trainer.train(base, data.rounds[round][shard], job_id=JOB, round=round, shard=shard)
    torch.set_num_threads(1)
    return result


def _with(result: ClaimResult, update: Tensors, rows: Sequence[Any]) -> ClaimResult:
    return ClaimResult(b"", "", list(rows), b"", "", replace(result.update, pseudo_gradient=update))


def _measure(spec: Spec, own: ClaimResult, theirs: ClaimResult) -> Row:
    """T1 dense, T1 by cells for each compressor, T2. A trace of another length has no T2: T3 refuses it."""
    row: Row = {"T1": relative_distance(spec, own.update, theirs.update)}
    for method in METHODS:
        coarse = msgspec.structs.replace(spec, exchange=EncodingSpec(compressor=method))  # type: ignore[arg-type]
        row[method] = cell_distance(coarse, own.update, encode_payload(coarse, theirs.update))
    is_whole = len(own.rows) == len(theirs.rows)
    row["T2"] = max(loss_differences(own.rows, theirs.rows)) if is_whole else None
    return row


def _summary(spec: Spec, rows: list[Row]) -> None:
    lines = tolerances(spec)
    print(
        f"\n{len(parameter_shapes(spec))} tensors; accept / fraud lines: "
        f"T1 {lines.t1_accept:g} / {lines.t1_reject:g}, T2 {lines.t2_accept:g} / {lines.t2_reject:g}"
    )
    for test in _tests():
        honest = max(row[test] for row in rows if row["kind"] == "honest")
        cheats = [row[test] for row in rows if row["kind"] == "cheat" and row[test]]  # a copied trace shows nothing
        print(f"{test:<5} honest at most {honest:.1e}, cheats at least {min(cheats):.1e}")


def _tests() -> list[str]:
    return ["T1", *METHODS, "T2"]


def _number(row: Row, test: str) -> str:
    return "-" if row[test] is None else f"{row[test]:.1e}"


if __name__ == "__main__":
    main()
