"""Any call, by anybody, with any arguments: every balance that changes is explained, and every refusal has a name.

Plays bring the real contracts into states that people reach; from there every function of every contract is called with
values that mean something in that state, and with values that do not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from tests.helpers.cast import OPERATORS, OWNERS, PAYOUTS, POSTER
from tests.helpers.evm import BOOKS, DEPLOYER, Reverted, artifact, functions
from tests.helpers.plays import play
from tests.helpers.twins import STRANGER, Twins

BURN = "0x" + "00" * 18 + "dead"
NOBODY = "0x" + "00" * 20
PEOPLE = (POSTER, STRANGER, DEPLOYER, *OWNERS, *OPERATORS, *PAYOUTS)
# Only these may make somebody poorer who did not call: lapses and verdicts.
VERDICTS = {
    "rounds.settle", "rounds.claim", "court.advance", "court.reveal", "checkpoints.advance", "checkpoints.reveal",
}  # fmt: skip
MOST_UINT = {bits: 2**bits - 1 for bits in (8, 16, 32, 40, 64, 96, 128, 160, 256)}


class Values:
    """What a caller could know: ids, addresses and amounts of a world, and numbers at the edges of their types."""

    def __init__(self, t: Twins, dice: Random) -> None:
        self.dice, now = dice, t.block.time
        self.words = [*t.world.jobs, *t.world.cases, bytes(32), dice.randbytes(32)]
        self.words += [r.base for r in t.world.rounds.values()] + [r.next for r in t.world.rounds.values()]
        self.addresses = [*PEOPLE, *t.chain.address.values(), NOBODY]
        self.numbers = [0, 1, 2, 3, 5, 6, 7, 10**18, now, now - 1, now + 1, 63]

    def of(self, kind: str) -> Any:
        """A value of an ABI type."""
        if kind.endswith("]"):
            inner, _, length = kind.rpartition("[")
            size = int(length[:-1]) if length != "]" else self.dice.choice((0, 1, 1, 2, 3))
            return [self.of(inner) for _ in range(size)]
        if kind.startswith("("):
            return tuple(self.of(part) for part in parts(kind[1:-1]))
        if kind == "address":
            return self.dice.choice(self.addresses)
        if kind == "bool":
            return self.dice.random() < 0.5
        if kind == "bytes32":
            return self.dice.choice(self.words)
        if kind in ("bytes", "string"):
            data = self.dice.randbytes(self.dice.choice((0, 1, 65, 300)))
            return data if kind == "bytes" else data.hex()
        most = MOST_UINT[int(kind.removeprefix("uint"))]
        return min(most, self.dice.choice([*self.numbers, *self.numbers, most]))


def parts(inside: str) -> Iterator[str]:
    """The members of a tuple type."""
    depth, start = 0, 0
    for i, letter in enumerate(inside + ","):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            yield inside[start:i]
            start = i + 1


def writes() -> list[tuple[str, str]]:
    """Every function that could change something, of every book and vault."""
    return [
        (book, entry["name"])
        for book, name in BOOKS.items()
        for entry in artifact(name)["abi"]
        if entry["type"] == "function" and entry["stateMutability"] not in ("view", "pure")
    ]


class Purse:
    """Who has what: wallets, stake and credits; and what the vaults owe."""

    def __init__(self, t: Twins) -> None:
        def number(*question: Any) -> int:
            return int.from_bytes(t.chain.view(*question))

        at = t.chain.address
        accounts = [*PEOPLE, *at.values(), NOBODY]
        self.stakes = {who: number("vault", "balanceOf", who) for who in accounts}
        self.locked = {who: number("vault", "lockedOf", who) for who in accounts}
        credits = {who: number("ledger", "creditOf", who) for who in accounts}
        wallets = {who: number("token", "balanceOf", who) for who in (*PEOPLE, BURN)}
        self.wealth = {who: self.stakes[who] + credits[who] + wallets[who] for who in PEOPLE}
        self.in_vault, self.in_ledger = (number("token", "balanceOf", at[book]) for book in ("vault", "ledger"))
        self.held = number("ledger", "held")
        self.credits = sum(credits.values())
        self.supply = number("token", "totalSupply")
        self.everywhere = sum(wallets.values()) + self.in_vault + self.in_ledger

    def check(self) -> None:
        """INV-STAKE-1, INV-STAKE-2, INV-LEDGER-2, INV-MONEY, for all who could have anything."""
        assert all(self.locked[who] <= stake for who, stake in self.stakes.items())
        assert self.in_vault == sum(self.stakes.values())
        assert self.in_ledger == self.held >= self.credits
        assert self.everywhere == self.supply


def explain(name: str, caller: str, before: Purse, after: Purse) -> None:
    """Nobody but the caller got poorer, unless a verdict or a lapse made it so."""
    after.check()
    assert after.supply == before.supply
    if name not in VERDICTS:
        poorer = [who for who in PEOPLE if after.wealth[who] < before.wealth[who]]
        assert set(poorer) <= {caller}, (name, caller, poorer)


def call_anything(t: Twins, dice: Random, calls: int) -> Counter[str]:
    """Call functions one after the other and keep what they do. Returns how often each was done or refused."""
    values, counts = Values(t, dice), Counter[str]()
    before = Purse(t)
    before.check()
    for _ in range(calls):
        book, function = dice.choice(writes())
        caller = dice.choice(PEOPLE)
        args = [values.of(kind) for kind in functions(book)[function][1]]
        try:
            t.chain.send(caller, book, function, args)
        except Reverted as refusal:
            unnamed = refusal.name == "Panic" or re.fullmatch("[0-9a-f]{0,8}", refusal.name)
            assert not unnamed, (book, function, args, refusal)
            counts[refusal.name] += 1
            continue
        after = Purse(t)
        explain(f"{book}.{function}", caller, before, after)
        before = after
        counts[f"{book}.{function}"] += 1
    return counts


def _fuzz(plays: Sequence[int], bursts: int, calls: int) -> Counter[str]:
    counts = Counter[str]()
    for number in plays:
        dice = Random(number)
        t = play(number, moves=dice.choice((10, 40, 120)), end=False)
        for _ in range(bursts):
            state = t.chain.evm.snapshot()
            counts += call_anything(t, dice, calls)
            t.chain.evm.revert(state)
    print(f"\n{sum(counts.values())} calls: " + ", ".join(f"{name} {n}" for name, n in counts.most_common()))
    return counts


def test_no_call_changes_a_balance_without_a_reason() -> None:
    counts = _fuzz(range(3), bursts=2, calls=1_000)
    assert sum(counts[f"{book}.{function}"] for book, function in writes()) > 100


@pytest.mark.slow
def test_no_call_of_a_hundred_thousand_changes_a_balance_without_a_reason() -> None:
    _fuzz(range(100, 125), bursts=4, calls=1_000)
