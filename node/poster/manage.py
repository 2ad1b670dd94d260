"""What a poster does to a running job: fund, pause, resume, cancel, refund, close. Each checks before it signs."""

from __future__ import annotations

from node.poster.errors import JobOver, NotThePoster
from node.wallet import NotEnough, Wallet
from protocol.core.job import Job, JobStatus
from protocol.core.units import format_tokens

OVER = (JobStatus.CLOSED, JobStatus.CLOSABLE, JobStatus.DRAINING)
FOREVER = 2**32 - 1  # a round's number that no job reaches: reads a job without its rounds


async def read_job(wallet: Wallet, job_id: bytes) -> Job:
    """The job without its rounds."""
    return await wallet.market.job(job_id, FOREVER)


async def check_poster(wallet: Wallet, job_id: bytes) -> None:
    poster = await wallet.market.poster(job_id)
    if poster != wallet.address:
        raise NotThePoster(f"job {job_id.hex()[:10]}…: it was posted by {poster}, keys.owner is {wallet.address}")


async def fund(wallet: Wallet, job_id: bytes, amount: int) -> int:
    """Add wei to the escrow; anyone may. Returns the escrow afterwards."""
    job = await read_job(wallet, job_id)
    if job.status in OVER:
        raise JobOver(f"job {job_id.hex()[:10]}…: it is {job.status.name.lower()}, it takes no more tokens")
    await wallet.check_tokens(amount, "job fund")
    await wallet.allow("RewardLedger", amount)
    functions = wallet.market.job_market.functions
    await wallet.sender.submit_and_confirm(f"fund:{job_id.hex()}:{amount}", functions.fund(job_id, amount))
    return (await read_job(wallet, job_id)).escrow


async def order(wallet: Wallet, job_id: bytes, what: str) -> Job:
    """pause, resume or cancel. Repeating it changes nothing."""
    await check_poster(wallet, job_id)
    job = await read_job(wallet, job_id)
    if job.status == JobStatus.CLOSED:
        raise JobOver(f"job {job_id.hex()[:10]}…: it is closed; there is nothing to {what}")
    call = wallet.market.job_market.functions[what](job_id)
    await wallet.sender.submit_and_confirm(f"{what}:{job_id.hex()}", call)
    return await read_job(wallet, job_id)


async def refund(wallet: Wallet, job_id: bytes, amount: int) -> int:
    """Take what is not reserved out of the escrow, to the poster's credit; 0 for all. Returns the wei credited."""
    await check_poster(wallet, job_id)
    have = (await read_job(wallet, job_id)).escrow
    if have < max(amount, 1):
        asked = format_tokens(amount) if amount else "all of it"
        raise NotEnough(f"job refund: {format_tokens(have)} tokens are not reserved, asked for {asked}")
    call = wallet.market.job_market.functions.refund(job_id, amount or have)
    await wallet.sender.submit_and_confirm(f"refund:{job_id.hex()}:{amount or have}", call)
    return amount or have


async def close(wallet: Wallet, job_id: bytes) -> int:
    """End a job that is over; anyone may. What is left goes to the poster's credit: returns those wei."""
    job = await read_job(wallet, job_id)
    if job.status == JobStatus.CLOSED:
        return 0
    if job.status != JobStatus.CLOSABLE:
        raise JobOver(f"job {job_id.hex()[:10]}…: {_why_open(job)}")
    call = wallet.market.job_market.functions.close(job_id)
    await wallet.sender.submit_and_confirm(f"close:{job_id.hex()}", call)
    return job.escrow


def _why_open(job: Job) -> str:
    """Why it cannot be closed yet, and what to do."""
    unsettled = f"{job.progress.unsettled} rounds are not settled yet"
    reasons = {
        JobStatus.RUNNING: "a round is open; cancel the job and wait until its rounds are settled",
        JobStatus.READY: "its next round can be opened; cancel it first with `gradmarket job cancel`",
        JobStatus.PAUSED: f"it is paused ({job.reason.name.lower()}); cancel it first with `gradmarket job cancel`",
        JobStatus.DRAINING: f"{unsettled}; close it when they are",
    }
    return reasons.get(job.status, f"it is {job.status.name.lower()}")
