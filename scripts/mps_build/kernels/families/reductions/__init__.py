"""Sums, products, norms, variances, `argmax` and others, a binder for each layout."""

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
from ..shared.reduced import Layout, of_layouts, params_of, parts_of
from ..shared.tensors import Arguments, Number, tied_numbers
from ..shared.tensors import groups as launch


@of_layouts
def outer(kernel: Kernel) -> Iterator[Layout]:
    """`outer`: sizes (length, inner, chunks), strides (length, inner, outer) in elements; 32 columns a threadgroup.

    Chunks came in 2.15, with `param`; before, a threadgroup goes through the whole length.
    """
    height = min(32, (kernel.metadata.max_threads or 1024) // 32)
    most = 3 if kernel.has("param") else 1
    for length, inner, chunks, batch, pad in (
        (5, 37, 1, 3, 0),
        (300, 33, 1, 2, 3),
        (96, 40, most, 1, 0),
        (1, 4, 1, 1, 0),
    ):
        row = inner + pad
        if chunks > 1:
            part = length // chunks
            shape, strides, groups = (chunks, part, inner), (row * part, row, 1), (chunks, 1)
        else:
            shape, strides, groups = (batch, length, inner), (row * length, row, 1), (1, batch)
        yield Layout(
            shape=shape,
            dims=(1,),
            strides=strides,
            elements=row * length * batch,
            constants={"sizes": (length, inner, chunks, 0), "strides": (row, 1, row * length, 0)},
            groups=(parts_of(inner, 32), *groups),
            threads=(32, height, 1),
        )


@of_layouts
def columns(_kernel: Kernel) -> Iterator[Layout]:
    """`outer` up to 2.13: sizes (length, inner, step of the result); 32 columns a threadgroup of 32 by 32."""
    for length, inner in ((5, 37), (300, 33), (96, 40), (1, 4)):
        yield Layout(
            shape=(length, inner),
            dims=(0,),
            constants={"sizes": (length, inner, 1)},
            groups=(parts_of(inner, 32), 1, 1),
            threads=(32, 32, 1),
        )


@of_layouts
def innermost(_kernel: Kernel) -> Iterator[Layout]:
    """`innermost`: sizes (rows, length); one simdgroup a row."""
    for rows, length, threads in ((3, 5, 64), (5, 300, 32), (1, 1, 96), (2, 1030, 128)):
        yield Layout(
            shape=(rows, length),
            dims=(1,),
            constants={"sizes": (rows, length)},
            groups=(parts_of(rows, threads // 32), 1, 1),
            threads=(threads, 1, 1),
        )


@of_layouts
def chunk(_kernel: Kernel) -> Iterator[Layout]:
    """`innermost_chunk`: sizes (rows, length, lanes a row, chunks); result (rows, chunks)."""
    for rows, length, lanes, chunks, threads in (
        (5, 36, 4, 1, 64),
        (3, 600, 32, 3, 96),
        (7, 3, 1, 1, 32),
        (2, 99, 8, 3, 32),
    ):
        yield Layout(
            shape=(rows, chunks, length // chunks),
            dims=(2,),
            constants={"sizes": (rows, length, lanes, chunks)},
            groups=(parts_of(rows * chunks * lanes, threads), 1, 1),
            threads=(threads, 1, 1),
        )


@of_layouts
def narrow(kernel: Kernel) -> Iterator[Layout]:
    """`narrow`: sizes (length, inner up to 31, chunks: third, or up to 2.14 fourth); of 256 threads as many as whole
    rows have.

    `strided`: strides (row, column, outer).
    """
    step, gap = (2, 1) if kernel.has("strides") else (1, 0)
    for length, inner, chunks, batch in ((700, 3, 1, 2), (90, 31, 3, 1), (9, 16, 1, 1), (33, 1, 1, 3)):
        row = inner * step + gap
        whole = row * length + gap
        constants: dict[str, object] = {"sizes": (length, inner, chunks, chunks)}
        if kernel.has("strides"):
            constants["strides"] = (row, step, whole)
        if chunks > 1:
            part = length // chunks
            shape, strides, groups = (chunks, part, inner), (part * row, row, step), (1, chunks, 1)
        else:
            shape, strides, groups = (batch, length, inner), (whole, row, step), (1, 1, batch)
        yield Layout(
            shape=shape,
            dims=(1,),
            strides=strides,
            elements=whole * batch,
            constants=constants,
            groups=groups,
            threads=(256 // inner * inner, 1, 1),
        )


@of_layouts
def flat(_kernel: Kernel) -> Iterator[Layout]:
    """`flat`: params (elements, elements a threadgroup); one partial result a threadgroup, never finished."""
    for groups, each, threads in ((1, 5, 32), (3, 1100, 64), (2, 4100, 128), (2, 36, 96)):
        yield Layout(
            shape=(groups, each),
            dims=(1,),
            constants={"params": (groups * each, each)},
            groups=(groups, 1, 1),
            threads=(threads, 1, 1),
            param=0.0,
        )


@of_layouts
def flat_strided(_kernel: Kernel) -> Iterator[Layout]:
    """`flat_strided`: n0 by n2 rows of n1 elements. `n1` gives the lanes a row has, and with the threadgroup how many
    rows it takes at once; with n2 = threadgroups * rows each threadgroup's share is a strided view.
    """
    for n0, n1, n2, step, gap, groups, threads in (
        (3, 40, 5, 1, 7, 1, 64),
        (4, 33, 6, 2, 0, 3, 128),
        (2, 600, 2, 1, 3, 2, 64),
        (5, 3, 8, 1, 1, 2, 128),
    ):
        lanes = 32
        while lanes < n1 and lanes < threads:
            lanes *= 2
        together = threads // min(lanes, threads)
        block = step * n1
        s0 = block * n2 + gap
        if groups == 1:
            shape, strides, dims = (1, n0, n2, n1), (0, s0, block, step), (1, 2, 3)
        elif n2 == groups * together:
            shape, strides, dims = (n0, groups, together, n1), (s0, together * block, block, step), (0, 2, 3)
        else:
            raise ValueError(f"{n2} rows do not divide into {groups} threadgroups of {together}")
        yield Layout(
            shape=shape,
            dims=dims,
            strides=strides,
            elements=s0 * n0,
            param=0.0,
            constants={"sizes": (n0, n1, n2, 0), "strides": (s0, step, 0, 0)},
            groups=(groups, 1, 1),
            threads=(threads, 1, 1),
        )


@of_layouts
def strided_parts(_kernel: Kernel) -> Iterator[Layout]:
    """`strided` up to 2.14: NormParams of a whole, strided tensor; each threadgroup has an equal part, in order."""
    for shape, order, gap, groups, threads in (
        ((6, 5, 7), (0, 2, 1), 1, 3, 64), ((4, 300), (1, 0), 0, 2, 96), ((1, 9, 3), (2, 0, 1), 2, 1, 32),
    ):  # fmt: skip
        strides, elements = [0] * len(shape), 1 + gap
        for d in order:
            strides[d], elements = elements, elements * shape[d]
        params = {
            "reduction_size": math.prod(shape) // groups,
            "ndim": len(shape),
            "input_sizes": shape,
            "input_strides": strides,
            "output_sizes": [1] * len(shape),
            "output_strides": [1] * len(shape),
        }
        yield Layout(
            shape=(groups, shape[0] // groups, *shape[1:]),
            dims=tuple(range(1, len(shape) + 1)),
            strides=(strides[0] * (shape[0] // groups), *strides),
            elements=elements,
            constants={"params": params},
            groups=(groups, 1, 1),
            threads=(threads, 1, 1),
            param=0.0,
        )


@of_layouts
def general(kernel: Kernel) -> Iterator[Layout]:
    """`op_reduction`: NormParams; one threadgroup an element of the result."""
    cases = (
        ((6, 100), (1,), 32),
        ((3, 7, 5), (1,), 64),
        ((37, 4), (0,), 96),
        ((4, 3, 9), (0, 2), 64),
        ((1, 2500), (1,), 1024),
    )
    for shape, dims, threads in cases:
        out = tuple(1 if d in dims else n for d, n in enumerate(shape))
        group = min(threads, kernel.metadata.max_threads or 1024)
        length = math.prod(shape) // math.prod(out)
        params = {
            "reduction_size": length,
            "ndim": len(shape),
            "input_sizes": shape,
            "input_strides": dense_strides(shape),
            "output_sizes": out,
            "output_strides": dense_strides(out),
        }
        for p in params_of(kernel, length):
            yield Layout(
                shape=shape,
                dims=dims,
                constants={"params": {**params, "p": p}},
                param=p,
                groups=(math.prod(out), 1, 1),
                threads=(group, 1, 1),
            )


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
    return Program(label=label, steps=[launch(kernel, arguments, grid, threads)], checks=checks)


def arg_outer(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def arg_columns(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`outer` up to 2.13: sizes (length, inner, step of the result); 32 columns a threadgroup of 32 by 32."""
    for length, inner in ((5, 37), (300, 33), (96, 40), (1, 4)):
        numbers, dtype, x = _input(kernel, case, length * inner)
        rows = [([k * inner + c for k in range(length)], 0) for c in range(inner)]
        arguments: Arguments = {"input": x, "sizes": kernel.pack("sizes", (length, inner, 1))}
        grid = (-(-inner // 32), 1, 1)
        yield _finish(kernel, numbers, dtype, rows, arguments, grid, (32, 32, 1), f"{length} x {inner}")


def arg_narrow(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def arg_innermost(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def arg_general(kernel: Kernel, case: Case) -> Iterator[Program]:
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
