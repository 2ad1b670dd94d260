"""A process that packs and kills itself: POINT COUNT TEXT OUT, at the COUNT-th time that it comes to the point.

The batches are small, and the state is saved after each, so that a short text has many points to die at.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protocol.training.pack import folder, pack_text, packing, tokens

SIZES: dict[str, Any] = {"vocab": 300, "sequence": 16, "shard_sequences": 8, "max_validation": 6}
POINTS: dict[str, tuple[Any, str]] = {
    "begun": (packing, "train_tokenizer"),
    "encoded": (tokens, "_append"),
    "written": (tokens.TokenFile, "append"),
    "saved": (folder.PackFolder, "save"),
    "shard": (folder.PackFolder, "put_parts"),
    "noted": (folder.PackFolder, "add_shard"),
    "tidied": (folder.PackFolder, "tidy"),
}


def small_steps() -> None:
    tokens.BATCH_CHARACTERS, tokens.SAVED_TOKENS = 3000, 1


def die_after(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    calls = 0

    def dying(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        answer = function(*args, **kwargs)
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return dying


def main(point: str, count: int, text: Path, out: Path) -> None:
    small_steps()
    where, name = POINTS[point]
    setattr(where, name, die_after(getattr(where, name), count))
    pack_text([text], out, **SIZES)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
