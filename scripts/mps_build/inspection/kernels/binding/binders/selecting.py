"""Small kernels that fill, choose and turn: index_fill, index_select, masked_fill, flip, unique, repeat_interleave."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...dtypes import DTYPES, DType
from ...program import Buffer, Known, Program, Step, View, dense_strides, inout_buffer, input_buffer, output_buffer
from ...values import pack
from ..contracts import Case, Kernel
from .indexing import padded, places_of, reach

Arguments = dict[str | int, Buffer | bytes]
SHAPES = (((3, 7, 5), 1, 4, 1), ((40,), 0, 33, 0), ((2, 3, 4, 5), 3, 2, 2))
"""Shape, dimension, how many indices, gaps."""


def one_launch(kernel: Kernel, arguments: Arguments, grid: tuple[int, int, int]) -> Step:
    """Return a launch over a grid, in threadgroups that leave a last one partly filled."""
    group = (min(grid[0], 8), min(grid[1], 2), min(grid[2], 2)) if grid[1:] != (1, 1) else (min(grid[0], 32), 1, 1)
    return Step(kernel=kernel.name, arguments=arguments, grid=grid, threadgroup=group)


def known_bytes(buffer: Buffer, dtype: DType, want: bytes) -> Known:
    """Return the expectation that a buffer holds exactly these bytes."""
    return Known(got=View(buffer=buffer, dtype=dtype, shape=(len(want) // dtype.size,)), want=want)


def fill_dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_dense`: a thread an element of the slices that are filled; negative indices wrap."""
    dtype = kernel.dtype("output")
    for outer, size, inner, numel in ((3, 7, 5, 4), (1, 40, 1, 33), (2, 3, 70, 2)):
        chosen = [i - size if k % 2 else i for k, i in enumerate(case.values.random.sample(range(size), numel))]
        before, value = case.values.sweep(dtype, outer * size * inner), case.values.moderate(dtype, 1, 1, 2)
        after, row = bytearray(before), inner * dtype.size
        for o, i in itertools.product(range(outer), chosen):
            at = (o * size + i % size) * row
            after[at : at + row] = value * inner
        out = inout_buffer(before)
        arguments: Arguments = {
            "output": out,
            "indices": input_buffer(pack(DTYPES["long"], chosen)),
            "fill_val": kernel.pack("fill_val", value),
            "dim_size": kernel.pack("dim_size", size),
            "dim_stride": kernel.pack("dim_stride", inner),
            "slice_numel": kernel.pack("slice_numel", outer * inner),
        }
        launch = one_launch(kernel, arguments, (numel * outer * inner, 1, 1))
        yield Program(
            label=f"{outer} x {size} x {inner}, {numel} indices",
            steps=[launch],
            checks=[known_bytes(out, dtype, bytes(after))],
        )


def fill_strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_strided`: the slice's sizes and strides without `dim`."""
    dtype = kernel.dtype("output")
    for number, (shape, dim, numel, gap) in enumerate(SHAPES):
        every, size = number + 1, dtype.size
        chosen = [
            i - shape[dim] if k % 2 else i for k, i in enumerate(case.values.random.sample(range(shape[dim]), numel))
        ]
        strides = padded(shape, gap)
        before, value = case.values.sweep(dtype, reach(shape, strides)), case.values.moderate(dtype, 1, 1, 2)
        after, taken = bytearray(before), {i % shape[dim] for i in chosen}
        for position, at in zip(itertools.product(*map(range, shape)), places_of(shape, strides), strict=True):
            if position[dim] in taken:
                after[at * size : (at + 1) * size] = value
        others = [d for d in reversed(range(len(shape))) if d != dim]
        indices = [0] * ((numel - 1) * every + 1)
        indices[::every] = chosen
        slice_numel, out = math.prod(shape[d] for d in others), inout_buffer(before)
        constants: dict[str, object] = {
            "fill_val": value,
            "dim_size": shape[dim],
            "dim_out_stride": strides[dim],
            "slice_sizes": [shape[d] for d in others] or [1],
            "slice_out_strides": [strides[d] for d in others] or [0],
            "slice_ndim": len(others),
            "slice_numel": slice_numel,
            "indices_stride": every,
        }
        arguments: Arguments = {"output": out, "indices": input_buffer(pack(DTYPES["long"], indices))}
        arguments |= {name: kernel.pack(name, each) for name, each in constants.items()}
        launch = one_launch(kernel, arguments, (numel * slice_numel, 1, 1))
        yield Program(
            label=f"{shape}, dim {dim}, gaps of {gap}", steps=[launch], checks=[known_bytes(out, dtype, bytes(after))]
        )


def fill_masked(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_..._from_mask`: which places of `dim` are filled is a mask."""
    dtype, is_strided = kernel.dtype("output"), kernel.has("ndim")
    for shape, dim, _, gap in SHAPES:
        strides, size = padded(shape, gap if is_strided else 0), dtype.size
        mask = [case.values.random.randrange(2) for _ in range(shape[dim])]
        mask[0], mask[-1] = 1, 0
        before, value = case.values.sweep(dtype, reach(shape, strides)), case.values.moderate(dtype, 1, 1, 2)
        after = bytearray(before)
        for position, at in zip(itertools.product(*map(range, shape)), places_of(shape, strides), strict=True):
            if mask[position[dim]]:
                after[at * size : (at + 1) * size] = value
        out, inner = inout_buffer(before), math.prod(shape[dim + 1 :])
        arguments: Arguments = {
            "output": out,
            "mask": input_buffer(bytes(mask)),
            "fill_val": kernel.pack("fill_val", value),
        }
        if is_strided:
            order = list(reversed(range(len(shape))))
            arguments |= {
                "sizes": kernel.pack("sizes", [shape[d] for d in order]),
                "out_strides": kernel.pack("out_strides", [strides[d] for d in order]),
                "dim": kernel.pack("dim", order.index(dim)),
                "ndim": kernel.pack("ndim", len(shape)),
            }
            grid = (math.prod(shape), 1, 1)
        else:
            arguments |= {
                "dim_size": kernel.pack("dim_size", shape[dim]),
                "inner_size": kernel.pack("inner_size", inner),
            }
            grid = (inner, shape[dim], math.prod(shape[:dim]))
        yield Program(
            label=f"{shape}, dim {dim}, gaps of {gap}",
            steps=[one_launch(kernel, arguments, grid)],
            checks=[known_bytes(out, dtype, bytes(after))],
        )


def masked_dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`masked_fill_scalar`, dense, and with a mask that repeats (`mask_numel`)."""
    dtype = kernel.dtype("input")
    for count, period in ((77, 11), (128, 32), (5, 5)):
        length = period if kernel.has("mask_numel") else count
        mask = [case.values.random.randrange(2) for _ in range(length)]
        before, value, size = case.values.sweep(dtype, count), case.values.moderate(dtype, 1, 1, 100), dtype.size
        want = b"".join(value if mask[i % length] else before[i * size : (i + 1) * size] for i in range(count))
        data = inout_buffer(before)
        arguments: Arguments = {"input": data, "mask": input_buffer(bytes(mask)), "val": kernel.pack("val", value)}
        if kernel.has("mask_numel"):
            arguments["mask_numel"] = kernel.pack("mask_numel", length)
        yield Program(
            label=f"{count} elements, {length} of the mask",
            steps=[one_launch(kernel, arguments, (count, 1, 1))],
            checks=[known_bytes(data, dtype, want)],
        )


