"""Text in pieces that are encoded one by one: the cuts depend on the text, never on how it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

PIECE = 2**16  # characters, at most


def pieces(texts: Iterable[str]) -> Iterator[str]:
    """The joined texts, cut after the last line end within PIECE characters that a line begins behind.

    Without one, before the last space; without that, after PIECE characters.
    """
    rest = ""
    for more in texts:
        text, start = rest + more, 0
        while len(text) - start > PIECE:
            end = start + _cut(text[start : start + PIECE + 1])
            yield text[start:end]
            start = end
        rest = text[start:]
    if rest:
        yield rest


def _cut(text: str) -> int:
    """Where a piece ends that starts a text of PIECE + 1 characters: more than 0, at most PIECE."""
    at = text.rfind("\n", 0, PIECE)
    while at >= 0 and text[at + 1].isspace():
        at = text.rfind("\n", 0, at)
    if at >= 0:
        return at + 1
    space = text.rfind(" ", 1, PIECE)
    return space if space > 0 else PIECE
