"""Write docs/cli.md from the commands themselves: `python -m docs.make_cli`. A test proves the page fresh."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from node.cli import main
from node.session import EXIT_CODES
from verifier.check import Verdict

PAGE = Path(__file__).with_name("cli.md")
HEAD = """\
# Commands

Written by `python -m docs.make_cli`; do not edit. Amounts are tokens in decimal text, at most 18 decimals. A job is
named by its id in hex or by its first digits. Rounds and shards count from 0 here and on chain; the demo's screen
counts rounds from 1.

A mistake is one line on standard error, `gradmarket: what, where, expected, have, what to do`, and an exit code:
"""


def render() -> str:
    """The page."""
    context = click.Context(main, info_name="gradmarket")
    return "\n".join([HEAD, *_codes(), "", *_command(main, context, 2)]).rstrip() + "\n"


def _codes() -> Iterator[str]:
    yield "| exit code | kind |"
    yield "|---|---|"
    yield "| 0 | done |"
    yield "| 1 | a mistake of no special kind |"
    yield "| 2 | a command line that cannot be read |"
    kinds: dict[int, list[str]] = {}
    for kind, code in EXIT_CODES:
        kinds.setdefault(code, []).append(re.split(r"[:.]", kind.__doc__ or kind.__name__)[0])
    yield from (f"| {code} | {' · '.join(names)} |" for code, names in sorted(kinds.items()))
    verdicts = ", ".join(f"{verdict.value} {verdict.name.lower()}" for verdict in Verdict)
    yield f"| `verifier check` | {verdicts} |"
    yield "| 130 | Ctrl-C |"


def _command(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    """A command and everything below it, in the order of its name."""
    pieces = " ".join(command.collect_usage_pieces(context))
    yield from (f"{'#' * level} `{context.command_path}`", "", f"`{context.command_path} {pieces}`", "")
    yield from (cleandoc(command.help or ""), "")
    options = [line for param in command.params if isinstance(param, click.Option) for line in _option(param)]
    if options:
        yield from ("| option | what it does | default |", "|---|---|---|", *options, "")
    if isinstance(command, click.Group):
        for name, child in sorted(command.commands.items()):
            yield from _command(child, click.Context(child, info_name=name, parent=context), level + 1)


def _option(option: click.Option) -> Iterator[str]:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    if not option.is_flag:
        names += " " + _kind(option.type)
    help_text = (option.help or "").strip() + (" Required." if option.required else "")
    yield f"| {names} | {help_text} | {_default(option)} |"


def _kind(kind: click.ParamType[Any]) -> str:
    if isinstance(kind, click.Choice):
        return r" \| ".join(str(choice) for choice in kind.choices)
    if isinstance(kind, click.IntRange | click.FloatRange):
        ends = f"{'' if kind.min is None else kind.min}…{'' if kind.max is None else kind.max}"
        return f"NUMBER {ends}"
    return {"text": "TEXT", "path": "FILE", "directory": "FOLDER", "file": "FILE"}.get(kind.name, kind.name.upper())


def _default(option: click.Option) -> str:
    if isinstance(option.show_default, str):
        return f"`{option.show_default}`"
    if not option.show_default:
        return ""
    values = option.default if isinstance(option.default, list | tuple) else [option.default]
    return ", ".join(f"`{value}`" for value in values)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
