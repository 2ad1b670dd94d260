"""The shape of every service: load, decide, act, again and again.

Nothing here knows what an action is, only its key. The plan is asked afresh each turn and told nothing about the last
one: what happened is read from the chain and the store, never from the answer to a write.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

import structlog

from protocol.core.errors import GradmarketError
from protocol.runtime.backoff import Backoff
from protocol.runtime.errors import ServiceStuck

LOAD, PLAN = "load", "plan"  # the keys under which a failure of reading or deciding is backed off


class Action(Protocol):
    """One side effect, safe to repeat. `key` is the same for the same effect in every turn, e.g. `commit:7:3`."""

    @property
    def key(self) -> str: ...


SnapshotT = TypeVar("SnapshotT")
ActionT = TypeVar("ActionT", bound=Action)


def is_permanent(error: BaseException) -> bool:
    """An error class says `permanent = True` when trying again cannot help."""
    return bool(getattr(error, "permanent", False))


class Service(Generic[SnapshotT, ActionT]):
    """The loop of one service. `in_flight` holds the keys of background actions that have not ended.

    background: the action types that take long (training, a replay); they run beside the turns, each key once.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[SnapshotT]],
        plan: Callable[[SnapshotT], Sequence[ActionT]],
        execute: Callable[[ActionT], Awaitable[None]],
        *,
        background: tuple[type, ...] = (),
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.backoff = backoff or Backoff()
        self.turns = 0
        self.in_flight: dict[str, asyncio.Task[None]] = {}
        self._load, self._plan, self._execute = load, plan, execute
        self._background, self._clock = background, clock
        self._progress_at = clock()
        self._doing = LOAD
        self._log = structlog.get_logger("service")
        self._wake = asyncio.Event()

    @property
    def seconds_since_progress(self) -> float:
        """Since an action succeeded, or a turn found nothing to do, or someone called `touch`."""
        return self._clock() - self._progress_at

    def touch(self) -> None:
        """A long action is alive: to be called from its progress reports."""
        self._progress_at = self._clock()

    def wake(self) -> None:
        """Start the next turn now: for a hint that the world has changed."""
        self._wake.set()

    async def turn(self) -> None:
        """Read, decide, act. Raises nothing but CancelledError: a failure is logged, kept in `backoff` and left."""
        self.turns += 1
        self.backoff.forget_old(self._clock())
        for action in await self._planned():
            if action.key in self.in_flight or not self.backoff.may_run(action.key, self._clock()):
                continue
            if isinstance(action, self._background):
                self._start(action)
            else:
                self._doing = action.key
                await self._attempt(action)

    async def run(
        self,
        stop: asyncio.Event,
        *,
        interval: float,
        on_turn: Callable[[], None] | None = None,
        stuck_after: float | None = None,
    ) -> None:
        """Turn until `stop` is set, then finish the turn and end the background actions.

        A turn starts every `interval` seconds, or at once when a background action ends. Raises ServiceStuck when
        there was no progress for `stuck_after` seconds or a turn hung as long, for a supervisor to start anew.
        """
        try:
            while not stop.is_set():
                self._wake.clear()
                await self._timed_turn(stuck_after)
                if on_turn is not None:
                    on_turn()
                self._check_alive(stuck_after)
                await _first_of(stop, self._wake, timeout=interval)
        finally:
            await self._end_background()

    async def _timed_turn(self, stuck_after: float | None) -> None:
        try:
            async with asyncio.timeout(stuck_after):
                await self.turn()
        except TimeoutError:
            raise ServiceStuck(f"a turn hung for {stuck_after:g} s in {self._doing}") from None

    async def _planned(self) -> Sequence[ActionT]:
        now = self._clock()
        if not (self.backoff.may_run(LOAD, now) and self.backoff.may_run(PLAN, now)):
            return ()
        phase = self._doing = LOAD
        try:
            snapshot = await self._load()
            self.backoff.succeeded(LOAD)
            phase = PLAN
            actions = self._plan(snapshot)
        except Exception as error:  # whatever it was, the next turn reads afresh
            self._failed(phase, error)
            return ()
        self.backoff.succeeded(PLAN)
        if not actions and not self.in_flight:
            self.touch()
        return actions

    async def _attempt(self, action: ActionT) -> None:
        started = self._clock()
        try:
            await self._execute(action)
        except Exception as error:  # one action's failure is never another's
            self._failed(action.key, error)
        else:
            self.backoff.succeeded(action.key)
            self.touch()
            self._log.info("action_done", action=action.key, seconds=round(self._clock() - started, 3))

    def _start(self, action: ActionT) -> None:
        self.touch()  # from here on, its own reports count
        task = asyncio.create_task(self._attempt(action), name=action.key)
        self.in_flight[action.key] = task
        task.add_done_callback(lambda _: self._ended(action.key))

    def _ended(self, key: str) -> None:
        del self.in_flight[key]
        self.wake()

    def _failed(self, key: str, error: Exception) -> None:
        expected = isinstance(error, GradmarketError)  # its text is one line; anything else is a bug: show where
        reason = str(error) if expected else f"{type(error).__name__}: {error}"
        failure = self.backoff.failed(key, reason, self._clock(), permanent=is_permanent(error))
        self._log.warning(
            "action_failed",
            action=key,
            reason=reason,
            failures=failure.count,
            permanent=failure.permanent,
            retry_seconds=round(failure.retry_at - self._clock(), 1),
            exc_info=None if expected else error,
        )

    def _check_alive(self, stuck_after: float | None) -> None:
        if stuck_after is not None and self.seconds_since_progress > stuck_after:
            told = "; ".join(f"{key}: {failure.reason}" for key, failure in self.backoff.failures.items())
            raise ServiceStuck(f"no progress for {self.seconds_since_progress:.0f} s ({told or 'nothing failed'})")

    async def _end_background(self) -> None:
        """A restart is an ordinary first turn, so what is cut off here is planned again then."""
        tasks = list(self.in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_service(
    load: Callable[[], Awaitable[SnapshotT]],
    plan: Callable[[SnapshotT], Sequence[ActionT]],
    execute: Callable[[ActionT], Awaitable[None]],
    *,
    interval: float,
    stop: asyncio.Event,
    on_turn: Callable[[Service[SnapshotT, ActionT]], None] | None = None,
    background: tuple[type, ...] = (),
    stuck_after: float | None = None,
) -> None:
    """Run one Service until `stop` is set or SIGTERM or Ctrl-C comes.

    A process with several services runs each `Service` itself, all inside one `stopping_on_signals`.
    """
    service = Service(load, plan, execute, background=background)
    told = None if on_turn is None else lambda: on_turn(service)
    with stopping_on_signals(stop):
        await service.run(stop, interval=interval, on_turn=told, stuck_after=stuck_after)


@contextlib.contextmanager
def stopping_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """The first SIGTERM or SIGINT sets `stop`; the second one ends the process as if nobody listened."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)

    def release() -> None:
        for number in signals:
            loop.remove_signal_handler(number)

    def stop_once() -> None:
        stop.set()
        release()

    for number in signals:
        loop.add_signal_handler(number, stop_once)
    try:
        yield
    finally:
        release()


async def _first_of(*events: asyncio.Event, timeout: float) -> None:
    waits: list[asyncio.Task[Any]] = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
