"""Which claims an auditor checks of its own accord."""

from __future__ import annotations

from protocol.core.audit import CasePhase
from protocol.core.claim import ClaimStatus
from protocol.core.operator import FOREVER, Operator, Scope
from protocol.core.round import Round, RoundStatus
from tests.helpers.views import (
    CLOSED_AT,
    JOB,
    ME,
    MY_OWNER,
    OTHER,
    OTHER_OWNER,
    a_case,
    a_claim,
    a_draw,
    a_job,
    a_round,
    seen,
)
from verifier.actions import ChallengeClaim, ChallengeStep, Recheck, RecheckStep
from verifier.records import step_check_key
from verifier.sampler import plan_sampling, plan_steps
from verifier.snapshot import Snapshot

SECRET = b"s" * 32
RICH = {JOB: 10**30}
FALSE = {"finding": "fraud", "tests": [], "step": 4}


def a_closed_round(**changes: object) -> Round:
    claims = [a_claim(shard, ClaimStatus.ACCEPTED, by=OTHER) for shard in range(4)]
    return a_round(RoundStatus.CLOSED, *claims, **changes)


def known(round: Round, now: int = CLOSED_AT + 5) -> Snapshot:
    keys = [(ME, MY_OWNER), (OTHER, OTHER_OWNER)]
    url = "http://127.0.0.1:1"
    operators = [Operator(k, o, Scope.ALL, FOREVER, False, o, bytes(32), bytes(32), url) for k, o in keys]
    return seen(a_job(round), now=now, operators=operators)


def shards(actions: list[Recheck | ChallengeClaim]) -> list[int]:
    return [action.shard for action in actions]


def test_all_unsampled_claims_of_others_are_checked_at_rate_one() -> None:
    plan = plan_sampling(known(a_closed_round(draw=a_draw(0b0010))), 1.0, SECRET, {}, RICH)
    assert shards(plan) == [0, 2, 3]
    assert all(isinstance(action, Recheck) for action in plan)


def test_nothing_is_checked_at_rate_zero() -> None:
    assert plan_sampling(known(a_closed_round()), 0.0, SECRET, {}, RICH) == []


def test_about_the_asked_share_is_checked_and_another_secret_checks_others() -> None:
    rounds = [a_closed_round() for _ in range(50)]
    chosen: list[set[tuple[int, int]]] = []
    for secret in (b"a", b"b"):
        found = set()
        for number, round in enumerate(rounds):
            claims = [a_claim(s, ClaimStatus.ACCEPTED, by=OTHER, commitment=bytes([number, s]) * 16) for s in range(4)]
            numbered = a_round(RoundStatus.CLOSED, *claims, number=number)
            found |= {(number, shard) for shard in shards(plan_sampling(known(numbered), 0.3, secret, {}, RICH))}
            assert round.closed_at == numbered.closed_at
        chosen.append(found)
    assert all(35 < len(found) < 90 for found in chosen)
    assert chosen[0] != chosen[1]


def test_own_claims_and_claims_before_the_court_are_left_alone() -> None:
    mine = a_claim(0, ClaimStatus.ACCEPTED, by=ME)
    others = [a_claim(shard, ClaimStatus.ACCEPTED, by=OTHER) for shard in (1, 2)]
    round = a_round(RoundStatus.CLOSED, mine, *others, cases={1: a_case(1, CasePhase.COMMITTING)})
    assert shards(plan_sampling(known(round), 1.0, SECRET, {}, RICH)) == [2]


def test_a_false_claim_is_challenged_until_the_last_second_of_the_window() -> None:
    round = a_closed_round()
    checked = {round.claims[2].commitment.hex(): FALSE}
    for late, expected in ((0, [2]), (1, [])):
        plan = plan_sampling(known(round, CLOSED_AT + 30 + late), 0.0, SECRET, checked, RICH)
        assert shards(plan) == expected
        assert all(isinstance(action, ChallengeClaim) for action in plan)


def test_a_claim_that_only_misses_the_accept_line_is_not_challenged() -> None:
    round = a_closed_round()
    checked = {round.claims[2].commitment.hex(): FALSE | {"finding": "reject"}}
    assert plan_sampling(known(round), 0.0, SECRET, checked, RICH) == []


def test_no_challenge_is_sent_that_the_stake_does_not_cover() -> None:
    round = a_closed_round()
    checked = {round.claims[2].commitment.hex(): FALSE}
    fee = a_job(round).terms.audit_fee
    assert plan_sampling(known(round), 0.0, SECRET, checked, {JOB: 7 * fee - 1}) == []
    assert shards(plan_sampling(known(round), 0.0, SECRET, checked, {JOB: 7 * fee})) == [2]


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_every_checkpoint_is_recomputed_while_it_can_be_challenged() -> None:
    round = a_closed_round(draw=a_draw(drawn=False))
    assert plan_steps(known(round, CLOSED_AT + 30), {}, RICH) == [RecheckStep(JOB, 0)]
    assert plan_steps(known(round, CLOSED_AT + 31), {}, RICH) == []


def test_only_a_closed_round_without_a_case_is_looked_at() -> None:
    for status in (RoundStatus.OPEN, RoundStatus.SEALED, RoundStatus.VOID, RoundStatus.ORPHANED, RoundStatus.SETTLED):
        assert plan_steps(known(a_round(status)), {}, RICH) == []
    doubted = a_closed_round(doubt=a_case(0, CasePhase.COMMITTING))
    assert plan_steps(known(doubted), {}, RICH) == []


def test_a_false_checkpoint_is_challenged_once_the_stake_covers_the_bond() -> None:
    round = a_closed_round()
    checked = {step_check_key(JOB, round): {"finding": "false"}}
    fee = a_job(round).terms.audit_fee
    assert plan_steps(known(round), checked, {JOB: 7 * fee - 1}) == []
    assert plan_steps(known(round), checked, {JOB: 7 * fee}) == [ChallengeStep(JOB, 0)]


def test_a_right_checkpoint_is_left_and_one_that_took_its_place_is_looked_at_anew() -> None:
    round = a_closed_round()
    checked = {step_check_key(JOB, round): {"finding": "match"}}
    assert plan_steps(known(round), checked, RICH) == []
    assert plan_steps(known(a_closed_round(next=b"other" * 6 + b"!!")), checked, RICH) == [RecheckStep(JOB, 0)]
