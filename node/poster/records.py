"""What `job watch` tells: one record a closed round, a settled round or a change of the job's state.

Amounts are wei in decimal text, because many JSON readers round large numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from node.poster.money import Money
from protocol.core.audit import CasePhase, Outcome
from protocol.core.claim import ClaimStatus
from protocol.core.job import Job
from protocol.core.round import Round, RoundStatus, bits
from protocol.core.units import format_tokens


class RoundRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`is_drawn`: whether the sample is known. `verdicts`: outcome by shard, "open" while the court sits.

    `loss`: of the checkpoint that the round ended in, in nats a token on the validation split, computed by this program
    from bytes that hash to the digest agreed on chain; none where the spec asks for no measurement, or for the reason
    in `no_loss`.
    """

    number: int
    void: bool
    orphaned: bool
    settled: bool
    is_drawn: bool
    committed: list[int]
    accepted: list[int]
    sampled: list[int]
    paid: list[int]
    unpaid: list[int]
    verdicts: dict[str, str]
    checkpoint: str
    closed_at: int
    loss: float | None = None
    no_loss: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """`kind`: "round" when one closed, "replaced" when a court put another checkpoint in its place, "settled" when its
    last claim was settled, "job" when the state changed; then `obstacles` names the rules that keep people from working
    on it.

    spent + reserved + remaining + refunded = funded in every record, read at `block`.
    """

    kind: str
    job: str
    block: int
    status: str
    reason: str
    checkpoints: int
    funded: str
    spent: str
    reserved: str
    remaining: str
    refunded: str
    obstacles: list[str] = []
    round: RoundRecord | None = None


def round_record(round: Round, loss: float | None = None, no_loss: str = "") -> RoundRecord:
    """A closed round as it is told."""
    shards = {status: [c.shard for c in round.claims if c.status == status] for status in ClaimStatus}
    return RoundRecord(
        number=round.number,
        void=round.voided,
        orphaned=round.status == RoundStatus.ORPHANED,
        settled=round.status == RoundStatus.SETTLED,
        is_drawn=round.draw.drawn,
        committed=bits(round.committed_map),
        accepted=bits(round.accepted_map),
        sampled=bits(round.draw.sampled_map),
        paid=shards[ClaimStatus.PAID],
        unpaid=shards[ClaimStatus.UNPAID],
        verdicts={
            str(shard): _verdict(round, shard) for shard in sorted({*round.cases, *bits(round.draw.sampled_map)})
        },
        checkpoint=round.next.hex() if not round.voided else "",
        closed_at=round.closed_at,
        loss=loss,
        no_loss=no_loss,
    )


def job_record(
    kind: str, job: Job, money: Money, round: RoundRecord | None = None, obstacles: Sequence[str] = ()
) -> Record:
    """The job's state and money, with a round's part if it is about one."""
    return Record(
        kind=kind,
        job=job.job_id.hex(),
        block=money.block,
        status=job.status.name.lower(),
        reason=job.reason.name.lower(),
        checkpoints=job.progress.closed,
        funded=str(money.funded),
        spent=str(money.spent),
        reserved=str(money.reserved),
        remaining=str(money.remaining),
        refunded=str(money.refunded),
        obstacles=list(obstacles),
        round=round,
    )


def show(record: Record) -> str:
    """A line for a person, and one for each obstacle."""
    money = "  ".join(
        f"{name} {format_tokens(int(getattr(record, name)))}" for name in ("spent", "reserved", "remaining", "refunded")
    )
    return "\n".join([f"{_what(record)}  {money}", *(f"  obstacle: {obstacle}" for obstacle in record.obstacles)])


def _what(record: Record) -> str:
    round = record.round
    if round is None:
        reason = f" ({record.reason})" if record.reason != "none" else ""
        return f"job is {record.status}{reason} at checkpoint {record.checkpoints}"
    if round.void:
        return f"round {round.number} is void"
    if round.orphaned:
        return f"round {round.number} is orphaned: a court replaced the checkpoint that it was built on"
    if record.kind == "settled":
        return f"round {round.number} settled  paid {len(round.paid)}  unpaid {len(round.unpaid)}  {_court(round)}"
    loss = f"loss {round.loss:.4f}" if round.loss is not None else f"no loss: {round.no_loss}" if round.no_loss else ""
    accepted = f"accepted {len(round.accepted)}/{len(round.committed)}"
    closed = "closed" if record.kind == "round" else "has another checkpoint"
    return "  ".join(part for part in (f"round {round.number} {closed}", accepted, _court(round), loss) if part)


def _court(round: RoundRecord) -> str:
    if not round.is_drawn:
        return ""
    counts: dict[str, int] = {}
    for verdict in round.verdicts.values():
        counts[verdict] = counts.get(verdict, 0) + 1
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    return f"sampled {len(round.sampled)}" + (f" ({told})" if told else "")


def _verdict(round: Round, shard: int) -> str:
    case = round.cases.get(shard)
    if case is None or case.phase != CasePhase.DONE or case.outcome == Outcome.NONE:
        return "open"
    return case.outcome.name.lower()
