"""Running sums, products, minima and maxima along a dimension."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...program.dtypes import DType
from ...program.errors import NotBound
from ...program.launch import Check, Program, Reference, Shape, View, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.reduced import factors
from ..shared.strided import Arguments
from ..shared.tensors import groups as launch
from ..shared.tensors import result

COLUMNS = 32


def innermost(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`innermost`: a threadgroup a row; rows along y and z."""
    for rows, length, threads, high in ((3, 100, 32, 1), (4, 1, 64, 2), (2, 1030, 128, 1), (1, 300, 1024, 1)):
        yield _program(kernel, case, (rows, length), 1, {"axis_size": length}, (1, rows // high, high), threads)


def outer(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`outer`: 32 columns a threadgroup, 32 rows at once; (outer, axis, columns)."""
    for batch, length, columns in ((2, 70, 37), (1, 5, 3), (2, 33, 32)):
        blocks = -(-columns // COLUMNS)
        constants = {"axis_size": length, "stride": columns, "stride_blocks": blocks}
        yield _program(
            kernel, case, (batch, length, columns), 1, constants, (1, blocks * batch, 1), threads_of(kernel, COLUMNS)
        )


def _reads(kernel: Kernel) -> int:
    """How many elements a thread takes at once: fewer of wide ones."""
    out = next(each.name for each in kernel.metadata.arguments if each.name in ("out", "out_values", "block_sums"))
    return 4 if kernel.dtype(out).size <= 4 else 2


def threads_of(kernel: Kernel, columns: int) -> int:
    """Return how many threads share so many columns."""
    return 32 * columns // _reads(kernel)


def _program(
    kernel: Kernel,
    case: Case,
    shape: Shape,
    dim: int,
    constants: dict[str, int],
    groups: Shape,
    threads: int,
    strides: Shape | None = None,
) -> Program:
    dtype = kernel.dtype("in")
    x = input_buffer(values_of(kernel, case, dtype, math.prod(shape)))
    arguments: Arguments = {"in": x, **{name: kernel.pack(name, value) for name, value in constants.items()}}
    checks: list[Check] = []
    for name in ("out", "out_values", "out_indices"):
        if kernel.has(name):
            whole = result(kernel.dtype(name), (math.prod(shape),))
            view = replace(whole, shape=shape, strides=strides)
            arguments[name] = view.buffer
            suffix = name.removeprefix("out")
            checks.append(check_of(kernel, case, view, View(buffer=x, dtype=dtype, shape=shape), dim, suffix))
    step = launch(kernel, arguments, groups, (threads,))
    return Program(label=f"{shape} along {dim}, {threads} threads", steps=[step], checks=checks)


def check_of(kernel: Kernel, case: Case, got: View, x: View, dim: int, suffix: str = "") -> Reference:
    """Return what a scan of `x` along `dim` must be; `suffix`: of its values or of its indices."""
    name = f"scan_{kernel.parts['op']}{suffix}"
    if name not in case.references:
        raise NotBound(f"no reference {name}")
    length = x.shape[dim]
    return Reference(
        got=got, name=name, inputs={"x": x, "dim": dim}, scale=scale_of(kernel.parts["op"], got.dtype, length)
    )


def scale_of(op: str, dtype: DType, length: int) -> float:
    """Sums of `length` values up to 2, rounded as they go."""
    if dtype.kind not in ("float", "complex") or op in ("cummin", "cummax"):
        return 0.0
    if (op, dtype.name) == ("logcumsumexp", "half2"):
        raise NotBound("no bound is known for complex logarithms that go on from results rounded to 16 bits")
    return length * 2.0**-22


def values_of(kernel: Kernel, case: Case, dtype: DType, count: int) -> bytes:
    """Return inputs that tell the operator from others: ties for minima, factors near one for products."""
    op = kernel.parts["op"]
    if op == "cumprod":
        return factors(case, dtype, count)
    if op in ("cummin", "cummax"):
        # Few different values: ties tell which index is kept.
        random = case.values.random
        low = 0 if dtype.kind in ("unsigned", "bool") else -9
        return pack(dtype, [random.randint(low, 1 if dtype.kind == "bool" else 9) for _ in range(count)])
    if op == "logcumsumexp" and dtype.kind == "complex":
        # Angles that do not cancel: a sum near zero has no accurate logarithm.
        return case.values.moderate(dtype, count, 0, 1)
    return case.values.moderate(dtype, count)


def transposed(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`innermost_transposed`: columns of (axis, columns) are added up like `outer`; the result is (columns, axis)."""
    for length, columns in ((70, 37), (5, 3), (33, 64)):
        blocks = -(-columns // COLUMNS)
        constants = {"axis_size": length, "n_cols": columns, "stride_blocks": blocks}
        groups, threads = (1, blocks, 1), threads_of(kernel, COLUMNS)
        yield _program(kernel, case, (length, columns), 0, constants, groups, threads, strides=(1, length))


def tiny(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`tiny_innermost`: short rows, several a threadgroup."""
    for rows, length, together in ((9, 5, 4), (33, 2, 32), (3, 32, 1), (65, 7, 16)):
        constants = {"axis_size": length, "n_scans": rows, "rows_per_tg": together}
        yield _program(kernel, case, (rows, length), 1, constants, (-(-rows // together), 1, 1), 128)
