"""Slices that indices choose."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...program.launch import Known, Program, View, input_buffer, output_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.strided import SELECTED, Arguments, one_launch, padded, reach
from ..shared.tensors import bound, numbered, result, swept, threads


def dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_select_dim_dense`: threads (inner, indices, outer); indices out of range are clamped."""
    dtype, kind = kernel.dtype("output"), kernel.dtype("index")
    for outer, size, inner, count, every in ((2, 5, 7, 4, 1), (1, 9, 1, 33, 2), (3, 1, 40, 2, 1)):
        chosen = case.values.integers(count, 0, size - 1)
        chosen[0], chosen[-1] = size - 1, 0
        spread = [0] * ((count - 1) * every + 1)
        spread[::every] = chosen
        x, out = swept(case, dtype, (outer, size, inner)), result(dtype, (outer, count, inner))
        row = inner * dtype.size
        want = b"".join(x.buffer.data[(o * size + each) * row :][:row] for o in range(outer) for each in chosen)
        params = {"inner": inner, "in_dim_size": size, "out_dim_size": count, "index_stride": every}
        values = {"output": out, "input": x, "index": numbered(kind, spread), "params": params}
        step = threads(kernel, bound(kernel, values), (inner, count, outer))
        yield Program(
            label=f"{outer} x {size} x {inner}, {count} indices", steps=[step], checks=[Known(got=out, want=want)]
        )


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_select_dim`: IndexReduceParams, `self` the input and `source` the result; indices are kept in range."""
    dtype, index_type = kernel.dtype("output"), kernel.dtype("index")
    for shape, dim, numel, gap in SELECTED:
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
