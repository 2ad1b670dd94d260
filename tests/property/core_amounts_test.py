"""Amounts are whole numbers of wei: reading and writing them never rounds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.core.presets import load_preset
from protocol.core.terms import TermsError, check_terms, compute_reservation, least_bond
from protocol.core.units import TOKEN, AmountError, format_tokens, mul_down, mul_up, parse_tokens
from tests.helpers.views import some_terms

WEI = st.integers(0, 2**128)
DEV = load_preset("dev")


@given(WEI)
def test_what_is_written_is_read_as_the_same_amount(wei: int) -> None:
    assert parse_tokens(format_tokens(wei)) == wei


@given(st.integers(0, 10**40 - 1), st.text("0123456789", max_size=18))
def test_a_text_with_up_to_eighteen_decimals_is_read_exactly(whole: int, part: str) -> None:
    text = f"{whole}.{part}" if part else str(whole)
    assert Fraction(parse_tokens(text), TOKEN) == Fraction(text)


@given(st.text(max_size=30))
def test_any_text_is_an_exact_amount_or_one_line(text: str) -> None:
    try:
        assert Fraction(parse_tokens(text), TOKEN) == Fraction(text)
    except AmountError as error:
        assert "\n" not in str(error) and "expected" in str(error)


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1e3", "1_000", " 1", "1 ", "1.", ".5", "0.1234567890123456789", "nan", "inf", "٣", "0x10"]
)
def test_signs_exponents_spaces_and_too_many_decimals_are_refused(text: str) -> None:
    with pytest.raises(AmountError, match="expected a"):
        parse_tokens(text)


@given(WEI, st.integers(1, 10**6), st.integers(1, 10**6))
def test_rounding_goes_where_its_name_says(amount: int, numerator: int, denominator: int) -> None:
    down, up = mul_down(amount, numerator, denominator), mul_up(amount, numerator, denominator)
    exact = Fraction(amount * numerator, denominator)
    assert down <= exact <= up and up - down == (exact.denominator != 1)


@given(st.integers(1, 2**90), st.integers(1, 10_000), st.integers(1, 10_000))
def test_the_least_bond_deters_and_one_wei_less_does_not(reward: int, rate: int, detection: int) -> None:
    need = least_bond(reward, rate, detection)
    caught = Fraction(rate * detection, 10**8)
    assert caught * (reward + need) > reward
    assert need == 0 or caught * (reward + need - 1) <= reward


@given(st.integers(1, 256), st.integers(0, 10_000), st.integers(1, 256), st.integers(1, 2**60))
def test_a_reservation_pays_every_reward_and_three_fees_for_all_that_can_be_sampled(
    shards: int, rate: int, slots: int, reward: int
) -> None:
    slots = min(slots, shards)
    terms = some_terms(
        shards_per_round=shards, audit_rate_bps=rate, probation_slots=slots, reward_per_shard=reward, audit_fee=reward
    )
    most = min(shards, -(-shards * rate // 10_000) + slots)
    assert compute_reservation(terms) == shards * reward + 3 * reward * most


def test_a_bond_that_does_not_deter_is_told_with_have_and_need() -> None:
    with pytest.raises(TermsError, match=r"bond_per_shard: have 14, need 14\.625.*makes cheating pay"):
        check_terms(some_terms(bond_per_shard=14 * TOKEN), DEV)
