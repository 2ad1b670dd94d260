"""The model and the contracts, side by side: the same calls in the same blocks, and the same to be seen after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, fields, is_dataclass
from typing import Any

from protocol.core.model.findings import Reveal
from protocol.core.model.refusals import Refusal
from protocol.core.model.transact import transact
from protocol.core.model.world import Block, Site, World
from protocol.core.presets import Rules
from tests.helpers.evm import DEPLOYER, Chain, Reverted
from tests.helpers.observed import observe, returned, words

STRANGER = "0x" + "55" * 20
_THOROUGH = 10  # what is settled is asked for every so many comparisons
_BLOCKS_A_MOVE = 20  # so many at most: no beacon expires by waiting a little


# ("wait", seconds, blocks), or caller, contract, function, arguments. An argument that depends on the moment, as a
# signature with a nonce does, is a function of the world and the caller.
Step = tuple[Any, ...]


class Difference(AssertionError):
    """The model and the contracts disagree: what was called, what each says, and the steps that led there."""

    def __init__(self, text: str, steps: int) -> None:
        super().__init__(text)
        self.steps = steps  # how many, the set-up left out


class Twins:
    """A deployment and its model."""

    def __init__(self, preset: Rules, height: int) -> None:
        self.chain = Chain([int(value) for value in astuple(preset)], 1_700_000_000, height)
        at = self.chain.address
        site = Site(chain_id=1, guardian=DEPLOYER, preset=preset, **at)
        self.block = Block(1_700_000_000, height, self.chain.hash_of)
        self.world = World(site, self.block)
        self.accounts: list[str] = []
        self.names = {address: contract for contract, address in self.chain.address.items()}
        self.setting = ""
        self.set_up = 0  # steps that every play begins with
        self.steps: list[Step] = []
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.compared = 0
        self._comparisons = 0

    def wait(self, seconds: int, blocks: int | None = None) -> None:
        """Later, in as many blocks as that takes at one a second, at most twenty, or in so many. Raises Difference."""
        blocks = min(seconds, _BLOCKS_A_MOVE) if blocks is None else blocks
        self.steps.append(("wait", seconds, blocks))
        self.block = Block(self.block.time + seconds, self.block.height + blocks, self.chain.hash_of)
        self.chain.move_to(self.block.time, self.block.height)
        self.world = self.world.at(self.block)
        self.compare()

    def act(self, call: Step, *, compare: bool = True) -> str | None:
        """The same call to both; None if it is done, the error's name if both refuse it. Raises Difference."""
        self.steps.append(call)
        caller, contract, function, *given = call
        args = [arg(self.world, caller) if callable(arg) else arg for arg in given]
        refusal, result = self._ask_model(caller, contract, function, args)
        try:
            answer = self.chain.send(caller, contract, function, _plain(args))
        except Reverted as reverted:
            have = (reverted.name, reverted.facts)
        else:
            have = ("", answer)
        if refusal is not None:
            need = (type(refusal).__name__, words(*refusal.facts))
        else:
            need = ("", have[1] if result is None else returned(result))
        if have != need:
            raise self._difference("the last call", have, need)
        name = f"{contract}.{function}"
        (self.refused if refusal else self.done)[name if refusal is None else need[0]] += 1
        if compare and refusal is None:  # a refused call leaves both as they were compared before
            self.compare()
        return need[0] or None

    def _ask_model(self, caller: str, contract: str, function: str, args: Sequence[Any]) -> tuple[Refusal | None, Any]:
        try:
            self.world, result = transact(self.world, self.block, caller, contract, function, *args)
        except Refusal as refusal:
            return refusal, None
        return None, result

    def compare(self) -> None:
        """Ask the contracts for everything that can be seen. Raises Difference."""
        self._comparisons += 1
        thorough = self._comparisons % _THOROUGH == 0
        for contract, view, args, need in observe(self.world, self.accounts, thorough=thorough):
            self.compared += 1
            have = self.chain.view(contract, view, *args)
            if have != need:
                raise self._difference(f"{contract} {view} {self._shown(args)}", ("", have), ("", need))

    def _difference(self, what: str, have: tuple[str, bytes], need: tuple[str, bytes]) -> Difference:
        sides = f"contracts: {have[0]} {_words(have[1])}\nmodel:     {need[0]} {_words(need[1])}"
        own = self.steps[self.set_up :]
        steps = "\n".join(f"  {self._name(step[0])} {self._shown(step[1:])}" for step in own)
        return Difference(f"{what}\n{sides}\nin {self.setting}, after {len(own)} steps:\n{steps}", len(own))

    def _shown(self, values: Sequence[Any]) -> str:
        return " ".join(self._name(value) for value in values)

    def _name(self, value: Any) -> str:
        """A person, a contract, the head of a digest, or the value as it is."""
        if callable(value):
            return "signed"
        if isinstance(value, bytes):
            return f"0x{value.hex()[:8]}…"
        if is_dataclass(value) and not isinstance(value, type):
            parts = (f"{field.name}={self._name(getattr(value, field.name))}" for field in fields(value))
            return f"{type(value).__name__}({', '.join(parts)})"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(self._name(part) for part in value) + "]"
        return self.names.get(value, str(value)) if isinstance(value, str) else str(value)


def _plain(value: Any) -> Any:
    """Records as the tuples that the ABI knows."""
    if isinstance(value, Reveal):
        claim = astuple(value.claim)
        own, theirs = ([(astuple(row), list(path)) for row, path in side] for side in (value.own, value.theirs))
        return (int(value.finding), value.step, value.salt, claim, own, theirs)
    if is_dataclass(value) and not isinstance(value, type):
        return astuple(value)
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def _words(data: bytes) -> str:
    parts = [data[i : i + 32] for i in range(0, len(data), 32)]
    return " ".join(part.hex().lstrip("0") or "0" for part in parts)
