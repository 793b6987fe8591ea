"""Gradients of distances."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, Value, View, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, groups, result


def cdist_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (features, rows, batch) in groups along the features; p0 is the norm 1, p1 the largest, p2 any other."""
    dtype, norm, width = kernel.dtype("x1"), int(kernel.parts["p"]), int(kernel.parts["width"])
    for batch, p, r, d in ((2, 3, 5, 7), (1, 2, 37, 40), (1, 1, 130, 3)):
        # Multiples of 1/8: differences and the largest of them are exact in every type.
        left, right = ([n / 8 for n in case.values.integers(batch * k * d, -12, 12)] for k in (p, r))
        power = 2.5
        distances = []
        for row in range(batch * p):
            for column in range(r):
                begin = (row // p * r + column) * d
                gaps = [abs(a - b) for a, b in zip(left[row * d : row * d + d], right[begin : begin + d], strict=True)]
                distances.append(max(gaps) if norm == 1 else sum(g**power for g in gaps) ** (1 / power))
        x1 = View(buffer=input_buffer(pack(dtype, left)), dtype=dtype, shape=(batch, p, d))
        x2 = View(buffer=input_buffer(pack(dtype, right)), dtype=dtype, shape=(batch, r, d))
        far = View(buffer=input_buffer(pack(DTYPES["float"], distances)), dtype=DTYPES["float"], shape=(batch, p, r))
        grad, out = filled(case, kernel.dtype("grad"), (batch, p, r)), result(kernel.dtype("out"), (batch, p, d))
        params = {"B": batch, "P": p, "R": r, "D": d, "p_minus_1": power - 1}
        arguments: dict[str | int, Value] = {
            "x1": x1.buffer,
            "x2": x2.buffer,
            "grad": grad.buffer,
            "cdist": far.buffer,
            "out": out.buffer,
            "params": kernel.pack("params", params),
        }
        inputs = {"x1": x1, "x2": x2, "grad": grad, "far": far, "norm": norm, "power": power}
        check = Reference(got=out, name="nn_cdist_backward", inputs=inputs, scale=r * 2.0**-19)
        step = groups(kernel, arguments, (-(-d // width), p, batch), (width,))
        yield Program(label=f"{batch} x {p} x {r}, {d} features", steps=[step], checks=[check])
