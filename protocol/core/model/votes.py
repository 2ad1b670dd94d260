"""Agreeing on the next checkpoint, and what happens when a court finds another."""

from __future__ import annotations

from dataclasses import replace

from protocol.core.model import chance, jobs, registry, rounds
from protocol.core.model.kinds import RoundStatus
from protocol.core.model.records import NOTHING, Pair, Vote
from protocol.core.model.refusals import (
    AlreadyAttested,
    BitmapOutOfRange,
    NothingCommitted,
    NothingDue,
    WrongBase,
    WrongBitmap,
    WrongRoundStatus,
    ZeroDigest,
)
from protocol.core.model.world import World
from protocol.core.operator import Scope


def attest(w: World, caller: str, job: bytes, number: int, base: bytes, pair: Pair) -> None:
    """Speak for a pair with the weight of the owner's commitments, once in each window."""
    status, r = rounds.status_of(w, job, number), rounds.round_of(w, job, number)
    if status not in (RoundStatus.SEALED, RoundStatus.TALLIED):
        raise WrongRoundStatus(status, RoundStatus.SEALED)
    bitmap, digest = pair
    if base != r.base:
        raise WrongBase(base, r.base)
    if digest == NOTHING:
        raise ZeroDigest
    owner = registry.owner_for(w, caller, Scope.TRAIN)
    weight = rounds.share_of(w, job, number, owner).commits
    if not weight:
        raise NothingCommitted(caller)
    window = 1 if status == RoundStatus.SEALED else 2
    votes = w.votes.get((job, number), ())
    if any(vote.owner == owner and vote.window == window for vote in votes):
        raise AlreadyAttested(caller)
    if window == 1 and bitmap & ~r.committed_map:
        raise BitmapOutOfRange(bitmap, r.committed_map)
    if window == 2 and bitmap != r.accepted_map:
        raise WrongBitmap(bitmap, r.accepted_map)
    votes = w.votes[job, number] = (*votes, Vote(owner, window, pair, weight))
    agreed = sum(vote.weight for vote in votes if vote.window == window and vote.pair == pair)
    # more than two thirds of all weight, or in the second window more than half
    if 3 * agreed > 2 * r.committed or (window == 2 and 2 * agreed > r.committed):
        _close(w, job, number, pair)


def advance(w: World, job: bytes, number: int) -> None:
    """Do what time demands of a round. Anyone."""
    status = rounds.status_of(w, job, number)
    if status != RoundStatus.DUE:
        raise NothingDue(status)
    r, t = rounds.round_of(w, job, number), rounds.terms_of(w, job)
    votes = w.votes.get((job, number), ())
    if not r.sealed_at:
        if r.committed >= t.min_shards:
            w.rounds[job, number] = replace(r, sealed_at=w.now)
        elif r.extended:
            _void(w, job, number)
        else:
            w.rounds[job, number] = replace(r, extended=True, ends_at=w.now + t.windows.round)
    elif not r.tallied_at:
        if votes:
            tally = chance.majority((vote.pair[0], vote.weight) for vote in votes)
            w.rounds[job, number] = replace(r, accepted_map=tally, tallied_at=w.now)
        else:
            _void(w, job, number)
    else:
        spoken = [vote for vote in votes if vote.window == 2]
        for pair in dict.fromkeys(vote.pair for vote in spoken):
            if 2 * sum(v.weight for v in spoken if v.pair == pair) > sum(v.weight for v in spoken):
                return _close(w, job, number, pair)
        _void(w, job, number)
    return None


def replace_checkpoint(w: World, job: bytes, number: int, pair: Pair, *, convict: bool) -> None:
    """Put what a court found in the place of what was attested; whatever was built on that is orphaned."""
    r, p = rounds.round_of(w, job, number), jobs.progress_of(w, job)
    if convict:
        w.convicted[job, number] = (r.accepted_map, r.next)
    if rounds.status_of(w, job, number) != RoundStatus.CLOSED:
        return  # orphaned since, by an earlier checkpoint's case; a lie about its step is one all the same
    bitmap, digest = pair
    rounds.pin_again(w, job, number, bitmap)
    w.rounds[job, number] = replace(r, accepted_map=bitmap, next=digest, closed_at=w.now)
    w.checkpoints[job, r.checkpoint] = digest
    p = replace(p, moved_at=w.now)
    if number + 1 < p.opened:
        w.replaced[job] = (*w.replaced.get(job, ()), number)
        if p.active:
            last = job, p.opened - 1
            w.rounds[last] = replace(w.rounds[last], voided=True, closed_at=w.now)
        p = replace(p, generation=p.generation + 1, closed=r.checkpoint, void_streak=0, active=False)
    w.progress[job] = p


def _close(w: World, job: bytes, number: int, pair: Pair) -> None:
    p = jobs.progress_of(w, job)
    checkpoint = p.closed + 1
    w.progress[job] = replace(p, closed=checkpoint, void_streak=0, moved_at=w.now, active=False)
    bitmap, digest = pair
    r = rounds.round_of(w, job, number)
    w.rounds[job, number] = replace(r, accepted_map=bitmap, next=digest, closed_at=w.now, checkpoint=checkpoint)
    w.checkpoints[job, checkpoint] = digest
    d = rounds.draw_of(w, job, number)
    w.draws[job, number] = replace(d, beacon_ticket=chance.pin(w), tickets=len(w.tickets), closed_at=w.now)


def _void(w: World, job: bytes, number: int) -> None:
    p = jobs.progress_of(w, job)
    w.progress[job] = replace(p, void_streak=p.void_streak + 1, moved_at=w.now, active=False)
    w.rounds[job, number] = replace(rounds.round_of(w, job, number), voided=True, closed_at=w.now)
