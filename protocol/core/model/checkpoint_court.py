"""Whether an attested checkpoint is the exact outer step of its base: enough equal results of a panel settle it."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, replace

from protocol.core.commitment import round_pot
from protocol.core.encoding import abi_encode, keccak
from protocol.core.model import case_ids, money, panels, pay, registry, rounds, seats, votes
from protocol.core.model.kinds import CaseKind, CasePhase, Finding, Outcome, RoundStatus, SeatState
from protocol.core.model.panels import CHALLENGE_FEES
from protocol.core.model.records import NOBODY, NOTHING, Case, Conviction, Pair, Round, StepFinding
from protocol.core.model.refusals import (
    BitmapOutOfRange,
    NoSuchCase,
    NotChallengeable,
    NotYetSlashed,
    OtherCheckpoint,
    OwnAttestation,
    WrongDigest,
    WrongRoot,
)
from protocol.core.model.seats import PANEL_LEVEL, seats_in
from protocol.core.model.terms import SEATS_RESERVED
from protocol.core.model.world import World
from protocol.core.operator import Scope

_PROVER_FEES = 10


def challenge(w: World, caller: str, job: bytes, number: int, base: bytes, bitmap: int, digest: bytes) -> bytes:
    """Doubt the checkpoint that a closed round ended in, by what was attested. An operator of an owner that did not
    attest to it.
    """
    closed = rounds.status_of(w, job, number) == RoundStatus.CLOSED
    if not closed or not rounds.is_challengeable(w, job, number):
        raise NotChallengeable(job, number)
    r = rounds.round_of(w, job, number)
    if (base, bitmap, digest) != (r.base, r.accepted_map, r.next):
        raise OtherCheckpoint(r.base, r.accepted_map, r.next)
    owner = registry.owner_for(w, caller, Scope.CHALLENGE)
    if rounds.attested_to(w, job, number, owner):
        raise OwnAttestation(owner)
    case, d = case_ids.of_checkpoint(job, number), rounds.draw_of(w, job, number)
    panels.open_case(w, case, CaseKind.CHECKPOINT, job, number, 0, NOBODY)
    w.cases[case] = replace(w.cases[case], tickets=d.tickets, closed_at=d.closed_at)
    pay.post_bond(w, w.site.checkpoints, caller, owner, case, CHALLENGE_FEES, Outcome.NONE)
    seats.pin(w, case)  # whoever challenges must not know the panel
    seats.start_level(w, case, PANEL_LEVEL)
    return case


def root_of(case: bytes, seat: int, operator: str, f: StepFinding) -> bytes:
    """What a seat commits to."""
    types = ("string", "bytes32", "uint16", "address", "(bool,uint256,bytes32,bytes32,bytes32)")
    return keccak(abi_encode(types, ("step", case, seat, operator, astuple(f))))


def reveal(w: World, caller: str, case: bytes, seat: int, f: StepFinding) -> None:
    """Open the seat's commit: what its own outer step gave. Its operator, in the reveal phase."""
    s = panels.seat_of(w, RULES, caller, case, seat, CasePhase.REVEALING, SeatState.COMMITTED)
    root = root_of(case, seat, caller, f)
    if root != s.root:
        raise WrongRoot(root, s.root)
    if f.abstain:
        return panels.revealed(w, RULES, case, seat, Finding.ABSTAIN)
    c = w.cases[case]
    r = rounds.round_of(w, c.job, c.round)
    if f.digest == NOTHING or (f.bitmap == r.accepted_map and f.contested != f.digest):
        raise WrongDigest(f.digest, f.contested)
    if f.bitmap & ~r.committed_map:
        raise BitmapOutOfRange(f.bitmap, r.committed_map)
    w.found[case, seat] = f
    return panels.revealed(w, RULES, case, seat, _finding_of(f, r))


def _finding_of(f: StepFinding, r: Round) -> Finding:
    if f.contested not in (NOTHING, r.next):
        return Finding.FRAUD
    return Finding.MATCH if _pair(f) == (r.accepted_map, r.next) else Finding.REJECT


def _pair(f: StepFinding) -> Pair:
    return f.bitmap, f.digest


