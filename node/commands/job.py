"""gradmarket job: a person who funds a training job."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import click

from node.poster import manage
from node.session import Home, pass_home, run_async
from node.wallet import Wallet, open_market, open_wallet, unlock
from protocol.core.errors import GradmarketError
from protocol.core.units import format_tokens, parse_some_or_all, parse_tokens
from protocol.runtime.logging import configure_logging
from verifier.jobs import find_job, open_job

job_file = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.group()
def job() -> None:
    """Fund a training job, watch it, fetch the model."""


@job.command("plan")
@job_file
@pass_home
@run_async
async def plan(home: Home, file: Path) -> None:
    """Say what the job of FILE costs and who can work on it. Signs nothing; needs no key and, if need be, no chain."""
    from node.poster.jobfile import load_job
    from node.poster.plan import plan_job

    try:
        config, why_not = home.config, ""
    except GradmarketError as error:
        config, why_not = None, str(error)
    for line in await plan_job(load_job(file), config, why_not):
        click.echo(line)


@job.command("post")
@job_file
@click.option("--anyway", is_flag=True, help="Post it although `job plan` names an obstacle.")
@pass_home
@run_async
async def post(home: Home, file: Path, anyway: bool) -> None:
    """Post the job of FILE and fund it. A second run with the same salt finds the job and takes nothing.

    Refuses a job that would not start, or not go on, on the market as it is.
    """
    from node.poster.jobfile import load_job
    from node.poster.post import post_job

    plan = load_job(file)
    async with _wallet(home) as wallet:
        posted = await post_job(wallet, plan, home.path, anyway=anyway)
    said = (
        f"posted with {format_tokens(posted.deposit)} tokens" if posted.is_new else "exists already: nothing was taken"
    )
    click.echo(f"job {posted.job_id.hex()} {said}")


@job.command("seed")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--port", default=7790, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@run_async
async def seed(folder: Path, host: str, port: int) -> None:
    """Serve the blobs of FOLDER until Ctrl-C, so that operators can begin. Prints the URL for the job file."""
    from node.poster.seed import serve_folder

    configure_logging(console=True)
    await serve_folder(folder, host, port, lambda url: click.echo(f"serving {folder} at {url}"))


@job.command("list")
@pass_home
@run_async
async def list_jobs(home: Home) -> None:
    """All jobs of the market, oldest first."""
    async with open_market(home.config) as market:
        jobs = await market.job_ids()
        if not jobs:
            click.echo("no job was ever posted on this market: post one with `gradmarket job post FILE`", err=True)
        for job_id in jobs:
            found, terms = await market.job(job_id, manage.FOREVER), await market.terms(job_id)
            reason = f" ({found.reason.name.lower()})" if found.reason else ""
            click.echo(
                f"{job_id.hex()}  {found.status.name.lower()}{reason}"
                f"  checkpoint {found.progress.closed} of {terms.rounds}"
                f"  escrow {format_tokens(found.escrow)}  poster {await market.poster(job_id)}"
            )


@job.command("fund")
@click.argument("job")
@click.argument("amount")
@pass_home
@run_async
async def fund(home: Home, job: str, amount: str) -> None:
    """Add AMOUNT tokens to the escrow of JOB; a job that was paused for want of them goes on."""
    wei = parse_tokens(amount)
    async with _wallet(home) as wallet:
        escrow = await manage.fund(wallet, await find_job(wallet.market, job), wei)
        click.echo(f"funded with {format_tokens(wei)} tokens; the escrow holds {format_tokens(escrow)}")


@job.command("pause")
@click.argument("job")
@pass_home
@run_async
async def pause(home: Home, job: str) -> None:
    """Open no further round of JOB; the open one goes on."""
    await _order(home, job, "pause")


@job.command("resume")
@click.argument("job")
@pass_home
@run_async
async def resume(home: Home, job: str) -> None:
    """Open rounds of JOB again."""
    await _order(home, job, "resume")


@job.command("cancel")
@click.argument("job")
@pass_home
@run_async
async def cancel(home: Home, job: str) -> None:
    """End JOB: no further round opens, open ones are finished and paid."""
    await _order(home, job, "cancel")


@job.command("refund")
@click.argument("job")
@click.argument("amount", required=False)
@pass_home
@run_async
async def refund(home: Home, job: str, amount: str | None) -> None:
    """Take AMOUNT tokens that are not reserved out of JOB; all of them without an amount."""
    wei = parse_some_or_all(amount)
    async with _wallet(home) as wallet:
        taken = await manage.refund(wallet, await find_job(wallet.market, job), wei)
        click.echo(f"credited {format_tokens(taken)} tokens; take them with `gradmarket rewards withdraw`")


@job.command("close")
@click.argument("job")
@pass_home
@run_async
async def close(home: Home, job: str) -> None:
    """Close JOB when all its rounds are settled; what is left is the poster's credit."""
    async with _wallet(home) as wallet:
        left = await manage.close(wallet, await find_job(wallet.market, job))
        click.echo(f"closed; {format_tokens(left)} tokens were credited: `gradmarket rewards withdraw`")


@job.command("watch")
@click.argument("job")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line; amounts in wei.")
@click.option("--once", is_flag=True, help="Tell what there is and end.")
@click.option("--until-done", is_flag=True, help="End when the job is closed.")
@pass_home
@run_async
async def watch(home: Home, job: str, as_json: bool, once: bool, until_done: bool) -> None:
    """Tell each closed round of JOB with its verdicts, validation loss and money, until Ctrl-C."""
    import msgspec

    from node.poster.records import Record, show
    from node.poster.watch import watch_job

    configure_logging(home.path / "log" / "watch.jsonl", console=False)

    def tell(record: Record) -> None:
        click.echo(msgspec.json.encode(record).decode() if as_json else show(record))

    async with open_job(home.path / "watch", home.config, job) as reader:
        await watch_job(
            reader, tell, lambda text: click.echo(f"waiting: {text}", err=True), once=once, until_done=until_done
        )


@job.command("fetch")
@click.argument("job")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder for the model.")
@pass_home
@run_async
async def fetch(home: Home, job: str, out: Path) -> None:
    """Fetch the newest agreed checkpoint of JOB, check its digest, measure it, write a Hugging Face folder."""
    from node.poster.fetch import fetch_model

    configure_logging(home.path / "log" / "fetch.jsonl", console=False)
    async with open_job(home.path / "fetch", home.config, job) as reader:
        found = await fetch_model(reader, out)
    click.echo(f"checkpoint {found.number}  sha256 {found.digest}  validation loss {found.loss:.6f}  in {out}")


@contextlib.asynccontextmanager
async def _wallet(home: Home) -> AsyncIterator[Wallet]:
    config = home.config
    async with open_wallet(home.path, config, unlock(config, "owner")) as wallet:
        yield wallet


async def _order(home: Home, text: str, what: str) -> None:
    async with _wallet(home) as wallet:
        found = await manage.order(wallet, await find_job(wallet.market, text), what)
        reason = f" ({found.reason.name.lower()})" if found.reason else ""
        click.echo(f"{what}: the job is {found.status.name.lower()}{reason}")
