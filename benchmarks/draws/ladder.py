"""The real ladder, run to its verdict for every way in which colluders can be spread over its seats.

Who is drawn is chance; what a panel then decides is not. So the ladder runs once for each pattern, and the draw alone
is repeated by the thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple
from itertools import product

from benchmarks.draws.arena import OPENING, ROWS, SHARDS, Arena
from protocol.core.model.kinds import CasePhase, Finding, Outcome, SeatState
from protocol.core.trace import Seat, audit_proof, audit_root, trace_proof

Pattern = tuple[bool, ...]  # by seat: whether a colluder sits there
Minds = tuple[Finding, Finding]  # what an honest seat finds, and what a colluder says

FRAME = (Finding.MATCH, Finding.FRAUD)  # slash an honest operator
SPOIL = (Finding.MATCH, Finding.REJECT)  # leave an honest operator unpaid
ACQUIT = (Finding.FRAUD, Finding.MATCH)  # let a cheat pass
_SALT = b"\x04" * 32


class Bench:
    """Cases of one arena, judged as patterns say."""

    def __init__(self, panel: tuple[int, int], *, sampled: bool, first_block: int) -> None:
        tickets = [1] * (3 * panel[0])
        self.arena = Arena(tickets, panel, 10_000 if sampled else 100, first_block)
        self.sampled = sampled
        self.free: list[int] = []

    def verdict(self, pattern: Pattern, minds: Minds) -> Outcome:
        """What the court decides where colluders hold these seats."""
        arena, shard = self.arena, self._fresh_shard()
        if self.sampled:
            arena.first_seats([shard])
        else:
            arena.panels([shard])
        case = arena.case_of(shard)
        while True:
            answer = arena.chain.view("court", "caseOf", case)
            phase, outcome = CasePhase(_word(answer, 4)), Outcome(_word(answer, 5))
            if phase in (CasePhase.APPEALABLE, CasePhase.DONE):
                return outcome
            if phase == CasePhase.SEATING:
                arena.pass_blocks(2)
                arena.chain.send(arena.owners[0], "court", "advance", (case,))
            else:
                self._speak(shard, case, phase, lambda i: minds[pattern[i]])

    def _fresh_shard(self) -> int:
        if not self.free:
            sampled = self.arena.close_round()
            self.free = [i for i in range(SHARDS) if bool(sampled >> i & 1) == self.sampled]
        return self.free.pop()

    def _speak(self, shard: int, case: bytes, phase: CasePhase, mind: Callable[[int], Finding]) -> None:
        arena = self.arena
        arena.pass_blocks(2)
        turn = SeatState.SEATED if phase == CasePhase.COMMITTING else SeatState.COMMITTED
        for i, (owner, state) in enumerate(arena.seat_states(shard)):
            if state != turn:
                continue
            operator = arena.operators[arena.owners[owner]]
            place = Seat(case, i, operator, _SALT)
            if phase == CasePhase.COMMITTING:
                arena.chain.send(operator, "court", "commitAudit", (case, i, audit_root(ROWS, place)))
            else:
                arena.chain.send(operator, "court", "reveal", (case, i, _reveal(place, mind(i))))


def _reveal(place: Seat, finding: Finding) -> tuple[object, ...]:
    own = [(astuple(row), audit_proof(ROWS, place, row.step)) for row in ROWS]
    theirs = [(astuple(row), trace_proof(ROWS, row.step)) for row in ROWS]
    return int(finding), 0, _SALT, OPENING, own, theirs if finding == Finding.MATCH else []


def _word(answer: bytes, i: int) -> int:
    return int.from_bytes(answer[32 * i : 32 * i + 32])


def panel_verdicts(panel: tuple[int, int], minds: Minds, first_block: int) -> list[Outcome]:
    """What a full panel decides with 0, 1, 2, … colluders on it."""
    bench = Bench(panel, sampled=False, first_block=first_block)
    size = panel[0]
    return [bench.verdict(tuple(i < count for i in range(size)), minds) for count in range(size + 1)]


def ladder_verdicts(panel: tuple[int, int], minds: Minds, first_block: int) -> Mapping[Pattern, Outcome]:
    """What the ladder 1, 3, panel decides about a sampled claim, for each pattern of colluders by seat."""
    bench = Bench(panel, sampled=True, first_block=first_block)
    patterns = product((False, True), repeat=panel[0])
    return {pattern: bench.verdict(pattern, minds) for pattern in patterns}
