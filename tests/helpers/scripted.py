"""Whole rounds and whole panels on twins, by script: what chance would seldom bring about."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.core.commitment import Opening
from protocol.core.encoding import keccak
from protocol.core.model import checkpoint_court, findings, rounds
from protocol.core.model.kinds import CasePhase, Finding, RoundStatus, SeatState
from protocol.core.model.records import NOTHING, StepFinding, Terms
from protocol.core.model.terms import reservation
from protocol.core.presets import Rules
from tests.helpers.cast import OPERATORS, OWNERS, POSTER, SALT, TOKEN, opening_of, settle_in
from tests.helpers.twins import STRANGER, Twins

_NO_OPENING = Opening(NOTHING, NOTHING, NOTHING)


def twins_with_a_job(preset: Rules, terms: Terms, paid_rounds: int) -> tuple[Twins, bytes]:
    """A market of rich owners, and a job that is funded for so many rounds."""
    t = Twins(preset, 5_000)
    settle_in(t)
    for owner in OWNERS:
        t.act((owner, "token", "mint", owner, 10**5 * TOKEN), compare=False)
        t.act((owner, "vault", "deposit", owner, 10**5 * TOKEN), compare=False)
    amount = paid_rounds * reservation(terms)
    t.act((POSTER, "token", "mint", POSTER, amount))
    t.act((POSTER, "market", "post", terms, bytes(32), amount, "seed"))
    return t, next(iter(t.world.jobs))


def close_round(
    t: Twins, job: bytes, number: int, trainers: Sequence[int], voters: Sequence[int], bitmap: int, digest: bytes
) -> None:
    """Shard i is trained by the operator with the i-th number; then some attest to that pair, enough to close."""
    terms = t.world.jobs[job].terms
    t.act((STRANGER, "rounds", "open", job), compare=False)
    if len(set(trainers)) < len(trainers):
        t.wait(terms.windows.round // 2 + 1)  # from now on an owner may hold more than its quarter
    base = rounds.round_of(t.world, job, number).base
    for shard, i in enumerate(trainers):
        opening = opening_of(job, number, shard, OPERATORS[i], terms.inner_steps)
        t.act((OPERATORS[i], "rounds", "claim", job, number, [shard]), compare=False)
        t.act((OPERATORS[i], "rounds", "commit", job, number, shard, base, opening), compare=False)
    for i in voters:
        t.act((OPERATORS[i], "rounds", "attest", job, number, base, bitmap, digest), compare=False)
    assert rounds.status_of(t.world, job, number) == RoundStatus.CLOSED


def step_found(bitmap: int, digest: bytes, contested: bytes) -> StepFinding:
    """What a seat of the checkpoint court finds."""
    return StepFinding(False, bitmap, digest, contested, SALT)


def doubt(t: Twins, operator: str, job: bytes, number: int) -> str | None:
    """A challenge of the checkpoint that closed a round: the refusal, if any."""
    r = rounds.round_of(t.world, job, number)
    return t.act((operator, "checkpoints", "challenge", job, number, r.base, r.accepted_map, r.next))


def judge_checkpoint(t: Twins, case: bytes, found: Sequence[StepFinding]) -> None:
    """Seats are drawn for a checkpoint's case; the i-th finds the i-th finding."""
    t.wait(1, 2)
    t.act((STRANGER, "checkpoints", "advance", case))
    for i, operator in _seats(t, case, SeatState.SEATED):
        root = checkpoint_court.root_of(case, i, operator, found[i])
        t.act((operator, "checkpoints", "commitAudit", case, i, root))
    for i, operator in _seats(t, case, SeatState.COMMITTED):
        t.act((operator, "checkpoints", "reveal", case, i, found[i]))


def judge_claim(t: Twins, case: bytes, said: Sequence[Finding]) -> None:
    """The seats that a claim's case has say what needs no trace, the i-th the i-th finding."""
    for i, operator in _seats(t, case, SeatState.SEATED):
        t.act((operator, "court", "commitAudit", case, i, keccak(operator.encode())))
    for i, operator in _seats(t, case, SeatState.COMMITTED):
        shown = findings.Reveal(said[i], 0, SALT, _NO_OPENING)
        t.act((operator, "court", "reveal", case, i, shown))


def finish(t: Twins, court: str, case: bytes) -> None:
    """Time passes until the case is done; whoever is asked for something keeps silent."""
    while t.world.cases[case].phase != CasePhase.DONE:
        t.wait(max(2, t.world.cases[case].phase_ends + 1 - t.block.time), 3)
        t.act((STRANGER, court, "advance", case))


def _seats(t: Twins, case: bytes, state: SeatState) -> list[tuple[int, str]]:
    return [(i, seat.operator) for i, seat in enumerate(t.world.seats[case]) if seat.state == state]
