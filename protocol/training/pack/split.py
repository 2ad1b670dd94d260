"""Which text is held out: decided by a first reading, the same in every later one.

Of few documents, the end of each; of many, whole ones, those with the lowest marks. A mark is a hash of the text, and
the end of a text is a function of it: two equal documents always fall on the same side.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from protocol.training.errors import DataError
from protocol.training.pack.pieces import pieces
from protocol.training.pack.progress import Progress, Stage, Watch
from protocol.training.pack.sources import Document, Source, documents

MANY_DOCUMENTS = 100  # different ones; from here on whole documents are held out
MAX_HELD_OUT = 2**16  # documents; bounds the memory
SHARE = 20  # at most one character in so many is held out
_CHARACTERS_A_TOKEN = 8  # more than any usual tokenizer has: enough text is held out for the sequences asked for


class Facts(msgspec.Struct, frozen=True):
    """Of one document. `mark`: 64 bits of a hash of its text."""

    characters: int
    bytes: int
    mark: int


class Split(msgspec.Struct, frozen=True):
    """`needed` of `characters` are held out; `marks`: of the documents held out whole; without any, all lose an end.

    `digest`: of all documents' marks in their order, so that equal splits are of equal texts.
    """

    characters: int
    bytes: int
    needed: int
    digest: str
    marks: frozenset[int]

    def cut(self, facts: Facts) -> int:
        """Characters of a document that are trained; the others are held out."""
        if self.marks:
            return 0 if facts.mark in self.marks else facts.characters
        return facts.characters - facts.characters * self.needed // self.characters


class Part(msgspec.Struct, frozen=True):
    """A piece of text, on its side. `last`: nothing of its document follows on this side."""

    text: str
    held_out: bool
    last: bool


def measure(document: Document, seed: int) -> Facts:
    """Read the whole document, holding a part of it at a time."""
    digest = hashlib.sha256(b"gradmarket/held-out\0" + seed.to_bytes(8, "big"))
    characters = size = 0
    for text in document.texts():
        data = text.encode()
        digest.update(data)
        characters, size = characters + len(text), size + len(data)
    return Facts(characters, size, int.from_bytes(digest.digest()[:8], "big"))


def survey(sources: Iterable[Source], field: str, seed: int, wanted: int | None, watch: Watch) -> Split:
    """Read everything once. `wanted`: tokens to hold out; a share of the text without it. Raises DataError."""
    sources, lowest = tuple(sources), _Lowest()
    total, before = sum(source.size for source in sources), 0
    characters = size = 0
    digest = hashlib.sha256()

    def moved(position: int) -> None:
        watch(Progress(Stage.SURVEY, before + position, total))

    for source in sources:
        for document in documents(source, field, moved):
            facts = measure(document, seed)
            digest.update(facts.mark.to_bytes(8, "big"))
            characters, size = characters + facts.characters, size + facts.bytes
            if facts.characters:
                lowest.add(facts)
        before += source.size
    if not characters:
        raise DataError("pack: the files hold no text at all")
    share = characters // SHARE
    needed = share if wanted is None else min(share, _CHARACTERS_A_TOKEN * wanted)
    return Split(characters, size, needed, digest.hexdigest(), lowest.choose(needed, share))


def parts(sources: Iterable[Source], field: str, seed: int, split: Split) -> Iterator[Part]:
    """All text in pieces. A document that is held out whole occurs once, however often the files have it."""
    seen: set[int] = set()
    for source in sources:
        for document in documents(source, field, lambda _: None):
            facts = measure(document, seed)
            if facts.mark in seen:
                continue
            if facts.mark in split.marks:
                seen.add(facts.mark)
            yield from _parts(document, split.cut(facts))


def _parts(document: Document, cut: int) -> Iterator[Part]:
    for held_out, texts in groupby(_sides(document, cut), key=lambda side: side[0]):
        before: str | None = None
        for piece in pieces(text for _, text in texts):
            if before is not None:
                yield Part(before, held_out, False)
            before = piece
        if before is not None:
            yield Part(before, held_out, True)


def _sides(document: Document, cut: int) -> Iterator[tuple[bool, str]]:
    """The document's texts, none across `cut`."""
    left = cut
    for text in document.texts():
        if text[:left]:
            yield False, text[:left]
        if text[left:]:
            yield True, text[left:]
        left = max(0, left - len(text))


class _Lowest:
    """The documents with the MAX_HELD_OUT lowest marks, each once."""

    def __init__(self) -> None:
        self._heap: list[int] = []  # negative marks: the highest comes first
        self._characters: dict[int, int] = {}

    def add(self, facts: Facts) -> None:
        if facts.mark in self._characters:
            return
        if len(self._heap) < MAX_HELD_OUT:
            heapq.heappush(self._heap, -facts.mark)
        elif facts.mark < -self._heap[0]:
            del self._characters[-heapq.heapreplace(self._heap, -facts.mark)]
        else:
            return
        self._characters[facts.mark] = facts.characters

    def choose(self, needed: int, longest: int) -> frozenset[int]:
        """From the lowest mark on, until `needed` characters are there; documents above `longest` are left out."""
        chosen: list[int] = []
        if len(self._characters) < MANY_DOCUMENTS:
            return frozenset()
        for mark, characters in sorted(self._characters.items()):
            if needed <= 0:
                break
            if characters <= longest:
                chosen.append(mark)
                needed -= characters
        return frozenset(chosen)
