"""`triu`, `tril` and the indices of triangles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...program.launch import (
    Buffer,
    Known,
    Program,
    Step,
    View,
    input_buffer,
    output_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments
from ..shared.tensors import bound, result, threads


def triangle_indices(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`tril_indices`, `triu_indices`: the rows, then the columns, of a triangle above or below a diagonal."""
    dtype, is_lower = kernel.dtype("tensor"), kernel.name.startswith("tril")
    for rows, columns, offset in ((5, 7, 0), (9, 4, -2), (3, 8, 2), (60, 50, -9), (1, 1, 0), (4, 6, 5), (2, 33, 30)):
        positions = itertools.product(range(rows), range(columns))
        taken = [(r, c) for r, c in positions if (c - r <= offset if is_lower else c - r >= offset)]
        if not taken:
            continue
        out = result(dtype, (2 * len(taken),))
        values: dict[str, object] = {"tensor": out, "col": columns}
        if is_lower:
            first = min(columns, 1 + offset) if offset > 0 else int(rows + offset > 0)
            begin = max(0, -offset)
            full = begin + columns - first + 1
            rectangle = max(rows - full, 0) * columns
            values |= {"row_offset": begin, "trapezoid_size": len(taken) - rectangle, "tril_size": len(taken)}
        else:
            first = max(columns - offset, 0) if offset > 0 else columns
            rectangle = min(rows, -offset) * columns if offset < 0 else 0
            values |= {"col_offset": max(0, offset), "rectangle_size": rectangle, "triu_size": len(taken)}
        values["m_first_row"] = first
        want = pack(dtype, [r for r, _ in taken] + [c for _, c in taken])
        step = threads(kernel, bound(kernel, values), (len(taken),))
        yield Program(label=f"{rows} x {columns}, {offset}", steps=[step], checks=[Known(got=out, want=want)])


def triangle(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`triu`, `tril`: sizes and strides in elements, innermost first; k_ndim (diagonal, dimensions)."""
    is_upper, in_place = kernel.parts["op"] == "triu", kernel.has("self")
    first = "self" if in_place else "out"
    dtype = kernel.dtype(first)
    for shape, k, pad in (((5, 7), 0, 0), ((2, 4, 3), 1, 0), ((2, 3, 6, 5), -2, 1), ((9, 4), -1, 2)):
        rows, columns = shape[-2:]
        row = columns + pad
        strides = [1, row]
        for size in reversed(shape[1:-1]):
            strides.append(strides[-1] * size)
        if len(shape) > 2:
            strides = [1, row, row * rows] + [
                row * rows * math.prod(shape[-2 - d : -2]) for d in range(1, len(shape) - 2)
            ]
        outermost_first = tuple(reversed(strides))
        span = 1 + sum((n - 1) * s for n, s in zip(shape, outermost_first, strict=True))
        data = case.values.sweep(dtype, span)
        want = b""
        for position in itertools.product(*map(range, shape)):
            at = sum(p * s for p, s in zip(position, outermost_first, strict=True)) * dtype.size
            distance = position[-1] - position[-2] - k
            want += data[at : at + dtype.size] if (distance >= 0 if is_upper else distance <= 0) else bytes(dtype.size)
        sizes, count = list(reversed(shape)), math.prod(shape[:-2])
        common: Arguments = {"sizes": kernel.pack("sizes", sizes), "k_ndim": kernel.pack("k_ndim", (k, len(shape)))}
        if in_place:
            out = Buffer(size=len(data), role="inout", data=data)
            arguments = common | {"self": out, "strides": kernel.pack("strides", strides)}
        else:
            out = output_buffer(span * dtype.size)
            arguments = common | {
                "out": out,
                "inp": input_buffer(data),
                "out_strides": kernel.pack("out_strides", strides),
                "inp_strides": kernel.pack("inp_strides", strides),
            }
        launch = Step(kernel=kernel.name, arguments=arguments, grid=(columns, rows, count), threadgroup=(4, 2, 1))
        got = View(buffer=out, dtype=dtype, shape=shape, strides=outermost_first)
        yield Program(label=f"{shape}, diagonal {k}, gaps of {pad}", steps=[launch], checks=[Known(got=got, want=want)])
