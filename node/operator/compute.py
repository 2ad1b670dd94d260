"""The compute process of an operator: everything an auditor's does, training, and a trial before the first claim."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from protocol.runtime.child import progress, serve
from protocol.training.data import decode_manifest, load_shard
from verifier.compute import HANDLERS, Handlers, load_base, save_result, trainer_of


def train(spec: str, base: str, manifest: str, data: str, job: str, round: int, shard: int, out: str) -> dict[str, Any]:
    """Run a claim's inner steps; leaves payload, trace and end state in the folder `out`."""
    tokens = load_shard(Path(data).read_bytes(), decode_manifest(Path(manifest).read_bytes()))
    result = trainer_of(spec).train(
        load_base(spec, base),
        tokens,
        job_id=bytes.fromhex(job),
        round=round,
        shard=shard,
        on_step=lambda step, loss: progress(step=step, loss=loss),
    )
    return save_result(result, Path(out))


def trial(spec: str, base: str, manifest: str, data: str) -> float:
    """Two inner steps on a shard; the seconds that a claim takes here. TrainingFailed: the job gives no numbers."""
    examples = load_shard(Path(data).read_bytes(), decode_manifest(Path(manifest).read_bytes()))
    return trainer_of(spec).try_out(load_base(spec, base), examples, time.perf_counter)


TRAINING: Handlers = {**HANDLERS, "train": train, "trial": trial}

if __name__ == "__main__":
    serve(TRAINING)
