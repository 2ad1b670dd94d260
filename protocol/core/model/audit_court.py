"""Whether a claim was honest work: how its cases begin, and what their verdicts do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from protocol.core.commitment import round_pot
from protocol.core.model import case_ids, money, panels, pay, registry, rounds, seats, standing
from protocol.core.model.kinds import CaseKind, ClaimStatus, Finding, Outcome, SeatState
from protocol.core.model.panels import CHALLENGE_FEES
from protocol.core.model.records import NOTHING, Bond, Case
from protocol.core.model.refusals import (
    NotChallengeable,
    NotDemandable,
    NotSampled,
    NotTheClaimant,
    OtherCommitment,
    OwnClaim,
)
from protocol.core.model.seats import PANEL_LEVEL
from protocol.core.model.terms import BPS, SEATS_RESERVED
from protocol.core.model.world import World
from protocol.core.operator import Scope

_DEMAND_FEES = 3
_PROVER_BPS = 3_000
_PROVER_FEES = 10
_FUND_BPS = 2_000
_PLACE = {Outcome.MATCH: 0, Outcome.REJECT: 1, Outcome.FRAUD: 2}

# -------------------------------------------------------------- how a case begins


def convene(w: World, job: bytes, number: int, shards: list[int]) -> None:
    """Open the cases of sampled claims; their first seat comes from the sample's own seed. Anyone."""
    d = rounds.draw_of(w, job, number)
    for shard in shards:
        accepted = rounds.claim_status(w, job, number, shard) == ClaimStatus.ACCEPTED
        if not d.sampled_map >> shard & 1 or not accepted:
            raise NotSampled(job, number, shard)
        case = _open(w, CaseKind.SAMPLED, job, number, shard)
        w.cases[case] = replace(w.cases[case], tickets=d.tickets, closed_at=d.closed_at, seed=d.seed)
        seats.start_level(w, case, 1)
        panels.fill(w, RULES, case)


def challenge(w: World, caller: str, job: bytes, number: int, shard: int, commitment: bytes) -> bytes:
    """Doubt an accepted claim that was not sampled: straight to the panel. An operator of another owner."""
    d = rounds.draw_of(w, job, number)
    accepted = rounds.claim_status(w, job, number, shard) == ClaimStatus.ACCEPTED
    sampled = d.sampled_map >> shard & 1
    if not (accepted and d.drawn and rounds.is_challengeable(w, job, number)) or sampled:
        raise NotChallengeable(job, number, shard)
    claim = rounds.claim_of(w, job, number, shard)
    if commitment != claim.commitment:
        raise OtherCommitment(commitment, claim.commitment)
    owner = registry.owner_for(w, caller, Scope.CHALLENGE)
    if owner == claim.owner:
        raise OwnClaim(owner)
    case = _open(w, CaseKind.CHALLENGED, job, number, shard)
    w.cases[case] = replace(w.cases[case], tickets=d.tickets, closed_at=d.closed_at)
    pay.post_bond(w, w.site.court, caller, owner, case, CHALLENGE_FEES, Outcome.NONE)
    seats.pin(w, case)  # whoever challenges must not know the panel
    seats.start_level(w, case, PANEL_LEVEL)
    return case


def demand_audit(w: World, caller: str, job: bytes, number: int, shard: int) -> bytes:
    """Ask for an audit of the caller's own claim that was voted out, or that lies in a void round."""
    c = rounds.claim_of(w, job, number, shard)
    if c.operator != caller:
        raise NotTheClaimant(caller, c.operator)
    registry.owner_for(w, caller, Scope.TRAIN)  # a revoked key spends no stake
    excluded = rounds.claim_status(w, job, number, shard) == ClaimStatus.EXCLUDED
    if not excluded or not rounds.is_challengeable(w, job, number):
        raise NotDemandable(job, number, shard)
    case = _open(w, CaseKind.DEMANDED, job, number, shard)
    w.cases[case] = replace(w.cases[case], tickets=len(w.tickets), closed_at=w.now)
    pay.post_bond(w, w.site.court, caller, c.owner, case, _DEMAND_FEES, Outcome.NONE)
    seats.pin(w, case)
    seats.start_level(w, case, 1)
    return case


def _open(w: World, kind: CaseKind, job: bytes, number: int, shard: int) -> bytes:
    case = case_ids.of_claim(job, number, shard)
    panels.open_case(w, case, kind, job, number, shard, rounds.claim_of(w, job, number, shard).owner)
    return case


# -------------------------------------------------------------- the rules of this court


