"""Cross products."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, Value, dense_strides, input_buffer
from ..shared.contracts import Case, Kernel
from ..shared.elementwise import spread_output
from ..shared.offsets import offsets_table
from ..shared.strided import outermost_inside
from ..shared.tensors import bound, filled, result, strides_of, threads


def by_offsets(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`cross` up to 2.11: offsets (result, left, right) of each product, and the strides along the three numbers."""
    dtype = DTYPES[kernel.parts["T"]]
    for shape in ((5, 3), (2, 4, 3), (33, 3)):
        low, high = (0, 5) if dtype.size == 1 else (-2, 2)
        a = filled(case, dtype, shape, strides=tuple(2 * each for each in dense_strides(shape)), low=low, high=high)
        b = filled(case, dtype, shape, low=low, high=high)
        out = result(dtype, shape)
        rows = [replace(each, shape=shape[:-1], strides=strides_of(each)[:-1]) for each in (out, a, b)]
        values: dict[str, object] = {"input_": a, "other_": b, "out_": out}
        values["offsets"] = input_buffer(offsets_table(kernel, rows, shape[:-1]))
        values |= {"outStride": 1, "inputStride": 2, "otherStride": 1}
        scale = {"half": 2.0**-8, "bfloat": 2.0**-5}.get(dtype.name, 0.0 if dtype.is_exact else 2.0**-20)
        check = Reference(got=out, name="spread_cross", inputs={"a": a, "b": b, "dim": -1}, scale=scale)
        step = threads(kernel, bound(kernel, values), (math.prod(shape[:-1]),))
        yield Program(label=f"{shape}", steps=[step], checks=[check])


def dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each pair of vectors of three; `dim_stride` elements lie between components."""
    dtype = kernel.dtype("input")
    for outer, inner in ((1, 1), (5, 1), (3, 4)):
        a, b = (filled(case, dtype, (outer, 3, inner), low=-5.0, high=5.0) for _ in range(2))
        out = result(kernel.dtype("out"), (outer, 3, inner))
        arguments: dict[str | int, Value] = {
            "out": out.buffer,
            "input": a.buffer,
            "other": b.buffer,
            "dim_stride": kernel.pack("dim_stride", inner),
        }
        scale = 0.0 if dtype.is_exact else 50 * 2.0 ** {"half": -10, "bfloat": -7}.get(dtype.name, -22)
        if dtype.name == "half2":
            scale = 50 * 2.0**-9
        check = Reference(got=out, name="nn_cross", inputs={"a": a, "b": b}, scale=scale)
        yield Program(
            label=f"{outer} x 3 x {inner}", steps=[threads(kernel, arguments, (outer * inner,))], checks=[check]
        )


# Shape, and the dimension of three along which products are taken; strides of operands differ.
CROSSES = (((3, 5), 0), ((4, 3, 2), 1), ((2, 2, 5, 3), 3), ((3,), 0))


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`cross_strided`: sizes without `dim`; strides in elements, all innermost first."""
    dtype = kernel.dtype("input")
    for shape, dim in CROSSES:
        a, b = filled(case, dtype, shape, strides=outermost_inside(shape, 2)), filled(case, dtype, shape)
        if dtype.size == 1:
            a, b = (filled(case, dtype, v.shape, strides=v.strides, low=0, high=5) for v in (a, b))
        out = spread_output(dtype, shape, tuple(range(len(shape))))
        last = len(shape) - 1
        sizes = [n for d, n in enumerate(shape) if d != dim][::-1]
        values: dict[str, object] = {"out": out, "input": a, "other": b, "squashed_sizes": sizes or [1]}
        for name, view in (("out", out), ("input", a), ("other", b)):
            values[f"{name}_strides"] = strides_of(view)[::-1]
        values |= {"ndim": len(shape), "dim": last - dim}
        scale = {"half": 2.0**-9, "half2": 2.0**-8, "bfloat": 2.0**-6}.get(
            dtype.name, 0 if dtype.is_exact else 2.0**-20
        )
        check = Reference(got=out, name="spread_cross", inputs={"a": a, "b": b, "dim": dim}, scale=scale)
        step = threads(kernel, bound(kernel, values), (out.count // 3,))
        yield Program(label=f"{shape} along {dim}", steps=[step], checks=[check])
