"""Views over fresh buffers, where their elements lie, and launches, for binders of whole operators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...program.dtypes import DTYPES, DType, dtype_named
from ...program.launch import (
    Addresses,
    Buffer,
    Known,
    Shape,
    Step,
    Value,
    View,
    Words,
    WrongBinding,
    dense_strides,
    inout_buffer,
    input_buffer,
    output_buffer,
)
from ...program.values import edges, pack
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
    """Return arguments: views as their memory, memory and null as they are, all else packed.

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


# Strides with gaps, where elements lie, and launches over grids.

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


def zeroed(dtype: DType, shape: Shape) -> View:
    """Return an accumulator: zeros, in whole words (16-bit elements are added by way of 32-bit atomics)."""
    count = 1
    for each in shape:
        count *= each
    return View(buffer=inout_buffer(bytes(-(-count * dtype.size // 4) * 4)), dtype=dtype, shape=shape)


# Numbers with ties, for what depends on their order.

Number = int | float


def tied_numbers(case: Case, dtype: DType, count: int) -> list[Number]:
    """Return values with many ties and the type's limits, all exact in it; no negative zero, which equals zero."""
    random = case.values.random
    if dtype.kind == "bool":
        return [random.randrange(2) for _ in range(count)]
    if dtype.is_exact:
        limits = edges(dtype.name)
        low = 0 if dtype.kind == "unsigned" else -100
        return [int(random.choice(limits)) if random.random() < 0.1 else random.randint(low, 100) for _ in range(count)]
    special = (math.nan, math.inf, -math.inf, 65504.0 if dtype.name == "half" else 2.0**100)
    return [random.choice(special) if random.random() < 0.05 else random.randint(-250, 250) / 4 for _ in range(count)]


# Tables of offsets: every element's place in each tensor, in bytes.


def _offsets(views: Sequence[View], shape: Shape) -> list[int]:
    """Return the byte offsets of each element in each view, one element after the other."""
    numbers = []
    for position in itertools.product(*map(range, shape)):
        for view in views:
            numbers.append(sum(p * s for p, s in zip(position, strides_of(view), strict=True)) * view.dtype.size)
    return numbers


def offsets_table(kernel: Kernel, views: Sequence[View], shape: Shape, width: int | None = None) -> bytes:
    """Return vectors of three offsets, in the element type that the argument has (16 or 32 bytes each)."""
    rows = _offsets(views, shape)
    argument = kernel.argument("offsets")
    kind = DTYPES["ulong" if "long" in argument.type or width == 64 else "uint"]
    padded = [part for at in range(0, len(rows), 3) for part in (*rows[at : at + 3], 0)]
    return pack(kind, padded)