class AuditRules:
    """Findings about a claim: how they are counted, and who is paid out of what."""

    def case_of(self, w: World, case: bytes) -> Case:
        """A case about a claim."""
        c = w.cases.get(case, Case())
        return Case() if c.kind == CaseKind.CHECKPOINT else c

    def is_accused(self, w: World, c: Case, owner: str) -> bool:
        """The owner of the claim."""
        return c.accused == owner

    def opened_in_vain(self, kind: CaseKind, outcome: Outcome) -> bool:
        """A challenge of work that stands; a demand for an audit of work that does not."""
        if kind == CaseKind.CHALLENGED:
            return outcome == Outcome.MATCH
        return outcome in (Outcome.REJECT, Outcome.FRAUD)

    def outcome_of(self, w: World, case: bytes) -> Outcome:
        """The ladder: one Match, two equal findings of three, a panel's large majority."""
        panel_seats, level = w.seats[case], w.cases[case].level
        said = Counter(s.finding for s in panel_seats if s.state == SeatState.REVEALED)
        vacant = len(panel_seats) - said.total()
        frauds, matches = said[Finding.FRAUD], said[Finding.MATCH]
        rejects, inputs = said[Finding.REJECT] + said[Finding.UNAVAILABLE_PAYLOAD], said[Finding.UNAVAILABLE_INPUTS]
        if level == 1:
            if vacant:
                return Outcome.UNSAMPLED
            return Outcome.MATCH if matches else Outcome.NONE
        if level == 2:
            if matches >= 2:
                return Outcome.MATCH
            if frauds:
                return Outcome.NONE
            if rejects >= 2:
                return Outcome.REJECT
            return Outcome.EXCUSED if inputs >= 2 else Outcome.NONE
        p, spoke = w.site.preset, said.total()
        need = seats.share_of(w, level, spoke)
        if frauds >= max(need, p.slash_needed) and spoke >= p.slash_panel:
            return Outcome.FRAUD
        if frauds + rejects >= max(need, 2):
            return Outcome.REJECT
        if vacant and matches <= frauds + rejects and _is_against_reject(w, case):
            return Outcome.REJECT  # an appeal that nobody came to hear changes nothing
        if 2 * inputs > len(panel_seats):
            return Outcome.EXCUSED
        return Outcome.UNSAMPLED if not matches and vacant else Outcome.MATCH

    def distance_of(self, w: World, case: bytes, seat: int, outcome: Outcome) -> int:
        """Match 0, Reject 1, Fraud 2; what says nothing about the work is 1 from all but its own outcome."""
        finding = w.seats[case][seat].finding
        if finding == Finding.UNAVAILABLE_INPUTS:
            return 0 if outcome == Outcome.EXCUSED else 1
        if outcome not in _PLACE:
            return 1
        place = {Finding.MATCH: 0, Finding.FRAUD: 2}.get(finding, 1)
        return abs(place - _PLACE[outcome])

    def conclude(self, w: World, case: bytes, outcome: Outcome) -> None:
        """Standing, bond, seats, bonds, fees, provers, and the rest of the pot, in this order."""
        c = w.cases[case]
        job = w.jobs[c.job]
        fee, bond = job.terms.fee, 0
        standing.record(w, c, outcome)
        if outcome == Outcome.FRAUD and (not w.site.preset.calibrated or job.calibration != NOTHING):
            ident = rounds.lock_id(c.job, c.round, c.shard)
            bond = money.lock_amount(w, w.site.rounds, ident)
            money.slash(w, w.site.rounds, ident, bond, 0, case)
        winners = pay.judge_seats(w, self, case, outcome)
        pay.end_bonds(w, self, w.site.court, case, outcome, winners)
        _collect_fees(w, case, outcome, winners * fee)
        pay.pay_seats(w, self, case, outcome, winners, fee)
        if outcome == Outcome.FRAUD:
            _pay_provers(w, case, winners, bond, fee)
        _empty_pot(w, case, outcome)


RULES = AuditRules()


def _is_against_reject(w: World, case: bytes) -> bool:
    """Whether the last level was asked to undo a Reject."""
    bonds = w.bonds.get(case, ())
    return bool(bonds) and bonds[-1].against == Outcome.REJECT


def _collect_fees(w: World, case: bytes, outcome: Outcome, need: int) -> None:
    """In this order: three reserved fees, the forfeited reward, what was slashed into the case, the court fund; of
    demanded audits what was slashed comes first."""
    if not need:
        return
    c = w.cases[case]
    t, pot, rest = w.jobs[c.job].terms, round_pot(c.job, c.round), need
    reserved = c.kind == CaseKind.SAMPLED
    if c.kind == CaseKind.DEMANDED:  # who asked in vain pays before the job does
        rest -= min(need, money.pot_of(w, case))
        reserved = rest > 0 and rounds.take_reserve(w, c.job, c.round, 1) == 1
    if reserved:
        rest -= pay.pull(w, pot, case, rest, SEATS_RESERVED * t.fee)
    rest -= pay.pull(w, pot, case, rest, _forfeited(c, outcome, t.reward))
    pay.pull_from_fund(w, case, need)


def _forfeited(c: Case, outcome: Outcome, reward: int) -> int:
    """What of a claim's reward its operator does not get."""
    if outcome in (Outcome.REJECT, Outcome.FRAUD):
        return reward
    half_paid = c.kind == CaseKind.DEMANDED and outcome in (Outcome.MATCH, Outcome.EXCUSED)
    return reward - reward // 2 if half_paid else 0


def _pay_provers(w: World, case: bytes, winners: int, bond: int, fee: int) -> None:
    """30 % of the bond, at most ten fees each, for who said Fraud or made that panel sit; 20 % to the court fund."""
    c = w.cases[case]
    payees = [bond_.operator for bond_ in w.bonds.get(case, ()) if _is_prover(c, bond_)]
    payees += [s.operator for s in w.seats[case] if s.state == SeatState.REVEALED and s.finding == Finding.FRAUD]
    rest = money.pot_of(w, case)
    share = min(bond * _PROVER_BPS // BPS // len(payees), _PROVER_FEES * fee, rest // len(payees))
    for operator in payees:
        money.credit(w, case, registry.payout_of(w, operator), share)
    pay.pull(w, case, money.COURT_FUND, bond * _FUND_BPS // BPS, rest - share * len(payees))


def _is_prover(c: Case, bond: Bond) -> bool:
    return bond.owner != c.accused and bond.against != Outcome.FRAUD


def _empty_pot(w: World, case: bytes, outcome: Outcome) -> None:
    """The rest is burnt after Fraud and the court fund's otherwise."""
    rest = money.pot_of(w, case)
    if outcome == Outcome.FRAUD:
        money.burn(w, case, rest)
    else:
        money.move(w, case, money.COURT_FUND, rest)
