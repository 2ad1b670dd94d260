"""Taking shards, committing to results, and what a lapse costs."""

from __future__ import annotations

from dataclasses import replace

from protocol.core.commitment import Opening, commitment
from protocol.core.model import money, registry, rounds, standing
from protocol.core.model.kinds import ClaimStatus, RoundStatus
from protocol.core.model.records import NOTHING, Claim, Share, Terms
from protocol.core.model.refusals import (
    AlreadyCommitted,
    ClaimOver,
    NoShards,
    NoSuchShard,
    NotTheClaimant,
    OwnerBarred,
    ProbationSlotsFull,
    ShardLapsedByOwner,
    ShardTaken,
    TooManyClaims,
    WrongBase,
    WrongOpening,
    WrongRoundStatus,
    ZeroDigest,
)
from protocol.core.model.terms import BPS
from protocol.core.model.world import World
from protocol.core.operator import Scope

_LAPSE_FEE_BPS = 500
_OUTCOMES_REMEMBERED = 20
_MOST_DOUBLINGS = 5


def claim(w: World, caller: str, job: bytes, number: int, shards: list[int]) -> None:
    """Take exclusive holds on shards; locks a bond for each. An operator of an owner that is not barred."""
    _check_open(w, job, number)
    if not shards:
        raise NoShards
    owner = registry.owner_for(w, caller, Scope.TRAIN)
    on_probation, barred = standing.standing_of(w, job, owner)
    if barred:
        raise OwnerBarred(job, owner)
    t = rounds.terms_of(w, job)
    for shard in shards:
        _claim_one(w, caller, owner, job, number, shard, t)
    share = rounds.share_of(w, job, number, owner)
    held = share.held + len(shards)
    w.shares[(job, number), owner] = replace(share, held=held)
    cap = _cap(w, job, number, t)
    if held > cap:
        raise TooManyClaims(owner, held, cap)
    if on_probation:
        r = rounds.round_of(w, job, number)
        on_trial = r.probation_map | sum(1 << shard for shard in shards)
        w.rounds[job, number] = replace(r, probation_map=on_trial)
        if on_trial.bit_count() > t.probation_slots:
            raise ProbationSlotsFull(on_trial.bit_count(), t.probation_slots)


def _claim_one(w: World, caller: str, owner: str, job: bytes, number: int, shard: int, t: Terms) -> None:
    if shard >= t.shards:
        raise NoSuchShard(shard, t.shards)
    status, last = rounds.claim_status(w, job, number, shard), rounds.claim_of(w, job, number, shard)
    if status == ClaimStatus.LAPSED:
        if last.owner == owner:
            raise ShardLapsedByOwner(shard, owner)
        charge_lapse(w, job, number, shard)
    elif status != ClaimStatus.FREE:
        raise ShardTaken(shard, last.operator)
    deadline = min(w.now + t.windows.train, rounds.round_of(w, job, number).ends_at)
    w.claims[job, number, shard] = Claim(caller, w.now, deadline, ClaimStatus.FREE, owner)
    money.lock(w, w.site.rounds, owner, rounds.lock_id(job, number, shard), t.bond)


def _cap(w: World, job: bytes, number: int, t: Terms) -> int:
    """An owner's claims: a quarter of the shards until half of the round has passed, then any number."""
    r = rounds.round_of(w, job, number)
    half = (r.opened_at + r.ends_at) // 2
    return t.shards if w.now > half else -(-t.shards // 4)


def commit(w: World, caller: str, job: bytes, number: int, shard: int, base: bytes, opening: Opening) -> None:
    """Bind a result to a claim, once, until its deadline. The claimant only; the last one seals the round."""
    _check_open(w, job, number)
    c, r, t = rounds.claim_of(w, job, number, shard), rounds.round_of(w, job, number), rounds.terms_of(w, job)
    if c.operator != caller:
        raise NotTheClaimant(caller, c.operator)
    if c.commitment != NOTHING:
        raise AlreadyCommitted(shard)
    if w.now > c.deadline:
        raise ClaimOver(w.now, c.deadline)
    if base != r.base:
        raise WrongBase(base, r.base)
    if NOTHING in (opening.payload_digest, opening.trace_root, opening.state_digest):
        raise ZeroDigest
    w.claims[job, number, shard] = replace(c, commitment=commitment_of(w, job, number, shard, caller, opening))
    share = rounds.share_of(w, job, number, c.owner)
    w.shares[(job, number), c.owner] = replace(share, commits=share.commits + 1)
    _remember(w, c.owner, lapsed=False)
    committed = r.committed + 1
    sealed_at = w.now if committed == t.shards else 0
    bitmap = r.committed_map | 1 << shard
    w.rounds[job, number] = replace(r, committed=committed, committed_map=bitmap, sealed_at=sealed_at)


def commitment_of(w: World, job: bytes, number: int, shard: int, operator: str, o: Opening) -> bytes:
    """The hash that binds three digests to this claim and to nothing else."""
    base = rounds.round_of(w, job, number).base
    values = (o.payload_digest, o.trace_root, o.state_digest)
    return commitment(w.site.chain_id, w.site.rounds, job, number, shard, operator, base, *values)


def check_opening(w: World, job: bytes, number: int, shard: int, o: Opening) -> None:
    """Refuse three values that do not open the shard's commitment."""
    c = rounds.claim_of(w, job, number, shard)
    have = commitment_of(w, job, number, shard, c.operator, o)
    if have != c.commitment:
        raise WrongOpening(have, c.commitment)


def charge_lapse(w: World, job: bytes, number: int, shard: int) -> None:
    """Burn the fee of a claim that ran out without a commitment; free its bond, its place and its probation slot."""
    t, c, r = rounds.terms_of(w, job), rounds.claim_of(w, job, number, shard), rounds.round_of(w, job, number)
    w.rounds[job, number] = replace(r, probation_map=r.probation_map & ~(1 << shard))
    w.claims[job, number, shard] = replace(c, settled=ClaimStatus.LAPSED)
    share = rounds.share_of(w, job, number, c.owner)
    level = share.lapse_level
    if not level:  # one outage, however many shards it hit: the round counts once
        level = doublings_of(w, c.owner) + 1
        _remember(w, c.owner, lapsed=True)
    w.shares[(job, number), c.owner] = Share(share.held - 1, share.commits, level)
    fee, ident = lapse_fee(t, level - 1), rounds.lock_id(job, number, shard)
    money.slash(w, w.site.rounds, ident, fee, fee, NOTHING)
    money.release(w, w.site.rounds, ident)


def lapse_fee(t: Terms, doublings: int) -> int:
    """5 % of the reward, doubled so often, at most the bond."""
    return min(t.bond, (t.reward * _LAPSE_FEE_BPS << doublings) // BPS)


def doublings_of(w: World, owner: str) -> int:
    """Lapsed rounds among an owner's last twenty outcomes, at most five."""
    return min(_MOST_DOUBLINGS, sum(w.outcomes.get(owner, ())))


def _remember(w: World, owner: str, *, lapsed: bool) -> None:
    w.outcomes[owner] = (*w.outcomes.get(owner, ()), lapsed)[-_OUTCOMES_REMEMBERED:]


def _check_open(w: World, job: bytes, number: int) -> None:
    status = rounds.status_of(w, job, number)
    if status != RoundStatus.OPEN:
        raise WrongRoundStatus(status, RoundStatus.OPEN)
