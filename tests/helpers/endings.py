"""How a market ends: posters cancel, nobody speaks any more, and everybody takes out what is left."""

from __future__ import annotations

from random import Random

from protocol.core.commitment import COURT_FUND
from protocol.core.model import rounds
from protocol.core.model.jobs import status_of
from protocol.core.model.kinds import CaseKind, CasePhase, JobStatus, Outcome, RoundStatus
from tests.helpers.cast import POSTER
from tests.helpers.deadlines import wait_until
from tests.helpers.moves import MOVES
from tests.helpers.twins import STRANGER, Twins

_MOST_TURNS = 150


def wind_up(t: Twins, dice: Random) -> None:
    """Everything that is due, by a stranger, until nothing is; then tickets, credits and stakes leave."""
    for job in t.world.jobs:
        t.act((POSTER, "market", "cancel", job))
    for _ in range(_MOST_TURNS):
        for call in MOVES["upkeep"](t, dice):
            t.act(call)
        if _is_settled(t):
            break
        t.wait(1, 2)
        wait_until(t, "a deadline", dice)
    for case, c in list(t.world.cases.items()):
        if c.kind == CaseKind.CHECKPOINT and c.outcome == Outcome.FRAUD and t.world.pots.get(case):
            t.act((STRANGER, "checkpoints", "distribute", case))
    for job in list(t.world.jobs):
        if status_of(t.world, job)[0] != JobStatus.CLOSED:
            t.act((STRANGER, "market", "close", job))
    for number, ticket in enumerate(t.world.tickets):
        if not ticket.exit_at:
            t.act((ticket.owner, "tickets", "exit", number), compare=False)
    t.wait(t.world.site.preset.ticket_exit + 1, 3)
    for number, ticket in enumerate(t.world.tickets):
        if not ticket.released:
            t.act((STRANGER, "tickets", "release", number), compare=False)
    for account, amount in list(t.world.credits.items()):
        if amount:
            t.act((STRANGER, "ledger", "withdraw", account, 0), compare=False)
    for owner, amount in list(t.world.stakes.items()):
        if amount:
            t.act((owner, "vault", "withdraw", 0), compare=False)
    t.compare()


def _is_settled(t: Twins) -> bool:
    over = all(rounds.status_of(t.world, *key) == RoundStatus.SETTLED for key in t.world.rounds)
    return over and all(c.phase in (CasePhase.NONE, CasePhase.DONE) for c in t.world.cases.values())


def left_over(t: Twins) -> dict[str, object]:
    """What should not be there when a market has been wound up."""
    w = t.world
    return {
        "rounds": [key for key in w.rounds if rounds.status_of(w, *key) != RoundStatus.SETTLED],
        "jobs": [job for job in w.jobs if status_of(w, job)[0] != JobStatus.CLOSED],
        "locks": {key: lock for key, lock in w.locks.items() if lock.amount},
        "pots": {pot: amount for pot, amount in w.pots.items() if amount and pot != COURT_FUND},
        "stakes": {owner: amount for owner, amount in w.stakes.items() if amount},
    }