def select(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_select_dim`: IndexReduceParams, `self` the input and `source` the result; indices are kept in range."""
    dtype, index_type = kernel.dtype("output"), kernel.dtype("index")
    for shape, dim, numel, gap in SHAPES:
        out_shape = tuple(numel if d == dim else n for d, n in enumerate(shape))
        strides, out_strides = padded(shape, gap), padded(out_shape, 2 * gap)
        data, size = case.values.sweep(dtype, reach(shape, strides)), dtype.size
        chosen = case.values.integers(numel, 0, shape[dim] - 1)
        chosen[-1] = shape[dim] - 1
        want = b""
        for position in itertools.product(*map(range, out_shape)):
            at = sum((chosen[p] if d == dim else p) * strides[d] for d, p in enumerate(position)) * size
            want += data[at : at + size]
        params = {
            "ndim": len(shape),
            "reduce_dim": dim,
            "self_strides": strides,
            "self_sizes": shape,
            "source_strides": out_strides,
            "source_sizes": out_shape,
            "index_stride": 1,
        }
        out = output_buffer(reach(out_shape, out_strides) * size)
        arguments: Arguments = {
            "output": out,
            "index": input_buffer(pack(index_type, chosen)),
            "input": input_buffer(data),
            "params": kernel.pack("params", params),
        }
        check = Known(got=View(buffer=out, dtype=dtype, shape=out_shape, strides=out_strides), want=want)
        yield Program(
            label=f"{shape}, dim {dim}, {numel} indices, gaps of {gap}",
            checks=[check],
            steps=[one_launch(kernel, arguments, (math.prod(out_shape), 1, 1))],
        )


def flip(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`flip`: strides in bytes of both, innermost first; what turns is given by the strides."""
    size = int(kernel.parts["bits"]) // 8
    dtype = {1: DTYPES["uchar"], 2: DTYPES["ushort"], 4: DTYPES["uint"], 8: DTYPES["ulong"]}[size]
    for shape, gap in (((3, 7, 5), 0), ((2, 4, 9), 1), ((1, 1, 40), 2)):
        order = list(reversed(range(len(shape))))
        source = padded(shape, gap)
        # A permuted result: what is turned about is where each element goes.
        target = tuple(reversed(dense_strides(shape[::-1])))
        data, want = case.values.sweep(dtype, reach(shape, source)), bytearray(math.prod(shape) * size)
        for at, to in zip(places_of(shape, source), places_of(shape, target), strict=True):
            want[to * size : (to + 1) * size] = data[at * size : (at + 1) * size]
        out = output_buffer(len(want))
        arguments: Arguments = {
            "output": out,
            "input": input_buffer(data),
            "output_strides": kernel.pack("output_strides", [target[d] * size for d in order]),
            "input_strides": kernel.pack("input_strides", [source[d] * size for d in order]),
        }
        grid = (math.prod(shape), 1, 1)
        if kernel.has("sizes"):
            arguments |= {
                "sizes": kernel.pack("sizes", [shape[d] for d in order]),
                "ndim": kernel.pack("ndim", len(shape)),
            }
        else:
            grid = (shape[2], shape[1], shape[0])
        yield Program(
            label=f"{shape}, gaps of {gap}",
            steps=[one_launch(kernel, arguments, grid)],
            checks=[known_bytes(out, dtype, bytes(want))],
        )
