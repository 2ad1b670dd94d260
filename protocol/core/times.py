"""Block times as people read them: UTC, whatever the machine's own zone is."""

from __future__ import annotations

from datetime import UTC, datetime

from protocol.core.operator import FOREVER

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def utc(time: int) -> str:
    """A block time; "never" for the one that never comes."""
    return "never" if time == FOREVER else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration(seconds: int) -> str:
    """The two largest units, rounded down: 3 h 20 min."""
    parts: list[str] = []
    left = max(0, seconds)
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {name}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part) or "0 s"


def until(time: int, now: int) -> str:
    """A deadline: when, and how far away it is."""
    if time == FOREVER:
        return utc(time)
    away = f"in {duration(time - now)}" if time >= now else f"{duration(now - time)} ago"
    return f"{utc(time)}, {away}"
