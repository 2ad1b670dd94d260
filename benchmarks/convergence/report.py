"""From rows to a table, a plot and one JSON file."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import mean

from benchmarks.convergence.arms import ALL_REDUCE, ALONE, Arm
from benchmarks.convergence.units import ROWS, Row

HERE = Path(__file__).parent
PLOT = Path(__file__).parents[2] / "docs" / "images" / "convergence.png"


Rows = dict[str, list[Row]]  # of one length, by the name of their arm


def show(tokens: int) -> Rows:
    """Print the table of all runs of this length."""
    rows = _rows(tokens)
    if not rows:
        raise SystemExit(f"convergence: no rows of {tokens:,} tokens yet; run: python -m benchmarks.convergence run")
    table = [_line(name, found, rows) for name, found in rows.items()]
    print(f"{'arm':<26}{'rate':>8}{'loss':>9}{'seeds':>7}{'above all-reduce':>18}{'gain':>7}{'R_up':>9}{'R_total':>9}")
    for line in table:
        print(
            f"{line['arm']:<26}{line['lr']:>8.2g}{line['loss']:>9.4f}{line['seeds']:>7}"
            f"{_percent(line['above']):>18}{_share(line['gain']):>7}{_times(line['r_up']):>9}{_times(line['r_total']):>9}"
        )
    return rows


def keep(rows: Rows, tokens: int) -> None:
    """Write report.json and the plot."""
    table = {"tokens": tokens, "arms": [_line(name, found, rows) for name, found in rows.items()]}
    HERE.joinpath("report.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    plot(rows)


def _rows(tokens: int) -> Rows:
    """Rows on the reported split, the worst arm first."""
    found: dict[str, list[Row]] = defaultdict(list)
    for path in sorted(ROWS.glob("*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        if row["split"] == "validation" and row["tokens"] == tokens:
            found[row["arm"]["name"]].append(row)
    return dict(sorted(found.items(), key=lambda pair: mean(r["loss"] for r in pair[1]), reverse=True))


def _line(name: str, rows: list[Row], all_rows: Rows) -> Row:
    """Means over the seeds that an arm shares with the baselines."""
    arm = Arm(**rows[0]["arm"])
    up, total = arm.reduction() if arm.kind == "market" else (1.0, 1.0) if arm.kind == "all-reduce" else (None, None)
    together, alone = (_by_seed(all_rows.get(base.name, [])) for base in (ALL_REDUCE, ALONE))
    losses = _by_seed(rows)
    shared = sorted(losses.keys() & together.keys())
    lone = sorted(losses.keys() & together.keys() & alone.keys())
    return {
        "arm": name,
        "lr": arm.lr,
        "loss": mean(losses.values()),
        "losses": losses,
        "seeds": len(losses),
        "above": mean(losses[s] / together[s] - 1 for s in shared) if shared else None,
        "gain": mean((alone[s] - losses[s]) / (alone[s] - together[s]) for s in lone) if lone else None,
        "r_up": up,
        "r_total": total,
        "payload_bytes": rows[0]["payload_bytes"],
    }


def _by_seed(rows: list[Row]) -> dict[int, float]:
    return {row["seed"]: row["loss"] for row in rows}


def plot(rows: Rows) -> None:
    """Loss over inner steps, the mean of the seeds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.5, 4.5), layout="constrained")
    for name, found in rows.items():
        points = defaultdict(list)
        for row in found:
            for step, loss in row["curve"]:
                points[step].append(loss)
        steps = sorted(points)
        style = "--" if found[0]["arm"]["kind"] != "market" else "-"
        axes.plot(steps, [mean(points[s]) for s in steps], style, marker="o", markersize=3, label=name)
    axes.set_xlabel("inner steps of a worker")
    axes.set_ylabel("validation loss (nats a token)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, dpi=110)
    pyplot.close(figure)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f} %"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}x"
