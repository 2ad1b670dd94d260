"""How much memory and time `data pack` takes, by the size of the text.

    python -m benchmarks.pack          # 60, 150 and 300 MB: 10 minutes of two cores; writes pack.json beside this file

Each size is packed by a process of its own, as a file of text and as records, with a tokenizer that is trained.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.pack.measure import Measured, measure, write_text

RESULT = Path(__file__).with_name("pack.json")
SIZES = (60, 150, 300)  # MB


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    rows: list[Measured] = []
    with tempfile.TemporaryDirectory() as name:
        for size in sizes:
            for kind in ("txt", "jsonl"):
                text = write_text(Path(name) / f"{size}.{kind}", size * 10**6)
                rows.append(measure(text, Path(name) / f"{size}{kind}"))
                text.unlink()
                print(line(rows[-1]), flush=True)
    RESULT.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


def line(row: Measured) -> str:
    stages = "  ".join(f"{name} {seconds:.0f} s" for name, seconds in row.seconds.items())
    return (
        f"{row.kind:>5} {row.megabytes:>5} MB  peak {row.peak_mib:>4} MiB  {row.tokens:>12,} tokens  "
        f"{row.tokens_per_second:>9,} tokens/s  {stages}"
    )


if __name__ == "__main__":
    main()
