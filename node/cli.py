"""The one command: gradmarket."""

from __future__ import annotations

from pathlib import Path

import click

from node.commands.data import data
from node.commands.delegation import delegation
from node.commands.demo import demo, devnet
from node.commands.deploy import deploy
from node.commands.job import job
from node.commands.ledger import ledger
from node.commands.node import node
from node.commands.remedy import appeal_command, demand_command
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


for group in (node, job, verifier, stake, rewards, wallet, delegation, ledger, data, deploy, devnet, demo):
    main.add_command(group)
for command in (appeal_command, demand_command):
    node.add_command(command)


if __name__ == "__main__":
    main()
