"""Bonds and fees of a case: who loses what to its pot, and who is paid from it."""

from __future__ import annotations

from protocol.core.model import case_ids, money, registry, seats
from protocol.core.model.courts import Court
from protocol.core.model.kinds import Outcome, SeatState
from protocol.core.model.records import Bond
from protocol.core.model.world import World

_WRONG_SEAT_DIVISOR = 4


def post_bond(w: World, court: str, caller: str, owner: str, case: bytes, fees: int, against: Outcome) -> None:
    """Lock an owner's stake behind what its operator says."""
    bonds = w.bonds.get(case, ())
    w.bonds[case] = (*bonds, Bond(caller, fees, against, owner))
    fee = w.jobs[w.cases[case].job].terms.fee
    money.lock(w, court, owner, case_ids.of_bond(case, len(bonds)), fees * fee)


def end_bonds(w: World, court: Court, address: str, case: bytes, outcome: Outcome, winners: int) -> None:
    """A bond is lost to the case if the panel sat in vain. Where nobody judged, nobody was wrong."""
    c = w.cases[case]
    fee = w.jobs[c.job].terms.fee
    for i, bond in enumerate(w.bonds.get(case, ())):
        opened = bond.against == Outcome.NONE
        lost = court.opened_in_vain(c.kind, outcome) if opened else bond.against == outcome
        ident = case_ids.of_bond(case, i)
        if lost and winners:
            money.slash(w, address, ident, bond.fees * fee, 0, case)
        money.release(w, address, ident)


def judge_seats(w: World, court: Court, case: bytes, outcome: Outcome) -> int:
    """Free all seats, take a quarter of the lock of those at distance 2, count those at distance 0."""
    winners = 0
    for i in seats.seats_in(w, case, SeatState.REVEALED):
        distance = court.distance_of(w, case, i, outcome)
        winners += distance == 0
        if distance == 2:
            seats.slash(w, case, i, w.seats[case][i].locked // _WRONG_SEAT_DIVISOR)
        seats.free(w, case, i)
    return winners


def pay_seats(w: World, court: Court, case: bytes, outcome: Outcome, winners: int, fee: int) -> None:
    """A fee for each seat at distance 0, or the pot in equal parts where it is not enough."""
    if not winners:
        return
    part = min(fee, money.pot_of(w, case) // winners)
    for i in seats.seats_in(w, case, SeatState.REVEALED):
        if court.distance_of(w, case, i, outcome) == 0:
            money.credit(w, case, registry.payout_of(w, w.seats[case][i].operator), part)


def pull(w: World, source: bytes, to: bytes, need: int, most: int) -> int:
    """Move what is needed, at most so much."""
    amount = min(need, most)
    money.move(w, source, to, amount)
    return amount


def pull_from_fund(w: World, case: bytes, need: int) -> None:
    """What the case's pot lacks comes from the court fund, as far as it goes."""
    lacking = max(0, need - money.pot_of(w, case))
    pull(w, money.COURT_FUND, case, lacking, money.pot_of(w, money.COURT_FUND))
