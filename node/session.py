"""What every command needs: the home folder, its configuration, one line for a mistake, an exit code for its kind."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from protocol.chain.errors import ChainUnavailable, KeystoreError, Reverted, StaleHead, WrongChain
from protocol.core.errors import GradmarketError
from protocol.runtime.config import load_config
from protocol.runtime.errors import ConfigError
from protocol.store.errors import AlreadyRunning
from verifier.station import HomeConfig

DEFAULT_HOME = Path("~/.gradmarket").expanduser()
EXIT_CODES: tuple[tuple[type[GradmarketError], int], ...] = (
    (ConfigError, 3),
    (KeystoreError, 4),
    (WrongChain, 5),
    (StaleHead, 5),
    (ChainUnavailable, 6),
    (AlreadyRunning, 7),
    (Reverted, 8),
)
T = TypeVar("T")


@dataclass(frozen=True)
class Home:
    """A person's folder."""

    path: Path

    @property
    def config(self) -> HomeConfig:
        return load_config(self.path / "config.toml", HomeConfig)


def exit_code(error: GradmarketError) -> int:
    """1 for a mistake of no special kind; docs/cli.md lists the others."""
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)


def run_async(function: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Run a coroutine as a command."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> T:
        return asyncio.run(function(*args, **kwargs))

    return run


class Program(click.Group):
    """Shows a GradmarketError as one line and ends with its exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except GradmarketError as error:
            click.echo(f"gradmarket: {error}", err=True)
            sys.exit(exit_code(error))
        except KeyboardInterrupt:
            sys.exit(130)


pass_home = click.make_pass_decorator(Home)
