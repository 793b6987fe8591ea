"""Slices copied to where indices say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...program.launch import Known, Program, Reference, Step, View, dense_strides, inout_buffer, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments, grid_of, padded, reach
from ..shared.tensors import bound, numbered, result, strides_of, swept, threads


def dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_copy_dense`: threads (inner, indices, outer)."""
    dtype, index_type = kernel.dtype("output"), kernel.dtype("indices")
    for outer, size, inner, numel in ((3, 7, 5, 4), (1, 40, 1, 33), (2, 3, 70, 2)):
        chosen = case.values.random.sample(range(size), numel)
        before, source = case.values.sweep(dtype, outer * size * inner), case.values.sweep(dtype, outer * numel * inner)
        after, row = bytearray(before), inner * dtype.size
        for o, (k, index) in itertools.product(range(outer), enumerate(chosen)):
            after[(o * size + index) * row : (o * size + index + 1) * row] = source[
                (o * numel + k) * row : (o * numel + k + 1) * row
            ]
        out = inout_buffer(before)
        arguments: Arguments = {
            "output": out,
            "source": input_buffer(source),
            "indices": input_buffer(pack(index_type, chosen)),
            "dim_size": kernel.pack("dim_size", size),
            "inner": kernel.pack("inner", inner),
            "indices_numel": kernel.pack("indices_numel", numel),
        }
        step = Step(
            kernel=kernel.name, arguments=arguments, grid=(inner, numel, outer), threadgroup=(min(inner, 8), 4, 1)
        )
        got = View(buffer=out, dtype=dtype, shape=(outer * size * inner,))
        yield Program(
            label=f"{outer} x {size} x {inner}, {numel} indices",
            steps=[step],
            checks=[Known(got=got, want=bytes(after))],
        )


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_copy_strided`: a slice's sizes and strides without `dim`; negative indices wrap."""
    dtype, index_type = kernel.dtype("output"), kernel.dtype("indices")
    for shape, dim, numel, gap, step_of_index in (
        ((3, 7, 5), 1, 4, 1, 2),
        ((40,), 0, 33, 0, 1),
        ((2, 3, 4, 5), 3, 2, 2, 1),
    ):
        chosen = [
            i - shape[dim] if k % 2 else i for k, i in enumerate(case.values.random.sample(range(shape[dim]), numel))
        ]
        source_shape = tuple(numel if d == dim else n for d, n in enumerate(shape))
        strides, source_strides = padded(shape, gap), padded(source_shape, 2 * gap)
        before, source = (
            case.values.sweep(dtype, reach(shape, strides)),
            case.values.sweep(dtype, reach(source_shape, source_strides)),
        )
        after, size = bytearray(before), dtype.size
        for position in itertools.product(*map(range, source_shape)):
            there = [chosen[p] % shape[dim] if d == dim else p for d, p in enumerate(position)]
            a, b = (
                sum(p * s for p, s in zip(at, by, strict=True)) * size
                for at, by in ((there, strides), (position, source_strides))
            )
            after[a : a + size] = source[b : b + size]
        others = [d for d in reversed(range(len(shape))) if d != dim]
        indices = [0] * (numel * step_of_index)
        indices[::step_of_index] = chosen
        indices = indices[: (numel - 1) * step_of_index + 1]
        out, slice_numel = inout_buffer(before), math.prod(shape[d] for d in others)
        constants: dict[str, object] = {
            "dim_size": shape[dim],
            "dim_out_stride": strides[dim],
            "dim_source_stride": source_strides[dim],
            "slice_sizes": [shape[d] for d in others] or [1],
            "slice_out_strides": [strides[d] for d in others] or [0],
            "slice_source_strides": [source_strides[d] for d in others] or [0],
            "slice_ndim": len(others),
            "slice_numel": slice_numel,
            "indices_stride": step_of_index,
        }
        arguments: Arguments = {
            "output": out,
            "source": input_buffer(source),
            "indices": input_buffer(pack(index_type, indices)),
        }
        arguments |= {name: kernel.pack(name, value) for name, value in constants.items()}
        step = Step(kernel=kernel.name, arguments=arguments, grid=grid_of(numel * slice_numel), threadgroup=grid_of(32))
        got = View(buffer=out, dtype=dtype, shape=(reach(shape, strides),))
        yield Program(
            label=f"{shape}, dim {dim}, {numel} indices, gaps of {gap}",
            steps=[step],
            checks=[Known(got=got, want=bytes(after))],
        )


def by_sizes(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_copy` up to 2.11: a thread an element of the result, which looks for its own index."""
    dtype, kind, is_strided = kernel.dtype("output"), kernel.dtype("indices"), kernel.has("input_strides")
    for shape, dim, numel in (((3, 7, 5), 1, 4), ((40,), 0, 33), ((2, 3, 4, 5), 3, 2)):
        chosen = case.values.random.sample(range(shape[dim]), numel)
        source_shape = tuple(numel if d == dim else n for d, n in enumerate(shape))
        double = {
            s: tuple(2 * each for each in dense_strides(s)) if is_strided else None for s in (shape, source_shape)
        }
        x = swept(case, dtype, shape, strides=double[shape])
        source = swept(case, dtype, source_shape, strides=double[source_shape])
        out = result(dtype, shape)
        every = 2 if is_strided else 1
        spaced = [0] * ((numel - 1) * every + 1)
        spaced[::every] = chosen
        values: dict[str, object] = {"output": out, "input": x, "source": source, "indices": numbered(kind, spaced)}
        values |= {"dim": dim, "sizes": shape, "ndim": len(shape), "indices_numel": numel, "indices_stride": every}
        for name, view in (("input", x), ("output", out), ("source", source)):
            values[f"{name}_strides"] = strides_of(view)
        check = Reference(got=out, name="index_copied", inputs={"x": x, "source": source, "index": chosen, "dim": dim})
        step = threads(kernel, bound(kernel, values), (out.count,))
        yield Program(label=f"{shape}, dim {dim}, {numel} indices", steps=[step], checks=[check])
