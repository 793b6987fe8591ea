"""LU by panels: one threadgroup a panel, or a stream of columns."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES, DType
from ...program.launch import Check, Known, Program, Reference, Step, View, inout_buffer, input_buffer, scratch_buffer
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, groups, numbered, started
from .binder import matrices

INT = DTYPES["int"]


PARTIALS = 256


WIDEST = 32


def _shuffled(case: Case, dtype: DType, count: int, rows: int, columns: int, first: int) -> View:
    """Return matrices of which each column from `first` on has one large element, in any row from `first` on."""
    plain = matrices(case, dtype, count, rows, columns)
    line, data = columns * dtype.size, plain.buffer.data
    lines = [data[at : at + line] for at in range(0, len(data), line)]
    for b in range(count):
        part = lines[b * rows + first : (b + 1) * rows]
        case.values.random.shuffle(part)
        lines[b * rows + first : (b + 1) * rows] = part
    return View(buffer=input_buffer(b"".join(lines)), dtype=dtype, shape=(count, rows, columns))


def _factored(given: View, memory: View, pivots: View, info: View, first: int, width: int) -> list[Check]:
    count, rows, columns = given.shape
    inputs = {"a": given, "at": first, "width": width}
    least = min(rows, columns)
    chosen = View(buffer=pivots.buffer, dtype=INT, shape=(count, width), strides=(least, 1), offset=first)
    return [
        Reference(got=memory, name="lu_panel", inputs=inputs, scale=2.0**-17),
        Reference(got=chosen, name="lu_pivots", inputs=inputs),
        Known(got=info, want=bytes(4 * count)),
    ]


def _integers(count: int) -> View:
    return View(buffer=inout_buffer(bytes(4 * count)), dtype=INT, shape=(count,))


def panel(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`factorPanelLU_T_R_W`: W columns, R rows a thread, one threadgroup."""
    dtype, each, widest = kernel.dtype("A"), int(kernel.parts["rows"]), int(kernel.parts["width"])
    for count, extra, columns, first in ((1, 0, 7, 0), (2, -3, widest + 12, 0), (1, 0, widest + 5, 3)):
        rows = each * 64 + extra + first
        width = min(widest, min(rows, columns) - first)
        given = _shuffled(case, dtype, count, rows, columns, first)
        memory, pivots, info = started(given), _integers(count * min(rows, columns)), _integers(count)
        values = {"A": memory, "pivots": pivots, "info": info, "dims": (rows, columns), "params": (first, 0, 0, 0)}
        yield Program(
            label=f"{count} of {rows} x {columns}, {width} columns from {first}",
            steps=[groups(kernel, bound(kernel, values), (count,), (64,))],
            checks=_factored(given, memory, pivots, info, first, width),
        )


def stream(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`luStreamUpdate` and `luStreamPivot` in turn, for each column of a panel of 32."""
    dtype = kernel.dtype("A")
    update, pivot = (case.companion(name.format(**kernel.parts)) for name in kernel.options["chain"])
    for count, rows, columns, first, share in ((1, 100, 6, 0, 2), (2, 45, 9, 3, 1)):
        width = min(WIDEST, min(rows, columns) - first)
        parts = -(-(rows - first) // (8 * share))
        given = _shuffled(case, dtype, count, rows, columns, first)
        memory, pivots, info = started(given), _integers(count * min(rows, columns)), _integers(count)
        room = scratch_buffer(count * (PARTIALS * 8 + WIDEST * dtype.size))
        fixed = {"A": memory, "pivots": pivots, "info": info, "dims": (rows, columns), "scratch": room}
        steps: list[Step] = []
        for j in range(-1, width):
            values = {**fixed, "params": (first, max(j, 0), share, int(j < 0))}
            steps.append(groups(update, bound(update, values), (parts, count), (PARTIALS,)))
            if j + 1 < width:
                values = {**fixed, "params": (first, j + 1, parts, 0)}
                steps.append(groups(pivot, bound(pivot, values), (count,), (PARTIALS,)))
        yield Program(
            label=f"{count} of {rows} x {columns}, {width} columns from {first}",
            steps=steps,
            checks=_factored(given, memory, pivots, info, first, width),
        )


def panel_exchange(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`laswpGatherLU`: the pivots of a block, counted from 1, in two windows of columns that begin at whole blocks.

    A threadgroup takes 256 bytes of each row.
    """
    dtype = kernel.dtype("A")
    for count, m, n, first, swaps, (a, b, c, d) in (
        (1, 50, 40, 8, 8, (0, 8, 16, 40)), (2, 90, 150, 32, 32, (0, 32, 64, 150)), (1, 9, 23, 0, 8, (0, 0, 8, 23)),
    ):  # fmt: skip
        least, data = min(m, n), case.values.sweep(dtype, count * m * n)
        chosen = [case.values.random.randrange(i, m) for _ in range(count) for i in range(least)]
        items = [data[at : at + dtype.size] for at in range(0, len(data), dtype.size)]
        for matrix in range(count):
            for i in range(first, first + swaps):
                one, two = (matrix * m + i) * n, (matrix * m + chosen[matrix * least + i]) * n
                for column in (*range(a, b), *range(c, d)):
                    items[one + column], items[two + column] = items[two + column], items[one + column]
        memory = View(buffer=inout_buffer(data), dtype=dtype, shape=(count, m, n))
        pivots = numbered(INT, [each + 1 for each in chosen])
        values = {"A": memory, "pivots": pivots, "dims": (m, n), "params": (first, swaps, 0, 0), "w": (a, b, c, d)}
        step = groups(kernel, bound(kernel, values), (-(-(b - a + d - c) // (256 // dtype.size)), count), (128,))
        check = Known(got=memory, want=b"".join(items))
        yield Program(label=f"{count} of {m} x {n}, {swaps} pivots from {first}", steps=[step], checks=[check])
