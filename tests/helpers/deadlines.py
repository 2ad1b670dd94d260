"""Letting time pass in a market of twins: to the last second of something, to the first after it, or just a little."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from protocol.core.model.kinds import CasePhase, RoundStatus
from protocol.core.model.rounds import status_of
from protocol.core.model.world import World
from protocol.core.operator import FOREVER as NEVER
from tests.helpers.twins import Twins


def pending(w: World) -> Iterator[int]:
    """The last seconds of whatever still has one."""
    for (job, number), r in w.rounds.items():
        windows = w.jobs[job].terms.windows
        if r.closed_at:
            if status_of(w, job, number) != RoundStatus.SETTLED:
                yield r.closed_at + windows.challenge
            if r.voided:
                yield r.closed_at + windows.round
            continue
        yield r.ends_at
        yield (r.opened_at + r.ends_at) // 2
        if r.sealed_at:
            yield (r.tallied_at or r.sealed_at) + windows.attest
    for claim in w.claims.values():
        yield claim.deadline
    for c in w.cases.values():
        if c.phase != CasePhase.DONE:
            yield c.phase_ends
        if c.demanded_at:
            yield c.demanded_at + w.jobs[c.job].terms.windows.demand
    for ticket in w.tickets:
        yield ticket.exit_at
    for operator in w.operators.values():
        if operator.expiry != NEVER:
            yield operator.expiry


def wait_until(t: Twins, what: str, dice: Random) -> None:
    """A little, a deadline or a second more, or a few blocks; rarely long enough to lose a seed or to be abandoned."""
    if what == "a little":
        t.wait(dice.randrange(1, 12))
    elif what == "blocks":
        t.wait(1, 300 if dice.random() < 0.04 else dice.randrange(1, 4))
    else:
        ahead = sorted({at for at in pending(t.world) if at >= t.block.time})
        target = dice.choice(ahead[:3]) + dice.choice((0, 1, 1)) if ahead else t.block.time + dice.choice((30, 700))
        t.wait(max(1, target - t.block.time))
