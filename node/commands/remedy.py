"""gradmarket node appeal and demand-audit: have unpaid work judged again, knowing the price first."""

from __future__ import annotations

import click

from node.session import Home, pass_home, run_async
from node.wallet import NotEnough, open_market, open_wallet, unlock
from protocol.chain.market import Market
from protocol.core.audit import Case
from protocol.core.commitment import case_id, checkpoint_case_id
from protocol.core.errors import GradmarketError
from protocol.core.presets import load_preset
from protocol.core.round import Round, RoundStatus
from protocol.core.units import format_tokens
from protocol.store.errors import AlreadyRunning
from verifier.jobs import find_job
from verifier.orders import Orders, send_order
from verifier.remedies import NoRemedy, Remedy, appeal, demand

ANSWER_SECONDS = 60.0
LEAST_DIGITS = 6  # of a case's id


class OrderRefused(GradmarketError):
    """The running node passed on what the contract said."""


@click.command("appeal")
@click.argument("case")
@click.option("--dry-run", is_flag=True, help="Say what it costs and what it may bring; send nothing.")
@pass_home
@run_async
async def appeal_command(home: Home, case: str, dry_run: bool) -> None:
    """Appeal from the outcome of CASE to a larger panel: its id in hex or the first digits, as `node status` shows it.

    Prints bond, deadline, what is won and what is lost, then sends; signed by keys.operator.
    """
    async with open_market(home.config) as market:
        job_id, round, found = await _find_case(market, case)
        terms, preset = await market.terms(job_id), load_preset(market.deployment.preset)
        remedy = appeal(job_id, round, found, terms, preset, await market.connection.now())
    await _seek(home, remedy, dry_run)


@click.command("demand-audit")
@click.argument("job")
@click.argument("round", type=click.IntRange(min=0))
@click.argument("shard", type=click.IntRange(min=0))
@click.option("--dry-run", is_flag=True, help="Say what it costs and what it may bring; send nothing.")
@pass_home
@run_async
async def demand_command(home: Home, job: str, round: int, shard: int, dry_run: bool) -> None:
    """Have an own claim audited that was voted out or lies in a void round: a match pays half of its reward.

    Prints bond, deadline, what is won and what is lost, then sends; signed by keys.operator.
    """
    me = unlock(home.config, "operator").address
    async with open_market(home.config) as market:
        job_id = await find_job(market, job)
        found = await market.round(job_id, round)
        if found.status == RoundStatus.NONE:
            raise NoRemedy(f"job {job_id.hex()[:10]}… has no round {round}")
        now = await market.connection.now()
        remedy = demand(job_id, found, shard, await market.terms(job_id), me, now)
    await _seek(home, remedy, dry_run)


async def _find_case(market: Market, text: str) -> tuple[bytes, Round, Case]:
    """The one case of an unsettled round whose id is `text` or begins so. Raises NoRemedy."""
    wanted = text.removeprefix("0x").lower()
    if not LEAST_DIGITS <= len(wanted) <= 64 or wanted.strip("0123456789abcdef"):
        raise NoRemedy(f"case {text!r}: expected its id in hex, {LEAST_DIGITS} to 64 digits; `gradmarket node status`")
    found = []
    for job_id in await market.job_ids():
        for round in (await market.job(job_id)).rounds:
            cases = {case_id(job_id, round.number, shard): case for shard, case in round.cases.items()}
            if round.doubt is not None:
                cases[checkpoint_case_id(job_id, round.number)] = round.doubt
            found += [(job_id, round, case) for ident, case in cases.items() if ident.hex().startswith(wanted)]
    if len(found) != 1:
        what = f"{len(found)} cases begin so; give more digits" if found else "no unsettled round has such a case"
        raise NoRemedy(f"case {text!r}: {what}")
    return found[0]


async def _seek(home: Home, remedy: Remedy, dry_run: bool) -> None:
    """Say everything first, then send: alone, or through the program that runs with this key."""
    config = home.config
    account = unlock(config, "operator")
    async with open_market(config) as market:
        owner = await market.owner(remedy.order.job_id, account.address)
        for line in remedy.lines(await market.connection.now()):
            click.echo(line)
    if owner.free_stake < remedy.bond:
        raise NotEnough(
            f"{remedy.order.name}: {format_tokens(owner.free_stake)} tokens of stake are free, "
            f"need {format_tokens(remedy.bond)}: add some with `gradmarket stake deposit`"
        )
    if dry_run:
        return
    try:
        async with open_wallet(home.path, config, account, home.path / "state") as purse:
            await send_order(remedy.order, purse.market, purse.sender)
    except AlreadyRunning:
        await _hand_over(home, remedy)
    click.echo("sent")


async def _hand_over(home: Home, remedy: Remedy) -> None:
    answer = await Orders(home.path).hand_over(remedy.order, ANSWER_SECONDS)
    if answer is None:
        raise OrderRefused(
            f"the running node has not answered after {ANSWER_SECONDS:.0f} s; it will still send this: see its log"
        )
    if answer:
        raise OrderRefused(answer)