def distribute(w: World, case: bytes) -> None:
    """Share what was slashed for a false digest, once its round is settled. Anyone."""
    c = RULES.case_of(w, case)
    if c.phase != CasePhase.DONE or c.outcome != Outcome.FRAUD:
        raise NoSuchCase(case)
    pot, fee = money.pot_of(w, case), w.jobs[c.job].terms.fee
    if rounds.status_of(w, c.job, c.round) != RoundStatus.SETTLED or not pot:
        raise NotYetSlashed(case)
    proven, revealed = w.convictions[case], seats_in(w, case, SeatState.REVEALED)
    payees = [w.seats[case][i].operator for i in revealed if w.found[case, i].contested == proven.digest]
    for i, bond in enumerate(w.bonds[case]):
        if bond.against != Outcome.FRAUD and i not in proven.false_bonds:
            payees.append(bond.operator)
    share = min(pot * 3 // 5 // len(payees), _PROVER_FEES * fee)
    for operator in payees:
        money.credit(w, case, registry.payout_of(w, operator), share)
    pay.pull(w, case, money.COURT_FUND, money.pot_of(w, case), pot * 2 // 5)
    money.burn(w, case, money.pot_of(w, case))


class CheckpointRules:
    """Equal results are right; another result for the same payloads is not, whoever computed it."""

    def case_of(self, w: World, case: bytes) -> Case:
        """A case about a checkpoint."""
        c = w.cases.get(case, Case())
        return c if c.kind == CaseKind.CHECKPOINT else Case()

    def is_accused(self, w: World, c: Case, owner: str) -> bool:
        """Who attested to the doubted checkpoint does not judge it."""
        return rounds.attested_to(w, c.job, c.round, owner)

    def opened_in_vain(self, kind: CaseKind, outcome: Outcome) -> bool:
        """The checkpoint stands."""
        return outcome == Outcome.MATCH

    def outcome_of(self, w: World, case: bytes) -> Outcome:
        """What enough seats agree on; it convicts where as many got one other digest from the attested payloads."""
        c, spoke = w.cases[case], len(seats_in(w, case, SeatState.REVEALED))
        need = max(w.site.preset.slash_needed, seats.share_of(w, c.level, spoke))
        agreed, count = _largest_agreement(w, case)
        if count < need or agreed is None:
            return Outcome.UNSAMPLED
        r = rounds.round_of(w, c.job, c.round)
        if agreed == (r.accepted_map, r.next):
            return Outcome.MATCH
        _, convicting = _largest_other(w, case, r.next)
        return Outcome.FRAUD if convicting >= need else Outcome.REJECT

    def distance_of(self, w: World, case: bytes, seat: int, outcome: Outcome) -> int:
        """0 from the same result, 2 from another result for the same payloads, 1 from other payloads."""
        if outcome == Outcome.UNSAMPLED:
            return 1
        right, own = w.found[case, w.right[case]], w.found[case, seat]
        if _pair(own) == _pair(right):
            return 0
        return 2 if own.bitmap == right.bitmap else 1

    def conclude(self, w: World, case: bytes, outcome: Outcome) -> None:
        """Replace what is not right, free the seats and bonds, pay who agreed."""
        c = w.cases[case]
        fee = w.jobs[c.job].terms.fee
        agreed, _ = _largest_agreement(w, case)
        if agreed is not None:
            w.right[case] = next(i for i in seats_in(w, case, SeatState.REVEALED) if _pair(w.found[case, i]) == agreed)
        if agreed is not None and outcome in (Outcome.REJECT, Outcome.FRAUD):
            if outcome == Outcome.FRAUD:
                _convict(w, case)
            votes.replace_checkpoint(w, c.job, c.round, agreed, convict=outcome == Outcome.FRAUD)
        winners = pay.judge_seats(w, self, case, outcome)
        pay.end_bonds(w, self, w.site.checkpoints, case, outcome, winners)
        if winners:
            rest = max(0, winners * fee - money.pot_of(w, case))  # who doubted in vain pays before the job does
            slot = SEATS_RESERVED * fee
            reserve = rounds.take_reserve(w, c.job, c.round, -(-rest // slot)) * slot
            pay.pull(w, round_pot(c.job, c.round), case, rest, reserve)
            pay.pull_from_fund(w, case, winners * fee)
            pay.pay_seats(w, self, case, outcome, winners, fee)
        money.move(w, case, money.COURT_FUND, money.pot_of(w, case))


def _convict(w: World, case: bytes) -> None:
    """Remember what was proven, and which bonds are of owners that attested to something else: they proved nothing."""
    c = w.cases[case]
    digest, _ = _largest_other(w, case, rounds.round_of(w, c.job, c.round).next)
    false = {i for i, bond in enumerate(w.bonds[case]) if rounds.attested_to(w, c.job, c.round, bond.owner)}
    w.convictions[case] = Conviction(digest, frozenset(false))


def _largest_other(w: World, case: bytes, attested: bytes) -> tuple[bytes, int]:
    """The other digest that most seats got from the attested payloads, and how many got it."""
    others = Counter(f.contested for f in _findings(w, case) if f.contested not in (NOTHING, attested))
    return max(others.items(), key=lambda item: item[1], default=(NOTHING, 0))


def _findings(w: World, case: bytes) -> list[StepFinding]:
    return [w.found[case, i] for i in seats_in(w, case, SeatState.REVEALED)]


def _largest_agreement(w: World, case: bytes) -> tuple[Pair | None, int]:
    """The pair that most seats found, the first among equals, and how many found it."""
    counts = Counter(_pair(f) for f in _findings(w, case))
    return max(counts.items(), key=lambda item: item[1], default=(None, 0))


RULES = CheckpointRules()
