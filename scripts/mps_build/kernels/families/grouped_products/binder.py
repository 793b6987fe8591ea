"""Products of groups of matrices of unequal sizes."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, Value, View, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, groups, result, strides_of

# Rows, terms, columns, ends of the groups (the second is empty).
GROUPED = ((37, 20, 70, (5, 5, 37)), (9, 33, 18, (9, 9, 9)), (130, 48, 65, (64, 64, 130)))


def grouped_rows(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Rows of one matrix in groups, each with a matrix of its own; tiles of bm x 64, or 16 columns of one row."""
    dtype, few = kernel.dtype("mat_a"), kernel.parts["form"] == "few_rows"
    for m, k, n, ends in GROUPED[: 1 if case.is_quick else 3]:
        count, ld = len(ends), -(-k // 4) * 4
        a = filled(case, dtype, (m, k), strides=(ld, 1), align=16)
        b = filled(case, dtype, (count, k, n), strides=(n * ld, 1, ld), align=16)
        out = result(dtype, (m, n), align=16)
        values = (a, b, out)
        grid = (-(-n // 16), m) if few else (-(-n // 64), -(-m // int(kernel.parts["bm"])) + count)
        yield _grouped(kernel, values, (m, k, n), ends, grid, strides_of(b)[0], "nn_grouped_rows")


def grouped_terms(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Terms in groups: a product for each."""
    dtype = kernel.dtype("mat_a")
    for m, n, _, ends in GROUPED[: 1 if case.is_quick else 3]:
        terms = ends[-1]
        a = filled(case, dtype, (m, terms), strides=(-(-terms // 4) * 4, 1), align=16)
        b = filled(case, dtype, (terms, n), strides=(-(-n // 4) * 4, 1), align=16)
        out = result(dtype, (len(ends), m, n), align=16)
        grid = (-(-n // 64), -(-m // int(kernel.parts["bm"])), len(ends))
        yield _grouped(kernel, (a, b, out), (m, terms, n), ends, grid, strides_of(out)[0], "nn_grouped_terms")


def _grouped(
    kernel: Kernel,
    values: tuple[View, View, View],
    sizes: tuple[int, int, int],
    ends: tuple[int, ...],
    grid: tuple[int, ...],
    batch_stride: int,
    name: str,
) -> Program:
    (a, b, out), (m, k, n) = values, sizes
    offsets = View(buffer=input_buffer(pack(DTYPES["int"], list(ends))), dtype=DTYPES["int"], shape=(len(ends),))
    params = {"m": m, "n": n, "k": k, "groups": len(ends), "batch_stride": batch_stride}
    for prefix, view, axes in (("a", a, "mk"), ("b", b, "kn"), ("out", out, "mn")):
        params |= {f"{prefix}_stride_{axis}": s for axis, s in zip(axes, strides_of(view)[-2:], strict=True)}
    arguments: dict[str | int, Value] = {
        "mat_a": a.buffer,
        "mat_b": b.buffer,
        "offsets": offsets.buffer,
        "output": out.buffer,
        "params": kernel.pack("params", params),
    }
    inputs = {"a": a, "b": b, "offsets": offsets}
    check = Reference(got=out, name=name, inputs=inputs, scale=k * 2.0**-19)
    step = groups(kernel, arguments, grid, (kernel.metadata.max_threads or 128,))
    return Program(label=f"{m} x {k} x {n}, groups end at {ends}", steps=[step], checks=[check])
