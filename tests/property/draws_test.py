"""The contracts' draws are fair: seats follow tickets, samples are uniform, cases do not tell about each other.

Small versions of `python -m benchmarks.draws`, with fixed seeds: each p-value below is the same in every run.
"""

from __future__ import annotations

import json

import pytest

from benchmarks.draws import statistics, trials
from benchmarks.draws.__main__ import RESULT
from benchmarks.draws.ladder import ACQUIT, FRAME, ladder_verdicts, panel_verdicts
from benchmarks.draws.trials import Fit
from protocol.core.model.kinds import Outcome

LEAST_P = 0.001  # a fair draw fails one seed in a thousand, and these seeds are chosen already
UNFAIR_P = 1e-9
ENOUGH_HITS = 20


def _is_fair(fit: Fit) -> bool:
    print(f"\n{fit.what}: {fit.draws} draws, chi-square {fit.statistic:.1f}, p = {fit.p_value:.4f}")
    return fit.p_value > LEAST_P


def test_first_seats_are_proportional_to_tickets() -> None:
    assert _is_fair(trials.seats_follow_tickets((1, 1, 2, 3, 5, 8), 20, 50_000))


def test_every_shard_is_sampled_equally_often() -> None:
    assert _is_fair(trials.samples_are_uniform(40, 60_000))


def test_first_seats_of_neighbouring_cases_are_independent() -> None:
    assert _is_fair(trials.neighbours_are_independent(6, 20, 70_000))


def test_the_same_test_finds_an_unfair_draw() -> None:
    seats, tickets = [250, 250, 500, 750, 1250, 2000], [1, 1, 2, 3, 5, 7]
    expected = [sum(seats) * count / sum(tickets) for count in tickets]
    assert statistics.chi_square(seats, expected)[1] < LEAST_P
    assert statistics.chi_square_of_subsets([120] * 8 + [80] * 8, 200, 8)[1] < UNFAIR_P
    assert statistics.chi_square_of_pairs([[60, 40], [20, 80]])[1] < LEAST_P


@pytest.mark.parametrize(
    ("statistic", "freedom", "tail"), [(3.841459, 1, 0.05), (18.307038, 10, 0.05), (135.807, 100, 0.01)]
)
def test_the_chi_square_tail_is_that_of_the_tables(statistic: float, freedom: int, tail: float) -> None:
    assert statistics.upper_tail(statistic, freedom) == pytest.approx(tail, rel=1e-4)


@pytest.mark.parametrize("panel", [(3, 2), (5, 4), (7, 5), (21, 14)])
def test_a_panel_convicts_with_its_majority_and_not_with_less(panel: tuple[int, int]) -> None:
    seats, needed = panel
    framed = panel_verdicts(panel, FRAME, 80_000)
    assert framed == [Outcome.FRAUD if count >= needed else Outcome.MATCH for count in range(seats + 1)]
    acquitted = panel_verdicts(panel, ACQUIT, 90_000)
    assert acquitted == [Outcome.FRAUD if seats - count >= needed else Outcome.MATCH for count in range(seats + 1)]


def test_one_honest_first_seat_protects_an_honest_claim() -> None:
    verdicts = ladder_verdicts((5, 4), FRAME, 100_000)
    assert {outcome for pattern, outcome in verdicts.items() if not pattern[0]} == {Outcome.MATCH}
    assert (
        sum(outcome == Outcome.FRAUD for outcome in verdicts.values()) == 5
    )  # four or five of five, the first among them


def test_colluders_get_no_more_than_the_table_says() -> None:
    panels = trials.draw_panels(600, 110_000)
    assert all(len(set(panel)) == len(panel) for panel in panels)
    assert _is_fair(trials.colluders_are_hypergeometric(panels, 21))
    seen = [risk for risk in trials.panel_risks(panels) if risk.hits >= ENOUGH_HITS]
    assert len(seen) >= 12
    for risk in seen:
        assert risk.exact / 2 < risk.hits / risk.trials < risk.exact * 2, risk


def test_the_committed_table_agrees_with_the_exact_one() -> None:
    table = json.loads(RESULT.read_text(encoding="utf-8"))
    assert min(fit["p_value"] for fit in table["fits"]) > LEAST_P
    well_known = [risk for risk in table["risks"] if risk["hits"] >= ENOUGH_HITS]
    missed = [risk for risk in well_known if not risk["interval"][0] <= risk["exact"] <= risk["interval"][1]]
    assert len(well_known) >= 38
    assert len(missed) <= len(well_known) // 8  # of 95 % intervals
