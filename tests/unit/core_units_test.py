"""Amounts as commands take them."""

from __future__ import annotations

import pytest

from protocol.core.units import AmountError, parse_some_or_all


def test_no_amount_means_all_and_a_typed_zero_is_refused() -> None:
    assert parse_some_or_all(None) == 0
    assert parse_some_or_all("1.5") == 15 * 10**17
    with pytest.raises(AmountError, match="does nothing"):
        parse_some_or_all("0")
