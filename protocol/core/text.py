"""Words of strangers, fit for a message."""

from __future__ import annotations

import re


def one_line(text: object, limit: int) -> str:
    """The text on one line, without anything a terminal obeys (line ends, escapes, direction marks), shortened."""
    shown = re.sub(
        r"\?{2,}", "?", "".join(letter if letter.isprintable() else "?" for letter in str(text)[: limit + 1])
    )
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
