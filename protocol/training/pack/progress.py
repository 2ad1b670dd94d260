"""What a person who waits is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Stage(Enum):
    """In the order in which a pack runs through them."""

    SURVEY = "read"
    TOKENIZER = "train the tokenizer"
    TOKENS = "tokenize"
    SHARDS = "write shards"


@dataclass(frozen=True)
class Progress:
    """`done` of `total` bytes of the stage; `tokens` so far, in the stages that have any."""

    stage: Stage
    done: int
    total: int
    tokens: int = 0


Watch = Callable[[Progress], None]


def nobody(progress: Progress) -> None:
    """A watch that looks away."""
