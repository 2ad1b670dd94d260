"""What an operator can do about work that was not paid: appeal from a panel, or demand an audit. Pure.

Every rule here is a contract's; it is asked before anything is sent, so that a refusal is one line with its facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from protocol.core.audit import Case, CaseKind, CasePhase, Outcome
from protocol.core.claim import ClaimStatus
from protocol.core.commitment import case_id, checkpoint_case_id
from protocol.core.presets import Preset
from protocol.core.round import Round, RoundStatus
from protocol.core.terms import CHALLENGE_FEES, DEMAND_FEES, PANEL_APPEAL_FEES, Terms
from protocol.core.times import until
from protocol.core.units import format_tokens
from verifier.actions import Appeal, DemandAudit
from verifier.errors import VerifierError
from verifier.snapshot import Snapshot

PANEL_LEVEL = 3
AGAINST = (Outcome.REJECT, Outcome.FRAUD)


class NoRemedy(VerifierError):
    """Nothing can be appealed or demanded here, and why."""


@dataclass(frozen=True)
class Remedy:
    """A way to have work judged again. `bond` in wei, `until` the last second of block time in which it is open."""

    order: Appeal | DemandAudit
    about: str
    bond: int
    until: int
    won: str
    lost: str

    @property
    def command(self) -> str:
        order = self.order
        if isinstance(order, Appeal):
            return f"gradmarket node appeal {order.case_id.hex()}"
        return f"gradmarket node demand-audit {order.job_id.hex()[:12]} {order.round} {order.shard}"

    def lines(self, now: int) -> list[str]:
        """What whoever sends it should know first."""
        return [
            self.about,
            f"  bond      {format_tokens(self.bond)} tokens of the owner's free stake",
            f"  deadline  {until(self.until, now)}",
            f"  won       {self.won}",
            f"  lost      {self.lost}",
        ]


def appeal(job_id: bytes, round: Round, case: Case, terms: Terms, preset: Preset, now: int) -> Remedy:
    """An appeal from the outcome of a case. Raises NoRemedy when there is none."""
    is_step = case.kind == CaseKind.CHECKPOINT
    where = f"the checkpoint of round {round.number}" if is_step else f"shard {case.shard} of round {round.number}"
    if case.phase == CasePhase.DONE:
        raise NoRemedy(f"the case about {where} has ended with {_name(case)}: there is no appeal any more")
    if case.phase != CasePhase.APPEALABLE:
        raise NoRemedy(f"the case about {where} is {case.phase.name.lower()}: there is no outcome to appeal from yet")
    if now > case.phase_ends:
        raise NoRemedy(f"the case about {where}: the time to appeal ended {until(case.phase_ends, now)}")
    last = case.level >= PANEL_LEVEL
    seats = preset.appeal_panel if last else preset.slash_panel
    won = f"{seats} seats judge again, and what they find counts; the bond returns unless they find {_name(case)} too"
    lost = f"the bond, if {seats} seats find {_name(case)} as well"
    if not is_step:
        won += f"; after a match the claim is paid {format_tokens(terms.reward_per_shard)} tokens"
        lost += f"; if they find fraud, the claim's own bond of {format_tokens(terms.bond_per_shard)} tokens"
    return Remedy(
        order=Appeal(job_id, round.number, _ident(job_id, case), is_step),
        about=f"{where} of job {job_id.hex()[:10]}…: {len(case.seats)} seats found {_name(case)}",
        bond=(PANEL_APPEAL_FEES if last else CHALLENGE_FEES) * terms.audit_fee,
        until=case.phase_ends,
        won=won,
        lost=lost,
    )


def demand(job_id: bytes, round: Round, shard: int, terms: Terms, me: str, now: int) -> Remedy:
    """An audit of an own claim that was voted out or lies in a void round. Raises NoRemedy when there is none."""
    where, ends = f"round {round.number} of job {job_id.hex()[:10]}…", round.closed_at + terms.windows.challenge
    if not 0 <= shard < len(round.claims):
        raise NoRemedy(f"{where} has no shard {shard}; expected 0 to {len(round.claims) - 1}")
    claim = round.claims[shard]
    if claim.operator != me:
        raise NoRemedy(f"shard {shard} of {where} was claimed by {claim.operator}, keys.operator is {me}")
    if shard in round.cases:
        raise NoRemedy(f"shard {shard} of {where} has its case already: {round.cases[shard].phase.name.lower()}")
    if round.status == RoundStatus.ORPHANED:
        raise NoRemedy(f"{where} is orphaned: it was built on a checkpoint that a court replaced, and is not judged")
    if claim.status != ClaimStatus.EXCLUDED:
        raise NoRemedy(
            f"shard {shard} of {where} is {claim.status.name.lower()}; only what was voted out is audited so"
        )
    if now > ends:
        raise NoRemedy(f"shard {shard} of {where}: the time to demand an audit ended {until(ends, now)}")
    why = "lies in a void round" if round.voided else "was voted out"
    return Remedy(
        order=DemandAudit(job_id, round.number, shard),
        about=f"shard {shard} of {where} {why}",
        bond=DEMAND_FEES * terms.audit_fee,
        until=ends,
        won=f"half of its reward, {format_tokens(terms.reward_per_shard // 2)} tokens, after a match; the bond returns",
        lost=f"the bond, after a reject or fraud; after fraud the claim's own bond of "
        f"{format_tokens(terms.bond_per_shard)} tokens",
    )


def find_remedies(snapshot: Snapshot, preset: Preset) -> Iterator[Remedy]:
    """Everything that is open to this operator now, about claims of its own."""
    owners = {operator.owner for operator in snapshot.operators if operator.address == snapshot.me}
    for job in snapshot.jobs:
        for round in job.job.rounds:
            cases = [case for case in round.cases.values() if case.accused in owners]
            if round.doubt is not None and any(c.is_committed and c.owner in owners for c in round.claims):
                cases.append(round.doubt)
            for case in cases:
                if case.phase == CasePhase.APPEALABLE and case.outcome in AGAINST and snapshot.now <= case.phase_ends:
                    yield appeal(job.job_id, round, case, job.terms, preset, snapshot.now)
            for claim in round.claims:
                try:
                    yield demand(job.job_id, round, claim.shard, job.terms, snapshot.me, snapshot.now)
                except NoRemedy:
                    continue


def _ident(job_id: bytes, case: Case) -> bytes:
    if case.kind == CaseKind.CHECKPOINT:
        return checkpoint_case_id(job_id, case.round)
    return case_id(job_id, case.round, case.shard)


def _name(case: Case) -> str:
    return case.outcome.name.lower()
