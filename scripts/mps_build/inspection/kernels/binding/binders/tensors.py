"""Views over fresh buffers, for binders of whole operators."""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import DType
from ...program import Shape, Step, Value, View, dense_strides, input_buffer, output_buffer
from ..contracts import Case, Kernel


def extent(shape: Shape, strides: Shape | None = None) -> int:
    """Return how many elements a view reaches over.

    >>> extent((2, 3)), extent((2, 3), (10, 2))
    (6, 15)
    """
    strides = dense_strides(shape) if strides is None else strides
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if all(shape) else 0


def filled(
    case: Case,
    dtype: DType,
    shape: Shape,
    *,
    strides: Shape | None = None,
    low: float = -2.0,
    high: float = 2.0,
    align: int | None = None,
) -> View:
    """Return an input of ordinary values; what lies between its elements has values too."""
    data = case.values.moderate(dtype, extent(shape, strides), low, high)
    return View(buffer=input_buffer(data, align=align), dtype=dtype, shape=shape, strides=strides)


def swept(case: Case, dtype: DType, shape: Shape, *, strides: Shape | None = None) -> View:
    """Return an input of edge values, for kernels that only move elements."""
    data = case.values.sweep(dtype, extent(shape, strides))
    return View(buffer=input_buffer(data), dtype=dtype, shape=shape, strides=strides)


def result(dtype: DType, shape: Shape, *, strides: Shape | None = None, align: int | None = None) -> View:
    """Return an output of exactly the size that its view needs."""
    buffer = output_buffer(extent(shape, strides) * dtype.size, align=align)
    return View(buffer=buffer, dtype=dtype, shape=shape, strides=strides)


def strides_of(view: View) -> Shape:
    """Return a view's strides in elements; those of a contiguous tensor where it names none."""
    return dense_strides(view.shape) if view.strides is None else view.strides


def groups(kernel: Kernel, arguments: dict[str | int, Value], count: Sequence[int], threads: Sequence[int]) -> Step:
    """Return a cooperative launch: how many threadgroups, and their threads, along each axis."""
    sizes = tuple((list(threads) + [1, 1])[:3])
    grid = tuple(n * t for n, t in zip((list(count) + [1, 1])[:3], sizes, strict=True))
    return Step(
        kernel=kernel.name,
        arguments=arguments,
        grid=(grid[0], grid[1], grid[2]),
        threadgroup=(sizes[0], sizes[1], sizes[2]),
        free=False,
    )


def threads(kernel: Kernel, arguments: dict[str | int, Value], grid: Sequence[int]) -> Step:
    """Return a launch of threads that do not work together."""
    whole = (list(grid) + [1, 1])[:3]
    return Step(
        kernel=kernel.name,
        arguments=arguments,
        grid=(whole[0], whole[1], whole[2]),
        threadgroup=(min(32, whole[0]), min(2, whole[1]), 1),
    )
