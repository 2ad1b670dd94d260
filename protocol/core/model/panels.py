"""A case from its first draw to its verdict. It runs in cycles: seats are drawn, they commit, they reveal; the silent
are drawn again, twice at most; then the level is decided. Levels: 1 seat, 3, the slash panel, the appeal panel.
"""

from __future__ import annotations

from dataclasses import replace

from protocol.core.model import pay, registry, seats, tickets
from protocol.core.model.courts import Court
from protocol.core.model.kinds import CaseKind, CasePhase, Finding, Outcome, SeatState
from protocol.core.model.records import NOBODY, NOTHING, Case, Seat
from protocol.core.model.refusals import (
    CaseExists,
    NoFinding,
    NoFreeTicket,
    NoSuchCase,
    NotTheSeat,
    PhaseOver,
    PhaseRunning,
    SeatDone,
    WrongPhase,
    ZeroRoot,
)
from protocol.core.model.seats import PANEL_LEVEL, TRIES_PER_CALL, seats_in, store_seat
from protocol.core.model.world import World
from protocol.core.operator import Scope

CHALLENGE_FEES = 7
APPEAL_FEES = 14


def open_case(w: World, case: bytes, kind: CaseKind, job: bytes, number: int, shard: int, accused: str) -> None:
    """Begin a case, once."""
    if case in w.cases:
        raise CaseExists(case)
    w.cases[case] = Case(job=job, round=number, shard=shard, kind=kind, accused=accused)
    w.seats[case] = ()


def check_phase(w: World, c: Case, need: CasePhase) -> None:
    """Refuse a call that belongs to another phase, or comes too late for this one."""
    if c.phase != need:
        raise WrongPhase(c.phase, need)
    if w.now > c.phase_ends:
        raise PhaseOver(w.now, c.phase_ends)


def seat_of(w: World, court: Court, caller: str, case: bytes, seat: int, phase: CasePhase, state: SeatState) -> Seat:
    """The caller's seat, if it is its turn."""
    check_phase(w, court.case_of(w, case), phase)
    if seat >= len(w.seats[case]):
        raise NotTheSeat(caller, NOBODY)
    s = w.seats[case][seat]
    if s.operator != caller:
        raise NotTheSeat(caller, s.operator)
    if s.state != state:
        raise SeatDone(seat)
    return s


# -------------------------------------------------------------- seating, commit, reveal


def fill(w: World, court: Court, case: bytes) -> None:
    """Draw for every empty seat, as far as one call goes; when all are decided, let them commit."""
    if not seats.fetch_seed(w, case):
        return
    budget = TRIES_PER_CALL
    for i in seats_in(w, case, SeatState.EMPTY):
        before, budget = budget, seats.draw_seat(w, court, case, i, budget)
        if w.seats[case][i].state != SeatState.EMPTY:
            continue
        if before == TRIES_PER_CALL and seats.is_waiting(w, case):
            raise NoFreeTicket(case, w.cases[case].phase_ends)
        return
    _start_commit(w, court, case)


def _start_commit(w: World, court: Court, case: bytes) -> None:
    if not seats_in(w, case, SeatState.SEATED):
        return decide(w, court, case)  # nobody could be found
    c = w.cases[case]
    ends = w.now + w.jobs[c.job].terms.windows.audit_commit
    w.cases[case] = replace(c, phase=CasePhase.COMMITTING, phase_ends=ends, seed=NOTHING)
    return None


def commit_audit(w: World, court: Court, caller: str, case: bytes, seat: int, root: bytes) -> None:
    """Commit to a finding. The seat's operator, once; the last one starts the reveal phase."""
    s = seat_of(w, court, caller, case, seat, CasePhase.COMMITTING, SeatState.SEATED)
    if root == NOTHING:
        raise ZeroRoot
    store_seat(w, case, seat, replace(s, root=root, state=SeatState.COMMITTED))
    if not seats_in(w, case, SeatState.SEATED):
        _start_reveal(w, case)


def _start_reveal(w: World, case: bytes) -> None:
    seats.pin(w, case)  # what the seats show must not be known while they commit
    c = w.cases[case]
    ends = w.now + w.jobs[c.job].terms.windows.audit_reveal
    w.cases[case] = replace(c, phase=CasePhase.REVEALING, phase_ends=ends)


