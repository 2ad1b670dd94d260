"""Draws by the real contracts, counted: first seats, samples, neighbours, and whole panels with colluders on them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

from benchmarks.draws import ladder, statistics
from benchmarks.draws.arena import SHARDS, Arena
from benchmarks.draws.ladder import ACQUIT, FRAME, SPOIL, Minds, Pattern
from protocol.core.model.chance import bits
from protocol.core.model.kinds import Outcome

POPULATION = 100  # owners, one ticket each
SHARES = (10, 20, 33)  # of them collude
PANELS = ((1, 1), (3, 2), (5, 4), (7, 5), (21, 14))
LADDERS = ((5, 4), (7, 5))
LARGEST = PANELS[-1]
_RARE = 0.02
_ROUNDS_AN_ARENA = 8
_BLOCKS_A_PANEL = 10  # more than it takes: no two arenas see the same seed

Wins = Callable[[Pattern], bool]


@dataclass(frozen=True)
class Fit:
    """A hypothesis about draws and how well so many of them bear it out."""

    what: str
    draws: int
    statistic: float
    p_value: float


@dataclass(frozen=True)
class Risk:
    """How often colluders get what they want: exact with and without putting back, and as drawn."""

    what: str
    seats: int
    needed: int
    share: int
    binomial: float
    exact: float
    hits: int
    trials: int
    interval: tuple[float, float]


# -------------------------------------------------------------- are the draws uniform?


def seats_follow_tickets(tickets: Sequence[int], rounds: int, first_block: int) -> Fit:
    """How often each owner has the first seat, against its share of the tickets."""
    arena = Arena(tickets, (3, 2), 10_000, first_block)
    counts: Counter[int] = Counter()
    for _ in range(rounds):
        arena.close_round()
        counts.update(arena.first_seats(range(SHARDS)))
    draws = rounds * SHARDS
    expected = [draws * count / sum(tickets) for count in tickets]
    fit = statistics.chi_square([counts[i] for i in range(len(tickets))], expected)
    return Fit("first seats are proportional to tickets", draws, *fit)


def samples_are_uniform(rounds: int, first_block: int, rate_bps: int = 2_500) -> Fit:
    """How often each shard is in the sample."""
    arena = Arena([1] * 5, (3, 2), rate_bps, first_block)
    counts: Counter[int] = Counter()
    for _ in range(rounds):
        sampled = arena.close_round()
        assert sampled.bit_count() == SHARDS * rate_bps // 10_000
        counts.update(bits(sampled))
    size = SHARDS * rate_bps // 10_000
    fit = statistics.chi_square_of_subsets([counts[i] for i in range(SHARDS)], rounds, size)
    return Fit("every shard is sampled equally often", rounds, *fit)


def neighbours_are_independent(owners: int, rounds: int, first_block: int) -> Fit:
    """Whether the first seat of one case tells anything about that of the next, drawn from the same seed."""
    arena = Arena([1] * owners, (3, 2), 10_000, first_block)
    table = [[0] * owners for _ in range(owners)]
    for _ in range(rounds):
        arena.close_round()
        first = arena.first_seats(range(SHARDS))
        for i in range(0, SHARDS, 2):
            table[first[i]][first[i + 1]] += 1
    fit = statistics.chi_square_of_pairs(table)
    return Fit("first seats of neighbouring cases are independent", rounds * SHARDS // 2, *fit)


# -------------------------------------------------------------- what do colluders get?


def draw_panels(count: int, first_block: int) -> list[list[int]]:
    """Panels of the largest size, by challenges; the first n seats of one are a panel of n."""
    panels: list[list[int]] = []
    while len(panels) < count:
        # a new arena now and then: an EVM remembers every call that it was sent
        arena = Arena([1] * POPULATION, LARGEST, 100, first_block + len(panels) * _BLOCKS_A_PANEL)
        for _ in range(_ROUNDS_AN_ARENA):
            sampled = arena.close_round()
            shards = [i for i in range(SHARDS) if not sampled >> i & 1]
            panels += arena.panels(shards[: count - len(panels)])
    return panels


def colluders_are_hypergeometric(panels: Sequence[Sequence[int]], seats: int, share: int = 33) -> Fit:
    """How many of a fixed group of owners sit on each panel, rare numbers taken together."""
    counts = Counter(sum(owner < share for owner in panel[:seats]) for panel in panels)
    tails = [statistics.hypergeometric_tail(POPULATION, share, seats, least) for least in range(seats + 2)]
    expected = [len(panels) * (tails[k] - tails[k + 1]) for k in range(seats + 1)]
    groups = statistics.pooled([counts[k] for k in range(seats + 1)], expected)
    return Fit(f"colluders among {seats} seats are hypergeometric", len(panels), *statistics.chi_square(*groups))


def panel_risks(panels: Sequence[Sequence[int]]) -> list[Risk]:
    """Framing takes `needed` colluding seats, a veto one more than a panel can spare."""
    risks = []
    for (seats, needed), share in product(PANELS, SHARES):
        for what, least in (("framed", needed), ("vetoed", seats - needed + 1)):
            binomial = statistics.binomial_tail(seats, Fraction(share, POPULATION), least)
            exact = statistics.hypergeometric_tail(POPULATION, share, seats, least)
            hits, trials = _hits(panels, share, seats, exact, partial(_at_least, least))
            interval = statistics.interval(hits, trials)
            risks.append(Risk(what, seats, needed, share, binomial, exact, hits, trials, interval))
    return risks


def ladder_risks(panels: Sequence[Sequence[int]], first_block: int) -> list[Risk]:
    """The same for the whole ladder 1, 3, panel about a sampled claim, whose verdicts come from the real court."""
    risks = []
    aims: Sequence[tuple[str, Minds, Outcome]] = (
        ("slashed though honest", FRAME, Outcome.FRAUD),
        ("unpaid though honest", SPOIL, Outcome.REJECT),
        ("paid though fraud", ACQUIT, Outcome.MATCH),
    )
    for panel, (what, minds, aim) in product(LADDERS, aims):
        verdicts = ladder.ladder_verdicts(panel, minds, first_block)
        wins = {pattern for pattern, outcome in verdicts.items() if outcome == aim}
        for share in SHARES:
            p = Fraction(share, POPULATION)
            binomial = float(sum(p ** sum(w) * (1 - p) ** (panel[0] - sum(w)) for w in wins))
            exact = float(sum(_chance_of(pattern, share) for pattern in wins))
            hits, trials = _hits(panels, share, panel[0], exact, wins.__contains__)
            interval = statistics.interval(hits, trials)
            risks.append(Risk(what, *panel, share, binomial, exact, hits, trials, interval))
    return risks


def _at_least(least: int, pattern: Pattern) -> bool:
    return sum(pattern) >= least


def _chance_of(pattern: Pattern, share: int) -> Fraction:
    """That just these seats go to colluders, where owners are drawn without putting back."""
    n, k = len(pattern), sum(pattern)
    ways = math.perm(share, k) * math.perm(POPULATION - share, n - k)
    return Fraction(ways, math.perm(POPULATION, n))


def _hits(panels: Sequence[Sequence[int]], share: int, seats: int, exact: float, wins: Wins) -> tuple[int, int]:
    """How many panels a group of colluders wins. Where that is rare, each panel is looked at with several disjoint
    groups: two of them hardly ever win the same panel, so that the trials are as good as independent."""
    starts = range(0, POPULATION - share + 1, share) if exact < _RARE else range(1)
    groups = [range(first, first + share) for first in starts]
    hits = sum(wins(tuple(owner in group for owner in panel[:seats])) for panel in panels for group in groups)
    return hits, len(panels) * len(groups)


def check_panels(first_block: int) -> Mapping[str, list[str]]:
    """What the real court decides with 0, 1, 2, … colluders on a full panel."""
    answers = {}
    for (seats, needed), (name, minds) in product(PANELS[1:], (("framed", FRAME), ("vetoed", ACQUIT))):
        verdicts = ladder.panel_verdicts((seats, needed), minds, first_block)
        answers[f"{name} {seats}/{needed}"] = [outcome.name for outcome in verdicts]
    return answers
