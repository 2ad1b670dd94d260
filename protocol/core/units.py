"""Units in the type: an amount is a whole number of wei, a time is a block's timestamp."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import NewType

from protocol.core.errors import GradmarketError

Wei = NewType("Wei", int)
Seconds = NewType("Seconds", int)
Timestamp = NewType("Timestamp", int)
Bps = NewType("Bps", int)

TOKEN = 10**18  # wei in one token
BPS = 10_000  # one hundred per cent
FIXED_POINT = 10**9  # losses, norms and tolerances on chain count units of 1e-9


class AmountError(GradmarketError):
    """A text that is no amount of tokens."""


def parse_tokens(text: str) -> Wei:
    """Read "12.5" as wei. More than 18 decimals, signs and exponents are refused: no amount is rounded."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise AmountError(f"amount {text!r}: expected a number of tokens such as 12.5") from None
    wei = value * TOKEN
    if not value.is_finite() or value < 0 or wei != wei.to_integral_value():
        raise AmountError(f"amount {text!r}: expected a positive number of tokens with at most 18 decimals")
    return Wei(int(wei))


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
