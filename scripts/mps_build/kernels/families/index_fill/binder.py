"""A value into the slices that indices or a mask choose."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Known, Program, View, inout_buffer, input_buffer, output_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.strided import SELECTED, Arguments, known_bytes, one_launch, padded, places_of, reach
from ..shared.tensors import bound, threads


def set_mask(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_set_mask`: the indices' places become true; `index_fill_zero_mask`: all become false."""
    for size, count, every in ((9, 4, 1), (50, 33, 2)):
        if not kernel.has("indices"):
            out = View(buffer=output_buffer(size), dtype=DTYPES["bool"], shape=(size,))
            step = threads(kernel, bound(kernel, {"mask": out}), (size,))
            yield Program(label=f"{size} places", steps=[step], checks=[Known(got=out, want=bytes(size))])
            continue
        chosen = [
            each - size if k % 2 else each for k, each in enumerate(case.values.random.sample(range(size), count))
        ]
        spread = [0] * ((count - 1) * every + 1)
        spread[::every] = chosen
        marked = {each % size for each in chosen}
        out = View(buffer=inout_buffer(bytes(size)), dtype=DTYPES["bool"], shape=(size,))
        values = {"mask": out, "indices": spread, "dim_size": size, "indices_stride": every}
        want = bytes(int(at in marked) for at in range(size))
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} of {size}, every {every}", steps=[step], checks=[Known(got=out, want=want)])


def dense(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_strided`: the slice's sizes and strides without `dim`."""
    dtype = kernel.dtype("output")
    for number, (shape, dim, numel, gap) in enumerate(SELECTED):
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


def masked(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_..._from_mask`: which places of `dim` are filled is a mask."""
    dtype, is_strided = kernel.dtype("output"), kernel.has("ndim")
    for shape, dim, _, gap in SELECTED:
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
