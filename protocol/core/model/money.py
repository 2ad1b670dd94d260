"""Tokens, stake with its locks, and the ledger's pots and credits.

The books call these; who may call what is in the callers. A burnt token goes to BURN and stays there.
"""

from __future__ import annotations

from dataclasses import replace

from protocol.core.encoding import keccak
from protocol.core.model.records import Lock
from protocol.core.model.refusals import (
    AmountTooLarge,
    CreditTooSmall,
    ERC20InsufficientAllowance,
    ERC20InsufficientBalance,
    LockExists,
    LockTooLarge,
    LockTooSmall,
    PotTooSmall,
    StakeTooSmall,
    ZeroAmount,
)
from protocol.core.model.world import World

BURN = "0x" + "00" * 18 + "dead"
COURT_FUND = keccak(b"court fund")
_UNLIMITED = 2**256 - 1
MOST_AMOUNT = 2**128 - 1
_MOST_LOCK = 2**96 - 1


# -------------------------------------------------------------- the token


def mint(w: World, to: str, amount: int) -> None:
    """Development tokens out of nothing. Anyone."""
    w.tokens[to] = w.tokens.get(to, 0) + amount


def approve(w: World, caller: str, spender: str, amount: int) -> None:
    """Let a book pull so much of the caller's tokens."""
    w.allowances[caller, spender] = amount


def _transfer(w: World, payer: str, to: str, amount: int) -> None:
    have = w.tokens.get(payer, 0)
    if have < amount:
        raise ERC20InsufficientBalance(payer, have, amount)
    w.tokens[payer] = have - amount
    w.tokens[to] = w.tokens.get(to, 0) + amount


def _pull(w: World, payer: str, book: str, amount: int) -> None:
    allowed = w.allowances.get((payer, book), 0)
    if allowed < amount:
        raise ERC20InsufficientAllowance(book, allowed, amount)
    if allowed != _UNLIMITED:
        w.allowances[payer, book] = allowed - amount
    _transfer(w, payer, book, amount)


# -------------------------------------------------------------- stake


def locked_of(w: World, owner: str) -> int:
    """The sum of an owner's locks."""
    return sum(lock.amount for lock in w.locks.values() if lock.owner == owner)


def free_of(w: World, owner: str) -> int:
    """What can be locked or withdrawn."""
    return w.stakes.get(owner, 0) - locked_of(w, owner)


def deposit(w: World, caller: str, owner: str, amount: int) -> None:
    """Add the caller's tokens to an owner's stake. Anyone."""
    if amount == 0:
        raise ZeroAmount
    if amount > MOST_AMOUNT:
        raise AmountTooLarge(amount, MOST_AMOUNT)
    w.stakes[owner] = w.stakes.get(owner, 0) + amount
    _pull(w, caller, w.site.vault, amount)


def withdraw_stake(w: World, caller: str, amount: int) -> int:
    """Send free stake to its owner; 0 means all of it."""
    free = free_of(w, caller)
    sent = amount or free
    if sent > free:
        raise StakeTooSmall(caller, free, sent)
    if sent == 0:
        raise ZeroAmount
    w.stakes[caller] -= sent
    _transfer(w, w.site.vault, caller, sent)
    return sent


def lock(w: World, book: str, owner: str, ident: bytes, amount: int) -> None:
    """Hold free stake back under a book's id."""
    free = free_of(w, owner)
    if amount > free:
        raise StakeTooSmall(owner, free, amount)
    if amount > _MOST_LOCK:
        raise LockTooLarge(amount, _MOST_LOCK)
    if (book, ident) in w.locks:
        raise LockExists(ident)
    w.locks[book, ident] = Lock(owner, amount)


def release(w: World, book: str, ident: bytes) -> int:
    """Free what is left of a lock; nothing the second time."""
    held = w.locks.pop((book, ident), None)
    return held.amount if held else 0


def lock_amount(w: World, book: str, ident: bytes) -> int:
    """The wei of a lock, 0 without one."""
    held = w.locks.get((book, ident))
    return held.amount if held else 0


def slash(w: World, book: str, ident: bytes, amount: int, burnt: int, pot: bytes) -> None:
    """Take from a lock, never from free stake: burn a part, send the rest to a pot."""
    held = w.locks.get((book, ident))
    if held is None or amount > held.amount:
        if amount == 0:
            return
        raise LockTooSmall(ident, held.amount if held else 0, amount)
    w.locks[book, ident] = replace(held, amount=held.amount - amount)
    w.stakes[held.owner] -= amount
    _transfer(w, w.site.vault, BURN, burnt)
    if amount > burnt:
        _transfer(w, w.site.vault, w.site.ledger, amount - burnt)
        w.pots[pot] = w.pots.get(pot, 0) + amount - burnt


# -------------------------------------------------------------- the ledger


def pot_of(w: World, pot: bytes) -> int:
    """Wei in a pot."""
    return w.pots.get(pot, 0)


def held(w: World) -> int:
    """Wei in all pots and credits."""
    return sum(w.pots.values()) + sum(w.credits.values())


def fund(w: World, pot: bytes, payer: str, amount: int) -> None:
    """A poster's tokens into a pot."""
    if amount == 0:
        raise ZeroAmount
    w.pots[pot] = pot_of(w, pot) + amount
    _pull(w, payer, w.site.ledger, amount)


def _take(w: World, pot: bytes, amount: int) -> None:
    have = pot_of(w, pot)
    if amount > have:
        raise PotTooSmall(pot, have, amount)
    w.pots[pot] = have - amount


def move(w: World, source: bytes, to: bytes, amount: int) -> None:
    """From pot to pot."""
    _take(w, source, amount)
    w.pots[to] = pot_of(w, to) + amount


def credit(w: World, pot: bytes, account: str, amount: int) -> None:
    """From a pot to what an account may withdraw."""
    _take(w, pot, amount)
    w.credits[account] = w.credits.get(account, 0) + amount


def burn(w: World, pot: bytes, amount: int) -> None:
    """From a pot to nobody."""
    _take(w, pot, amount)
    _transfer(w, w.site.ledger, BURN, amount)


def withdraw_credit(w: World, account: str, amount: int) -> int:
    """Send an account what it is owed; 0 means all. Anyone may call."""
    have = w.credits.get(account, 0)
    sent = amount or have
    if sent > have:
        raise CreditTooSmall(account, have, sent)
    if sent == 0:
        raise ZeroAmount
    w.credits[account] = have - sent
    _transfer(w, w.site.ledger, account, sent)
    return sent
