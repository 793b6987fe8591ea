"""Mantissas and exponents."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, dense_strides
from ..shared.contracts import Case, Kernel
from ..shared.elementwise import spread_output
from ..shared.tensors import bound, filled, strides_of, threads


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`frexp_strided`: sizes and strides (bytes) innermost first, of three tensors."""
    dtype, whole = DTYPES[kernel.parts["T"]], DTYPES["int"]
    for shape in ((37,), (5, 7), (2, 3, 11)):
        x = filled(case, dtype, shape, strides=tuple(2 * each for each in dense_strides(shape)), low=-300, high=300)
        mantissa = spread_output(dtype, shape, tuple(reversed(range(len(shape)))))
        exponent = spread_output(whole, shape, tuple(range(len(shape))))
        values: dict[str, object] = {"mantissa": mantissa, "exponent": exponent, "input": x, "sizes": shape[::-1]}
        for name, view in (("mantissa", mantissa), ("exponent", exponent), ("input", x)):
            values[f"{name}_strides"] = [each * view.dtype.size for each in strides_of(view)[::-1]]
        values["ndim"] = len(shape)
        checks = [
            Reference(got=mantissa, name="nn_frexp_mantissa", inputs={"input": x}),
            Reference(got=exponent, name="nn_frexp_exponent", inputs={"input": x}),
        ]
        step = threads(kernel, bound(kernel, values), (x.count,))
        yield Program(label=f"{shape}", steps=[step], checks=checks)
