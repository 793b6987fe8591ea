"""`argmax` and `argmin` in their layouts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...program.dtypes import DTYPES, DType
from ...program.launch import (
    Buffer,
    Check,
    Known,
    Program,
    Reference,
    Shape,
    View,
    dense_strides,
    input_buffer,
    output_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.ordered import Number, tied_numbers
from ..shared.strided import Arguments
from ..shared.tensors import groups


def _best(kernel: Kernel, values: Sequence[Number]) -> int:
    sign = 1 if kernel.parts["op"] == "argmax" else -1
    for at, value in enumerate(values):
        if math.isnan(value):
            return at
    return max(range(len(values)), key=lambda i: (sign * values[i], -i))


def _input(kernel: Kernel, case: Case, count: int) -> tuple[list[Number], DType, Buffer]:
    dtype = kernel.dtype("input")
    numbers = tied_numbers(case, dtype, count)
    if not dtype.is_exact:
        # NaN in a third of the rows at most: it hides every other comparison.
        numbers = [0.5 if math.isnan(n) and case.values.random.random() < 0.9 else n for n in numbers]
    return numbers, dtype, input_buffer(pack(dtype, numbers))


def _finish(
    kernel: Kernel,
    numbers: Sequence[Number],
    dtype: DType,
    rows: Sequence[tuple[Sequence[int], int]],
    arguments: Arguments,
    grid: Shape,
    threads: Shape,
    label: str,
) -> Program:
    """`rows`: which elements each result is the best of, and what is added to the place among them."""
    places = [_best(kernel, [numbers[i] for i in row]) for row, _ in rows]
    indices = [place + base for place, (_, base) in zip(places, rows, strict=True)]
    count, checks = len(rows), list[Check]()
    is_partial = "p1" in kernel.name
    for name in ("output", "val_out", "idx_out"):
        if not kernel.has(name):
            continue
        if is_partial == (name == "output"):
            arguments[name] = None
            continue
        kind = kernel.dtype(name)
        view = View(buffer=output_buffer(count * kind.size), dtype=kind, shape=(count,))
        arguments[name] = view.buffer
        if name != "val_out":
            checks.append(Known(got=view, want=pack(kind, indices)))
            continue
        values = pack(dtype, [numbers[row[place]] for place, (row, _) in zip(places, rows, strict=True)])
        if dtype.is_exact:
            checks.append(Known(got=view, want=values))
        else:
            want = View(buffer=input_buffer(values), dtype=dtype, shape=(count,))
            checks.append(Reference(got=view, name="sorted_values", inputs={"x": want}))
    return Program(label=label, steps=[groups(kernel, arguments, grid, threads)], checks=checks)


def outer(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`outer`: columns, 32 a threadgroup; `p1`: sizes (length, inner, chunks), result (inner, chunks)."""
    is_partial = "p1" in kernel.name
    for length, inner, other, pad in ((100, 37, 3, 2), (5, 4, 2, 0), (70, 33, 1, 1)):
        row = inner + pad
        batch, chunks = (1, other) if is_partial else (other, 1)
        numbers, dtype, x = _input(kernel, case, batch * length * row)
        part = -(-length // chunks)
        rows = [
            ([(b * length + k) * row + c for k in range(begin, min(begin + part, length))], begin)
            for b in range(batch)
            for c in range(inner)
            for begin in range(0, length, part)
        ]
        arguments: Arguments = {
            "input": x,
            "sizes": kernel.pack("sizes", (length, inner, chunks, 0)),
            "strides": kernel.pack("strides", (row, 1, row * length, 0)),
        }
        grid = (-(-inner // 32), len(rows) // inner // batch, batch)
        yield _finish(
            kernel,
            numbers,
            dtype,
            rows,
            arguments,
            grid,
            (32, 32, 1),
            f"{batch} x {length} x {inner} in {chunks}, gaps of {pad}",
        )


def columns(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`outer` up to 2.13: sizes (length, inner, step of the result); 32 columns a threadgroup of 32 by 32."""
    for length, inner in ((5, 37), (300, 33), (96, 40), (1, 4)):
        numbers, dtype, x = _input(kernel, case, length * inner)
        rows = [([k * inner + c for k in range(length)], 0) for c in range(inner)]
        arguments: Arguments = {"input": x, "sizes": kernel.pack("sizes", (length, inner, 1))}
        grid = (-(-inner // 32), 1, 1)
        yield _finish(kernel, numbers, dtype, rows, arguments, grid, (32, 32, 1), f"{length} x {inner}")


def narrow(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`narrow_p1`: so many of 256 threads as whole rows have go through rows of fewer than 32 columns; sizes (length,
    inner, chunks), and two chunks at least."""
    for length, inner, chunks in ((700, 3, 2), (90, 31, 3), (34, 1, 2), (12, 16, 4)):
        numbers, dtype, x = _input(kernel, case, length * inner)
        part = -(-length // chunks)
        rows = [
            ([k * inner + c for k in range(begin, min(begin + part, length))], begin)
            for c in range(inner)
            for begin in range(0, length, part)
        ]
        arguments: Arguments = {"input": x, "sizes": kernel.pack("sizes", (length, inner, chunks, 0))}
        yield _finish(
            kernel,
            numbers,
            dtype,
            rows,
            arguments,
            (1, chunks, 1),
            (256 // inner * inner, 1, 1),
            f"{length} x {inner} in {chunks}",
        )


def innermost(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`innermost`: a simdgroup a row; `p1`: sizes (rows * chunks, chunk, chunks, length); `combine`: with indices."""
    is_partial, combines = "p1" in kernel.name, "combine" in kernel.name
    for count, length, parts, threads in ((3, 100, 3, 64), (5, 33, 2, 32), (1, 1, 1, 96)):
        chunks = parts if is_partial else 1
        part = -(-length // chunks)
        numbers, dtype, x = _input(kernel, case, count * length)
        rows = [
            ([r * length + k for k in range(begin, min(begin + part, length))], begin)
            for r in range(count)
            for begin in range(0, length, part)
        ]
        sizes = (len(rows), part, chunks, length) if is_partial else (count, length, 1, length)
        # Up to 2.13 there is one pass, and no more sizes than it needs.
        needed = sizes if kernel.has("idx_in") else sizes[:2]
        arguments: Arguments = {"input": x, "sizes": kernel.pack("sizes", needed)}
        if kernel.has("idx_in"):
            arguments["idx_in"] = None
        if combines:
            # Indices that rise along the row, as the first pass gives them.
            given = [i for _ in range(count) for i in sorted(case.values.random.sample(range(9999), length))]
            arguments["idx_in"] = input_buffer(pack(DTYPES["int"], given))
        grid = (-(-len(rows) // (threads // 32)), 1, 1)
        program = _finish(
            kernel, numbers, dtype, rows, arguments, grid, (threads, 1, 1), f"{count} rows of {length} in {chunks}"
        )
        if combines:
            (check,) = program.checks
            places = [given[r * length + _best(kernel, numbers[r * length : (r + 1) * length])] for r in range(count)]
            want = Known(got=check.got, want=pack(check.got.dtype, places))
            program = Program(label=program.label, steps=program.steps, checks=[want])
        yield program


def general(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`argmax_reduction`: NormParams; a threadgroup a result; one dimension."""
    for shape, dim, threads in (((6, 100), 1, 32), ((3, 7, 5), 1, 64), ((37, 4), 0, 96), ((1, 2500), 1, 1024)):
        numbers, dtype, x = _input(kernel, case, math.prod(shape))
        strides, out = dense_strides(shape), tuple(1 if d == dim else n for d, n in enumerate(shape))
        inner = strides[dim]
        rows = [
            ([(o * shape[dim] + k) * inner + i for k in range(shape[dim])], 0)
            for o in range(math.prod(shape[:dim]))
            for i in range(inner)
        ]
        params = {
            "reduction_size": shape[dim],
            "ndim": len(shape),
            "input_sizes": shape,
            "input_strides": strides,
            "output_sizes": out,
            "output_strides": dense_strides(out),
        }
        arguments: Arguments = {"input": x, "params": kernel.pack("params", params)}
        yield _finish(
            kernel, numbers, dtype, rows, arguments, (len(rows), 1, 1), (threads, 1, 1), f"{shape} along {dim}"
        )
