"""What a seat shows for its finding about a claim: rows of traces, at steps that were drawn after the last commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from protocol.core import merkle
from protocol.core.commitment import Opening
from protocol.core.encoding import keccak
from protocol.core.model import chance, claims, panels, seats
from protocol.core.model.courts import Court
from protocol.core.model.kinds import CasePhase, Finding, SeatState
from protocol.core.model.records import NOBODY, NOTHING, Case
from protocol.core.model.refusals import (
    AlreadyDemanded,
    LossOutOfTolerance,
    NotADemand,
    NotTheSeat,
    PhaseOver,
    WrongRoot,
    WrongRow,
    WrongRowCount,
)
from protocol.core.model.world import World
from protocol.core.trace import Seat as TraceSeat
from protocol.core.trace import TraceRow, audit_row_hash, row_hash, trace_root

_ROWS_OPENED = 3
_FIXED_POINT = 10**9
_SHOWN = (Finding.MATCH, Finding.REJECT, Finding.FRAUD)

RowOpening = tuple[TraceRow, Sequence[bytes]]


@dataclass(frozen=True)
class Reveal:
    """What a seat reveals: three rows of its own trace, and for a Match the same three of the operator's."""

    finding: Finding
    step: int
    salt: bytes
    claim: Opening
    own: tuple[RowOpening, ...] = ()
    theirs: tuple[RowOpening, ...] = ()


def reveal(w: World, court: Court, caller: str, case: bytes, seat: int, r: Reveal) -> None:
    """Say what the seat found. Its operator, in the reveal phase."""
    s = panels.seat_of(w, court, caller, case, seat, CasePhase.REVEALING, SeatState.COMMITTED)
    if r.finding in _SHOWN:
        seed = seed_of(w, case)
        if len(seats.seats_in(w, case, SeatState.COMMITTED)) > 1:  # kept for the others
            w.cases[case] = replace(w.cases[case], seed=seed)
        _check_rows(w, case, seat, r, seed)
    seats.store_seat(w, case, seat, replace(s, step=r.step))
    panels.revealed(w, court, case, seat, r.finding)


def seed_of(w: World, case: bytes) -> bytes:
    """The seed that was pinned last, kept or still in reach."""
    c = w.cases[case]
    return c.seed if c.seed != NOTHING else chance.seed_of(w, c.beacon_ticket)


def steps_of(seed: bytes, case: bytes, inner_steps: int) -> list[int]:
    """The steps to open, one in each third."""
    row_seed, steps = keccak(seed + case), []
    for i in range(_ROWS_OPENED):
        first, end = i * inner_steps // _ROWS_OPENED, (i + 1) * inner_steps // _ROWS_OPENED
        steps.append(first + chance.purpose(row_seed, "row", i) % (end - first) + 1)
    return steps


def _check_rows(w: World, case: bytes, seat: int, r: Reveal, seed: bytes) -> None:
    c, s = w.cases[case], w.seats[case][seat]
    t, is_match = w.jobs[c.job].terms, r.finding == Finding.MATCH
    if len(r.own) != _ROWS_OPENED:
        raise WrongRowCount(len(r.own), _ROWS_OPENED)
    need = _ROWS_OPENED if is_match else 0
    if len(r.theirs) != need:
        raise WrongRowCount(len(r.theirs), need)
    if is_match:
        claims.check_opening(w, c.job, c.round, c.shard, r.claim)
    place = TraceSeat(case, seat, s.operator, r.salt)
    for i, step in enumerate(steps_of(seed, case, t.inner_steps)):
        own, proof = r.own[i]
        if not _is_row(s.root, audit_row_hash(own, place), own, step, t.inner_steps, proof):
            raise WrongRow(step, True)
        if not is_match:
            continue
        theirs, proof = r.theirs[i]
        if not _is_row(r.claim.trace_root, row_hash(theirs), theirs, step, t.inner_steps, proof):
            raise WrongRow(step, False)
        if abs(own.loss - theirs.loss) * _FIXED_POINT > max(own.loss, theirs.loss) * t.loss_tolerance:
            raise LossOutOfTolerance(step, own.loss, theirs.loss, t.loss_tolerance)


def _is_row(root: bytes, leaf: bytes, row: TraceRow, step: int, steps: int, proof: Sequence[bytes]) -> bool:
    return row.step == step and merkle.is_proof(root, leaf, step - 1, steps, proof)


def demand_trace(w: World, court: Court, caller: str, case: bytes) -> None:
    """Demand the operator's whole trace on chain, once a case. A seat that has committed and not revealed."""
    c = court.case_of(w, case)
    panels.check_phase(w, c, CasePhase.REVEALING)
    if c.demanded_at:
        raise AlreadyDemanded(case)
    if not any(w.seats[case][i].operator == caller for i in seats.seats_in(w, case, SeatState.COMMITTED)):
        raise NotTheSeat(caller, NOBODY)
    windows = w.jobs[c.job].terms.windows
    w.cases[case] = replace(c, demanded_at=w.now, phase_ends=w.now + windows.demand + windows.audit_reveal)


def open_trace(w: World, court: Court, case: bytes, opening: Opening, rows: Sequence[TraceRow]) -> None:
    """Answer a demand with all rows of the committed trace. Anyone, until the demand's last second."""
    c: Case = court.case_of(w, case)
    if not c.demanded_at or c.opened:
        raise NotADemand(case)
    t = w.jobs[c.job].terms
    until = c.demanded_at + t.windows.demand
    if w.now > until:
        raise PhaseOver(w.now, until)
    if len(rows) != t.inner_steps:
        raise WrongRowCount(len(rows), t.inner_steps)
    claims.check_opening(w, c.job, c.round, c.shard, opening)
    root = trace_root(rows)
    if root != opening.trace_root:
        raise WrongRoot(root, opening.trace_root)
    w.cases[case] = replace(c, opened=True)
