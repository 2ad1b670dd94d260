"""The bar of `data pack`: bytes, tokens a second, time left. Nothing where nobody sits at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.table import Column
from rich.text import Text

from protocol.training.pack.progress import Progress, Stage, Watch, nobody


class _Rate(ProgressColumn):
    """Tokens a second since the stage began."""

    def render(self, task: Task) -> Text:
        tokens, seconds = task.fields["tokens"], task.finished_time or task.elapsed
        return Text(f"{tokens / seconds:,.0f} tokens/s" if tokens and seconds else "")


@contextmanager
def shown(console: Console | None = None) -> Iterator[Watch]:
    """A watch that draws on standard error while the body runs."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield nobody
        return
    what, bar, rate = TextColumn("{task.description:<19}"), BarColumn(16), _Rate(Column(no_wrap=True))
    with Bars(what, bar, DownloadColumn(), rate, TimeRemainingColumn(), console=console, refresh_per_second=4) as bars:
        yield _Drawn(bars)


class _Drawn:
    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[Stage, tuple[TaskID, int]] = {}  # and the tokens at its start: an earlier run's

    def __call__(self, progress: Progress) -> None:
        if progress.stage not in self._tasks:
            task = self._bars.add_task(progress.stage.value, total=progress.total, tokens=0)
            self._tasks[progress.stage] = (task, progress.tokens)
        task, before = self._tasks[progress.stage]
        self._bars.update(task, completed=progress.done, tokens=progress.tokens - before)
