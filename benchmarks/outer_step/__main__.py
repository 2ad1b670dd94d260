"""What the exact outer step and the encoders cost: CPU time of one core and peak memory, by encoding.

    python -m benchmarks.outer_step                          # 100 million parameters; writes result.json
    python -m benchmarks.outer_step --parameters 4000000     # prints only, as every other choice

Each line is a process of its own. Values are normal; payloads and base lie on disk and are mapped, as in a node.
"""

from __future__ import annotations

import argparse
import json
import mmap
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from protocol.training.checkpoint import checkpoint_bytes, decode_checkpoint, encode_checkpoint, first_checkpoint
from protocol.training.compress import Update, encode_payload
from protocol.training.families import LlamaSpec
from protocol.training.layout import parameter_count, parameter_shapes
from protocol.training.outer import write_outer_step
from protocol.training.spec import DataSpec, EncodingSpec, InnerSpec, OuterSpec, Spec, VerifySpec

RESULT = Path(__file__).with_name("result.json")
PARAMETERS, PAYLOADS = 100_000_000, 8
METHODS = ("fp16", "int8", "int4", "int2", "ternary", "sign", "topk")
WIDTH, VOCAB, HIDDEN = 768, 16384, 2048  # a layer has 7.1 million parameters


def spec_of(method: str, parameters: int) -> Spec:
    """A model of about that many parameters. top-k keeps 3 %."""
    width = WIDTH if parameters >= 20_000_000 else 192
    layer = 4 * width * width + 3 * width * (HIDDEN * width // WIDTH)
    layers = max(1, round((parameters - VOCAB * width) / layer))
    zeros = "0" * 64
    model = LlamaSpec(
        vocab=VOCAB, width=width, layers=layers, heads=12, kv_heads=12, feed_forward=HIDDEN * width // WIDTH
    )
    return Spec(
        name="outer step",
        model=model,
        tokenizer=zeros,
        data=DataSpec(manifest=zeros, validation=zeros),
        inner=InnerSpec(lr=1e-3, steps=10, batch=1, micro_batch=1, sequence=128),
        outer=OuterSpec(lr=0.7, momentum=0.9),
        exchange=EncodingSpec(compressor=method, block=1024, keep=123),  # type: ignore[arg-type]
        verify=VerifySpec(tolerance_class="fp32", state_every=10),
        genesis=0,
    )


def measure(method: str, parameters: int, payloads: int) -> dict[str, Any]:
    """One line of the table."""
    spec = spec_of(method, parameters)
    shapes = parameter_shapes(spec)
    chance = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as scratch:
        paths, encoding = [], []
        for number in range(payloads):
            update = {n: chance.standard_normal(s, np.float32) * np.float32(1e-3) for n, s in shapes.items()}
            began = time.process_time()
            data = encode_payload(spec, Update(update, {}, {}))
            encoding.append(time.process_time() - began)
            paths.append(Path(scratch) / str(number))
            paths[-1].write_bytes(data)
            del update
        base = Path(scratch) / "base"
        base.write_bytes(
            encode_checkpoint(spec, first_checkpoint(spec, {n: np.ones(s, np.float32) for n, s in shapes.items()}))
        )
        command = [sys.executable, "-m", "benchmarks.outer_step", "--step", method, str(parameters), str(base)]
        done = subprocess.run([*command, *map(str, paths)], check=True, capture_output=True, text=True)
        return {
            "method": method,
            "parameters": parameter_count(spec),
            "payload_bytes": len(data),
            "encode_seconds": min(encoding),
            **json.loads(done.stdout),
            "checkpoint_bytes": checkpoint_bytes(spec),
        }


def step(method: str, parameters: int, base: Path, payloads: list[Path]) -> None:
    """The child: one outer step. Anonymous memory only: mapped files are the page cache's, and given back at need."""
    spec = spec_of(method, parameters)
    peak, done = [_anonymous()], threading.Event()
    watcher = threading.Thread(target=_watch, args=(peak, done))
    watcher.start()
    began = time.process_time()
    start = decode_checkpoint(spec, _mapped(base))
    digest = write_outer_step(spec, start, [(i, _mapped(p)) for i, p in enumerate(payloads)], base.with_name("next"))
    seconds = time.process_time() - began
    done.set()
    watcher.join()
    print(json.dumps({"step_seconds": seconds, "peak_bytes": max(peak), "idle_bytes": peak[0], "digest": digest}))


def _watch(peak: list[int], done: threading.Event) -> None:
    while not done.wait(0.02):
        peak.append(_anonymous())


def _anonymous() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("RssAnon")))


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def main() -> None:
    if sys.argv[1:2] == ["--step"]:
        method, parameters, base, *payloads = sys.argv[2:]
        step(method, int(parameters), Path(base), [Path(p) for p in payloads])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outer_step", description=__doc__)
    parser.add_argument("--parameters", type=int, default=PARAMETERS)
    parser.add_argument("--payloads", type=int, default=PAYLOADS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    asked = parser.parse_args()
    print(f"{'method':<8}{'parameters':>13}{'payload':>11}{'encode':>9}{'step':>9}{'peak / checkpoint':>19}")
    rows = []
    for method in asked.methods:
        row = measure(method, asked.parameters, asked.payloads)
        rows.append(row)
        print(
            f"{method:<8}{row['parameters']:>13,}{row['payload_bytes'] / 1e6:>8.1f} MB{row['encode_seconds']:>7.2f} s"
            f"{row['step_seconds']:>7.2f} s{row['peak_bytes'] / row['checkpoint_bytes']:>19.2f}",
            flush=True,
        )
    if (asked.parameters, asked.payloads, tuple(asked.methods)) == (PARAMETERS, PAYLOADS, METHODS):
        RESULT.write_text(json.dumps({"payloads": asked.payloads, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
