"""Factorizations of matrices: Cholesky in blocks and in panels, the inverse of small matrices, rows by pivots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...dtypes import DTYPES
from ...program import Check, Known, Program, Reference, Step, View, inout_buffer, input_buffer, scratch_buffer
from ...values import pack
from ..contracts import Case, Kernel
from .tensors import bound, filled, groups, numbered, result, started, threads

FLOAT, INT = DTYPES["float"], DTYPES["int"]
BLOCK, PANEL = 32, 96
# Matrices, rows: one block, whole blocks (of 8, which matrices of a simdgroup take), a short block at the end.
BLOCKED = ((1, 5), (2, 64), (1, 70))
PANELS = ((1, 40), (2, 96), (1, 128), (1, 141))


def _positive(case: Case, count: int, size: int) -> list[float]:
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
        given = numbered(FLOAT, _positive(case, count, size), (count, size, size))
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
    numbers = _positive(case, 1, 5)
    numbers[2 * 5 + 2] = -1.0
    memory = View(buffer=inout_buffer(pack(FLOAT, numbers)), dtype=FLOAT, shape=(25,))
    info = View(buffer=inout_buffer(bytes(4)), dtype=INT, shape=(1,))
    values = {"A": memory, "info": info, "N": 5, "NB": 5, "k": 0}
    step = groups(diagonal, bound(diagonal, values), (1,), (32, 8))
    return Program(label="not positive definite", steps=[step], checks=[Known(got=info, want=pack(INT, [3]))])


def panels(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Panels of 96 columns: the first one, factored, and the strips below it."""
    diagonal, below = (case.companion(name.format(**kernel.parts)) for name in kernel.options["chain"])
    for count, size in PANELS:
        if size <= PANEL and kernel.name == below.name:
            continue
        given = numbered(FLOAT, _positive(case, count, size), (count, size, size))
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


# Matrices, rows, columns, reflections.
REFLECTED = ((1, 5, 3, 3), (2, 12, 9, 7), (1, 4, 4, 1))


def reflections(kernel: Kernel, case: Case) -> Iterator[Program]:
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
