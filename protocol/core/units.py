"""Units in the type: an amount is a whole number of wei, a time is a block's timestamp."""

from __future__ import annotations

import re
from typing import NewType

from protocol.core.errors import GradmarketError

Wei = NewType("Wei", int)
Seconds = NewType("Seconds", int)
Timestamp = NewType("Timestamp", int)
Bps = NewType("Bps", int)

TOKEN = 10**18  # wei in one token
BPS = 10_000  # one hundred per cent
FIXED_POINT = 10**9  # losses, norms and tolerances on chain count units of 1e-9
_AMOUNT = re.compile(r"([0-9]{1,40})(?:\.([0-9]{1,18}))?")


class AmountError(GradmarketError):
    """A text that is no amount of tokens."""


def parse_tokens(text: str) -> Wei:
    """Read "12.5" as wei. More than 18 decimals, signs and exponents are refused: no amount is rounded."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        what = "a number of tokens such as 12.5"
        if any(character.isdigit() for character in text):
            what = "a positive number of tokens with at most 18 decimals"
        raise AmountError(f"amount {text[:80]!r}: expected {what}")
    whole, part = match.groups(default="")
    return Wei(int(whole) * TOKEN + int(part.ljust(18, "0")))


def parse_some_or_all(text: str | None) -> Wei:
    """An amount as commands take it: none means all, which the contracts write as 0; a typed 0 means nothing."""
    if text is None:
        return Wei(0)
    wei = parse_tokens(text)
    if wei == 0:
        raise AmountError(f"amount {text!r}: 0 does nothing; name a positive number of tokens, or none for all")
    return wei


def format_tokens(wei: int) -> str:
    """Write wei as tokens, exactly: format_tokens(parse_tokens(x)) names the same amount."""
    sign = "-" if wei < 0 else ""
    whole, part = divmod(abs(wei), TOKEN)
    return f"{sign}{whole}" + (f".{part:018d}".rstrip("0") if part else "")


def mul_up(amount: int, numerator: int, denominator: int) -> int:
    """amount * numerator / denominator, rounded up."""
    return -(-amount * numerator // denominator)


def mul_down(amount: int, numerator: int, denominator: int) -> int:
    """amount * numerator / denominator, rounded down."""
    return amount * numerator // denominator
