"""The seats of a case: drawn from the tickets, freed, slashed, vacated. Both courts share them."""

from __future__ import annotations

from dataclasses import replace

from protocol.core.model import chance, tickets
from protocol.core.model.courts import Court
from protocol.core.model.kinds import Candidate, CasePhase, Finding, SeatState
from protocol.core.model.records import NOTHING, Seat
from protocol.core.model.terms import SEAT_LOCK_REWARDS
from protocol.core.model.world import World

TRIES_PER_CALL = 64  # tickets looked at in one transaction
MOST_TRIES = 512  # tickets looked at for one seat
MOST_DRAWS = 3  # the first and two redraws
PANEL_LEVEL = 3
APPEAL_LEVEL = 4


def size_of(w: World, level: int) -> int:
    """Seats of a level, those of the levels before included."""
    p = w.site.preset
    return {1: 1, 2: 3, PANEL_LEVEL: p.slash_panel, APPEAL_LEVEL: p.appeal_panel}[level]


def share_of(w: World, level: int, spoke: int) -> int:
    """Equal findings that decide among the seats of a panel that spoke: the share that a full one needs, rounded up."""
    p = w.site.preset
    needed = p.appeal_needed if level == APPEAL_LEVEL else p.slash_needed
    return -(-needed * spoke // size_of(w, level))


def seats_in(w: World, case: bytes, state: SeatState) -> list[int]:
    """The numbers of a case's seats in that state."""
    return [i for i, seat in enumerate(w.seats[case]) if seat.state == state]


def store_seat(w: World, case: bytes, i: int, s: Seat) -> None:
    """Remember a seat's new facts."""
    seats = w.seats[case]
    w.seats[case] = (*seats[:i], s, *seats[i + 1 :])


# -------------------------------------------------------------- drawing


def start_level(w: World, case: bytes, level: int) -> None:
    """Add the seats of a level, each waiting for its draw; who sits already stays."""
    w.cases[case] = replace(w.cases[case], level=level)
    start_seating(w, case)
    missing = size_of(w, level) - len(w.seats.get(case, ()))
    w.seats[case] = w.seats.get(case, ()) + (Seat(),) * max(0, missing)


def start_seating(w: World, case: bytes) -> None:
    """Seats wait for busy tickets as long as another case may need to free them."""
    c = w.cases[case]
    windows = w.jobs[c.job].terms.windows
    ends = w.now + windows.audit_commit + windows.audit_reveal
    w.cases[case] = replace(c, phase=CasePhase.SEATING, phase_ends=ends)


def pin(w: World, case: bytes) -> None:
    """The next draw must not be known before this moment."""
    w.cases[case] = replace(w.cases[case], beacon_ticket=chance.pin(w), seed=NOTHING)


def fetch_seed(w: World, case: bytes) -> bool:
    """Keep the seed that was pinned; where it was missed, pin another: False."""
    c = w.cases[case]
    if c.seed != NOTHING:
        return True
    if chance.is_expired(w, c.beacon_ticket):
        w.cases[case] = replace(c, beacon_ticket=chance.pin(w))
        return False
    w.cases[case] = replace(c, seed=chance.seed_of(w, c.beacon_ticket))
    return True


def draw_seat(w: World, court: Court, case: bytes, i: int, budget: int) -> int:
    """Look at tickets until one is free and of no party, or none can be; returns what is left of the budget."""
    amount = SEAT_LOCK_REWARDS * w.jobs[w.cases[case].job].terms.reward
    while budget:
        c, s = w.cases[case], w.seats[case][i]
        tries = c.tries
        if not c.tickets or tries == MOST_TRIES:
            if not c.tickets or not is_waiting(w, case):
                _end_draw(w, case)
                store_seat(w, case, i, replace(s, state=SeatState.VACANT))
                return budget
            tries -= TRIES_PER_CALL  # a busy ticket may be free by now
        drawn = chance.number_of(c.seed, case, i, s.draws, tries) % c.tickets
        w.cases[case] = replace(c, tries=tries + 1)
        budget -= 1
        fit, owner, operator = tickets.candidate(w, drawn, c.closed_at, amount)
        if fit == Candidate.UNFIT or _is_party(w, court, case, owner):
            continue
        if fit == Candidate.BUSY:
            w.cases[case] = replace(w.cases[case], met_busy=True)
            continue
        _end_draw(w, case)
        taken = replace(s, owner=owner, operator=operator, ticket=drawn, state=SeatState.SEATED)
        store_seat(w, case, i, replace(taken, locked=amount, draws=s.draws + 1))
        tickets.occupy(w, drawn, amount)
        return budget
    return 0


def _end_draw(w: World, case: bytes) -> None:
    w.cases[case] = replace(w.cases[case], tries=0, met_busy=False)


def is_waiting(w: World, case: bytes) -> bool:
    """All tickets were looked at, one of them was only busy, and there is time left."""
    c = w.cases[case]
    return c.tries == MOST_TRIES and c.met_busy and w.now <= c.phase_ends


def _is_party(w: World, court: Court, case: bytes, owner: str) -> bool:
    """The accused, whoever has a bond here, and whoever has a seat or had the one being drawn."""
    seated = any(seat.owner == owner for seat in w.seats[case])
    bonded = any(bond.owner == owner for bond in w.bonds.get(case, ()))
    return seated or bonded or court.is_accused(w, w.cases[case], owner)


# -------------------------------------------------------------- leaving


def slash(w: World, case: bytes, i: int, amount: int) -> None:
    """Take so much of a seat's lock into the case's pot, or what is left of it."""
    s = w.seats[case][i]
    amount = min(amount, s.locked)
    store_seat(w, case, i, replace(s, locked=s.locked - amount))
    tickets.slash(w, s.ticket, amount, case)


def free(w: World, case: bytes, i: int) -> None:
    """Give a seat's lock back to its ticket."""
    s = w.seats[case][i]
    store_seat(w, case, i, replace(s, locked=0))
    tickets.vacate(w, s.ticket, s.locked)


def vacate(w: World, case: bytes, i: int) -> None:
    """Empty a seat for another draw, or leave it vacant after the last. Its owner stays a party."""
    free(w, case, i)
    s = w.seats[case][i]
    state = SeatState.EMPTY if s.draws < MOST_DRAWS else SeatState.VACANT
    store_seat(w, case, i, replace(s, state=state, root=NOTHING, finding=Finding.NONE))


def drop_silent(w: World, case: bytes, state: SeatState) -> None:
    """Empty the seats that did not speak: one fee of their lock goes to the case."""
    for i in seats_in(w, case, state):
        slash(w, case, i, w.jobs[w.cases[case].job].terms.fee)
        vacate(w, case, i)
