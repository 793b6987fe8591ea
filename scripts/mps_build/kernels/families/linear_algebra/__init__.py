"""Cholesky and LU factorizations, Householder and cross products, matrix exponentials."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...program.dtypes import DTYPES, DType
from ...program.launch import (
    Check,
    Known,
    Program,
    Reference,
    Step,
    Value,
    View,
    dense_strides,
    inout_buffer,
    input_buffer,
    scratch_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.elementwise import spread_output
from ..shared.tensors import (
    bound,
    filled,
    groups,
    numbered,
    offsets_table,
    outermost_inside,
    result,
    started,
    strides_of,
    threads,
)

FLOAT = DTYPES["float"]


INT = DTYPES["int"]


BLOCK = 32


PANEL = 96


# Matrices, rows: one block, whole blocks (of 8, which matrices of a simdgroup take), a short block at the end.
BLOCKED = ((1, 5), (2, 64), (1, 70))


PANELS = ((1, 40), (2, 96), (1, 128), (1, 141))


def _positive_definite(case: Case, count: int, size: int) -> list[float]:
    """Return symmetric matrices that are positive definite: the diagonal is larger than all eigenvalues of the rest."""
    numbers = [0.0] * (count * size * size)
    draw = case.values.random.uniform
    for begin in range(0, len(numbers), size * size):
        for i in range(size):
            for j in range(i):
                numbers[begin + i * size + j] = numbers[begin + j * size + i] = draw(-1, 1)
            numbers[begin + i * size + i] = size / 3 + 4 + draw(0, 1)
    return numbers


def _factor_check(kernel: Kernel, given: View, memory: View, columns: int) -> Reference:
    """The lower factor; `U` kernels keep it by rows, `L` kernels by columns. What lies above it is not looked at."""
    count, size, _ = given.shape
    strides = (size * size, size, 1) if kernel.parts["ul"] == "U" else (size * size, 1, size)
    got = replace(memory, shape=(count, size, columns), strides=strides)
    return Reference(got=got, name="lower_factor", inputs={"a": given, "above": got}, scale=size * 2.0**-19)


def cholesky(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A block of the diagonal, the blocks below it, the update of the rest: the whole of a factorization."""
    diagonal, below, rest = (case.companion(name.format(**kernel.parts)) for name in kernel.options["chain"])
    for count, size in BLOCKED:
        given = numbered(FLOAT, _positive_definite(case, count, size), (count, size, size))
        memory, info = started(given), View(buffer=inout_buffer(bytes(4 * count)), dtype=INT, shape=(count,))
        blocks, steps = -(-size // BLOCK), list[Step]()
        for k in range(blocks):
            values = {"A": memory, "info": info, "N": size, "NB": min(BLOCK, size), "k": k}
            steps.append(groups(diagonal, bound(diagonal, values), (count,), (32, 8)))
            if left := blocks - k - 1:
                steps.append(groups(below, bound(below, values), (count, left), (32, 8)))
                steps.append(groups(rest, bound(rest, values), (count, left * (left + 1) // 2), (32, 8)))
        checks: list[Check] = [_factor_check(kernel, given, memory, size), Known(got=info, want=bytes(4 * count))]
        yield Program(label=f"{count} of {size} rows, blocks of {BLOCK}", steps=steps, checks=checks)
    yield _not_positive(diagonal, case)


def _not_positive(diagonal: Kernel, case: Case) -> Program:
    """The third leading minor is negative: `info` says 3."""
    numbers = _positive_definite(case, 1, 5)
    numbers[2 * 5 + 2] = -1.0
    memory = View(buffer=inout_buffer(pack(FLOAT, numbers)), dtype=FLOAT, shape=(25,))
    info = View(buffer=inout_buffer(bytes(4)), dtype=INT, shape=(1,))
    values = {"A": memory, "info": info, "N": 5, "NB": 5, "k": 0}
    step = groups(diagonal, bound(diagonal, values), (1,), (32, 8))
    return Program(label="not positive definite", steps=[step], checks=[Known(got=info, want=pack(INT, [3]))])


def cholesky_panels(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Panels of 96 columns: the first one, factored, and the strips below it."""
    diagonal, below = (case.companion(name.format(**kernel.parts)) for name in kernel.options["chain"])
    for count, size in PANELS:
        if size <= PANEL and kernel.name == below.name:
            continue
        given = numbered(FLOAT, _positive_definite(case, count, size), (count, size, size))
        memory, info = started(given), result(INT, (count,))
        values = {"A": memory, "info": info, "N": size, "NB": PANEL, "k": 0}
        steps = [groups(diagonal, bound(diagonal, values), (count,), (96,))]
        if size > PANEL:
            steps.append(groups(below, bound(below, values), (count, -(-(size - PANEL) // 32)), (128,)))
        check = _factor_check(kernel, given, memory, min(size, PANEL))
        yield Program(
            label=f"{count} of {size} rows, a panel of {PANEL}",
            steps=steps,
            checks=[check, Known(got=info, want=bytes(4 * count))],
        )


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


def lu_solve(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def lu_update(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def lu_transpose(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def lu_exchange(kernel: Kernel, case: Case) -> Iterator[Program]:
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


# LU by panels: one threadgroup a panel, or a stream of columns.

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


def lu_panel(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def lu_stream(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def lu_panel_exchange(kernel: Kernel, case: Case) -> Iterator[Program]:
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


# Matrices, rows, columns, reflections.
REFLECTED = ((1, 5, 3, 3), (2, 12, 9, 7), (1, 4, 4, 1))


def householder(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`orgqr`: the first columns of a product of reflections; a threadgroup, or up to 2.10 m * m threads, a matrix."""
    dtype = kernel.dtype("A")
    for count, m, n, k in REFLECTED:
        given, tau = (filled(case, dtype, shape, low=-1, high=1) for shape in ((count, m, n), (count, k)))
        memory, room = started(given), count * m * m * dtype.size
        params = {"num_batch_dims": 1, "m": m, "m2": m * m, "n": n, "k": k, "A_strides": [m * n, n, 1]}
        params |= {"tau_strides": [k, 1], "H_strides": [m * m, m, 1], "H_sizes": [count, m, m]}
        known = {each.name for each in kernel.argument("params").fields}
        values: dict[str, object] = {"A": memory, "tau": tau}
        values |= {name: scratch_buffer(room) for name in ("H", "H_prod", "H_prod_work")}
        values["params"] = {name: value for name, value in params.items() if name in known}
        arguments = bound(kernel, values)
        whole = kernel.has("H_prod_work")
        step = groups(kernel, arguments, (count,), (64,)) if whole else threads(kernel, arguments, (count * m * m,))
        # Products of k matrices, each rounded to the element type.
        scale = k * m * {"half": 2.0**-9, "half2": 2.0**-9, "bfloat": 2.0**-6}.get(dtype.name, 2.0**-20)
        check = Reference(got=memory, name="reflections", inputs={"a": given, "tau": tau}, scale=scale)
        yield Program(label=f"{count} of {m} x {n}, {k} reflections", steps=[step], checks=[check])


def matrix_exponential(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`compute_linear_combination`: out += the sum of in[k] * coeff[k]; params (strides of k, count, dimensions)."""
    name = kernel.parts["T"]
    dtype = DTYPES[name]
    for shape, count in (((5, 7), 3), ((33,), 1), ((2, 3, 4), 6)):
        x = filled(case, dtype, (count, *shape))
        # Coefficients are real, whatever the numbers are.
        kind = DTYPES[{"float2": "float", "half2": "half"}.get(name, name)]
        coefficients = filled(case, kind, (*shape, count))
        before = filled(case, dtype, shape)
        out = View(buffer=inout_buffer(before.buffer.data), dtype=dtype, shape=shape)
        size = dtype.size
        inner = {"out": strides_of(out), "in": strides_of(x)[1:], "coeff": strides_of(coefficients)[:-1]}
        values: dict[str, object] = {"out_ptr": out, "in_ptr": x, "coeff_ptr": coefficients, "sizes": shape[::-1]}
        sizes = {"out": size, "in": size, "coeff": kind.size}
        values |= {f"{each}_strides": [s * sizes[each] for s in strides[::-1]] for each, strides in inner.items()}
        values["params"] = (strides_of(x)[0], 1, count, len(shape))
        inputs = {"before": before, "x": x, "coefficients": coefficients}
        scale = count * {"half": 2.0**-8, "half2": 2.0**-7, "bfloat": 2.0**-5}.get(name, 2.0**-19)
        check = Reference(got=out, name="spread_combination", inputs=inputs, scale=scale)
        step = threads(kernel, bound(kernel, values), (out.count,))
        yield Program(label=f"{count} of {shape}", steps=[step], checks=[check])


def cross_by_offsets(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def cross_dense(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def cross_strided(kernel: Kernel, case: Case) -> Iterator[Program]:
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
