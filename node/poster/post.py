"""Posting a job: all is checked before the first transaction, and a second run finds the job and takes nothing."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from node.poster.blobs import FolderStore, check_blobs
from node.poster.errors import JobFileError, Obstructed
from node.poster.jobfile import JobPlan
from node.poster.quote import Quote, find_obstacles, read_owners
from node.poster.views import View
from node.wallet import NotEnough, Wallet
from protocol.chain.errors import DeploymentError, Reverted
from protocol.chain.market import Market
from protocol.core.presets import Preset, load_preset
from protocol.core.terms import Terms, check_terms
from protocol.core.units import format_tokens
from protocol.runtime.process import ComputeProcess

ANY_GENESIS = b"\xff" * 32  # no amount and no rule depends on checkpoint 0, and computing it takes a while
GAS_TO_POST = 900_000  # approve and post, with margin


@dataclass(frozen=True)
class Posted:
    """`is_new`: false when the job was there before; then nothing was sent. Amounts in wei."""

    job_id: bytes
    is_new: bool
    deposit: int


async def load_market_preset(market: Market) -> Preset:
    """The preset that the deployment names. Raises DeploymentError if the contracts hold other values."""
    preset = load_preset(market.deployment.preset)
    on_chain = tuple(await market.call(market.job_market.functions.preset()))
    if on_chain != preset.as_tuple():
        raise DeploymentError(
            f"preset {preset.name}: the contracts hold {on_chain}, this program knows {preset.as_tuple()}: "
            "use the version of gradmarket that deployed this market"
        )
    return preset


async def post_job(wallet: Wallet, job: JobPlan, home: Path, *, anyway: bool = False) -> Posted:
    """Post and fund in one transaction (two with the approval). Safe to repeat.

    Raises Obstructed for a job that would not start, unless it is wanted `anyway`.
    """
    market = wallet.market
    preset = await load_market_preset(market)
    job_id = await find_id(wallet, job)
    if await is_posted(market, job_id):
        await check_same_terms(market, job_id, job.terms(preset, ANY_GENESIS), job)
        return Posted(job_id, False, 0)
    check_blobs(job.file.blobs, job.spec)
    terms = job.terms(preset, ANY_GENESIS)
    check_terms(terms, preset)
    deposit = choose_deposit(job, Quote(terms, preset, 0).reservation)
    await check_balances(wallet, deposit)
    if not anyway:
        await check_obstacles(market, Quote(terms, preset, deposit))
    FolderStore(job.file.blobs).put(job.spec_blob, kind="spec")
    terms = replace(terms, genesis_digest=await compute_genesis(job, home))
    call = market.job_market.functions.post(terms.as_tuple(), job.salt, deposit, job.file.seed)
    await _rehearse(market, call, wallet.address)
    await wallet.allow("RewardLedger", deposit)
    await wallet.sender.submit_and_confirm(f"post:{job_id.hex()}", call)
    return Posted(job_id, True, deposit)


async def check_same_terms(market: Market, job_id: bytes, wanted: Terms, job: JobPlan) -> None:
    """Raise JobFileError when the job of this spec and salt was posted with other terms: nothing would be changed."""
    there = await market.terms(job_id)
    wanted = replace(wanted, genesis_digest=there.genesis_digest)
    if different := [f.name for f in fields(wanted) if getattr(wanted, f.name) != getattr(there, f.name)]:
        raise JobFileError(
            f"{job.path}: job {job_id.hex()[:10]}… of this spec and salt exists with another {', '.join(different)}; "
            'it cannot be changed: name another `salt = "…"` to post a second job'
        )


def choose_deposit(job: JobPlan, reservation: int) -> int:
    """The deposit in wei. Raises JobFileError when it does not cover one round: the contract would refuse it."""
    deposit = job.deposit(reservation)
    if deposit < reservation:
        raise JobFileError(
            f"{job.path}: deposit: have {format_tokens(deposit)}, one round reserves {format_tokens(reservation)}; "
            "deposit at least that"
        )
    return deposit


async def check_obstacles(market: Market, quote: Quote) -> None:
    """Raise Obstructed with everything that `job plan` calls an obstacle."""
    if obstacles := list(find_obstacles(quote, await read_owners(market))):
        raise Obstructed(f"job post: {'; '.join(obstacles)}; --anyway posts it all the same")


async def find_id(wallet: Wallet, job: JobPlan) -> bytes:
    """The id that this poster, spec and salt give."""
    function = wallet.market.job_market.functions.jobIdOf(wallet.address, bytes.fromhex(job.spec_digest), job.salt)
    return bytes(await wallet.market.call(function))


async def is_posted(market: Market, job_id: bytes) -> bool:
    try:
        await market.poster(job_id)
    except Reverted as error:
        if error.name == "NoSuchJob":
            return False
        raise
    return True


async def compute_genesis(job: JobPlan, home: Path) -> bytes:
    """The digest of checkpoint 0, in a process of its own: drawing weights needs the training libraries."""
    if isinstance(job.spec.genesis, str):
        return bytes.fromhex(job.spec.genesis)
    log = home / "log" / "compute.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        spec = Path(scratch) / "spec.json"
        await asyncio.to_thread(spec.write_bytes, job.spec_blob)
        async with ComputeProcess("verifier.compute", log_path=log) as compute:
            return bytes.fromhex(await compute.call("genesis", spec=str(spec), out=str(Path(scratch) / "genesis")))


async def check_balances(wallet: Wallet, deposit: int) -> None:
    """Raise NotEnough with have and need: no transaction is sent for a job that cannot be paid."""
    await wallet.check_tokens(deposit, "job post")
    have = await wallet.market.gas_balance(wallet.address)
    head = await wallet.market.connection.head()
    need = GAS_TO_POST * (2 * head.base_fee + wallet.sender.policy.min_tip)
    if have < need:
        raise NotEnough(
            f"job post: {wallet.address} has {format_tokens(have)} coins for gas, needs about {format_tokens(need)}"
        )


async def _rehearse(market: Market, call: Any, sender: str) -> None:
    """Let the contract itself judge the terms. It must get as far as the tokens, which it may not take yet."""
    try:
        await market.call(View(call, sender=sender))
    except Reverted as error:
        if error.name != "ERC20InsufficientAllowance":
            raise
