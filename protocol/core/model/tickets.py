"""Who may be drawn to a panel: a list of entries."""

from __future__ import annotations

from dataclasses import replace

from protocol.core.encoding import abi_encode, keccak
from protocol.core.model import money, registry
from protocol.core.model.kinds import Candidate
from protocol.core.model.records import Ticket
from protocol.core.model.refusals import NotTheOwner, TicketGone, TicketInUse, TicketsOutOfRange
from protocol.core.model.world import World
from protocol.core.operator import MOST_TICKETS, Scope


def enroll(w: World, caller: str, operator: str, count: int) -> list[int]:
    """Lock tickets behind an operator's readiness; they take the places that were left last. Its owner only."""
    owner = registry.owner_for(w, operator, Scope.AUDIT)
    if owner != caller:
        raise NotTheOwner(caller, owner)
    if not 1 <= count <= MOST_TICKETS:
        raise TicketsOutOfRange(count, 1, MOST_TICKETS)
    return [_enroll_one(w, owner, operator) for _ in range(count)]


def _enroll_one(w: World, owner: str, operator: str) -> int:
    if w.places:
        number, w.places = w.places[-1], w.places[:-1]
    else:
        number = len(w.tickets)
    fresh = Ticket(owner, 0, w.now, False, w.site.preset.ticket, 0, operator)
    w.tickets = (*w.tickets[:number], fresh, *w.tickets[number + 1 :])
    money.lock(w, w.site.tickets, owner, _lock_id(number), fresh.amount)
    return number


def exit(w: World, caller: str, number: int) -> None:
    """Stop being drawn after the exit time. Owner only."""
    t = _existing(w, number)
    if t.owner != caller:
        raise NotTheOwner(caller, t.owner)
    if t.exit_at:
        raise TicketGone(number)
    _store(w, number, replace(t, exit_at=w.now + w.site.preset.ticket_exit))


def release(w: World, number: int) -> None:
    """Free the lock of a ticket whose exit time has passed and whose seats are done. Anyone."""
    t = _existing(w, number)
    if t.released:
        raise TicketGone(number)
    if not t.exit_at or w.now <= t.exit_at or t.used:
        raise TicketInUse(number, t.used, t.exit_at)
    _store(w, number, replace(t, released=True))
    w.places = (*w.places, number)
    money.release(w, w.site.tickets, _lock_id(number))


def occupy(w: World, number: int, amount: int) -> None:
    """Put a part of the lock behind a seat."""
    t = w.tickets[number]
    _store(w, number, replace(t, used=t.used + amount))


def vacate(w: World, number: int, amount: int) -> None:
    """Take it back."""
    t = w.tickets[number]
    _store(w, number, replace(t, used=t.used - amount))


def slash(w: World, number: int, amount: int, pot: bytes) -> None:
    """Take what lies behind a seat into a pot."""
    t = w.tickets[number]
    _store(w, number, replace(t, used=t.used - amount, amount=t.amount - amount))
    money.slash(w, w.site.tickets, _lock_id(number), amount, 0, pot)


def candidate(w: World, number: int, time: int, amount: int) -> tuple[Candidate, str, str]:
    """Whether an entry was enrolled at `time` and has so much to put behind a seat; its owner and operator."""
    t = w.tickets[number]
    enrolled = not t.released and t.enrolled_at <= time and (not t.exit_at or t.exit_at > time)
    if not enrolled or t.amount < amount:
        return Candidate.UNFIT, t.owner, t.operator
    return (Candidate.BUSY if t.used + amount > t.amount else Candidate.FREE), t.owner, t.operator


def live_owners(w: World) -> int:
    """Owners with an enrolled ticket that has not announced its exit."""
    return len({t.owner for t in w.tickets if not t.exit_at})


def _existing(w: World, number: int) -> Ticket:
    if number >= len(w.tickets):
        raise TicketGone(number)
    return w.tickets[number]


def _store(w: World, number: int, t: Ticket) -> None:
    w.tickets = (*w.tickets[:number], t, *w.tickets[number + 1 :])


def _lock_id(number: int) -> bytes:
    return keccak(abi_encode(("string", "uint32"), ("ticket", number)))
