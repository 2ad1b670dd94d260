"""Records of `job watch`: money that adds up, in words and in JSON."""

from __future__ import annotations

import json

import msgspec
import pytest

from node.poster.errors import BooksDisagree
from node.poster.money import Money
from node.poster.records import RoundRecord, job_record, show
from protocol.core.job import Job, JobStatus, PauseReason, Progress
from protocol.core.units import TOKEN

JOB = Job(
    job_id=b"\7" * 32,
    status=JobStatus.PAUSED,
    reason=PauseReason.ESCROW,
    escrow=TOKEN,
    funded=10 * TOKEN,
    refunded=0,
    progress=Progress(
        opened=2, closed=2, unsettled=1, void_streak=0, moved_at=5, final_rounds=0, generation=0, active=False
    ),
    rounds=(),
)
MONEY = Money(block=9, funded=10 * TOKEN, spent=4 * TOKEN + 1, reserved=5 * TOKEN - 1, remaining=TOKEN, refunded=0)


def a_round(**changes: object) -> RoundRecord:
    fields: dict[str, object] = {
        "number": 1,
        "void": False,
        "orphaned": False,
        "settled": False,
        "is_drawn": True,
        "committed": [0, 1],
        "accepted": [0, 1],
        "sampled": [1],
        "paid": [],
        "unpaid": [],
        "verdicts": {"1": "open"},
        "checkpoint": "ab" * 32,
        "closed_at": 7,
        "loss": 4.25,
    }
    return RoundRecord(**fields | changes)  # type: ignore[arg-type]


def test_money_that_does_not_add_up_is_an_error_with_every_number() -> None:
    MONEY.check(JOB.job_id)
    lost = Money(9, 10, 1, 2, 3, 3)
    with pytest.raises(BooksDisagree, match=r"at block 9: funded 10 wei, found 9 \(1 spent, 2 reserved, 3 remaining"):
        lost.check(JOB.job_id)


def test_amounts_are_exact_wei_in_text() -> None:
    record = json.loads(msgspec.json.encode(job_record("round", JOB, MONEY, a_round())))
    assert record["spent"] == "4000000000000000001" and record["status"] == "paused" and record["reason"] == "escrow"
    assert sum(int(record[name]) for name in ("spent", "reserved", "remaining", "refunded")) == int(record["funded"])


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (
            job_record("round", JOB, MONEY, a_round()),
            "round 1 closed  accepted 2/2  sampled 1 (1 open)  loss 4.2500  spent",
        ),
        (job_record("round", JOB, MONEY, a_round(loss=None, no_loss="gone")), "no loss: gone"),
        (job_record("round", JOB, MONEY, a_round(is_drawn=False)), "accepted 2/2  loss 4.2500"),
        (job_record("round", JOB, MONEY, a_round(void=True)), "round 1 is void  spent"),
        (job_record("replaced", JOB, MONEY, a_round()), "round 1 has another checkpoint  accepted 2/2"),
        (job_record("settled", JOB, MONEY, a_round(orphaned=True)), "round 1 is orphaned: a court replaced"),
        (
            job_record("settled", JOB, MONEY, a_round(paid=[0], unpaid=[1], verdicts={"1": "fraud"})),
            "round 1 settled  paid 1  unpaid 1  sampled 1 (1 fraud)  spent 4.000000000000000001",
        ),
        (job_record("job", JOB, MONEY), "job is paused (escrow) at checkpoint 2  spent"),
        (job_record("job", JOB, MONEY, obstacles=["nobody can claim"]), "\n  obstacle: nobody can claim"),
    ],
)
def test_each_record_is_a_line_for_a_person(record: object, words: str) -> None:
    assert words in show(record)  # type: ignore[arg-type]
