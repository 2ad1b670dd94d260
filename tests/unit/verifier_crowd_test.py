"""Crowds that cost nothing: many shards, many registered names. None of them may stop or stall the honest."""

from __future__ import annotations

from protocol.core.audit import CasePhase
from protocol.core.claim import Claim, ClaimStatus
from protocol.core.round import RoundStatus
from tests.helpers.views import CLOSED_AT, ME, OTHER, a_claim, a_draw, a_job, a_round, an_operator, seen
from verifier.actions import Action, Convene, OnShards, OpenRound, Settle
from verifier.duty import MOST_RANK, SECONDS_PER_RANK, Duty
from verifier.upkeep import MOST_CONVENED, MOST_SETTLED, plan_upkeep

SHARDS = 200


def many(status: ClaimStatus) -> tuple[Claim, ...]:
    return tuple(a_claim(shard, status, by=OTHER, commitment=bytes([shard]) * 31 + b"\1") for shard in range(SHARDS))


def parts(actions: list[Action], kind: type[OnShards]) -> list[tuple[int, ...]]:
    return [action.shards for action in actions if isinstance(action, kind)]


def test_the_cases_of_a_large_round_are_opened_in_transactions_that_fit_a_block() -> None:
    everything = (1 << SHARDS) - 1
    round = a_round(RoundStatus.CLOSED, claims=many(ClaimStatus.ACCEPTED), draw=a_draw(everything))
    opened = parts(plan_upkeep(seen(a_job(round), now=CLOSED_AT + 1)), Convene)
    assert max(map(len, opened)) == MOST_CONVENED
    assert [shard for some in opened for shard in some] == list(range(SHARDS))


def test_a_large_round_is_settled_in_parts() -> None:
    round = a_round(RoundStatus.CLOSED, claims=many(ClaimStatus.ACCEPTED), draw=a_draw())
    settled = parts(plan_upkeep(seen(a_job(round), now=CLOSED_AT + 31)), Settle)
    assert max(map(len, settled)) == MOST_SETTLED
    assert [shard for some in settled for shard in some] == list(range(SHARDS))


def test_a_thousand_names_without_stake_delay_nobody_for_long() -> None:
    now = [0.0]
    crowd = [an_operator(ME), *(an_operator(f"0x{number:040x}") for number in range(1, 1001))]
    duty = Duty(ME, clock=lambda: now[0])
    move = OpenRound(b"\7" * 32)
    duty.choose([move], crowd)
    now[0] = MOST_RANK * SECONDS_PER_RANK
    assert duty.choose([move], crowd) == [move]


def test_no_case_is_opened_twice() -> None:
    from tests.helpers.views import a_case

    cases = {shard: a_case(shard, CasePhase.DONE) for shard in range(SHARDS)}
    everything = (1 << SHARDS) - 1
    round = a_round(RoundStatus.CLOSED, claims=many(ClaimStatus.ACCEPTED), draw=a_draw(everything), cases=cases)
    assert parts(plan_upkeep(seen(a_job(round), now=CLOSED_AT + 1)), Convene) == []
