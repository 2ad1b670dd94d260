"""One claim in a process with other instruction sets: as near as one machine comes to being another one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from protocol.core.trace import decode_trace, encode_trace
from protocol.training.checkpoint import Checkpoint, decode_checkpoint, decode_end_state, encode_checkpoint
from protocol.training.data import Tokens
from protocol.training.inner import finish_claim, train_claim
from protocol.training.result import ClaimResult
from protocol.training.spec import Spec, decode_spec, encode_spec, trace_rows

MACHINES = {
    "no vector instructions": {
        "ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41",
    },
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}  # fmt: skip
JOB = b"zones"


def claim_elsewhere(
    spec: Spec, base: Checkpoint, tokens: Tokens, round: int, environment: dict[str, str]
) -> ClaimResult:
    """The claim of shard 0, run by a child with `environment` added to this process's own."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "given.npz", Path(folder) / "made.npz"
        start = _bytes(encode_checkpoint(spec, base))
        spec_bytes = _bytes(encode_spec(spec))
        np.savez(given, allow_pickle=False, spec=spec_bytes, base=start, tokens=tokens, round=np.array(round))
        command = [sys.executable, "-m", "benchmarks.convergence.elsewhere", str(given), str(made)]
        subprocess.run(command, check=True, env=os.environ | environment)
        with np.load(made) as stored:
            rows = decode_trace(stored["trace"].tobytes(), trace_rows(spec))
            end = decode_end_state(spec, stored["end"].tobytes())
    return finish_claim(spec, base, end, rows)


def main(given: str, made: str) -> None:
    with np.load(given) as stored:
        spec = decode_spec(stored["spec"].tobytes())
        base = decode_checkpoint(spec, stored["base"].tobytes())
        result = train_claim(spec, base, stored["tokens"], job_id=JOB, round=int(stored["round"]), shard=0)
    np.savez(made, allow_pickle=False, trace=_bytes(encode_trace(result.rows)), end=_bytes(result.end_state))


def _bytes(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(data, np.uint8)


if __name__ == "__main__":
    main(*sys.argv[1:])
