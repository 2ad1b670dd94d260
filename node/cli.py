"""The one command: gradmarket."""

from __future__ import annotations

from pathlib import Path

import click

from node.commands.data import data
from node.commands.demo import demo, devnet
from node.commands.job import job
from node.commands.ledger import ledger
from node.commands.node import node
from node.commands.wallet import rewards, stake, wallet
from node.session import DEFAULT_HOME, Home, Program
from verifier.cli import verifier


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_HOME,
    show_default="~/.gradmarket",
    envvar="GRADMARKET_HOME",
    help="Folder with config.toml, keys and state.",
)
@click.version_option(package_name="gradmarket")
@click.pass_context
def main(ctx: click.Context, home: Path) -> None:
    """A market for verified gradients: fund a training job, train shards, prove the work, be paid."""
    ctx.obj = Home(home)


for group in (node, job, verifier, stake, rewards, wallet, ledger, data, devnet, demo):
    main.add_command(group)


if __name__ == "__main__":
    main()
