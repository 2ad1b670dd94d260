"""The tests and tables that the draws are held against; exact where a number can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

_LEAST_EXPECTED = 5  # below it the chi-square approximation says nothing
_Z = 1.959963984540054  # of a 95 % interval


def chi_square(counts: Sequence[int], expected: Sequence[float]) -> tuple[float, float]:
    """The statistic and the probability of one as large, for counts that add up to what was expected."""
    assert len(counts) == len(expected) and min(expected) >= _LEAST_EXPECTED
    statistic = sum((have - need) ** 2 / need for have, need in zip(counts, expected, strict=True))
    return statistic, upper_tail(statistic, len(counts) - 1)


def pooled(counts: Sequence[int], expected: Sequence[float]) -> tuple[list[int], list[float]]:
    """Neighbouring classes put together until each is expected often enough."""
    have, need = [0], [0.0]
    for i, (count, share) in enumerate(zip(counts, expected, strict=True)):
        have[-1] += count
        need[-1] += share
        if need[-1] >= _LEAST_EXPECTED and sum(expected[i + 1 :]) >= _LEAST_EXPECTED:
            have.append(0)
            need.append(0.0)
    return have, need


def chi_square_of_subsets(counts: Sequence[int], draws: int, size: int) -> tuple[float, float]:
    """The same for how often each of n was in a uniform subset of `size`, which vary less than independent draws."""
    n, share = len(counts), size / len(counts)
    variance = draws * share * (1 - share)
    statistic = sum((have - draws * share) ** 2 for have in counts) / variance * (n - 1) / n
    return statistic, upper_tail(statistic, n - 1)


def chi_square_of_pairs(table: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Whether the row says anything about the column."""
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    total = sum(rows)
    cells = [(table[i][j], rows[i] * columns[j] / total) for i in range(len(rows)) for j in range(len(columns))]
    assert min(expected for _, expected in cells) >= _LEAST_EXPECTED
    statistic = sum((have - need) ** 2 / need for have, need in cells)
    return statistic, upper_tail(statistic, (len(rows) - 1) * (len(columns) - 1))


def upper_tail(statistic: float, freedom: int) -> float:
    """P(chi-square > statistic): the regularized incomplete gamma function Q(freedom / 2, statistic / 2)."""
    a, x = freedom / 2, statistic / 2
    if x <= 0:
        return 1.0
    scale = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:  # the series of P converges fast here
        term = total = 1 / a
        n = a
        while term > total * 1e-16:
            n += 1
            term *= x / n
            total += term
        return 1 - total * scale
    b, c, d = x + 1 - a, 1e300, 1 / (x + 1 - a)
    fraction = d
    for i in range(1, 10_000):  # the continued fraction of Q, by Lentz
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        fraction *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return fraction * scale


def binomial_tail(n: int, p: Fraction, least: int) -> float:
    """P(at least so many of n), each by itself with probability p."""
    return float(sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(least, n + 1)))


def hypergeometric_tail(population: int, marked: int, n: int, least: int) -> float:
    """P(at least so many marked among n drawn without putting back)."""
    ways = sum(math.comb(marked, k) * math.comb(population - marked, n - k) for k in range(least, n + 1))
    return float(Fraction(ways, math.comb(population, n)))


def interval(hits: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a probability; up to 3 / trials where nothing was hit."""
    if not hits:
        return 0.0, 3 / trials
    p, z2 = hits / trials, _Z**2
    middle = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _Z * math.sqrt(p * (1 - p) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    return max(0.0, middle - half), middle + half
