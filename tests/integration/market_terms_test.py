"""protocol.core.terms and the contracts refuse the same terms: asked of a deployed JobMarket, edge by edge."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from protocol.chain.bindings import shipped_errors
from protocol.core.presets import load_preset
from protocol.core.terms import Terms, TermsError, check_terms, compute_reservation, least_bond
from protocol.core.units import TOKEN
from tests.helpers.views import some_terms
from tests.integration.poster_fixtures import poster_bench

DEV = load_preset("dev")
ENOUGH = 2**126  # wei: more than any round here reserves
MONTH = 30 * 24 * 3600
ACCEPTED = "ERC20InsufficientAllowance"  # the terms were taken; the tokens may not be


@dataclass
class Court:
    """JobMarket.post, tried without sending anything."""

    url: str
    poster: str
    market: Any

    def refusal(self, terms: Terms, deposit: int = ENOUGH) -> str:
        """The name of the contract's error; empty when the terms are accepted."""
        call = self.market.functions.post(terms.as_tuple(), bytes(32), deposit, "")
        fields = {"from": self.poster, "to": self.market.address, "data": call._encode_transaction_data()}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [fields, "latest"]}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as response:
            error = json.load(response)["error"]
        found = shipped_errors().decode(bytes.fromhex(error["data"].removeprefix("0x")))
        return "" if found.name == ACCEPTED else str(found.name)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def court(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Court]:
    folder: Path = tmp_path_factory.mktemp("terms")
    async with poster_bench(folder) as bench:
        yield Court(bench.chain.url, bench.poster.owner.address, bench.market.job_market)


def bond_of(terms: Terms) -> int:
    return least_bond(terms.reward_per_shard, terms.audit_rate_bps or 1, DEV.detection_bps)


# Each edge from both sides; what depends on another field is computed from it.
EDGES: dict[str, Callable[[Terms], list[int]]] = {
    "rounds": lambda t: [0, 1, 2**32 - 1],
    "reward_per_shard": lambda t: [0, 1, 2 * TOKEN],
    "bond_per_shard": lambda t: [0, max(0, bond_of(t) - 1), bond_of(t), bond_of(t) + 1, 2**96 - 1],
    "inner_steps": lambda t: [0, 2, 3, 1_024, 1_025, 2**32 - 1],
    "audit_fee": lambda t: (
        [max(0, t.reward_per_shard - 1), t.reward_per_shard, 10 * t.reward_per_shard, 10 * t.reward_per_shard + 1]
    ),
    "audit_rate_bps": lambda t: [0, 1, 9_999, 10_000, 10_001],
    "probation_slots": lambda t: [0, 1, t.shards_per_round, t.shards_per_round + 1],
    "shards_per_round": lambda t: [0, 1, 2, 3, 256, 257],
    "min_shards": lambda t: [0, 1, t.shards_per_round // 2, t.shards_per_round // 2 + 1],
    "tolerance_class": lambda t: [0, 1, 2],
    "loss_tolerance": lambda t: [4_999, 5_000, 1_999_999, 2_000_000, 50_000_000, 50_000_001],
}
WINDOW_EDGES = (0, 1, 9, 10, 119, 120, 121, MONTH, MONTH + 1)


@st.composite
def terms_at_edges(draw: st.DrawFn) -> Terms:
    """Valid terms, up to four fields of which are moved to an edge of their range."""
    terms = some_terms()
    for name in draw(st.lists(st.sampled_from([*EDGES, "windows"]), max_size=4, unique=True)):
        if name == "windows":
            window = draw(st.sampled_from(list(vars(terms.windows))))
            value = draw(st.sampled_from(WINDOW_EDGES))
            terms = replace(terms, windows=replace(terms.windows, **{window: value}))
        else:
            changed: dict[str, Any] = {name: draw(st.sampled_from(EDGES[name](terms)))}
            terms = replace(terms, **changed)
    return terms


def is_accepted(terms: Terms) -> bool:
    try:
        check_terms(terms, DEV)
    except TermsError as error:
        assert "\n" not in str(error)
        return False
    return True


@settings(max_examples=300, deadline=None)
@example(some_terms())
@example(some_terms(shards_per_round=1, min_shards=1, probation_slots=1))
@example(some_terms(audit_rate_bps=0, bond_per_shard=2**96 - 1))
@example(some_terms(spec_digest=bytes(32)))
@example(some_terms(genesis_digest=bytes(32)))
@given(terms_at_edges())
def test_the_contract_and_the_command_line_refuse_the_same_terms(court: Court, terms: Terms) -> None:
    assert is_accepted(terms) == (court.refusal(terms) == "")


def test_terms_that_do_not_deter_are_refused_with_the_same_need_by_both(court: Court) -> None:
    terms = some_terms()
    need = bond_of(terms)
    assert court.refusal(replace(terms, bond_per_shard=need)) == ""
    assert court.refusal(replace(terms, bond_per_shard=need - 1)) == "BondTooSmall"
    assert is_accepted(replace(terms, bond_per_shard=need))
    assert not is_accepted(replace(terms, bond_per_shard=need - 1))


@pytest.mark.parametrize(("shards", "rate", "slots"), [(1, 0, 1), (4, 1_000, 4), (7, 3_333, 2), (256, 10_000, 1)])
def test_both_reserve_the_same_for_a_round(court: Court, shards: int, rate: int, slots: int) -> None:
    terms = some_terms(
        shards_per_round=shards, audit_rate_bps=rate, probation_slots=slots, min_shards=1, bond_per_shard=2**95
    )
    if rate == 0:
        assert court.refusal(terms) == "BondTooSmall"
        return
    need = compute_reservation(terms)
    assert court.refusal(terms, need) == ""
    assert court.refusal(terms, need - 1) == "EscrowTooSmall"
