"""Products of a matrix and a vector."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.launch import Program, Reference, Value
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, groups, result

# Outputs and terms: no multiple of a vector; one; longer than one turn of the loop.
SIZES = ((7, 37), (1, 1), (5, 530), (70, 64), (33, 3), (2, 1150))


def rows(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`gemv_nt_a_b`: y = A x; a simdgroups a threadgroup, one row each; b elements are loaded at a time."""
    yield from _products(kernel, case, matrix="A", per_group=int(kernel.parts["a"]), transposed=False)


def columns(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`gemv_t_a_b`: y = B^T x; 32 * b columns a threadgroup, its a simdgroups share the rows."""
    yield from _products(kernel, case, matrix="B", per_group=32 * int(kernel.parts["b"]), transposed=True)


def tiles(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`gemv_t2d_a_b`: at least 32 columns a threadgroup, its lanes share rows too; groups past the end do nothing."""
    yield from _products(kernel, case, matrix="B", per_group=32, transposed=True)


def _products(kernel: Kernel, case: Case, *, matrix: str, per_group: int, transposed: bool) -> Iterator[Program]:
    dtype, simdgroups, width = kernel.dtype("y"), int(kernel.parts["a"]), int(kernel.parts["b"])
    tail = kernel.parts["tail"]
    for number, (n, length) in enumerate(SIZES[:3] if case.is_quick else SIZES):
        inner = 1 + number % 3 if "_strided" in tail else 1
        step = 1 if "_xc" in tail else 1 + number % 2
        run = n if transposed else length
        # Vectors are loaded whole: the host takes rows that begin at a multiple of one.
        ld = (run * inner + number + width - 1) // width * width
        strides = (inner, ld) if transposed else (ld, inner)
        align = width * dtype.size
        a = filled(case, dtype, (n, length), strides=strides, align=align)
        x = filled(case, dtype, (length,), strides=(step,), align=align)
        y = result(dtype, (n,), align=align)
        dims = {"n": n, "K": length, "ld": ld, "ms": inner, "xs": step}
        inputs: dict[str, object] = {"a": a, "x": x}
        bias = None
        if kernel.parts["mode"] == "ab":
            gap = 1 + number % 2
            bias = filled(case, dtype, (n,), strides=(gap,))
            dims |= {"bias_r": gap, "bias_c": gap}
            inputs |= {"bias": bias, "alpha": 1.5, "beta": -0.75}
        arguments: dict[str | int, Value] = {
            matrix: a.buffer,
            "x": x.buffer,
            "y": y.buffer,
            "gP": kernel.pack("gP", dims),
            "bias": bias.buffer if bias else None,
            "alpha_beta": kernel.pack("alpha_beta", [1.5, -0.75]),
        }
        launch = groups(kernel, arguments, (-(-n // per_group),), (32 * simdgroups,))
        name = "nn_mv_bias" if bias else "nn_mv"
        check = Reference(got=y, name=name, inputs=inputs, scale=length * 2.0**-20)
        yield Program(
            label=f"{n} outputs of {length} terms, strides {strides}, x {step}", steps=[launch], checks=[check]
        )
