"""gradmarket verifier: an auditor without a device that trains."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Protocol

import click

from protocol.chain.keystore import load_key, read_password
from protocol.runtime.errors import ConfigError
from protocol.runtime.logging import configure_logging
from verifier.check import Check, check_claim, render
from verifier.jobs import open_job
from verifier.service import run_verifier
from verifier.station import HomeConfig


class Home(Protocol):
    """The caller's folder, as the command line hands it on."""

    @property
    def path(self) -> Path: ...

    @property
    def config(self) -> HomeConfig: ...


@click.group()
def verifier() -> None:
    """Judge the work of others: on panels, or one past claim offline."""


@verifier.command("run")
@click.option(
    "--sample",
    type=click.FloatRange(0, 1),
    default=0.05,
    show_default=True,
    help="Share of unsampled claims to check of one's own accord, and to challenge when they are false; above 0 "
    "checkpoints too.",
)
@click.option("--quiet", is_flag=True, help="Log to HOME/log/verifier.jsonl only.")
@click.pass_obj
def run(home: Home, sample: float, quiet: bool) -> None:
    """Sit on panels with keys.operator and check claims of one's own accord, until Ctrl-C."""
    configure_logging(home.path / "log" / "verifier.jsonl", console=not quiet)
    config = home.config
    if config.keys.operator is None:
        raise ConfigError("config.toml: keys.operator is missing; expected the path of a key file (`wallet new`)")
    password = read_password(config.keys.password, f"Password of {config.keys.operator.name}: ")
    asyncio.run(run_verifier(home.path, config, load_key(config.keys.operator, password), sample))


@verifier.command("check")
@click.argument("job")
@click.argument("round", type=click.IntRange(min=0))
@click.argument("shard", type=click.IntRange(min=0))
@click.option("--json", "as_json", is_flag=True, help="The check as one JSON object.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Write the evidence to this folder.")
@click.pass_obj
def check(home: Home, job: str, round: int, shard: int, as_json: bool, keep: Path | None) -> None:
    """Re-execute one past claim from public artefacts. Needs no key and sends nothing.

    Exit code: 0 match, 10 reject, 11 fraud, 12 payload or inputs unavailable, 13 cannot be judged.
    """
    configure_logging(home.path / "log" / "check.jsonl", console=False)
    found = asyncio.run(_check(home, job, round, shard, keep))
    click.echo(found.encode().decode() if as_json else "\n".join(render(found)))
    sys.exit(found.verdict)


async def _check(home: Home, job: str, round: int, shard: int, keep: Path | None) -> Check:
    async with open_job(home.path / "check", home.config, job) as reader:
        return await check_claim(reader, round, shard, keep)
