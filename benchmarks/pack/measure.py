"""One pack in a process of its own: its largest memory and the time of each stage."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
VOCAB, SEQUENCE, SHARD_SEQUENCES = 8192, 512, 512
_WORDS = 60_000  # of the invented language; frequent ones as in a real one
_LETTERS = "etaoinshrdlcumwfgypbvkjxqz"


@dataclass(frozen=True)
class Measured:
    """`peak_mib`: the largest resident memory. `seconds` by stage."""

    kind: str
    megabytes: int
    tokens: int
    peak_mib: int
    tokens_per_second: int
    seconds: dict[str, float]


def write_text(path: Path, size: int) -> Path:
    """About `size` bytes, of .txt or .jsonl: words that are as unequal as those of a language, by a fixed seed."""
    chance = np.random.default_rng(1)
    weights = 1 / np.arange(1, len(_LETTERS) + 1)
    lengths = chance.integers(2, 11, _WORDS)
    letters = list(_LETTERS)
    words = np.array(["".join(chance.choice(letters, n, p=weights / weights.sum())) for n in lengths])
    odds = 1 / np.arange(1, _WORDS + 1)
    odds = np.cumsum(odds / odds.sum())
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < size:
            line = " ".join(words[np.searchsorted(odds, chance.random(20_000))])
            for start in range(0, len(line), 500):
                text = line[start : start + 500]
                file.write(json.dumps({"text": text}) + "\n" if path.suffix == ".jsonl" else text + "\n")
    return path


def measure(text: Path, out: Path) -> Measured:
    command = [sys.executable, "-m", "benchmarks.pack.measure", str(text), str(out)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Measured(**json.loads(done.stdout))


def pack(text: Path, out: Path) -> Measured:
    """In this process, which does nothing else."""
    from protocol.training.pack import Progress, pack_text

    begun: dict[str, float] = {}
    last = {"tokens": 0}

    def watch(progress: Progress) -> None:
        begun.setdefault(progress.stage.value, time.monotonic())
        last["tokens"] = max(last["tokens"], progress.tokens)

    start = time.monotonic()
    pack_text(
        [text], out, vocab=VOCAB, sequence=SEQUENCE, shard_sequences=SHARD_SEQUENCES, max_validation=64, watch=watch
    )
    ends = [*list(begun.values())[1:], time.monotonic()]
    seconds = {name: round(end - at, 1) for (name, at), end in zip(begun.items(), ends, strict=True)}
    return Measured(
        kind=text.suffix[1:],
        megabytes=text.stat().st_size // 10**6,
        tokens=last["tokens"],
        peak_mib=_peak_mib(),
        tokens_per_second=round(last["tokens"] / (time.monotonic() - start)),
        seconds=seconds,
    )


def _peak_mib() -> int:
    """Of this program alone: what getrusage tells includes the process that started it."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) // 1024 if found else 0


if __name__ == "__main__":
    print(json.dumps(pack(Path(sys.argv[1]), Path(sys.argv[2])).__dict__))