def revealed(w: World, court: Court, case: bytes, seat: int, finding: Finding) -> None:
    """A seat has said what it found; the last one ends the cycle."""
    if finding == Finding.NONE:
        raise NoFinding
    store_seat(w, case, seat, replace(w.seats[case][seat], finding=finding, state=SeatState.REVEALED))
    if not seats_in(w, case, SeatState.COMMITTED):
        _end_cycle(w, court, case)


# -------------------------------------------------------------- time


def advance(w: World, court: Court, case: bytes) -> None:
    """Do what time demands of a case. Anyone."""
    c = court.case_of(w, case)
    if c.phase in (CasePhase.NONE, CasePhase.DONE):
        raise NoSuchCase(case)
    if c.phase == CasePhase.SEATING:
        return fill(w, court, case)
    if c.phase == CasePhase.REVEALING and c.seed == NOTHING and w.now <= c.phase_ends:
        seats.fetch_seed(w, case)  # the steps to open stay provable for as long as the phase lasts
        return None
    if w.now <= c.phase_ends:
        raise PhaseRunning(w.now, c.phase_ends)
    if c.phase == CasePhase.APPEALABLE:
        return finish(w, court, case, c.outcome)
    if c.phase == CasePhase.COMMITTING:
        seats.drop_silent(w, case, SeatState.SEATED)
        if seats_in(w, case, SeatState.COMMITTED):
            return _start_reveal(w, case)
    else:
        if c.demanded_at and not c.opened:
            w.cases[case] = replace(c, withheld=True)
        seats.drop_silent(w, case, SeatState.COMMITTED)
    return _end_cycle(w, court, case)


def _end_cycle(w: World, court: Court, case: bytes) -> None:
    """All seats have spoken or were dropped: draw again for the empty ones, or decide the level."""
    for i in seats_in(w, case, SeatState.REVEALED):
        if w.seats[case][i].finding == Finding.ABSTAIN:
            seats.vacate(w, case, i)
    if not seats_in(w, case, SeatState.EMPTY):
        return decide(w, court, case)
    seats.pin(w, case)
    seats.start_seating(w, case)
    return None


# -------------------------------------------------------------- levels


def decide(w: World, court: Court, case: bytes) -> None:
    """Every seat has spoken or stays vacant: the next level, a window for appeals, or the verdict."""
    outcome = court.outcome_of(w, case)
    c = w.cases[case]
    if outcome == Outcome.NONE:
        return _go_on(w, case)
    if not appeal_fees(w, c, outcome):
        return finish(w, court, case, outcome)
    ends = w.now + w.jobs[c.job].terms.windows.challenge
    w.cases[case] = replace(c, outcome=outcome, phase=CasePhase.APPEALABLE, phase_ends=ends)
    return None


def appeal_fees(w: World, c: Case, outcome: Outcome) -> int:
    """Fees of an appeal, 0 where there is none: from three seats that leave work unpaid, and from the panel where
    more owners have tickets than the largest panel has seats. A claim that nobody judged is paid; a checkpoint about
    which too few agreed may be judged by more."""
    if outcome == Outcome.UNSAMPLED and c.kind != CaseKind.CHECKPOINT:
        return 0
    if c.level == PANEL_LEVEL:
        return APPEAL_FEES if tickets.live_owners(w) > w.site.preset.appeal_panel else 0
    return CHALLENGE_FEES if c.level == 2 and outcome == Outcome.REJECT else 0


def appeal(w: World, court: Court, address: str, caller: str, case: bytes) -> None:
    """Let the next level judge again; the bond is lost if it says the same. An operator."""
    c = court.case_of(w, case)
    check_phase(w, c, CasePhase.APPEALABLE)
    owner = registry.owner_for(w, caller, Scope.CHALLENGE)
    fees = APPEAL_FEES if c.level == PANEL_LEVEL else CHALLENGE_FEES
    w.cases[case] = replace(c, outcome=Outcome.NONE)
    pay.post_bond(w, address, caller, owner, case, fees, c.outcome)
    _go_on(w, case)


def _go_on(w: World, case: bytes) -> None:
    seats.pin(w, case)
    seats.start_level(w, case, w.cases[case].level + 1)


def finish(w: World, court: Court, case: bytes, outcome: Outcome) -> None:
    """The verdict."""
    w.cases[case] = replace(w.cases[case], phase=CasePhase.DONE, outcome=outcome)
    court.conclude(w, case, outcome)
