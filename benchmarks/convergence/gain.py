"""The report: three arms, three seeds, on the validation split that nothing was tuned on.

    python -m benchmarks.convergence.gain         # 5 minutes of one core; writes gain.json beside this file

gain = (alone − market) / (alone − all-reduce): 0 is worth nothing, 1 is as good as devices side by side in one room.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.convergence.runs import Data, Setting, curve, load_data
from node.devnet.demo_spec import ALL_REDUCE_LR, ALONE_LR

SEEDS = (0, 1, 2)
RESULT = Path(__file__).with_name("gain.json")


def main() -> None:
    rows = []
    print(f"{'seed':>4} {'alone':>8} {'all-reduce':>10} {'market':>8} {'gain':>6}")
    for seed in SEEDS:
        data = load_data(seed)
        curves = {setting.arm: curve(data, setting, data.validation) for setting in _settings(data)}
        alone, together, ours = (curves[arm][-1][1] for arm in ("alone", "all-reduce", "market"))
        gain = (alone - ours) / (alone - together)
        rows.append({"seed": seed, "gain": round(gain, 3), "curves": curves})
        print(f"{seed:>4} {alone:>8.4f} {together:>10.4f} {ours:>8.4f} {gain:>6.2f}", flush=True)
    RESULT.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _settings(data: Data) -> list[Setting]:
    """What the demo runs: its spec for the market, the two swept rates for the baselines."""
    inner, outer = data.spec.inner, data.spec.outer
    return [
        Setting("alone", ALONE_LR, inner.warmup_steps, beta1=inner.beta1),
        Setting("all-reduce", ALL_REDUCE_LR, inner.warmup_steps, beta1=inner.beta1),
        Setting("market", inner.lr, inner.warmup_steps, (outer.lr, outer.momentum), inner.beta1),
    ]


if __name__ == "__main__":
    main()
