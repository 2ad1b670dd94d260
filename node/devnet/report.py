"""What a demonstration leaves behind: tables, a picture, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from node.commands.ledger import as_record, show
from node.devnet.demo import Outcome, write_json
from node.devnet.stage import Stage
from node.ledger import check_books, keep_books, read_events, read_gas
from protocol.training.layout import parameter_count
from protocol.training.spec import Spec, decode_spec


async def write_report(stage: Stage, outcome: Outcome, console: Console) -> None:
    """Prove the books, then show and save everything."""
    folder = outcome.folder
    books = keep_books(await read_events(stage.market))
    await check_books(stage.market, books)
    await read_gas(stage.market, books)
    write_json(folder / "accounts.json", as_record(books, outcome.names))
    owners = {str(p.owner.address): p.name for p in stage.people.values()}
    operators = {str(p.operator.address): p.name for p in stage.people.values()}
    for address, name in operators.items():  # gas of the hot keys belongs to their owners' rows
        books.of(next(a for a, n in owners.items() if n == name)).gas += books.of(address).gas
        del books.accounts[address]
    show(console, books, owners, gas=True)
    spec = decode_spec((folder / "spec.json").read_bytes())
    _show_tests(console, stage, outcome)
    _show_traffic(console, outcome, spec, stage)
    _show_gas(console, outcome)
    if outcome.losses:
        draw_losses(folder / "loss.png", outcome)
    write_json(folder / "loss.json", {"this market": outcome.losses, **outcome.baselines})
    write_json(folder / "gas.json", outcome.gas)
    _show_losses(console, outcome)
    usage = {"wall_seconds": outcome.seconds, "cpu_seconds": outcome.cpu, "peak_mib": outcome.peak_mib}
    write_json(folder / "usage.json", usage)
    console.print(
        f"{outcome.seconds:.0f} s wall, {outcome.cpu:.0f} s CPU, {outcome.peak_mib} MiB at the peak of all processes"
    )
    console.print(f"files: {folder}")
    console.print(f"prove it again from the chain alone: gradmarket demo prove {folder}")


def all_reduce_bytes(spec: Spec, rounds: int) -> int:
    """What one device sends when fp32 gradients are exchanged at every inner step, counted once (no ring factor)."""
    return 4 * parameter_count(spec) * spec.inner.steps * rounds


def read_judgements(folder: Path) -> list[tuple[int, int, dict[str, Any]]]:
    """What the seats measured: (round, shard, test), from the logs of all operators."""
    found = []
    for log in sorted(folder.glob("homes/*/log/*.jsonl")):
        for line in log.read_text().splitlines():
            if '"claim_judged"' not in line and '"claim_rechecked"' not in line:
                continue
            record = json.loads(line)
            found += [(record["round"], record["shard"], test) for test in record["tests"]]
    return found


def _show_tests(console: Console, stage: Stage, outcome: Outcome) -> None:
    """The cheats' mildest value beside the largest honest one."""
    who: dict[tuple[int, int], str] = {}
    for line in (outcome.folder / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "Committed":
            args = event["args"]
            who[args["round"], args["shard"]] = outcome.names[args["operator"]]
    values: dict[str, dict[bool, list[float]]] = {}
    lines: dict[str, tuple[float, float]] = {}
    for round, shard, test in read_judgements(outcome.folder):
        lines[test["name"]] = (test["accept"], test["fraud"])
        cheats = who.get((round, shard)) in stage.plan.cheaters
        values.setdefault(test["name"], {}).setdefault(cheats, []).append(float(test["value"]))
    table = Table(title="The three tests, as the seats measured them", title_justify="left")
    for title in ("test", "honest, largest", "cheats, smallest", "accepted up to", "fraud above"):
        table.add_column(title, justify="left" if title == "test" else "right")
    for name, by in values.items():
        honest, cheated = by.get(False, []), by.get(True, [])
        cells = [f"{max(honest):.2g}" if honest else "-", f"{min(cheated):.2g}" if cheated else "-"]
        table.add_row(name, *cells, *(f"{line:g}" for line in lines[name]))
    console.print(table)
    write_json(outcome.folder / "tests.json", {n: {str(k): v for k, v in by.items()} for n, by in values.items()})


def _show_traffic(console: Console, outcome: Outcome, spec: Spec, stage: Stage) -> None:
    dense = all_reduce_bytes(spec, stage.plan.rounds)
    table = Table(title="Traffic of each operator, in kB", title_justify="left")
    for title in ("operator", "payloads sent", "all sent", "all received", "fp32 all-reduce", "less up", "less in all"):
        table.add_column(title, justify="left" if title == "operator" else "right")
    rows: dict[str, Any] = {}
    for name, status in outcome.statuses.items():
        sent, received = sum(status["sent"].values()), sum(status["received"].values())
        payloads = status["sent"].get("payload", 0)
        rows[name] = {"sent": status["sent"], "received": status["received"], "all_reduce": dense}
        up = f"{dense / sent:.0f}x" if sent else "-"
        both = f"{2 * dense / (sent + received):.0f}x" if sent + received else "-"
        cells = [f"{value / 1000:.0f}" for value in (payloads, sent, received, dense)]
        table.add_row(name, *cells, up, both)
    console.print(table)
    write_json(outcome.folder / "traffic.json", rows)


def _show_gas(console: Console, outcome: Outcome) -> None:
    table = Table(title="Gas of each kind of transaction", title_justify="left")
    for title in ("kind", "count", "mean", "largest"):
        table.add_column(title, justify="left" if title == "kind" else "right")
    for kind, use in outcome.gas.items():
        mean = use["total"] // max(use["count"], 1)
        table.add_row(kind, str(use["count"]), f"{mean:,}", f"{use['largest']:,}")
    console.print(table)


def _show_losses(console: Console, outcome: Outcome) -> None:
    curves = {"this market (verified)": outcome.losses, **outcome.baselines}
    for title, curve in curves.items():
        if curve:
            console.print(f"validation loss, {title}: " + " → ".join(f"{loss:.3f}" for _, loss in curve))


def draw_losses(path: Path, outcome: Outcome) -> None:
    """Validation loss by round: this market beside one device alone and all-reduce."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), constrained_layout=True)
    start = next((curve[0] for curve in outcome.baselines.values() if curve), None)
    market = ([start] if start and start[0] == 0 else []) + outcome.losses
    styles = {"one device alone": ("tab:gray", "--"), "all-reduce": ("tab:blue", "-.")}
    for title, curve in outcome.baselines.items():
        color, line = styles[title]
        axes.plot(*zip(*curve, strict=True), line, color=color, label=title)
    axes.plot(*zip(*market, strict=True), "o-", color="tab:orange", label="this market (verified)")
    axes.set_xlabel("round")
    axes.set_ylabel("validation loss (nats a token)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)
