"""Linear combinations of the powers of a matrix."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, View, inout_buffer
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, strides_of, threads


def combination(kernel: Kernel, case: Case) -> Iterator[Program]:
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
