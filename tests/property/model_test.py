"""The model and the contracts agree: whatever anybody tries, in whatever order, at whatever time.

A step is one call, made to both, or some time that passes; after each, everything that can be seen is compared. A
difference prints the shortest list of steps that was found to lead there; docs/spec/model.md says how to read it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Set
from types import ModuleType

import pytest

from protocol.core.model import audit_court, settlement
from protocol.core.model.kinds import CaseKind, CasePhase, Outcome
from protocol.core.model.transact import CALLS
from tests.helpers.endings import left_over
from tests.helpers.plays import play
from tests.helpers.twins import Difference, Twins

MOST_STEPS = 40
SET_UP_ONCE = {"token.mint", "token.approve", "registry.register"}


class Tally:
    """What was done in some plays."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.compared = 0

    def add(self, t: Twins) -> None:
        """Count a play that is over."""
        self.done += t.done
        self.refused += t.refused
        self.compared += t.compared
        for case in t.world.cases.values():
            if case.phase == CasePhase.DONE:
                self.verdicts[f"{case.kind.name} {Outcome(case.outcome).name} at level {case.level}"] += 1

    def print(self) -> None:
        """For `pytest -s`."""
        seconds, total = time.monotonic() - self.began, sum((self.done + self.refused).values())
        print(f"\n{total} calls in {seconds:.0f} s ({total / seconds:.0f}/s), {self.compared} answers compared")
        for title, counts in (("done", self.done), ("refused", self.refused), ("verdicts", self.verdicts)):
            print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))

    def check_verdicts(self) -> None:
        """Every kind of case ended in every way that it can end in."""
        for kind in CaseKind:
            for outcome in (
                set(Outcome) - {Outcome.NONE} - ({Outcome.EXCUSED} if kind == CaseKind.CHECKPOINT else set())
            ):
                assert any(name.startswith(f"{kind.name} {outcome.name} ") for name in self.verdicts), (kind, outcome)

    def check(self, least: int, elsewhere: Set[str] = frozenset()) -> None:
        """Every function succeeded so often: what never succeeds is compared with nothing."""
        names = {f"{contract}.{function}" for contract, function in CALLS} - SET_UP_ONCE - elsewhere
        rare = {name: self.done[name] for name in names if self.done[name] < least}
        assert not rare, f"functions that succeeded less than {least} times: {rare}"


def _play(numbers: range, moves: int) -> Tally:
    tally = Tally()
    for number in numbers:
        t = play(number, moves)
        tally.add(t)
        assert not any(left_over(t).values()), f"play {number}: nobody can take out {left_over(t)}"
    tally.print()
    return tally


def test_the_contracts_do_what_the_model_says() -> None:
    # few plays end in a conviction; corners_test distributes what two of them slash
    _play(range(14), moves=200).check(least=1, elsewhere={"checkpoints.distribute"})


@pytest.mark.slow
def test_the_contracts_do_what_the_model_says_in_a_long_run() -> None:
    tally = _play(range(1_000, 1_100), moves=250)
    tally.check(least=5)
    tally.check_verdicts()


@pytest.mark.parametrize(
    ("module", "rule", "wrong"),
    [
        (audit_court, "_DEMAND_FEES", 4),
        pytest.param(settlement, "is_convicted", lambda *_: False, marks=pytest.mark.slow),  # 25 s: far from the start
    ],
)
def test_a_wrong_rule_is_found_and_the_way_to_it_is_short(
    module: ModuleType, rule: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, rule, wrong)
    with pytest.raises(Difference) as found:
        for number in range(40):
            play(number, moves=200)
    print(found.value)
    assert found.value.steps <= MOST_STEPS
