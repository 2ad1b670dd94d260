"""A play: people and time act on twins as a number says. One that ends in a difference is made as short as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from protocol.core.model import case_ids, jobs
from protocol.core.model.chance import bits
from protocol.core.model.kinds import CasePhase, JobStatus, RoundStatus
from protocol.core.model.rounds import draw_of, is_challengeable, status_of
from protocol.core.model.terms import reservation
from protocol.core.model.world import World
from tests.helpers import court_moves
from tests.helpers.cast import POSTER, PRESETS, TERMS, settle_in
from tests.helpers.deadlines import wait_until
from tests.helpers.endings import wind_up
from tests.helpers.moves import MOVES
from tests.helpers.twins import Difference, Step, Twins

assert court_moves  # which registers its moves

WAITING = ("a little", "a little", "a deadline", "blocks", "blocks", "blocks")
_WAITS, _FITS = 0.15, 0.7  # how often time passes, and how often the next move is one that the hour asks for
_PATIENCE = 0.8

Setting = tuple[int, int, int]  # which preset, which terms, the first block
Begin = Callable[[Setting], Twins]


def begin(setting: Setting) -> Twins:
    """A deployment with people, and a job that is funded for four rounds."""
    preset, terms, height = setting
    t = Twins(PRESETS[preset], height)
    settle_in(t)
    amount = 4 * reservation(TERMS[terms])
    t.act((POSTER, "market", "post", TERMS[terms], bytes(32), amount, "seed"))
    if height % 2:
        t.act((POSTER, "market", "calibrate", next(iter(t.world.jobs)), b"\x01" * 32))
    t.setting, t.set_up = f"preset {preset}, terms {terms}, from block {height}", len(t.steps)
    return t


def play(number: int, moves: int, *, end: bool = True) -> Twins:
    """Make so many moves, then let the market end. Raises Difference, with the shortest way to it that was found."""
    dice = Random(number)
    setting = dice.randrange(len(PRESETS)), dice.randrange(len(TERMS)), dice.randrange(1_000, 1_000_000)
    t = begin(setting)
    try:
        for _ in range(moves):
            _go_on(t, dice)
        if end:
            wind_up(t, dice)
    except Difference as difference:
        raise shortest(begin, setting, t.steps[t.set_up :], difference) from None
    return t


def _go_on(t: Twins, dice: Random) -> None:
    fitting = fitting_moves(t.world)
    if dice.random() < _WAITS:
        return wait_until(t, dice.choice(WAITING), dice)
    if dice.random() < _FITS:
        if not fitting:
            return wait_until(t, "a deadline", dice)
    else:
        fitting = list(MOVES)
    for call in MOVES[dice.choice(fitting)](t, dice):
        if t.act(call) == "SeedNotReady" and dice.random() < _PATIENCE:
            t.wait(1, 2)
    return None


def fitting_moves(w: World) -> list[str]:
    """What honest programs, and those who watch them, would do now."""
    fitting = [name for key in w.rounds for name in _fitting_a_round(w, *key)]
    for c in w.cases.values():
        if c.phase in _BY_CASE:
            fitting += ["advance_case"] if w.now > c.phase_ends else _BY_CASE[c.phase]
    ready = any(jobs.status_of(w, job)[0] == JobStatus.READY for job in w.jobs)
    return fitting + ["a_whole_round"] * ready


_BY_ROUND = {
    RoundStatus.OPEN: ["claim_all", "commit_all"],
    RoundStatus.DUE: ["advance_round"],
    RoundStatus.SEALED: ["attest_all"],
    RoundStatus.TALLIED: ["attest_all"],
    RoundStatus.VOID: ["demand_audit", "settle"],
    RoundStatus.ORPHANED: ["settle"],
}
_BY_CASE = {
    CasePhase.SEATING: ["advance_case"],
    CasePhase.COMMITTING: ["commit_audits"],
    CasePhase.REVEALING: ["reveals", "reveals", "reveals", "demand_trace", "open_trace"],
    CasePhase.APPEALABLE: ["appeal"],
}


def _fitting_a_round(w: World, job: bytes, number: int) -> list[str]:
    status = status_of(w, job, number)
    if status != RoundStatus.CLOSED:
        return _BY_ROUND.get(status, [])
    d = draw_of(w, job, number)
    if not d.drawn:
        return ["draw"]
    if is_challengeable(w, job, number):
        convened = [case_ids.of_claim(job, number, shard) in w.cases for shard in bits(d.sampled_map)]
        doubted = case_ids.of_checkpoint(job, number) in w.cases
        return ["challenge"] + ["doubt_checkpoint"] * (not doubted) + ["convene"] * (not all(convened))
    return ["settle", "demand_audit"]


def shortest(begin: Begin, setting: Setting, steps: Sequence[Step], difference: Difference) -> Difference:
    """Leave out steps, many at once and then single ones, as long as what is left still ends in a difference."""
    steps, size = list(steps), max(1, len(steps) // 2)
    while size:
        at = 0
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            found = _difference_of(begin, setting, fewer)
            if found is None:
                at += size
            else:
                difference, steps = found, fewer[: found.steps]
        size //= 2
    return _with_fewer_waits(begin, setting, steps, difference)


def _with_fewer_waits(begin: Begin, setting: Setting, steps: list[Step], difference: Difference) -> Difference:
    """Wait once instead of twice in a row, wherever what follows still ends in a difference."""
    at = 0
    while at + 1 < len(steps):
        first, second = steps[at : at + 2]
        if first[0] == second[0] == "wait":
            once: Step = ("wait", first[1] + second[1], first[2] + second[2])
            fewer = [*steps[:at], once, *steps[at + 2 :]]
            found = _difference_of(begin, setting, fewer)
            if found is not None:
                difference, steps = found, fewer[: found.steps]
                continue
        at += 1
    return difference


def _difference_of(begin: Begin, setting: Setting, steps: Sequence[Step]) -> Difference | None:
    t = begin(setting)
    try:
        for step in steps:
            _repeat(t, step)
    except Difference as difference:
        return difference
    return None


def _repeat(t: Twins, step: tuple[Any, ...]) -> None:
    if step[0] == "wait":
        t.wait(*step[1:])
    else:
        t.act(step)
