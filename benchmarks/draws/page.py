"""docs/security/draws.md, from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.draws.trials import POPULATION, Fit, Risk

_FEW = 20  # hits below which a 95 % interval does not exclude a factor of two

_HEAD = """# What chance decides

Written by `python -m benchmarks.draws` ([draws.json](../../benchmarks/draws/draws.json)); edit
`benchmarks/draws/page.py`. Every draw below was made by the compiled contracts (`TicketBook`, `Panels`, `Sampling`) in
an EVM, with fixed seeds, and every verdict by the compiled court.

## Are the draws uniform?

Chi-square tests; p is the probability of a deviation as large as this one if the draw is fair. Three sets of seeds
for each of the first three; the panels are those of the tables below. One p-value in twenty lies below 0.05 even so.

| hypothesis | draws | chi-square | p |
|---|--:|--:|--:|
"""

_PANELS = """
## What colluders can hope for

Assumptions: {population} owners with one ticket each. The owners of a panel are distinct, so that colluders are drawn
without putting back: *exact* is hypergeometric, and many colluders on one panel are a little rarer than the binomial
says. The accused and the challenger hold no tickets; an honest seat finds what is there, a colluder says what helps its
group; nobody is silent. Who holds that share of the tickets under as many owners' names is what the column means.

*Framed*: colluders alone reach the findings that a panel needs. *Vetoed*: the honest seats are too few to reach them.
The column *drawn* is the simulation: its 95 % interval (Wilson; up to 3 / trials where nothing was hit). Rows with
less than {few} hits say only that nothing contradicts the exact number. Where a hit is rare, each panel is looked at
with several disjoint groups of colluders.

### One panel

| | seats / needed | colluding | binomial | exact | drawn | hits of trials |
|---|---|--:|--:|--:|---|--:|
"""

_LADDER = """
### The ladder of a sampled claim

1 seat, 3 seats, the panel; seats are cumulative. The real court was run once for each pattern of colluders over the
seats; the real draw says how often each pattern comes up. Appeals are left out: they lead to the last row of the table
above.

| | panel | colluding | binomial | exact | drawn | hits of trials |
|---|---|--:|--:|--:|---|--:|
"""

_TAIL = """
## Reading it

- A single seat decides that a claim is paid, so a cheat passes at the first seat with the colluders' share of the
  tickets; that is the 0.8 in `detectionBps` for a fifth.
- A small panel with a large majority protects the accused, not the verdict: with 4 of 5 needed, two colluding seats
  acquit a cheat, and the honest ones that found Fraud then stand at distance 2 and lose a quarter of their lock. The
  remedy is the appeal to the largest panel, where it exists.
- Larger panels help against both as long as colluders hold less than the share that a panel can spare: a third of the
  seats at 14 of 21.
"""


def render(fits: Sequence[Fit], risks: Sequence[Risk]) -> str:
    """The page."""
    text = _HEAD
    text += "".join(f"| {f.what} | {f.draws:,} | {f.statistic:.1f} | {f.p_value:.3f} |\n" for f in fits)
    text += _PANELS.format(population=POPULATION, few=_FEW)
    text += "".join(_row(risk) for risk in risks if " " not in risk.what)
    text += _LADDER + "".join(_row(risk) for risk in risks if " " in risk.what)
    return text + _TAIL


def _row(r: Risk) -> str:
    panel = f"{r.seats} / {r.needed}"
    drawn = f"{_short(r.interval[0])} … {_short(r.interval[1])}"
    numbers = f"{_short(r.binomial)} | {_short(r.exact)} | {drawn} | {r.hits:,} of {r.trials:,}"
    return f"| {r.what} | {panel} | {r.share} % | {numbers} |\n"


def _short(p: float) -> str:
    if not p:
        return "0"
    return f"{p:.3f}" if p >= 0.01 else f"{p:.1e}"


def risk_line(r: Risk) -> str:
    """The same for a terminal."""
    low, high = r.interval
    numbers = f"exact {_short(r.exact):>8}  drawn {_short(low)} to {_short(high)} ({r.hits} of {r.trials})"
    return f"{r.what:<22} {r.seats:>2}/{r.needed:<2} {r.share:>3} %  binomial {_short(r.binomial):>8}  {numbers}"
