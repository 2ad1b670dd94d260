"""What an operator does next, rule by rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from node.operator.actions import (
    Attest,
    ClaimShards,
    CommitClaim,
    ComputeNext,
    NodeAction,
    OpenTrace,
    SyncBase,
    Train,
)
from node.operator.planner import OwnState, plan_work, why_idle
from protocol.core.audit import CasePhase
from protocol.core.claim import ClaimStatus
from protocol.core.job import JobStatus
from protocol.core.round import Round, RoundStatus
from protocol.core.units import TOKEN
from tests.helpers.views import (
    CLOSED_AT,
    JOB,
    ME,
    MY_OWNER,
    OPENED_AT,
    OTHER,
    a_case,
    a_claim,
    a_job,
    a_round,
    a_seat,
    an_operator,
    own_state,
    seen,
)

HELD, LAPSED, COMMITTED = ClaimStatus.HELD, ClaimStatus.LAPSED, ClaimStatus.COMMITTED
NEXT = {"bitmap": "3", "digest": "cd" * 32}


def planned(round: Round, own: OwnState | None = None, now: int = OPENED_AT + 10, **terms: Any) -> list[NodeAction]:
    return plan_work(seen(a_job(round, **terms), now=now), {JOB: own or own_state()})


def why(round: Round, own: OwnState | None = None, now: int = OPENED_AT + 10, **terms: Any) -> str:
    """Why nothing is claimed; and then nothing is."""
    reason = why_idle(seen(a_job(round, **terms), now=now), {JOB: own or own_state()})
    claims = [action for action in planned(round, own, now, **terms) if isinstance(action, ClaimShards)]
    assert bool(claims) != bool(reason)
    return reason


# -- claiming ----------------------------------------------------------------------------------------------------------


def test_a_free_shard_of_an_open_round_is_claimed_and_only_one() -> None:
    (action,) = planned(a_round())
    assert isinstance(action, ClaimShards) and len(action.shards) == 1
    assert why(a_round()) == ""


def test_the_base_is_got_before_anything_is_claimed() -> None:
    own = own_state(bases=frozenset())
    assert planned(a_round(), own) == [SyncBase(JOB, 0)]
    assert "base checkpoint" in why(a_round(), own)


@pytest.mark.parametrize("status", [s for s in RoundStatus if s not in (RoundStatus.NONE, RoundStatus.OPEN)])
def test_no_shard_is_claimed_when_no_round_is_open(status: RoundStatus) -> None:
    assert "no round is open" in why(a_round(status))


def test_a_job_without_a_round_says_its_status() -> None:
    assert why_idle(seen(a_job(status=JobStatus.PAUSED)), {JOB: own_state()}) == "the job is paused, no round is open"


def test_an_operator_that_was_told_to_stop_claims_nothing_and_says_why() -> None:
    assert why(a_round(), own_state(stop_claiming="this node is leaving")) == "this node is leaving"


def test_a_barred_owner_claims_nothing() -> None:
    assert "barred" in why(a_round(), own_state(owner={"barred": True}))


def test_a_full_round_leaves_nothing_to_claim() -> None:
    full = a_round(RoundStatus.OPEN, *(a_claim(shard, by=OTHER) for shard in range(4)))
    assert why(full) == "every shard of the round is taken"


def test_no_more_is_claimed_than_can_be_worked_on() -> None:
    one = a_round(RoundStatus.OPEN, a_claim(0))
    assert why(one, own_state(held=1), now=OPENED_AT + 61) == "1 claims are being worked on"
    assert why(one, own_state(held=1, claims_at_once=2), now=OPENED_AT + 61) == ""


def test_until_half_of_the_round_an_owner_takes_a_quarter_of_the_shards() -> None:
    mine = a_round(RoundStatus.OPEN, a_claim(0, COMMITTED))
    assert (
        why(mine, own_state(held=1), now=OPENED_AT + 60) == "the owner holds 1 claims of this round, at most 1 for now"
    )
    assert why(mine, own_state(held=1), now=OPENED_AT + 61) == ""


def test_too_little_stake_says_have_need_and_what_to_do() -> None:
    poor = own_state(owner={"free_stake": 24 * TOKEN})
    assert why(a_round(), poor) == "free stake 24, a claim needs 25: deposit more with `gradmarket stake deposit`"
    assert why(a_round(), own_state(owner={"free_stake": 25 * TOKEN})) == ""


def test_probation_slots_bind_only_those_on_probation() -> None:
    full = replace(a_round(RoundStatus.OPEN, a_claim(0, by=OTHER)), probation_map=1)
    assert "probation slots" in why(full, own_state(owner={"on_probation": True}), probation_slots=1)
    assert why(full, own_state(), probation_slots=1) == ""
    assert why(full, own_state(owner={"on_probation": True}), probation_slots=2) == ""


def test_nothing_is_claimed_that_cannot_be_trained_before_the_round_ends() -> None:
    own = own_state(train_seconds=40.0)
    assert why(a_round(), own, now=OPENED_AT + 40) == ""
    assert why(a_round(), own, now=OPENED_AT + 41) == "a claim would have 79 s, here one takes about 40 s"


def test_nothing_is_claimed_that_takes_longer_than_the_train_window() -> None:
    own = own_state(train_seconds=40.0)
    assert why(a_round(), own, windows={"train": 80}) == ""
    assert "takes about 40 s" in why(a_round(), own, windows={"train": 79})


def test_a_lapsed_shard_is_claimed_by_others_and_not_by_who_let_it_lapse() -> None:
    others = [a_claim(shard, by=OTHER) for shard in (1, 2, 3)]
    theirs = a_round(RoundStatus.OPEN, a_claim(0, LAPSED, by=OTHER), *others)
    assert planned(theirs) == [ClaimShards(JOB, 0, (0,))]
    mine = a_round(RoundStatus.OPEN, a_claim(0, LAPSED), *others)
    assert why(mine) == "every shard of the round is taken"
    twin = a_round(RoundStatus.OPEN, a_claim(0, LAPSED, by=OTHER, owner=MY_OWNER), *others)
    assert why(twin) == "every shard of the round is taken"


def test_two_operators_choose_different_shards_and_each_always_the_same() -> None:
    def choice(me: str) -> tuple[int, ...]:
        (action,) = plan_work(seen(a_job(a_round()), me=me), {JOB: own_state()})
        assert isinstance(action, ClaimShards)
        return action.shards

    assert choice(ME) == choice(ME) != choice(OTHER)


def test_as_many_operators_as_shards_take_all_of_them() -> None:
    operators = [an_operator(f"0x{number:040x}") for number in range(1, 5)]
    snapshot = seen(a_job(a_round()), operators=operators)
    chosen: set[int] = set()
    for operator in operators:
        (action,) = plan_work(replace(snapshot, me=operator.address), {JOB: own_state()})
        assert isinstance(action, ClaimShards)
        chosen.update(action.shards)
    assert chosen == {0, 1, 2, 3}


def test_another_base_ranks_the_operators_anew() -> None:
    operators = [an_operator(f"0x{number:040x}") for number in range(1, 5)]
    choices: set[int] = set()
    for digest in range(40):
        snapshot = seen(a_job(a_round(base=bytes([digest]) * 32)), operators=operators, me=operators[0].address)
        (action,) = plan_work(snapshot, {JOB: own_state()})
        assert isinstance(action, ClaimShards)
        choices.update(action.shards)
    assert choices == {0, 1, 2, 3}


def test_a_job_that_this_node_does_not_follow_is_left_alone() -> None:
    assert plan_work(seen(a_job(a_round())), {}) == []
    assert why_idle(seen(a_job(a_round())), {}) == "no job is open"


def test_one_open_job_is_enough_to_be_busy() -> None:
    second = b"\xcd" * 32
    snapshot = seen(a_job(a_round()), a_job(status=JobStatus.PAUSED, job_id=second))
    assert why_idle(snapshot, {JOB: own_state(), second: own_state()}) == ""
    stopped = own_state(stop_claiming="no gas")
    reasons = why_idle(snapshot, {JOB: stopped, second: stopped})
    assert reasons == "no gas; the job is paused, no round is open"


# -- training and committing -------------------------------------------------------------------------------------------


def test_a_held_claim_is_trained() -> None:
    assert planned(a_round(RoundStatus.OPEN, a_claim(2))) == [Train(JOB, 0, 2)]


def test_a_stored_result_is_committed_and_never_trained_again() -> None:
    own = own_state(results=frozenset({(0, 2)}))
    assert planned(a_round(RoundStatus.OPEN, a_claim(2)), own) == [CommitClaim(JOB, 0, 2)]


def test_the_result_of_another_round_is_not_this_rounds() -> None:
    own = own_state(results=frozenset({(1, 2), (0, 1)}))
    assert planned(a_round(RoundStatus.OPEN, a_claim(2)), own) == [Train(JOB, 0, 2)]


@pytest.mark.parametrize("status", [LAPSED, COMMITTED])
def test_a_claim_that_is_over_is_neither_trained_nor_committed(status: ClaimStatus) -> None:
    full = a_round(RoundStatus.OPEN, a_claim(0, status), *(a_claim(shard, by=OTHER) for shard in (1, 2, 3)))
    assert planned(full, own_state(results=frozenset({(0, 0)}))) == []


def test_another_operators_claim_is_not_ours_to_train() -> None:
    full = a_round(RoundStatus.OPEN, *(a_claim(shard, by=OTHER) for shard in range(4)))
    assert planned(full) == []


# -- attesting ---------------------------------------------------------------------------------------------------------


def sealed(status: RoundStatus = RoundStatus.SEALED, **changes: Any) -> Round:
    return replace(a_round(status, a_claim(0, COMMITTED), a_claim(1, COMMITTED, by=OTHER)), **changes)


def test_after_the_seal_the_next_checkpoint_is_computed_from_what_can_be_fetched() -> None:
    assert planned(sealed()) == [ComputeNext(JOB, 0, None)]


def test_what_was_computed_is_attested_once() -> None:
    own = own_state(nexts={0: NEXT})
    assert planned(sealed(), own) == [Attest(JOB, 0, 3, "cd" * 32)]
    assert planned(sealed(), own_state(nexts={0: NEXT}, attested=True)) == []


def test_an_owner_speaks_through_any_of_its_operators_and_once() -> None:
    twin = a_round(RoundStatus.SEALED, a_claim(0, COMMITTED, by=OTHER, owner=MY_OWNER))
    own = own_state(nexts={0: NEXT})
    assert planned(twin, own) == [Attest(JOB, 0, 3, "cd" * 32)]
    assert planned(twin, replace(own, attested=True)) == []


def test_without_a_commitment_there_is_no_say() -> None:
    assert planned(a_round(RoundStatus.SEALED, a_claim(0, COMMITTED, by=OTHER))) == []


def test_without_the_base_nothing_is_attested() -> None:
    assert planned(sealed(), own_state(bases=frozenset())) == []


def test_after_the_tally_the_step_is_taken_again_only_if_the_bitmap_differs() -> None:
    own = own_state(nexts={0: NEXT})
    assert planned(sealed(RoundStatus.TALLIED, accepted_map=1), own) == [ComputeNext(JOB, 0, 1)]
    assert planned(sealed(RoundStatus.TALLIED, accepted_map=3), own) == [Attest(JOB, 0, 3, "cd" * 32)]
    assert planned(sealed(RoundStatus.TALLIED, accepted_map=1)) == [ComputeNext(JOB, 0, 1)]


def test_an_empty_tally_is_a_bitmap_like_any_other() -> None:
    assert planned(sealed(RoundStatus.TALLIED, accepted_map=0), own_state(nexts={0: NEXT})) == [ComputeNext(JOB, 0, 0)]


def test_the_keys_tell_one_step_from_another() -> None:
    keys = {ComputeNext(JOB, 0, None).key, ComputeNext(JOB, 0, 0).key, ComputeNext(JOB, 0, 1).key}
    keys |= {Train(JOB, 0, 0).key, Train(JOB, 0, 1).key, Train(JOB, 1, 0).key, CommitClaim(JOB, 0, 0).key}
    assert len(keys) == 7


# -- traces on demand --------------------------------------------------------------------------------------------------


def demanded(**changes: Any) -> Round:
    case = a_case(0, CasePhase.REVEALING, a_seat(OTHER), **({"demanded_at": CLOSED_AT + 20} | changes))
    return a_round(RoundStatus.CLOSED, a_claim(0, ClaimStatus.ACCEPTED), cases={0: case})


def test_a_demanded_trace_is_opened_while_it_can_be() -> None:
    own = own_state(results=frozenset({(0, 0)}))
    assert planned(demanded(), own, now=CLOSED_AT + 40) == [OpenTrace(JOB, 0, 0)]
    assert planned(demanded(), own, now=CLOSED_AT + 41) == []


def test_a_trace_that_nobody_demanded_or_that_is_open_is_not_opened() -> None:
    own = own_state(results=frozenset({(0, 0)}))
    assert planned(demanded(demanded_at=0), own, now=CLOSED_AT + 30) == []
    assert planned(demanded(opened=True), own, now=CLOSED_AT + 30) == []


def test_a_trace_that_is_not_ours_or_not_at_hand_cannot_be_opened() -> None:
    assert planned(demanded(), own_state(), now=CLOSED_AT + 30) == []
    theirs = replace(demanded(), claims=(a_claim(0, ClaimStatus.ACCEPTED, by=OTHER),))
    assert planned(theirs, own_state(results=frozenset({(0, 0)})), now=CLOSED_AT + 30) == []
