"""`lerp` with a tensor of weights."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, Shape, dense_strides
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, result, strides_of, threads


def tensor_weights(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`lerp_tensor` up to 2.14: dense, or by byte strides, innermost first; one weight for all, or one for each."""
    dtype = DTYPES[kernel.parts["T"]]
    n = int(kernel.parts.get("n") or 0)
    is_dense = not kernel.has("out_strides")
    shapes: tuple[Shape, ...] = (
        ((5, 7), (33, 2)) if n == 2 else ((3, 4, 5), (2, 1, 9)) if n == 3 else ((37,), (3, 4, 5))
    )
    for shape in shapes:
        gap = None if is_dense else tuple(2 * each for each in dense_strides(shape))
        low, high = (0, 9) if dtype.is_exact else (-2, 2)
        a, b = (filled(case, dtype, shape, strides=gap, low=low, high=high) for _ in range(2))
        one = kernel.parts.get("form") == "scalar_weight"
        weight = filled(case, dtype, (1,) if one else shape, low=0, high=1 if not dtype.is_exact else 2)
        out = result(dtype, shape)
        values: dict[str, object] = {"out": out, "self": a, "end": b, "weight": weight, "out_ptr": out, "self_ptr": a}
        values |= {"end_ptr": b, "weight_ptr": weight, "sizes": shape[::-1], "ndim": len(shape)}
        for name, view in (("out", out), ("self", a), ("end", b), ("weight", weight)):
            values[f"{name}_strides"] = [each * dtype.size for each in strides_of(view)[::-1]]
        grid = (shape[-1], math.prod(shape[:-1])) if n == 2 else shape[::-1] if n == 3 else (math.prod(shape),)
        scale = {"half": 2.0**-9, "half2": 2.0**-8, "bfloat": 2.0**-6}.get(
            dtype.name, 0.0 if dtype.is_exact else 2.0**-20
        )
        check = Reference(got=out, name="lerp_of_tensors", inputs={"a": a, "b": b, "w": weight}, scale=scale)
        step = threads(kernel, bound(kernel, values), grid)
        yield Program(label=f"{shape}", steps=[step], checks=[check])
