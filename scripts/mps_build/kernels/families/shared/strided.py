"""Strides with gaps, where elements lie, and launches over grids."""

from __future__ import annotations

import itertools

from ...program.dtypes import DType
from ...program.launch import Buffer, Known, Shape, Step, Value, View, dense_strides
from .contracts import Case, Kernel

Arguments = dict[str | int, Value]


def random_bytes(case: Case, count: int) -> bytes:
    """Return so many bytes."""
    return bytes(case.values.integers(count, 0, 255))


def grid_of(count: int) -> tuple[int, int, int]:
    """Return a one-dimensional grid of so many threads."""
    return (count, 1, 1)


def places_of(shape: Shape, strides: Shape, offset: int = 0) -> list[int]:
    """Return where each element lies, in row-major order."""
    ranges = [range(0, n * s, s) if s else [0] * n for n, s in zip(shape, strides, strict=True)]
    return [offset + sum(each) for each in itertools.product(*ranges)]


def padded(shape: Shape, pad: int) -> Shape:
    """Return strides of a tensor whose rows are `pad` elements longer than they need be."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size + pad
    return tuple(reversed(strides))


def reach(shape: Shape, strides: Shape) -> int:
    """Return how many elements a strided tensor spans in its storage, from the first to the last."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def scale_of(dtype: DType) -> float:
    """A few sums or products of values up to 2, each rounded to the type."""
    return 0.0 if dtype.is_exact else {"half": 0.06, "bfloat": 0.5, "half2": 0.06}.get(dtype.name, 2.0**-18)


SELECTED = (((3, 7, 5), 1, 4, 1), ((40,), 0, 33, 0), ((2, 3, 4, 5), 3, 2, 2))
"""Shape, dimension, how many indices, gaps."""


def one_launch(kernel: Kernel, arguments: Arguments, grid: tuple[int, int, int]) -> Step:
    """Return a launch over a grid, in threadgroups that leave a last one partly filled."""
    group = (min(grid[0], 8), min(grid[1], 2), min(grid[2], 2)) if grid[1:] != (1, 1) else (min(grid[0], 32), 1, 1)
    return Step(kernel=kernel.name, arguments=arguments, grid=grid, threadgroup=group)


def known_bytes(buffer: Buffer, dtype: DType, want: bytes) -> Known:
    """Return the expectation that a buffer holds exactly these bytes."""
    return Known(got=View(buffer=buffer, dtype=dtype, shape=(len(want) // dtype.size,)), want=want)


def outermost_inside(shape: Shape, gap: int) -> Shape:
    """Strides of a tensor with gaps, whose outermost dimension lies innermost."""
    return (gap, *(each * shape[0] * gap for each in dense_strides(shape[1:])))
