"""Whether the draws of the contracts are as fair as their documents say, and what colluders can hope for.

    python -m benchmarks.draws        # 5 minutes of one core; writes draws.json and docs/security/draws.md

Seeds are fixed: the same contracts give the same numbers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.draws import page, trials
from benchmarks.draws.trials import Fit, Risk

RESULT = Path(__file__).with_name("draws.json")
PAGE = Path(__file__).parents[2] / "docs" / "security" / "draws.md"
_PANELS = 40_000
_FIRST_BLOCKS = (10_000, 2_000_000, 4_000_000)  # each hypothesis is tested with three independent sets of seeds


def main() -> None:
    fits = [fit for block in _FIRST_BLOCKS for fit in _fits(block)]
    panels = trials.draw_panels(int(sys.argv[1]) if len(sys.argv) > 1 else _PANELS, 8_000_000)
    fits += [trials.colluders_are_hypergeometric(panels, seats) for seats in (3, 5, 7, 21)]
    for fit in fits:
        print(f"{fit.what:<52} {fit.draws:>7} draws  p = {fit.p_value:.3f}", flush=True)
    verdicts = trials.check_panels(6_000_000)
    risks = trials.panel_risks(panels) + trials.ladder_risks(panels, 12_000_000)
    for risk in risks:
        print(page.risk_line(risk))
    save(fits, risks, verdicts)


def save(fits: list[Fit], risks: list[Risk], verdicts: Mapping[str, list[str]]) -> None:
    """The numbers, and the page that says what they mean."""
    table = {"fits": [asdict(f) for f in fits], "risks": [asdict(r) for r in risks], "verdicts": verdicts}
    RESULT.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page.render(fits, risks), encoding="utf-8")


def _fits(first_block: int) -> list[Fit]:
    return [
        trials.seats_follow_tickets((1, 1, 2, 3, 5, 8), 100, first_block),
        trials.samples_are_uniform(150, first_block + 500_000),
        trials.neighbours_are_independent(8, 100, first_block + 1_000_000),
    ]


if __name__ == "__main__":
    main()
