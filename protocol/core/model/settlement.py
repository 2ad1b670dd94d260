"""Deciding each claim's pay and freeing its bond."""

from __future__ import annotations

from dataclasses import replace

from protocol.core.commitment import round_pot
from protocol.core.model import case_ids, claims, jobs, money, registry, rounds
from protocol.core.model.kinds import CaseKind, CasePhase, ClaimStatus, Outcome, RoundStatus
from protocol.core.model.records import NOBODY, NOTHING, Case
from protocol.core.model.refusals import NoSuchShard, NothingToSettle, WrongRoundStatus
from protocol.core.model.world import World

_FINAL_PER_CALL = 64  # rounds looked at in one call
_DONE = (ClaimStatus.PAID, ClaimStatus.UNPAID)


def settle(w: World, job: bytes, number: int, shards: list[int]) -> None:
    """Settle shards whose fate is decided, once each; the last one returns what is left of the round's pot. A call that
    settles nothing is done only if it counted as many final rounds as it may. Anyone."""
    if not rounds.round_of(w, job, number).closed_at:
        raise WrongRoundStatus(rounds.status_of(w, job, number), RoundStatus.CLOSED)
    more = finalize(w, job, number)
    t, settled = rounds.terms_of(w, job), 0
    for shard in shards:
        if shard >= t.shards:
            raise NoSuchShard(shard, t.shards)
        settled += _settle_one(w, job, number, shard)
    if not settled:
        if more:
            return
        raise NothingToSettle
    r = rounds.round_of(w, job, number)
    r = w.rounds[job, number] = replace(r, resolved=r.resolved + settled)
    if r.resolved == t.shards:
        p = jobs.progress_of(w, job)
        w.progress[job] = replace(p, unsettled=p.unsettled - 1)
        pot = round_pot(job, number)
        money.move(w, pot, job, money.pot_of(w, pot))


def finalize(w: World, job: bytes, number: int) -> bool:
    """Count the rounds from the first on whose checkpoint nobody can challenge any more, up to this one; whether there
    may be more to count."""
    first = last = jobs.progress_of(w, job).final_rounds
    while last <= number and last < first + _FINAL_PER_CALL and _is_final(w, job, last):
        last += 1
    w.progress[job] = replace(jobs.progress_of(w, job), final_rounds=last)
    return last == first + _FINAL_PER_CALL


def _is_final(w: World, job: bytes, number: int) -> bool:
    """No checkpoint, or one that is past its window and not doubted."""
    r = rounds.round_of(w, job, number)
    if r.voided or rounds.is_orphaned(w, job, number):
        return True
    return bool(r.closed_at) and _is_over(w, job, number) and not _is_doubted(w, job, number)


def _is_doubted(w: World, job: bytes, number: int) -> bool:
    """Whether a case about the round's checkpoint is open."""
    doubt = w.cases.get(case_ids.of_checkpoint(job, number), Case())
    return doubt.phase not in (CasePhase.NONE, CasePhase.DONE)


def _is_over(w: World, job: bytes, number: int) -> bool:
    return w.now > rounds.round_of(w, job, number).closed_at + rounds.terms_of(w, job).windows.challenge


def _settle_one(w: World, job: bytes, number: int, shard: int) -> bool:
    """Settle one shard if its fate is decided and it was not settled before."""
    c = rounds.claim_of(w, job, number, shard)
    if c.settled in _DONE:
        return False
    ident, reward = rounds.lock_id(job, number, shard), 0
    if c.commitment == NOTHING:
        if c.operator != NOBODY and c.settled == ClaimStatus.FREE:
            if rounds.is_orphaned(w, job, number):
                money.release(w, w.site.rounds, ident)
            else:
                claims.charge_lapse(w, job, number, shard)
    else:
        fate = fate_of(w, job, number, shard)
        if fate is None:
            return False
        reward = fate
        if not reward and is_convicted(w, job, number, c.owner):
            _slash_attester(w, job, number, ident)
        money.release(w, w.site.rounds, ident)
        if reward:
            money.credit(w, round_pot(job, number), registry.payout_of(w, c.operator), reward)
    settled = ClaimStatus.PAID if reward else ClaimStatus.UNPAID
    w.claims[job, number, shard] = replace(rounds.claim_of(w, job, number, shard), settled=settled)
    return True


def fate_of(w: World, job: bytes, number: int, shard: int) -> int | None:
    """What a commitment is paid; None while that is open."""
    case = w.cases.get(case_ids.of_claim(job, number, shard))
    if case is not None and case.phase != CasePhase.DONE:
        return None
    if rounds.is_orphaned(w, job, number):
        return None if _is_doubted(w, job, number) else 0
    if not _is_over(w, job, number) or jobs.progress_of(w, job).final_rounds <= number:
        return None
    if is_convicted(w, job, number, rounds.claim_of(w, job, number, shard).owner):
        return 0
    full = rounds.terms_of(w, job).reward
    if case is not None and case.outcome != Outcome.UNSAMPLED:
        if case.outcome not in (Outcome.MATCH, Outcome.EXCUSED):
            return 0
        return full // 2 if case.kind == CaseKind.DEMANDED else full
    if not rounds.is_accepted(w, job, number, shard):
        return 0
    d = rounds.draw_of(w, job, number)
    waits = not d.drawn or (d.sampled_map >> shard & 1 and case is None)
    return None if waits else full


def is_convicted(w: World, job: bytes, number: int, owner: str) -> bool:
    """Whether an owner's last vote is the one that a court found false."""
    convicted = w.convicted.get((job, number))
    return convicted is not None and rounds.last_vote(w, job, number, owner) == convicted


def _slash_attester(w: World, job: bytes, number: int, ident: bytes) -> None:
    """Half of the bond is burnt, the rest waits in the case's pot for those who proved it."""
    amount = money.lock_amount(w, w.site.rounds, ident)
    if amount:
        money.slash(w, w.site.rounds, ident, amount, amount - amount // 2, case_ids.of_checkpoint(job, number))
