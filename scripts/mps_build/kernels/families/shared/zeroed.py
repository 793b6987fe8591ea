"""Accumulators."""

from __future__ import annotations

from ...program.dtypes import DType
from ...program.launch import Shape, View, inout_buffer


def zeroed(dtype: DType, shape: Shape) -> View:
    """Return an accumulator: zeros, in whole words (16-bit elements are added by way of 32-bit atomics)."""
    count = 1
    for each in shape:
        count *= each
    return View(buffer=inout_buffer(bytes(-(-count * dtype.size // 4) * 4)), dtype=dtype, shape=shape)
