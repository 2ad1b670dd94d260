"""The compute process of an auditor: re-execution, judgement and the exact outer step, by paths.

`python -m verifier.compute` is started by protocol.runtime.process; the node's own process adds `train`.
"""

from __future__ import annotations

import functools
import hashlib
import mmap
import resource
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from protocol.core.trace import TraceError, TraceRow, decode_trace, encode_trace, trace_root
from protocol.runtime.child import progress, serve
from protocol.training.checkpoint import (
    Checkpoint,
    decode_checkpoint,
    decode_end_state,
    encode_checkpoint,
    genesis_checkpoint,
)
from protocol.training.compare import Committed, judge_claim
from protocol.training.compress import check_payload, compute_update
from protocol.training.data import decode_manifest, load_shard, load_validation
from protocol.training.errors import PayloadError
from protocol.training.evaluate import export_model, generate, validation_loss
from protocol.training.inner import Trainer
from protocol.training.outer import write_outer_step
from protocol.training.result import ClaimResult
from protocol.training.spec import Spec, decode_spec, trace_rows
from verifier.files import END_STATE, PAYLOAD, TRACE

Handlers = Mapping[str, Callable[..., Any]]


@functools.lru_cache(maxsize=4)
def load_spec(path: str) -> Spec:
    return decode_spec(Path(path).read_bytes())


@functools.lru_cache(maxsize=2)
def load_base(spec: str, path: str) -> Checkpoint:
    """Blobs are named by their digest, so a path never changes its content."""
    return decode_checkpoint(load_spec(spec), Path(path).read_bytes())


@functools.lru_cache(maxsize=2)
def trainer_of(spec: str) -> Trainer:
    """Building a model costs more than a small claim: keep it."""
    return Trainer(load_spec(spec))


def replay(
    spec: str, base: str, manifest: str, data: str, job: str, round: int, shard: int, out: str
) -> dict[str, Any]:
    """Re-execute a claim; leaves payload, trace and end state in the folder `out`."""
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


def save_result(result: ClaimResult, folder: Path) -> dict[str, Any]:
    """Write a result's files; the digests that a commitment binds, and the first and last loss (1e-9)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAYLOAD).write_bytes(result.payload)
    (folder / TRACE).write_bytes(encode_trace(result.rows))
    (folder / END_STATE).write_bytes(result.end_state)
    return {
        "payload": result.payload_digest,
        "trace": trace_root(result.rows).hex(),
        "state": result.state_digest,
        "first_loss": result.rows[0].loss,
        "last_loss": result.rows[-1].loss,
    }


def load_result(spec: str, base: str, folder: Path) -> ClaimResult:
    """Read back what `save_result` wrote."""
    job, start = load_spec(spec), load_base(spec, base)
    payload, end_state = (folder / PAYLOAD).read_bytes(), (folder / END_STATE).read_bytes()
    update = compute_update(start.weights, decode_end_state(job, end_state))
    rows = decode_trace((folder / TRACE).read_bytes(), trace_rows(job))
    digests = [hashlib.sha256(data).hexdigest() for data in (payload, end_state)]
    return ClaimResult(payload, digests[0], rows, end_state, digests[1], update)


def judge(
    spec: str,
    base: str,
    own: str,
    committed: Mapping[str, str],
    payload: str,
    trace: str | None,
    end_state: str | None,
) -> dict[str, Any]:
    """Compare the own run in the folder `own` with what the operator committed and opened (paths, or None)."""
    job = load_spec(spec)
    judgement = judge_claim(
        job,
        load_base(spec, base),
        load_result(spec, base, Path(own)),
        Committed(committed["payload"], bytes.fromhex(committed["trace"]), committed["state"]),
        Path(payload).read_bytes(),
        _opened_rows(job, trace) if trace else None,
        Path(end_state).read_bytes() if end_state else None,
    )
    tests = [
        {"name": t.name, "value": t.value, "accept": t.accept_line, "fraud": t.fraud_line, "zone": t.zone}
        for t in judgement.tests
    ]
    return {"finding": judgement.finding, "tests": tests, "step": judgement.fraud_step or 0}


def _opened_rows(job: Spec, path: str) -> list[TraceRow] | None:
    """What an operator opened; rows that are misnumbered or no rows at all count as not opened."""
    try:
        return decode_trace(Path(path).read_bytes(), trace_rows(job))
    except TraceError:
        return None


def genesis(spec: str, out: str) -> str:
    """Write checkpoint 0 of a job that starts from a seed; its digest."""
    job = load_spec(spec)
    return _write(Path(out), encode_checkpoint(job, genesis_checkpoint(job)))


def bad_payloads(spec: str, payloads: Mapping[str, str]) -> dict[str, str]:
    """Which of the payloads (shard → path) do not decode, and why."""
    reasons = {}
    for shard, path in payloads.items():
        try:
            check_payload(load_spec(spec), Path(path).read_bytes())
        except PayloadError as error:
            reasons[shard] = str(error)
    return reasons


def outer_step(spec: str, base: str, payloads: Mapping[str, str], out: str) -> str:
    """Write the checkpoint after `base` from the accepted payloads (shard → path); its digest."""
    job = load_spec(spec)
    pairs = [(int(shard), _mapped(path)) for shard, path in payloads.items()]
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    return write_outer_step(job, decode_checkpoint(job, _mapped(base)), pairs, Path(out))


def evaluate(spec: str, checkpoint: str, manifest: str, data: str) -> float:
    """Validation loss in nats a token."""
    tokens = load_validation(Path(data).read_bytes(), decode_manifest(Path(manifest).read_bytes()))
    job = load_spec(spec)
    return validation_loss(job, decode_checkpoint(job, Path(checkpoint).read_bytes()), tokens, trainer_of(spec))


def export(spec: str, checkpoint: str, tokenizer: str | None, out: str, card: dict[str, Any]) -> None:
    """Write the Hugging Face folder."""
    job = load_spec(spec)
    words = Path(tokenizer).read_bytes() if tokenizer else None
    export_model(job, decode_checkpoint(job, Path(checkpoint).read_bytes()), words, Path(out), card)


def sample(spec: str, checkpoint: str, tokenizer: str, prompt: str, count: int) -> str:
    """Text that continues `prompt` by `count` tokens."""
    job = load_spec(spec)
    return generate(
        job, decode_checkpoint(job, Path(checkpoint).read_bytes()), Path(tokenizer).read_bytes(), prompt, count
    )


def usage() -> dict[str, float]:
    """CPU seconds and peak memory (MiB) of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_mib": used.ru_maxrss / 1024}


def _mapped(path: str) -> mmap.mmap:
    """A blob as it lies on the disk: what was not looked at takes no memory."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _write(path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


HANDLERS: Handlers = {
    "replay": replay,
    "judge": judge,
    "genesis": genesis,
    "bad_payloads": bad_payloads,
    "outer_step": outer_step,
    "evaluate": evaluate,
    "export": export,
    "sample": sample,
    "usage": usage,
}


if __name__ == "__main__":
    serve(HANDLERS)
