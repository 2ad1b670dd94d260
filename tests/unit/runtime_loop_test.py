"""The reconcile loop: back-off, background actions, stopping, and being stuck."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from protocol.core.errors import GradmarketError
from protocol.runtime.backoff import Backoff
from protocol.runtime.errors import ServiceStuck
from protocol.runtime.loop import Service, run_service


@dataclass(frozen=True)
class Post:
    key: str


@dataclass(frozen=True)
class Train:
    key: str


class Refused(GradmarketError):
    permanent = True


@dataclass
class World:
    """What a service sees and does, with a clock that a test moves by hand."""

    planned: Sequence[Post | Train] = ()
    now: float = 0.0
    done: list[str] = field(default_factory=list)
    errors: dict[str, list[Exception]] = field(default_factory=dict)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def service(self) -> Service[Sequence[Post | Train], Post | Train]:
        backoff = Backoff(first=1, longest=10)
        return Service(self.load, self.plan, self.execute, background=(Train,), backoff=backoff, clock=lambda: self.now)

    async def load(self) -> Sequence[Post | Train]:
        self.fail("load")
        return self.planned

    def plan(self, snapshot: Sequence[Post | Train]) -> Sequence[Post | Train]:
        self.fail("plan")
        return snapshot

    async def execute(self, action: Post | Train) -> None:
        self.done.append(action.key)
        if isinstance(action, Train):
            await self.gate.wait()
        self.fail(action.key)

    def fail(self, key: str) -> None:
        if errors := self.errors.get(key):
            raise errors.pop(0)


async def at(world: World, service: Service[Sequence[Post | Train], Post | Train], *times: float) -> list[str]:
    """Turn at each of the times; what was done."""
    world.done.clear()
    for world.now in times:
        await service.turn()
    return world.done


async def test_actions_are_executed_in_the_plans_order() -> None:
    world = World([Post("a"), Post("b")])
    assert await at(world, world.service(), 0) == ["a", "b"]


async def test_a_failing_action_is_backed_off_and_the_others_go_on() -> None:
    world = World([Post("a"), Post("b")], errors={"a": [GradmarketError("no")] * 3})
    service = world.service()
    assert await at(world, service, 0) == ["a", "b"]
    assert service.backoff.failures["a"].reason == "no"
    assert await at(world, service, 0.9) == ["b"]
    assert await at(world, service, 1.0, 2.9) == ["a", "b", "b"]
    assert await at(world, service, 3.0, 6.9) == ["a", "b", "b"]
    assert await at(world, service, 7.0) == ["a", "b"]  # it succeeds
    assert service.backoff.failures == {}


async def test_the_wait_is_capped() -> None:
    world = World([Post("a")], errors={"a": [GradmarketError("no")] * 50})
    service = world.service()
    for _ in range(20):
        world.now += 10
        assert await at(world, service, world.now) == ["a"]


async def test_a_permanent_error_waits_the_longest_time_at_once() -> None:
    world = World([Post("a")], errors={"a": [Refused("never")]})
    assert await at(world, world.service(), 0, 1, 2, 9.9, 10) == ["a", "a"]


async def test_a_bug_in_an_action_does_not_end_the_loop() -> None:
    world = World([Post("a"), Post("b")], errors={"a": [KeyError("oops")]})
    service = world.service()
    assert await at(world, service, 0) == ["a", "b"]
    assert service.backoff.failures["a"].reason == "KeyError: 'oops'"


@pytest.mark.parametrize("phase", ["load", "plan"])
async def test_a_failure_to_read_or_decide_is_backed_off(phase: str) -> None:
    world = World([Post("a")], errors={phase: [GradmarketError("the chain is away")] * 2})
    service = world.service()
    assert await at(world, service, 0, 0.5, 1, 2) == []
    assert service.backoff.failures[phase].count == 2
    assert await at(world, service, 3) == ["a"]


async def test_a_background_action_runs_beside_the_turns_and_only_once() -> None:
    world = World([Train("t"), Post("a")])
    service = world.service()
    await service.turn()
    await asyncio.sleep(0)
    for world.now in (1, 2):
        await service.turn()
        await asyncio.sleep(0)
    assert world.done == ["a", "t", "a", "a"]
    assert set(service.in_flight) == {"t"}
    world.gate.set()
    await asyncio.gather(*service.in_flight.values())
    await asyncio.sleep(0)
    assert not service.in_flight
    world.planned = [Train("t")]
    await service.turn()
    assert set(service.in_flight) == {"t"}
    await asyncio.gather(*service.in_flight.values())


async def test_a_failed_background_action_is_backed_off_too() -> None:
    world = World([Train("t")], errors={"t": [GradmarketError("loss is NaN")]})
    world.gate.set()
    service = world.service()
    for world.now, runs in ((0, 1), (0.5, 1), (1, 2)):
        await service.turn()
        await asyncio.gather(*service.in_flight.values())
        await asyncio.sleep(0)
        assert world.done == ["t"] * runs


async def test_failures_of_abandoned_actions_are_forgotten() -> None:
    world = World([Post("a")], errors={"a": [GradmarketError("no")]})
    service = world.service()
    await service.turn()
    world.planned = ()
    await at(world, service, 10, 12)
    assert service.backoff.failures == {}


async def test_stopping_finishes_the_turn_and_ends_background_actions() -> None:
    world = World([Train("t"), Post("a"), Post("b")])
    service, stop = world.service(), asyncio.Event()
    execute = service._execute

    async def stop_in_the_middle(action: Post | Train) -> None:
        await execute(action)
        stop.set()

    service._execute = stop_in_the_middle
    await asyncio.wait_for(service.run(stop, interval=60), 5)
    assert world.done == ["a", "b", "t"] or world.done == ["a", "b"]
    assert not service.in_flight


async def test_the_end_of_a_background_action_starts_a_turn_at_once() -> None:
    world = World([Train("t")])
    service, stop = world.service(), asyncio.Event()
    running = asyncio.create_task(service.run(stop, interval=60))
    await asyncio.sleep(0.01)
    world.planned = [Post("after")]
    world.gate.set()
    await asyncio.sleep(0.01)
    assert world.done == ["t", "after"]
    stop.set()
    await asyncio.wait_for(running, 5)


async def test_a_service_that_gets_nowhere_says_so_and_ends() -> None:
    world = World([Post("a")], errors={"a": [GradmarketError("stake too low")] * 99})
    service = world.service()

    def later() -> None:
        world.now += 20

    with pytest.raises(ServiceStuck, match=r"no progress for 60 s \(a: stake too low\)"):
        await service.run(asyncio.Event(), interval=0, on_turn=later, stuck_after=50)


@pytest.mark.parametrize("hung", ["load", "a"])
async def test_a_turn_that_hangs_says_where_and_ends(hung: str) -> None:
    world = World([Post("a")])
    service = world.service()

    async def hang(*_: object) -> Sequence[Post | Train]:
        await asyncio.sleep(60)
        return ()

    if hung == "load":
        service._load = hang
    else:
        service._execute = hang  # type: ignore[assignment]
    with pytest.raises(ServiceStuck, match=rf"a turn hung for 0\.05 s in {hung}"):
        await asyncio.wait_for(service.run(asyncio.Event(), interval=60, stuck_after=0.05), 5)


async def test_an_idle_service_is_not_stuck_nor_one_whose_training_reports() -> None:
    world = World()
    service = world.service()
    assert await at(world, service, 1000) == []
    assert service.seconds_since_progress == 0
    world.planned = [Train("t")]
    await service.turn()
    world.now = 2000
    assert service.seconds_since_progress == 1000
    service.touch()
    assert service.seconds_since_progress == 0
    world.gate.set()
    await asyncio.gather(*service.in_flight.values())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_the_service_in_order(number: signal.Signals) -> None:
    world, turns = World([Post("a")]), 0

    def on_turn(service: Service[Sequence[Post | Train], Post | Train]) -> None:
        nonlocal turns
        turns = service.turns
        os.kill(os.getpid(), number)

    load: Callable[[], Awaitable[Sequence[Post | Train]]] = world.load
    running = run_service(load, world.plan, world.execute, interval=60, stop=asyncio.Event(), on_turn=on_turn)
    await asyncio.wait_for(running, 5)
    assert (turns, world.done) == (1, ["a"])
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
