"""What follows from a round's facts at the block's time; opening, and the draw of the sample."""

from __future__ import annotations

from dataclasses import replace

from protocol.core.commitment import round_pot
from protocol.core.encoding import abi_encode, keccak
from protocol.core.model import case_ids, chance, jobs, money, terms, tickets
from protocol.core.model.kinds import ClaimStatus, JobStatus, PauseReason, RoundStatus
from protocol.core.model.records import NOTHING, Claim, Draw, Pair, Round, Share, Terms
from protocol.core.model.refusals import (
    AlreadyDrawn,
    EscrowTooSmall,
    JobNotReady,
    TooFewAuditors,
    WrongRoundStatus,
)
from protocol.core.model.world import World

# -------------------------------------------------------------- reading


def round_of(w: World, job: bytes, number: int) -> Round:
    """A round; all zero before it opens."""
    return w.rounds.get((job, number), Round())


def claim_of(w: World, job: bytes, number: int, shard: int) -> Claim:
    """The last claim of a shard."""
    return w.claims.get((job, number, shard), Claim())


def draw_of(w: World, job: bytes, number: int) -> Draw:
    """The sample of a round; all zero before it is closed."""
    return w.draws.get((job, number), Draw())


def share_of(w: World, job: bytes, number: int, owner: str) -> Share:
    """An owner's part in a round."""
    return w.shares.get(((job, number), owner), Share())


def terms_of(w: World, job: bytes) -> Terms:
    """The terms of a job that exists."""
    return w.jobs[job].terms


def lock_id(job: bytes, number: int, shard: int) -> bytes:
    """The name of a claim's bond."""
    return keccak(abi_encode(("string", "bytes32", "uint32", "uint16"), ("claim", job, number, shard)))


def status_of(w: World, job: bytes, number: int) -> RoundStatus:
    """Where a round stands now."""
    r = round_of(w, job, number)
    if not r.opened_at:
        return RoundStatus.NONE
    t = terms_of(w, job)
    if r.closed_at:
        if r.resolved == t.shards:
            return RoundStatus.SETTLED
        if is_orphaned(w, job, number):
            return RoundStatus.ORPHANED
        return RoundStatus.VOID if r.voided else RoundStatus.CLOSED
    if not r.sealed_at:
        return RoundStatus.OPEN if w.now <= r.ends_at else RoundStatus.DUE
    if w.now > (r.tallied_at or r.sealed_at) + t.windows.attest:
        return RoundStatus.DUE
    return RoundStatus.TALLIED if r.tallied_at else RoundStatus.SEALED


def is_orphaned(w: World, job: bytes, number: int) -> bool:
    """Whether a court replaced the checkpoint of an earlier round after this one had opened."""
    since = w.replaced.get(job, ())[round_of(w, job, number).generation :]
    return any(replaced < number for replaced in since)


def is_challengeable(w: World, job: bytes, number: int) -> bool:
    """Whether a round has ended, rests on nothing that was replaced, and can still be doubted."""
    r = round_of(w, job, number)
    if not r.closed_at or w.now > r.closed_at + terms_of(w, job).windows.challenge:
        return False
    return not is_orphaned(w, job, number)


def is_accepted(w: World, job: bytes, number: int, shard: int) -> bool:
    """Whether a commitment counts in a checkpoint that stands."""
    r = round_of(w, job, number)
    counts = not r.voided and bool(r.accepted_map >> shard & 1)
    return counts and not is_orphaned(w, job, number)


def claim_status(w: World, job: bytes, number: int, shard: int) -> ClaimStatus:
    """Where a claim stands now."""
    c = claim_of(w, job, number, shard)
    if not int(c.operator, 16):
        return ClaimStatus.FREE
    if c.commitment == NOTHING:
        over = c.settled != ClaimStatus.FREE or w.now > c.deadline
        return ClaimStatus.LAPSED if over else ClaimStatus.HELD
    if c.settled != ClaimStatus.FREE:
        return c.settled
    if not round_of(w, job, number).closed_at:
        return ClaimStatus.COMMITTED
    return ClaimStatus.ACCEPTED if is_accepted(w, job, number, shard) else ClaimStatus.EXCLUDED


def checkpoint_of(w: World, job: bytes, number: int) -> bytes:
    """The agreed digest of a checkpoint; number 0 is the genesis."""
    if number == 0:
        return jobs.existing(w, job).terms.genesis_digest
    if number > jobs.progress_of(w, job).closed:
        return NOTHING
    return w.checkpoints.get((job, number), NOTHING)


