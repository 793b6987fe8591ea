"""Views over fresh buffers, for binders of whole operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...program.dtypes import DTYPES, DType, dtype_named
from ...program.errors import WrongBinding
from ...program.launch import (
    Addresses,
    Buffer,
    Known,
    Shape,
    Step,
    Value,
    View,
    Words,
    dense_strides,
    inout_buffer,
    input_buffer,
    output_buffer,
)
from ...program.values import pack
from .contracts import Case, Kernel
from .pack import leaf_of


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


def bound(kernel: Kernel, values: Mapping[str, object]) -> dict[str | int, Value]:
    """Return arguments: views as their memory, memory and null as they are, all else packed as laid out.

    What the kernel has no argument for is left out: members of a family differ in that.
    """
    arguments: dict[str | int, Value] = {}
    for name, each in values.items():
        if not kernel.has(name):
            continue
        if isinstance(each, View):
            arguments[name] = each.buffer
        elif each is None or isinstance(each, (Buffer, Addresses)):
            arguments[name] = each
        else:
            arguments[name] = kernel.pack(name, each)
    return arguments


def numbered(dtype: DType, numbers: Sequence[float], shape: Shape | None = None) -> View:
    """Return an input of these numbers."""
    data = pack(dtype, list(numbers))
    return View(buffer=input_buffer(data), dtype=dtype, shape=shape or (len(data) // dtype.size,))


def started(view: View) -> View:
    """Return a buffer that begins as an input does, and may change."""
    return replace(view, buffer=inout_buffer(view.buffer.data))


def error_buffer() -> View:
    """Return room for what kernels say of bad inputs; its first word, a count, must stay zero."""
    return View(buffer=inout_buffer(bytes(16384)), dtype=DTYPES["uint"], shape=(1,))


def no_error(view: View) -> Known:
    """Return the expectation that an error flag stays 0."""
    return Known(got=view, want=bytes(4))


def growing(kernel: Kernel, name: str, value: object) -> Words:
    """Return the numbers of a constant that grow (Growth.words): `value` is what is added, given as the constant is.

    Raises:
        WrongBinding: it has numbers of another kind than its first.
    """
    dtype = dtype_named(leaf_of(kernel.argument(name)))
    if dtype is None or not dtype.is_exact:
        raise WrongBinding(f"{name} has no whole numbers that could grow")
    data, size = kernel.pack(name, value), dtype.size
    words = [
        (at, size, int.from_bytes(data[at : at + size], "little", signed=True)) for at in range(0, len(data), size)
    ]
    return tuple(each for each in words if each[2])
