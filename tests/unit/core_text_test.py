"""What a stranger wrote never leaves its line, nor commands a terminal."""

from __future__ import annotations

import pytest

from protocol.core.errors import GradmarketError
from protocol.core.text import one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ünïcode, 10^18", "ünïcode, 10^18"),
        ("two\nlines\r\n", "two?lines?"),
        ("\x1b[2Jcleared", "?[2Jcleared"),
        ("left\u202eright", "left?right"),
        ("a\u2028b\x00c\td", "a?b?c?d"),
        ("12345678901234567890", "12345678901234567890"),
        ("123456789012345678901", "12345678901234567..."),
    ],
)
def test_a_text_is_one_printable_line_of_at_most_its_limit(text: str, shown: str) -> None:
    assert one_line(text, 20) == shown


def test_every_error_of_this_project_prints_as_one_line() -> None:
    assert str(GradmarketError("field `\n\x1b[1m`")) == "field `?[1m`"
    assert len(str(GradmarketError("x" * 10_000))) == 2000
