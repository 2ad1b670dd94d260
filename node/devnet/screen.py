"""What a person sees while the demonstration runs: a table of rounds and shards, and the last sentences."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from node.devnet.stage import Stage
from protocol.core.audit import CasePhase, Outcome
from protocol.core.claim import Claim, ClaimStatus
from protocol.core.job import Job
from protocol.core.round import Round

SENTENCES = 12
STYLES = {
    ClaimStatus.HELD: "yellow",
    ClaimStatus.COMMITTED: "cyan",
    ClaimStatus.ACCEPTED: "blue",
    ClaimStatus.PAID: "green",
    ClaimStatus.UNPAID: "red",
    ClaimStatus.LAPSED: "red",
}


class Screen:
    """Live on a terminal; plain lines elsewhere, so that a log file stays readable."""

    def __init__(self, console: Console) -> None:
        self._console, self._started = console, time.monotonic()
        self._sentences: deque[str] = deque(maxlen=SENTENCES)
        self._rounds: dict[int, Round] = {}
        self._names: dict[str, str] = {}
        self._stage: Stage | None = None
        self._live = (
            Live(console=console, refresh_per_second=1, get_renderable=self._picture) if console.is_terminal else None
        )

    def __enter__(self) -> Screen:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave the last picture on the terminal."""
        if self._live:
            self._live.stop()
            self._live = None

    def follow(self, stage: Stage) -> None:
        self._stage, self._names = stage, stage.names

    def say(self, line: str) -> None:
        text = f"{time.monotonic() - self._started:6.1f}s  {line}"
        self._sentences.append(text)
        if self._live is None:
            self._console.print(text, highlight=False, soft_wrap=True)
        else:
            self._live.update(self._picture())

    def show(self, job: Job) -> None:
        """A new reading of the job."""
        self._rounds |= {round.number: round for round in job.rounds}
        if self._live is not None:
            self._live.update(self._picture())

    def _picture(self) -> Group:
        table = Table(title="rounds and shards", title_justify="left", expand=False)
        table.add_column("round")
        table.add_column("status")
        shards = max((len(round.claims) for round in self._rounds.values()), default=0)
        for shard in range(shards):
            table.add_column(f"shard {shard}")
        for number, round in sorted(self._rounds.items()):
            cells = [self._cell(round, claim) for claim in round.claims]
            table.add_row(str(number + 1), round.status.name.lower(), *cells)
        memory = f"{self._stage.processes.peak_mib} MiB" if self._stage else ""
        title = Text(f"gradmarket demo  {time.monotonic() - self._started:.0f} s  {memory}", style="bold")
        return Group(title, table, *(Text(sentence, no_wrap=True) for sentence in list(self._sentences)))

    def _cell(self, round: Round, claim: Claim) -> Text:
        """Who holds it, coloured by its status; a mark for its audit."""
        name = self._names.get(claim.operator, "·")
        case, mark = round.cases.get(claim.shard), ""
        if case is not None and case.phase != CasePhase.DONE:
            mark = f" ?{len(case.seats)}"
        elif case is not None:
            mark = {Outcome.MATCH: " ✓", Outcome.FRAUD: " ✗"}.get(case.outcome, " –")
        return Text(name + mark, style=STYLES.get(claim.status, "dim"))
