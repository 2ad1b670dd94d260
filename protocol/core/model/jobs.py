"""Posting, funding and ending jobs."""

from __future__ import annotations

from dataclasses import replace

from protocol.core.encoding import abi_encode, keccak
from protocol.core.model import money, terms, tickets
from protocol.core.model.kinds import JobStatus, PauseReason
from protocol.core.model.records import NOTHING, Job, Progress, Terms
from protocol.core.model.refusals import (
    AlreadyCalibrated,
    AmountTooLarge,
    EscrowTooSmall,
    JobExists,
    JobNotClosable,
    JobOver,
    NoSuchJob,
    NotTheGuardian,
    NotThePoster,
    PostingPaused,
    RoundsUnsettled,
    SeedTooLong,
    ZeroRecord,
)
from protocol.core.model.world import World

_MOST_SEED = 256
_VOID_ROUNDS_TO_CLOSE = 3


def job_id(w: World, poster: str, spec_digest: bytes, salt: bytes) -> bytes:
    """The name of a job: nobody else's post can take it."""
    types = ("uint256", "address", "address", "bytes32", "bytes32")
    return keccak(abi_encode(types, (w.site.chain_id, w.site.market, poster, spec_digest, salt)))


def existing(w: World, job: bytes) -> Job:
    """A job that was posted."""
    if job not in w.jobs:
        raise NoSuchJob(job)
    return w.jobs[job]


def progress_of(w: World, job: bytes) -> Progress:
    """How far a job has come; nothing yet for one without rounds."""
    return w.progress.get(job, Progress())


def post(w: World, caller: str, t: Terms, salt: bytes, amount: int, seed: str) -> bytes:
    """Post a job and fund it. Anyone, while posting is allowed."""
    if not w.posting_allowed:
        raise PostingPaused
    job = job_id(w, caller, t.spec_digest, salt)
    if job in w.jobs:
        raise JobExists(job)
    if len(seed.encode()) > _MOST_SEED:
        raise SeedTooLong(len(seed.encode()), _MOST_SEED)
    terms.check(t, w.site.preset)
    need = terms.reservation(t)
    if amount < need:
        raise EscrowTooSmall(amount, need)
    w.jobs[job] = Job(t, caller, w.now)
    _fund(w, caller, job, amount)
    return job


def fund(w: World, caller: str, job: bytes, amount: int) -> None:
    """Add to a job's escrow. Anyone, until it is cancelled or closed."""
    j = existing(w, job)
    if j.cancelled or j.closed:
        raise JobOver(job)
    _fund(w, caller, job, amount)


def _fund(w: World, caller: str, job: bytes, amount: int) -> None:
    most = money.MOST_AMOUNT - w.jobs[job].funded
    if amount > most:
        raise AmountTooLarge(amount, most)
    w.jobs[job] = replace(w.jobs[job], funded=w.jobs[job].funded + amount)
    money.fund(w, job, caller, amount)


def pause(w: World, caller: str, job: bytes) -> None:
    """Open no further round until resumed. Poster only."""
    w.jobs[job] = replace(_own(w, caller, job), paused=True)


def resume(w: World, caller: str, job: bytes) -> None:
    """Undo a pause. Poster only."""
    w.jobs[job] = replace(_own(w, caller, job), paused=False)


def cancel(w: World, caller: str, job: bytes) -> None:
    """Open no further round ever. Poster only."""
    w.jobs[job] = replace(_own(w, caller, job), cancelled=True)


def refund(w: World, caller: str, job: bytes, amount: int) -> None:
    """Credit what no round has reserved to the poster; 0 means all. Poster only, at any time."""
    _own(w, caller, job)
    _refund(w, job, amount or money.pot_of(w, job))


def _refund(w: World, job: bytes, amount: int) -> None:
    if amount == 0:
        return
    j = w.jobs[job]
    w.jobs[job] = replace(j, refunded=j.refunded + amount)
    money.credit(w, job, j.poster, amount)


def close(w: World, job: bytes) -> None:
    """End a job that has come to its end; the rest is the poster's. Anyone."""
    status, _ = status_of(w, job)
    if status != JobStatus.CLOSABLE:
        raise JobNotClosable(job, status)
    w.jobs[job] = replace(w.jobs[job], closed=True)
    _refund(w, job, money.pot_of(w, job))


def calibrate(w: World, caller: str, job: bytes, record: bytes) -> None:
    """Attach a calibration record, once, while no bond of the job is locked. Poster only."""
    j = _own(w, caller, job)
    if record == NOTHING:
        raise ZeroRecord
    if j.calibration != NOTHING:
        raise AlreadyCalibrated(job, j.calibration)
    unsettled = progress_of(w, job).unsettled
    if unsettled:
        raise RoundsUnsettled(job, unsettled)
    w.jobs[job] = replace(j, calibration=record)


def allow_posting(w: World, caller: str, allowed: bool) -> None:
    """Allow or forbid new jobs. The guardian only."""
    if caller != w.site.guardian:
        raise NotTheGuardian(caller)
    w.posting_allowed = allowed


def status_of(w: World, job: bytes) -> tuple[JobStatus, PauseReason]:
    """Derived from stored facts and the time: the first that holds."""
    if job not in w.jobs:
        return JobStatus.NONE, PauseReason.NONE
    j, p = w.jobs[job], progress_of(w, job)
    if j.closed:
        return JobStatus.CLOSED, PauseReason.NONE
    if p.active:
        return JobStatus.RUNNING, PauseReason.NONE
    if j.cancelled or p.closed == j.terms.rounds or p.void_streak >= _VOID_ROUNDS_TO_CLOSE:
        return (JobStatus.DRAINING if p.unsettled else JobStatus.CLOSABLE), PauseReason.NONE
    reason = _pause_reason(w, job, j, p)
    if reason == PauseReason.NONE:
        return JobStatus.READY, reason
    since = max(p.moved_at, j.posted_at)
    abandoned = not p.unsettled and w.now > since + w.site.preset.abandon_after
    return (JobStatus.CLOSABLE if abandoned else JobStatus.PAUSED), reason


def _pause_reason(w: World, job: bytes, j: Job, p: Progress) -> PauseReason:
    if j.paused:
        return PauseReason.POSTER
    if p.void_streak and w.now <= p.moved_at + j.terms.windows.round:
        return PauseReason.VOID_ROUND
    if money.pot_of(w, job) < terms.reservation(j.terms):
        return PauseReason.ESCROW
    if tickets.live_owners(w) <= w.site.preset.slash_panel:
        return PauseReason.AUDITORS
    return PauseReason.NONE


def _own(w: World, caller: str, job: bytes) -> Job:
    j = existing(w, job)
    if caller != j.poster:
        raise NotThePoster(caller, j.poster)
    return j
