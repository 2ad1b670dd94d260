"""What seats, challengers and appellants may try next; see `moves`."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from protocol.core.commitment import Opening
from protocol.core.model import chance, checkpoint_court, findings, rounds
from protocol.core.model.kinds import CaseKind, CasePhase, ClaimStatus, Finding, Outcome, RoundStatus, SeatState
from protocol.core.model.records import NOTHING, Case, StepFinding
from protocol.core.model.refusals import Refusal
from protocol.core.trace import Seat as TraceSeat
from protocol.core.trace import TraceRow, audit_proof, audit_root, trace_proof
from tests.helpers.cast import OPERATORS, SALT, deviation_of, dice_of, opening_of, step_from, trace
from tests.helpers.moves import Call, a_round_in, move, shards_of, someone
from tests.helpers.twins import STRANGER, Twins

_NO_OPENING = Opening(NOTHING, NOTHING, NOTHING)
_OPEN = (CasePhase.SEATING, CasePhase.COMMITTING, CasePhase.REVEALING, CasePhase.APPEALABLE)
_JUDGED = (Finding.MATCH, Finding.FRAUD, Finding.REJECT, Finding.UNAVAILABLE_INPUTS, Finding.FRAUD)
_ALL = (*Finding, Finding.MATCH, Finding.FRAUD)


def a_case_in(t: Twins, dice: Random, *phases: CasePhase) -> tuple[str, bytes]:
    """A case in one of these phases and its court, or any other where there is none."""
    fitting = [case for case, c in t.world.cases.items() if c.phase in phases]
    timely = [case for case in fitting if t.block.time <= t.world.cases[case].phase_ends]
    fitting = timely if timely and dice.random() < 0.9 else fitting
    known = fitting if fitting and dice.random() < 0.95 else [*t.world.cases, b"\x03" * 32]
    case = dice.choice(known)
    is_checkpoint = t.world.cases.get(case, Case()).kind == CaseKind.CHECKPOINT
    return ("checkpoints" if is_checkpoint != (dice.random() < 0.02) else "court"), case


@move
def convene(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.CLOSED)
    sampled = rounds.draw_of(t.world, job, number).sampled_map
    for shard in list(chance.bits(sampled)) or [0]:
        if dice.random() < 0.8:
            yield someone(t, dice), "court", "convene", job, number, [shard]
    if dice.random() < 0.1:
        yield STRANGER, "court", "convene", job, number, [dice.choice((0, 1, 255, 256))]


@move
def challenge(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.CLOSED)
    sampled = rounds.draw_of(t.world, job, number).sampled_map
    shards = [s for s in shards_of(t, job) if not sampled >> s & 1] or [0]
    shard = dice.choice(shards) if dice.random() < 0.9 else dice.choice((0, 300))
    commitment = dice.randbytes(32) if dice.random() < 0.05 else rounds.claim_of(t.world, job, number, shard).commitment
    yield dice.choice((*OPERATORS, STRANGER)), "court", "challenge", job, number, shard, commitment


@move
def demand_audit(t: Twins, dice: Random) -> Iterator[Call]:
    excluded = [key for key in t.world.claims if rounds.claim_status(t.world, *key) == ClaimStatus.EXCLUDED]
    key = dice.choice(excluded) if excluded else (*a_round_in(t, dice, RoundStatus.VOID), 0)
    operator = rounds.claim_of(t.world, *key).operator
    yield operator if dice.random() < 0.9 else someone(t, dice), "court", "demandAudit", *key


@move
def doubt_checkpoint(t: Twins, dice: Random) -> Iterator[Call]:
    job, number = a_round_in(t, dice, RoundStatus.CLOSED)
    r = rounds.round_of(t.world, job, number)
    attested: list[bytes | int] = [r.base, r.accepted_map, r.next]
    if dice.random() < 0.1:
        wrong = dice.randrange(3)
        attested[wrong] = (r.next, r.accepted_map ^ 1, r.base)[wrong]
    yield dice.choice((*OPERATORS, STRANGER)), "checkpoints", "challenge", job, number, *attested


@move
def commit_audit(t: Twins, dice: Random) -> Iterator[Call]:
    court, case = a_case_in(t, dice, CasePhase.COMMITTING)
    count = len(t.world.seats.get(case, ()))
    yield _commit(t, dice, court, case, dice.randrange(count + 1), honest=False)


@move
def commit_audits(t: Twins, dice: Random) -> Iterator[Call]:
    court, case = a_case_in(t, dice, CasePhase.COMMITTING)
    for i, seat in enumerate(t.world.seats.get(case, ())):
        if seat.state == SeatState.SEATED and dice.random() < 0.95:
            yield _commit(t, dice, court, case, i, honest=True)


def _commit(t: Twins, dice: Random, court: str, case: bytes, i: int, *, honest: bool) -> Call:
    operator = _operator(t, case, i)
    c = t.world.cases.get(case, Case())
    if court == "checkpoints" and c.kind == CaseKind.CHECKPOINT:
        root = checkpoint_court.root_of(case, i, operator, _step_finding(t, case, i))
    elif c.job in t.world.jobs:
        root = audit_root(_own_rows(t, c), TraceSeat(case, i, operator, SALT))
    else:
        root = NOTHING
    if not honest and dice.random() < 0.4:
        root, operator = dice.choice((NOTHING, root, b"\x05" * 32)), dice.choice((operator, someone(t, dice)))
    return operator, court, "commitAudit", case, i, root


@move
def reveal(t: Twins, dice: Random) -> Iterator[Call]:
    court, case = a_case_in(t, dice, CasePhase.REVEALING)
    i = dice.randrange(len(t.world.seats.get(case, ())) + 1)
    if court == "checkpoints":
        yield _reveal_step(t, dice, case, i)
    else:
        yield _reveal(t, dice, case, i, dice.choice(_ALL))


@move
def reveals(t: Twins, dice: Random) -> Iterator[Call]:
    """Everybody who still can, mostly of the same mind."""
    court, case = a_case_in(t, dice, CasePhase.REVEALING)
    mood = _JUDGED[dice_of(t.setting, case, "mood", t.world.cases.get(case, Case()).level) % len(_JUDGED)]
    for i, seat in enumerate(t.world.seats.get(case, ())):
        if seat.state != SeatState.COMMITTED or dice.random() < 0.04:
            continue
        if court == "checkpoints":
            yield _reveal_step(t, dice, case, i)
        else:
            yield _reveal(t, dice, case, i, mood if dice.random() < 0.8 else dice.choice(_ALL))


def _operator(t: Twins, case: bytes, i: int) -> str:
    seats = t.world.seats.get(case, ())
    return seats[i].operator if i < len(seats) else STRANGER


def _own_rows(t: Twins, c: Case) -> tuple[TraceRow, ...]:
    return trace(c.job, c.round, c.shard, t.world.jobs[c.job].terms.inner_steps)


def _reveal(t: Twins, dice: Random, case: bytes, i: int, finding: Finding) -> Call:
    operator, c = _operator(t, case, i), t.world.cases.get(case, Case())
    if finding not in (Finding.MATCH, Finding.REJECT, Finding.FRAUD) or c.job not in t.world.jobs:
        return operator, "court", "reveal", case, i, findings.Reveal(finding, 0, SALT, _NO_OPENING)
    steps = t.world.jobs[c.job].terms.inner_steps
    claim = rounds.claim_of(t.world, c.job, c.round, c.shard)
    opened = _steps(t, case, c, steps)
    own, place = _own_rows(t, c), TraceSeat(case, i, operator, SALT)
    shown = tuple((own[step - 1], audit_proof(own, place, step)) for step in opened)
    theirs: tuple[findings.RowOpening, ...] = ()
    if finding == Finding.MATCH:
        deviation = deviation_of(c.job, c.round, c.shard, claim.operator)
        rows = trace(c.job, c.round, c.shard, steps, deviation)
        theirs = tuple((rows[step - 1], trace_proof(rows, step)) for step in opened)
    opening = opening_of(c.job, c.round, c.shard, claim.operator, steps)
    if dice.random() < 0.05:  # something is missing, or not what was committed
        shown, theirs = dice.choice(((shown[:2], theirs), (shown[::-1], theirs), (shown, theirs[:1]), (shown, shown)))
    if dice.random() < 0.03:
        opening = _NO_OPENING
    return operator, "court", "reveal", case, i, findings.Reveal(finding, opened[0], SALT, opening, shown, theirs)


def _steps(t: Twins, case: bytes, c: Case, steps: int) -> list[int]:
    try:
        seed = c.seed if c.seed != NOTHING else chance.seed_of(t.world, c.beacon_ticket)
    except Refusal:
        seed = NOTHING
    return findings.steps_of(seed, case, steps)


def _step_finding(t: Twins, case: bytes, i: int) -> StepFinding:
    """What a seat makes of the outer step: mostly what its case's panel makes of it."""
    c = t.world.cases[case]
    r = rounds.round_of(t.world, c.job, c.round)
    is_own = dice_of(t.setting, case, i, "own mind") % 6 == 0
    mind = dice_of(t.setting, case, i if is_own else "mind")  # a job's first case has the same id in every play
    other, truth = r.committed_map, step_from(r.base, r.accepted_map)
    return (
        StepFinding(False, r.accepted_map, truth, truth, SALT),
        StepFinding(False, r.accepted_map, truth, truth, SALT),
        StepFinding(False, other, step_from(r.base, other), truth, SALT),
        StepFinding(False, r.accepted_map, r.next, r.next, SALT),
        StepFinding(False, other ^ 1, step_from(truth, 3), NOTHING, SALT),
        StepFinding(True, 0, NOTHING, NOTHING, SALT),
        StepFinding(False, 1 << 250, truth, truth, SALT),
        StepFinding(False, r.accepted_map, truth, NOTHING, SALT),
    )[mind % (8 if is_own else 4)]


