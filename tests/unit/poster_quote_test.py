"""What a job costs and who can work on it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from node.poster.quote import OwnerFacts, Quote, apply_rules, find_obstacles
from protocol.core.presets import load_preset
from protocol.core.terms import Terms, TermsError, Windows, check_terms
from protocol.core.units import TOKEN

DEV = load_preset("dev")
REWARD = 2 * TOKEN
TERMS = Terms(
    spec_digest=b"\1" * 32,
    genesis_digest=b"\2" * 32,
    reward_per_shard=REWARD,
    bond_per_shard=25 * REWARD,
    rounds=6,
    inner_steps=16,
    audit_fee=REWARD * 11 // 10,
    audit_rate_bps=1000,
    probation_slots=2,
    shards_per_round=8,
    min_shards=2,
    tolerance_class=0,
    loss_tolerance=5000,
    windows=Windows(120, 120, 60, 30, 120, 60, 20),
)


def a_quote(**changes: int) -> Quote:
    terms = replace(TERMS, **changes)  # type: ignore[arg-type]
    return Quote(terms, DEV, 6 * Quote(terms, DEV, 0).reservation)


def owners(count: int, **changes: int | bool) -> list[OwnerFacts]:
    facts = {"operators": 1, "free_stake": 50 * TOKEN, "ticket": 80 * TOKEN, "on_probation": False} | changes
    return [OwnerFacts(address=f"0x{number}", **facts) for number in range(count)]  # type: ignore[arg-type]


def test_amounts_are_exact() -> None:
    quote = a_quote()
    # 10 % of 8 shards, rounded up, and 2 probation slots: 3 audits of 3 seats at 2.2 tokens
    assert quote.reservation == 8 * REWARD + 3 * 3 * 22 * TOKEN // 10
    assert quote.deposit == quote.maximum_spend == 6 * quote.reservation and quote.worst_refund == 0
    assert quote.honest_spend == 6 * (8 * REWARD + 3 * 22 * TOKEN // 10)
    assert quote.seat_lock == 80 * TOKEN
    # 10 % audited, 64 % of those convicted, 26 rewards lost
    assert quote.deterrence == Fraction(1664, 1000)


def test_a_deposit_beyond_all_rounds_comes_back_for_certain() -> None:
    quote = replace(a_quote(), deposit=a_quote().deposit + 5 * TOKEN)
    assert quote.worst_refund == 5 * TOKEN and quote.funded_rounds == 6
    less = replace(quote, deposit=2 * quote.reservation + 1)
    assert less.funded_rounds == 2 and less.maximum_spend == less.deposit and less.worst_refund == 0


def test_the_least_bond_is_the_one_that_the_rules_accept() -> None:
    least = a_quote().least_bond
    check_terms(replace(TERMS, bond_per_shard=least), replace(DEV, ticket=80 * TOKEN))
    assert Quote(replace(TERMS, bond_per_shard=least), DEV, 0).deterrence > 1
    assert Quote(replace(TERMS, bond_per_shard=least - 1), DEV, 0).deterrence <= 1


def test_a_reward_whose_seats_do_not_fit_every_ticket_is_refused() -> None:
    with pytest.raises(TermsError, match="reward_per_shard: have 2, expected at most 1: a seat locks 40 rewards"):
        check_terms(TERMS, DEV)


def test_rules_tell_who_is_excluded_and_what_they_have() -> None:
    people = [*owners(2), OwnerFacts("0xpoor", 1, TOKEN, 80 * TOKEN, True), OwnerFacts("0xsmall", 0, 0, TOKEN, True)]
    claim, sit = apply_rules(a_quote(), people)
    assert (claim.met, claim.needs, claim.failed) == (2, 50 * TOKEN, (("0xpoor", TOKEN),))
    assert (sit.met, sit.needs, sit.failed) == (3, 80 * TOKEN, (("0xsmall", TOKEN),))


def test_a_market_that_can_do_the_job_has_no_obstacle() -> None:
    assert list(find_obstacles(a_quote(), owners(6))) == []


def test_every_obstacle_is_named_with_its_numbers() -> None:
    cases = [
        (a_quote(), owners(6, free_stake=TOKEN), "nobody can claim"),
        (a_quote(), owners(5), "5 owners have an enrolled ticket, need 6"),
        (a_quote(), owners(6, ticket=TOKEN), "panels may stay empty: 0 owners have a large enough ticket"),
        (a_quote(min_shards=4), owners(6, on_probation=True), "2 probation slots are fewer than min_shards 4"),
        (replace(a_quote(), deposit=3), owners(6), "0.000000000000000003 tokens are there, a round reserves 35.8"),
    ]
    for quote, people, words in cases:
        (told,) = find_obstacles(quote, people)
        assert words in told
