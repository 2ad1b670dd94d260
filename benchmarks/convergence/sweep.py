"""Choose the demo's learning rates: every arm over its grid, measured on a split that is never reported.

    python -m benchmarks.convergence.sweep        # 7 minutes of one core; writes sweep.json beside this file

Settings that sweep.json holds already are not run again: delete it to repeat everything.

Split: three training shards that no arm trains. Seed: one that the report (gain.py) does not use.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from benchmarks.convergence.runs import Setting, curve, load_data

SEED = 100
GRID = [
    *(Setting("alone", lr, 4) for lr in (1e-3, 2e-3, 3e-3, 6e-3)),
    *(Setting("all-reduce", lr, 4) for lr in (1.5e-3, 3e-3, 6e-3)),
    *(Setting("market", lr, 4, outer) for lr in (2e-3, 3e-3, 4.5e-3) for outer in ((1.0, 0.0), (0.8, 0.2))),
    *(Setting("alone", lr, 8) for lr in (2e-3, 3e-3)),  # the best rates again, with a longer warm-up
    Setting("all-reduce", 3e-3, 8),
    Setting("market", 3e-3, 8, (1.0, 0.0)),
    Setting("alone", 2e-3, 8, beta1=0.8),  # and with a shorter memory of gradients
    Setting("all-reduce", 3e-3, 8, beta1=0.8),
    Setting("market", 3e-3, 8, (1.0, 0.0), beta1=0.8),
    *(Setting("market", 4.5e-3, 8, outer, beta1=0.8) for outer in ((1.0, 0.0), (0.8, 0.2))),
]
RESULT = Path(__file__).with_name("sweep.json")


def main() -> None:
    data = load_data(SEED)
    rows = json.loads(RESULT.read_text(encoding="utf-8"))["runs"] if RESULT.exists() else []
    done = {row["setting"] for row in rows}
    for setting in (setting for setting in GRID if str(setting) not in done):
        start = time.process_time()
        losses = [round(loss, 4) for _, loss in curve(data, setting, data.tuning)]
        seconds = round(time.process_time() - start, 1)
        rows.append({"setting": str(setting), "arm": setting.arm, "losses": losses, "cpu_seconds": seconds})
        print(f"{setting!s:<55} {losses[-1]:.4f}  {seconds:5.1f} s", flush=True)
    best = {
        arm: min((r for r in rows if r["arm"] == arm), key=_last)["setting"]
        for arm in ("market", "all-reduce", "alone")
    }
    RESULT.write_text(json.dumps({"seed": SEED, "best": best, "runs": rows}, indent=1) + "\n", encoding="utf-8")
    print("best:", *best.values(), sep="\n  ")


def _last(row: dict[str, object]) -> float:
    losses = row["losses"]
    assert isinstance(losses, list)
    return float(losses[-1])


if __name__ == "__main__":
    main()