def _reveal_step(t: Twins, dice: Random, case: bytes, i: int) -> Call:
    found = StepFinding(True, 0, NOTHING, NOTHING, SALT)
    if case in t.world.cases:
        found = _step_finding(t, case, i)
    operator = _operator(t, case, i) if dice.random() < 0.97 else someone(t, dice)
    return operator, "checkpoints", "reveal", case, i, found


@move
def demand_trace(t: Twins, dice: Random) -> Iterator[Call]:
    _, case = a_case_in(t, dice, CasePhase.REVEALING)
    seats = t.world.seats.get(case, ())
    caller = dice.choice(seats).operator if seats and dice.random() < 0.9 else someone(t, dice)
    yield caller, "court", "demandTrace", case


@move
def open_trace(t: Twins, dice: Random) -> Iterator[Call]:
    demanded = [case for case, c in t.world.cases.items() if c.demanded_at and not c.opened]
    case = dice.choice(demanded) if demanded else a_case_in(t, dice, *_OPEN)[1]
    c = t.world.cases.get(case, Case())
    if c.job not in t.world.jobs:
        return
    steps = t.world.jobs[c.job].terms.inner_steps
    operator = rounds.claim_of(t.world, c.job, c.round, c.shard).operator
    rows = trace(c.job, c.round, c.shard, steps, deviation_of(c.job, c.round, c.shard, operator))
    opening = opening_of(c.job, c.round, c.shard, operator, steps)
    if dice.random() < 0.15:
        rows = dice.choice((rows[1:], rows[::-1]))
    if dice.random() < 0.05:
        opening = _NO_OPENING
    yield someone(t, dice), "court", "openTrace", case, opening, rows


@move
def advance_case(t: Twins, dice: Random) -> Iterator[Call]:
    late = [case for case, c in t.world.cases.items() if c.phase in _OPEN[1:] and t.block.time > c.phase_ends]
    court, case = a_case_in(t, dice, CasePhase.SEATING)
    if late and (dice.random() < 0.7 or t.world.cases.get(case, Case()).phase != CasePhase.SEATING):
        case = dice.choice(late)
        court = "checkpoints" if t.world.cases[case].kind == CaseKind.CHECKPOINT else "court"
    yield someone(t, dice), court, "advance", case


@move
def appeal(t: Twins, dice: Random) -> Iterator[Call]:
    court, case = a_case_in(t, dice, CasePhase.APPEALABLE)
    yield dice.choice((*OPERATORS, STRANGER)), court, "appeal", case


@move
def distribute(t: Twins, dice: Random) -> Iterator[Call]:
    convicting = [
        case
        for case, c in t.world.cases.items()
        if c.kind == CaseKind.CHECKPOINT and c.outcome == Outcome.FRAUD and t.world.pots.get(case)
    ]
    case = dice.choice(convicting) if convicting else a_case_in(t, dice, CasePhase.DONE)[1]
    yield someone(t, dice), "checkpoints", "distribute", case
