"""A job whose early checkpoint is replaced after many rounds were built on it still comes to its end."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from protocol.core.encoding import keccak
from protocol.core.model import case_ids, jobs, rounds
from protocol.core.model.kinds import Outcome, RoundStatus
from tests.helpers.cast import ALL_AUDITED, OPERATORS, TRUSTING
from tests.helpers.moves import MOVES
from tests.helpers.scripted import close_round, doubt, finish, judge_checkpoint, step_found, twins_with_a_job
from tests.helpers.twins import STRANGER, Twins

ORPHANS = 65  # one call of `settle` looks at 64 rounds
ALL = 0b1111


def _close(t: Twins, job: bytes, number: int) -> None:
    close_round(t, job, number, trainers=range(4), voters=range(3), bitmap=ALL, digest=keccak(b"lie %d" % number))


@pytest.mark.slow
def test_a_round_after_many_orphans_is_settled() -> None:
    t, job = twins_with_a_job(TRUSTING, replace(ALL_AUDITED, rounds=200), ORPHANS + 3)
    _close(t, job, 0)
    doubt(t, OPERATORS[7], job, 0)
    for number in range(1, ORPHANS + 1):
        _close(t, job, number)
    case, truth = case_ids.of_checkpoint(job, 0), keccak(b"truth")
    judge_checkpoint(t, case, [step_found(ALL, truth, truth)] * TRUSTING.slash_panel)
    finish(t, "checkpoints", case)
    assert t.world.cases[case].outcome == Outcome.FRAUD
    last = ORPHANS + 1
    for number in range(1, last):
        assert t.act((STRANGER, "rounds", "settle", job, number, [0, 1, 2, 3]), compare=False) is None
    _close(t, job, last)
    t.wait(ALL_AUDITED.windows.challenge + 1, 3)
    counted = jobs.progress_of(t.world, job).final_rounds
    assert t.act((STRANGER, "rounds", "settle", job, last, [])) is None  # settles nothing, and counts
    assert jobs.progress_of(t.world, job).final_rounds == counted + 64
    for _ in range(60):
        t.wait(61, 3)
        for call in MOVES["upkeep"](t, Random(0)):
            t.act(call, compare=False)
    assert rounds.status_of(t.world, job, last) == RoundStatus.SETTLED
