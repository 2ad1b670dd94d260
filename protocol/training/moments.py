"""Second moments as they are shared: the means of a matrix's rows and columns, instead of every value (Adafactor).

Sums are of integers, so that every machine of a class gets the same bits. Source: arXiv:1804.04235.
"""

from __future__ import annotations

import math

import numpy as np

from protocol.training.checkpoint import Tensor, Tensors
from protocol.training.layout import Layout

_BITS = 40  # of a value below its matrix's largest: a sum of 2^22 values fits 63 bits


def factor(second: Tensors) -> Tensors:
    """Of each matrix [R, C] its `rows` [R] and `columns` [C], float32; anything else as it is."""
    factors: Tensors = {}
    for name, values in second.items():
        if values.ndim == 2:
            factors[f"{name}/rows"], factors[f"{name}/columns"] = _means(values)
        else:
            factors[name] = values.copy()
    return factors


def expand(factors: Tensors, shapes: Layout) -> Tensors:
    """rows · (columns / mean of rows), for the matrices; zero where nothing was seen yet."""
    second: Tensors = {}
    for name, shape in shapes.items():
        if len(shape) == 2:
            rows, columns = factors[f"{name}/rows"], factors[f"{name}/columns"]
            mean = math.fsum(rows.tolist()) / len(rows)
            share = columns.astype(np.float64) / mean if mean > 0 else np.zeros(len(columns))
            second[name] = (rows.astype(np.float64)[:, None] * share[None, :]).astype(np.float32)
        else:
            second[name] = factors[name]
    return second


def _means(values: Tensor) -> tuple[Tensor, Tensor]:
    exponent = math.frexp(float(values.max()))[1] - _BITS
    integers = np.floor(np.ldexp(values.astype(np.float64), -exponent)).astype(np.int64)
    row_sums, column_sums = integers.sum(axis=1, dtype=np.int64), integers.sum(axis=0, dtype=np.int64)
    rows = np.ldexp(row_sums.astype(np.float64) / values.shape[1], exponent)
    columns = np.ldexp(column_sums.astype(np.float64) / values.shape[0], exponent)
    return rows.astype(np.float32), columns.astype(np.float32)
