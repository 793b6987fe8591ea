"""Cholesky factorizations, in blocks and in panels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...program.dtypes import DTYPES
from ...program.launch import Check, Known, Program, Reference, Step, View, inout_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, groups, numbered, result, started

FLOAT = DTYPES["float"]


INT = DTYPES["int"]


BLOCK = 32


PANEL = 96


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
