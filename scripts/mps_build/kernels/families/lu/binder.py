"""LU: blocks solved, updated, exchanged; pivots; small inverses."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...program.dtypes import DTYPES, DType
from ...program.launch import Check, Known, Program, Reference, View, inout_buffer, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, groups, numbered, result, started, threads

FLOAT = DTYPES["float"]


INT = DTYPES["int"]


def small_inverse(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each matrix; strides (batch, row, column) of both."""
    size = int(kernel.parts["size"])
    for count, layout, turned in ((5, (size * size, size, 1), False), (33, (size * size + 3, 1, size), True)):
        a = filled(case, FLOAT, (count, size, size), strides=layout)
        numbers = list(case.values.random.choices((-1.0, 1.0), k=a.buffer.size // 4))
        for at in range(count):  # far from singular, and rows that must be exchanged
            for i in range(size):
                j = (i + 1) % size if turned else i
                numbers[at * layout[0] + i * layout[1] + j * layout[2]] *= 3.5 + size
        a = replace(a, buffer=input_buffer(pack(FLOAT, numbers)))
        out, info = result(FLOAT, (count, size, size)), result(INT, (count,))
        params = {"A_bstride": layout[0], "A_rstride": layout[1], "A_cstride": layout[2]}
        params |= {"X_bstride": size * size, "X_rstride": size, "X_cstride": 1}
        step = threads(kernel, bound(kernel, {"A": a, "X": out, "info": info, "params": params}), (count,))
        checks: list[Check] = [
            Reference(got=out, name="inverse", inputs={"a": a}, scale=2.0**-20),
            Known(got=info, want=bytes(4 * count)),
        ]
        yield Program(label=f"{count} of {size} rows{', turned' if turned else ''}", steps=[step], checks=checks)


def pivots(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Rows of a square matrix are exchanged with their pivots, counted from 0, the last first.

    Columns are loaded by four, which Metal allows at a multiple of 16 bytes alone: rows have a multiple of four.
    """
    for count, rows, swaps in ((1, 4, 4), (2, 72, 33), (1, 136, 136)):
        numbers = case.values.integers(count * rows * rows, -999, 999)
        chosen = [case.values.random.randrange(i, rows) for _ in range(count) for i in range(swaps)]
        memory = View(buffer=inout_buffer(pack(FLOAT, numbers)), dtype=FLOAT, shape=(count, rows, rows))
        values = {"P": memory, "pivots": numbered(INT, chosen), "R": rows, "K": swaps}
        want = [number for b in range(count) for number in _exchanged(numbers, chosen, b, rows, swaps)]
        step = groups(kernel, bound(kernel, values), (count,), (32,))
        check = Known(got=memory, want=pack(FLOAT, want))
        yield Program(label=f"{count} of {rows} rows, {swaps} pivots", steps=[step], checks=[check])


def _exchanged(numbers: Sequence[int], chosen: Sequence[int], batch: int, rows: int, swaps: int) -> list[int]:
    begin = batch * rows * rows
    table = [numbers[begin + i * rows : begin + (i + 1) * rows] for i in range(rows)]
    for i in reversed(range(swaps)):
        j = chosen[batch * swaps + i]
        table[i], table[j] = table[j], table[i]
    return [number for row in table for number in row]


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


def unpack_pivots(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`unpack_pivots`: a thread a batch; the pivots' exchanges, one after the other, in a row of numbers."""
    dtype, kind = kernel.dtype("perm"), kernel.dtype("pivots")
    for batch, rows, count in ((3, 7, 5), (1, 40, 40), (33, 2, 1)):
        pivots = [[case.values.random.randint(at + 1, rows) for at in range(count)] for _ in range(batch)]
        want: list[int] = []
        for row in pivots:
            order = list(range(rows))
            for at, each in enumerate(row):
                order[at], order[each - 1] = order[each - 1], order[at]
            want += order
        perm = View(buffer=inout_buffer(pack(dtype, list(range(rows)) * batch)), dtype=dtype, shape=(batch, rows))
        params = {"perm_batch_stride": rows, "pivots_batch_stride": count, "dim_size": count}
        source = numbered(kind, list(itertools.chain(*pivots)))
        step = threads(kernel, bound(kernel, {"perm": perm, "pivots": source, "params": params}), (batch,))
        yield Program(label=f"{batch} x {rows}", steps=[step], checks=[Known(got=perm, want=pack(dtype, want))])
