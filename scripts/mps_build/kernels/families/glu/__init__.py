"""Gated linear units."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, Value, dense_strides
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, outermost_inside, result, strides_of, threads


def dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (half a row, rows); backward writes both halves."""
    dtype, is_backward = kernel.dtype("input"), kernel.has("grad_output")
    for rows, half in ((1, 1), (3, 37), (5, 4)):
        x, dy = filled(case, dtype, (rows, 2 * half)), filled(case, dtype, (rows, half))
        out = result(dtype, (rows, 2 * half) if is_backward else (rows, half))
        arguments: dict[str | int, Value] = {"input": x.buffer, "inner_half": kernel.pack("inner_half", half)}
        arguments |= {"grad_input": out.buffer, "grad_output": dy.buffer} if is_backward else {"out": out.buffer}
        inputs: dict[str, object] = {"x": x, "dy": dy} if is_backward else {"x": x}
        scale = 2.0 ** {"half": -9, "bfloat": -6}.get(dtype.name, -21)
        check = Reference(got=out, name="nn_glu_backward" if is_backward else "nn_glu", inputs=inputs, scale=scale)
        yield Program(label=f"{rows} x {half}", steps=[threads(kernel, arguments, (half, rows))], checks=[check])


def backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`glu_backward`: sizes and strides (bytes) of the half that goes in, and where the other half begins."""
    names = {"float": "float", "half": "half", "bfloat": "bfloat"}
    dtype = DTYPES[names[kernel.parts["T"]]]
    size = dtype.size
    for shape in ((3, 5), (33, 2), (2, 3, 4)):
        whole = (*shape[:-1], 2 * shape[-1])
        x = filled(case, dtype, whole, strides=outermost_inside(whole, 1), low=-4, high=4)
        dx = result(dtype, whole, strides=outermost_inside(whole, 1))
        dy = filled(case, dtype, shape, strides=tuple(2 * each for each in dense_strides(shape)))
        half = shape[-1] * strides_of(x)[-1] * size
        values: dict[str, object] = {"grad_input": dx, "input": x, "grad_output": dy, "sizes": shape[::-1]}
        for name, view in (("grad_input", dx), ("input", x), ("grad_output", dy)):
            values[f"{name}_strides"] = [each * size for each in strides_of(view)[::-1]]
        values |= {"grad_input_byte_offset": half, "input_byte_offset": half, "ndim": len(shape)}
        scale = {"half": 2.0**-9, "bfloat": 2.0**-6}.get(dtype.name, 2.0**-21)
        check = Reference(got=dx, name="nn_glu_backward", inputs={"dy": dy, "x": x}, scale=scale)
        step = threads(kernel, bound(kernel, values), (dy.count,))
        yield Program(label=f"{whole}", steps=[step], checks=[check])
