"""LU in panels, in place: triangular solves of a panel, the update of the rest, rows by pivots, the transpose.

`dims` is (rows, columns) of each matrix, by rows; matrices follow each other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ...dtypes import DTYPES, DType
from ...program import Known, Program, Reference, View, inout_buffer, input_buffer
from ..contracts import Case, Kernel
from .tensors import bound, groups, numbered, started

INT = DTYPES["int"]
THREADS = 64


def matrices(case: Case, dtype: DType, count: int, rows: int, columns: int) -> View:
    """Return matrices with small elements and a diagonal of 1 to 2 in size: triangular parts are solved stably."""
    data = bytearray(case.values.moderate(dtype, count * rows * columns, -0.25, 0.25))
    for b in range(count):
        for i in range(min(rows, columns)):
            number = case.values.random.choice((-1, 1)) * case.values.random.uniform(1, 2)
            struct.pack_into("<f", data, ((b * rows + i) * columns + i) * dtype.size, number)
    return View(buffer=input_buffer(bytes(data)), dtype=dtype, shape=(count, rows, columns))


# Matrices, rows, columns; first row of the triangle, its rows, columns that are solved.
SOLVED = ((1, 40, 50, 0, 8, (8, 50)), (2, 64, 201, 24, 32, (56, 201)), (1, 19, 23, 8, 5, (13, 20)))


def solve(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`trsmPanelLU`: unit lower; `trsmDiagSolveLU`: as its name says. A thread for each column."""
    dtype, most = kernel.dtype("A"), int(kernel.parts.get("size") or 32)
    upper, unit = kernel.parts.get("side") == "upper", (kernel.parts.get("diagonal") or "unit") == "unit"
    for count, m, n, first, size, (begin, end) in SOLVED:
        rows = min(size, most)
        given = matrices(case, dtype, count, m, n)
        memory = started(given)
        values = {"A": memory, "dims": (m, n), "params": (first, begin, end, rows)}
        inputs = {"a": given, "at": first, "rows": rows, "begin": begin, "end": end, "upper": upper, "unit": unit}
        check = Reference(got=memory, name="lu_solved", inputs=inputs, scale=2.0**-17)
        step = groups(kernel, bound(kernel, values), (count, -(-(end - begin) // THREADS)), (THREADS,))
        yield Program(label=f"{count} of {m} x {n}, {rows} rows from {first}", steps=[step], checks=[check])


# Matrices, rows, columns; the window's rows and columns; first term and how many.
UPDATED = (
    (1, 40, 50, (8, 40), (8, 50), 0, 8),
    (2, 90, 150, (33, 90), (32, 150), 1, 31),
    (1, 5, 6, (2, 5), (2, 6), 0, 2),
)


def update(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`gemmSimdLU`: of a window, the product of the columns before it and the rows above it is subtracted."""
    dtype = kernel.dtype("A")
    for count, m, n, rows, columns, first, terms in UPDATED:
        given = matrices(case, dtype, count, m, n)
        memory = started(given)
        values = {"A": memory, "dims": (m, n), "win": (*rows, *columns), "kwin": (first, terms, 0, 0)}
        inputs = {"a": given, "rows": list(rows), "columns": list(columns), "first": first, "terms": terms}
        check = Reference(got=memory, name="lu_updated", inputs=inputs, scale=terms * 2.0**-20)
        tiles = (-(-(columns[1] - columns[0]) // 64), -(-(rows[1] - rows[0]) // 32), count)
        step = groups(kernel, bound(kernel, values), tiles, (128,))
        yield Program(label=f"{count} of {m} x {n}, {terms} terms", steps=[step], checks=[check])


def transpose(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`transposeInPlaceLU`: tiles of 32 and their mirror images."""
    dtype = kernel.dtype("A")
    for count, n in ((1, 5), (2, 64), (1, 75)):
        data = case.values.sweep(dtype, count * n * n)
        memory = View(buffer=inout_buffer(data), dtype=dtype, shape=(count, n, n))
        items = [data[at : at + dtype.size] for at in range(0, len(data), dtype.size)]
        want = b"".join(items[(b * n + j) * n + i] for b in range(count) for i in range(n) for j in range(n))
        tiles = -(-n // 32)
        step = groups(kernel, bound(kernel, {"A": memory, "dims": (n, n)}), (tiles, tiles, count), (32, 8))
        yield Program(label=f"{count} of {n} rows", steps=[step], checks=[Known(got=memory, want=want)])


def exchange(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`luApplyPivotsRHS`: rows are exchanged with their pivots, counted from 1; with `inverse` the last first."""
    dtype = kernel.dtype("A")
    for count, m, n, begin, width, swaps, inverse in ((1, 5, 7, 2, 5, 5, 0), (2, 40, 90, 0, 90, 33, 1)):
        data = case.values.sweep(dtype, count * m * n)
        chosen = [case.values.random.randrange(i, m) for _ in range(count) for i in range(swaps)]
        items = [data[at : at + dtype.size] for at in range(0, len(data), dtype.size)]
        for b in range(count):
            for i in reversed(range(swaps)) if inverse else range(swaps):
                one, two = ((b * m + row) * n + begin for row in (i, chosen[b * swaps + i]))
                items[one : one + width], items[two : two + width] = (
                    items[two : two + width],
                    items[one : one + width],
                )
        memory = View(buffer=inout_buffer(data), dtype=dtype, shape=(count, m, n))
        pivots = numbered(INT, [each + 1 for each in chosen])
        values = {"A": memory, "pivots": pivots, "dims": (m, n), "params": (begin, width, swaps, inverse)}
        step = groups(kernel, bound(kernel, values), (count,), (THREADS,))
        check = Known(got=memory, want=b"".join(items))
        yield Program(label=f"{count} of {m} x {n}, {swaps} pivots", steps=[step], checks=[check])
