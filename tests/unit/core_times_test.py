"""Block times as people read them."""

from __future__ import annotations

import time

import pytest

from protocol.core.operator import FOREVER
from protocol.core.times import duration, until, utc

WHEN = 1_900_000_000  # 2030-03-17 17:46:40 UTC


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_a_time_is_utc_wherever_it_is_read(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert utc(WHEN) == "2030-03-17 17:46:40 UTC"
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert utc(FOREVER) == "never"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (12_000, "3 h 20 min"),
        (12_059, "3 h 20 min"),
        (3_601, "1 h"),
        (90_000, "1 d 1 h"),
        (-5, "0 s"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: int, words: str) -> None:
    assert duration(seconds) == words


def test_a_deadline_says_how_far_away_it_is() -> None:
    assert until(WHEN, WHEN - 12_000) == "2030-03-17 17:46:40 UTC, in 3 h 20 min"
    assert until(WHEN, WHEN) == "2030-03-17 17:46:40 UTC, in 0 s"
    assert until(WHEN, WHEN + 61) == "2030-03-17 17:46:40 UTC, 1 min 1 s ago"
    assert until(FOREVER, WHEN) == "never"
