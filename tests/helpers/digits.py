"""Real images: 1,797 handwritten digits of 8×8 pixels, as scikit-learn ships them (from the UCI repository)."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np

from protocol.training.families.base import Rows
from protocol.training.images import Labels, Pixels, image_rows

CLASSES = 10


def load_digits() -> tuple[Pixels, Labels]:
    """Pixels [S, 1, 8, 8] in 0…255 and labels [S]. The file is read without importing the library."""
    found = importlib.util.find_spec("sklearn")
    assert found is not None and found.origin is not None, "pip install --no-deps scikit-learn (see Makefile)"
    packed = (Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz").read_bytes()
    table = np.loadtxt(gzip.decompress(packed).decode().splitlines(), delimiter=",")
    pixels = np.minimum(table[:, :-1] * 16, 255).astype(np.uint8)  # 0…16 in the file
    return pixels.reshape(-1, 1, 8, 8), table[:, -1].astype(np.int64)


def digit_rows() -> Rows:
    """The same as training sees them: rows of 64 pixels and a label."""
    pixels, labels = load_digits()
    return image_rows({"pixels": pixels, "labels": labels.astype(np.uint16)}, CLASSES, "digits")
