"""Three curves and more: how far claims that anyone can replay stay behind workers in one room, and for what traffic.

    python -m benchmarks.convergence run [--tokens 4128768] [--seeds 3] [--minutes 55]   # goes on where it stopped
    python -m benchmarks.convergence report     # table, plot, report.json
    python -m benchmarks.convergence small      # five minutes: one short seed of three arms

Every arm's rate is chosen by the same sweep: eight rates, each at a quarter of the length, on a split that is not
reported. Rows are files in `rows/`, one a unit; delete one to run it again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.convergence import report
from benchmarks.convergence.arms import ARMS, SMALL_ARMS, STEP_TOKENS, Arm
from benchmarks.convergence.units import TimeIsUp, measure, stop_after

RATES = tuple(1e-3 * 2 ** (0.75 * i) for i in range(8))  # 1e-3 … 3.8e-2
SWEEP_SEED = 100
LENGTH = 1008 * STEP_TOKENS  # 4.1 million tokens of a run: 1008 steps, whole rounds of every H in a quarter too
SMALL = 2**18  # of a small one: 64 steps, 16 in the sweep


def tuned(arm: Arm, tokens: int) -> Arm:
    """The arm at its best rate."""
    quarter = tokens // 4
    rows = {rate: measure(arm.at(rate), tokens=quarter, seed=SWEEP_SEED, is_tuning=True)["loss"] for rate in RATES}
    return arm.at(min(rows, key=rows.__getitem__))


def run(arms: Sequence[Arm], tokens: int, seeds: int) -> None:
    """Every row of the table, the first seed of all arms before the second of any."""
    for seed in range(seeds):
        for arm in arms:
            measure(tuned(arm, tokens), tokens=tokens, seed=seed, is_tuning=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.convergence", description=__doc__)
    parser.add_argument("what", choices=("run", "report", "small"))
    parser.add_argument("--tokens", type=int, default=LENGTH)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no unit after so many")
    asked = parser.parse_args()
    if asked.what == "small":
        run(SMALL_ARMS, SMALL, 1)
        report.show(SMALL)
        return
    if asked.what == "run":
        stop_after(60 * asked.minutes)
        try:
            run(ARMS, asked.tokens, asked.seeds)
        except TimeIsUp:
            print("time is up; run the same command again to go on")
            return
    report.keep(report.show(asked.tokens), asked.tokens)


if __name__ == "__main__":
    main()