def last_vote(w: World, job: bytes, number: int, owner: str) -> Pair | None:
    """What an owner attested to last."""
    pairs = [vote.pair for vote in w.votes.get((job, number), ()) if vote.owner == owner]
    return pairs[-1] if pairs else None


def attested_to(w: World, job: bytes, number: int, owner: str) -> bool:
    """Whether an owner's last attestation is what the round ended in."""
    r = round_of(w, job, number)
    return last_vote(w, job, number, owner) == (r.accepted_map, r.next)


# -------------------------------------------------------------- opening and sampling


def open(w: World, job: bytes) -> int:
    """Open a ready job's next round on its newest checkpoint; reserves its pay. Anyone."""
    _check_ready(w, job)
    p, t = jobs.progress_of(w, job), terms_of(w, job)
    number = p.opened
    w.progress[job] = replace(p, opened=number + 1, unsettled=p.unsettled + 1, active=True)
    base = checkpoint_of(w, job, p.closed)
    ends_at = w.now + t.windows.round
    w.rounds[job, number] = Round(base=base, opened_at=w.now, ends_at=ends_at, generation=p.generation)
    money.move(w, job, round_pot(job, number), terms.reservation(t))
    return number


def _check_ready(w: World, job: bytes) -> None:
    status, reason = jobs.status_of(w, job)
    if status == JobStatus.READY:
        return
    if reason == PauseReason.ESCROW:
        raise EscrowTooSmall(money.pot_of(w, job), terms.reservation(terms_of(w, job)))
    if reason == PauseReason.AUDITORS:
        raise TooFewAuditors(tickets.live_owners(w), w.site.preset.slash_panel + 1)
    raise JobNotReady(job, status, reason)


def draw(w: World, job: bytes, number: int) -> None:
    """Draw a closed round's sample, or pin again when the seed was missed. Anyone."""
    status = status_of(w, job, number)
    if status != RoundStatus.CLOSED:
        raise WrongRoundStatus(status, RoundStatus.CLOSED)
    d, r = draw_of(w, job, number), round_of(w, job, number)
    if d.drawn:
        raise AlreadyDrawn(job, number)
    if chance.is_expired(w, d.beacon_ticket):
        w.draws[job, number] = replace(d, beacon_ticket=chance.pin(w))
        return
    seed = chance.seed_of(w, d.beacon_ticket)
    on_probation, others, wanted = _undrawn(w, job, number)
    chosen, room = on_probation | chance.choose(others, wanted, seed), _free_slots(w, job, d)
    if chosen.bit_count() > room:  # no more than was reserved
        chosen = chance.choose(chosen, room, seed)
    sampled = d.sampled_map | chosen
    w.draws[job, number] = replace(d, drawn=True, seed=seed, sampled_map=sampled, drawn_map=r.accepted_map)


def pin_again(w: World, job: bytes, number: int, bitmap: int) -> None:
    """What a court puts into the bitmap after the draw is drawn from as well."""
    d = draw_of(w, job, number)
    if d.drawn and bitmap & ~round_of(w, job, number).accepted_map:
        w.draws[job, number] = replace(d, drawn=False, beacon_ticket=chance.pin(w))


def _undrawn(w: World, job: bytes, number: int) -> tuple[int, int, int]:
    """Accepted claims that no sample was drawn from and that have no case: those on probation, the others, and how many
    of the others a sample takes."""
    r = round_of(w, job, number)
    fresh = r.accepted_map & ~draw_of(w, job, number).drawn_map
    fresh &= ~sum(1 << shard for shard in chance.bits(fresh) if case_ids.of_claim(job, number, shard) in w.cases)
    on_probation, others = fresh & r.probation_map, fresh & ~r.probation_map
    return on_probation, others, chance.share_of(others.bit_count(), terms_of(w, job).audit_rate_bps)


def _free_slots(w: World, job: bytes, d: Draw) -> int:
    """Slots of the reserve that neither a sample nor another case has."""
    return max(0, terms.sample_slots(terms_of(w, job)) - d.sampled_map.bit_count() - d.taken)


def take_reserve(w: World, job: bytes, number: int, wanted: int) -> int:
    """Slots of three fees each that a round reserved and its sample does not need. The courts only."""
    status, d = status_of(w, job, number), draw_of(w, job, number)
    if status == RoundStatus.SETTLED:
        return 0
    free = _free_slots(w, job, d)
    if status == RoundStatus.CLOSED and not d.drawn:  # the sample comes first
        on_probation, _, sampled = _undrawn(w, job, number)
        free = max(0, free - on_probation.bit_count() - sampled)
    granted = min(wanted, free)
    w.draws[job, number] = replace(d, taken=d.taken + granted)
    return granted
