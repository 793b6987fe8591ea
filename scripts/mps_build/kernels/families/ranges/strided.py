"""`arange`, `linspace` and `logspace` into strided tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from ...program.dtypes import DTYPES, DType
from ...program.launch import Known, Program, Reference, Shape, View, output_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, extent, threads
from .span import span

# Sizes and strides of the result, outermost first, and the number at which the launch begins.
LAYOUTS: tuple[tuple[Shape, Shape, int], ...] = (((77,), (1,), 0), ((5, 7), (1, 6), 0), ((3, 4, 5), (41, 10, 2), 0))


def _scalar(kernel: Kernel, name: str, count: int) -> DType:
    """Return the type of `count` numbers: the result's own where they have its size, else float."""
    argument = kernel.argument(name)
    size, dtype = (argument.size or argument.element) // count, kernel.dtype("out")
    if dtype.is_exact:
        return DTYPES["long"] if size == 8 else DTYPES["float" if argument.fields[0].type == "float" else "int"]
    return DTYPES["float2" if size == 8 else "float"]


def _numbers(dtype: DType, numbers: Sequence[float]) -> bytes:
    if dtype.kind == "complex":
        return pack(dtype, [part for each in numbers for part in (each, 0.0)])
    return pack(dtype, [int(each) for each in numbers] if dtype.is_exact else list(numbers))


def _out(dtype: DType, shape: Shape, strides: Shape) -> View:
    return View(buffer=output_buffer(extent(shape, strides) * dtype.size), dtype=dtype, shape=shape, strides=strides)


def arange_strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`arange_strided`: se (start, step); sizes and strides innermost first, in elements."""
    dtype = kernel.dtype("out")
    for shape, strides, _ in LAYOUTS:
        start, step, count = 3, 1 if dtype.size == 1 else 2, math.prod(shape)
        out = _out(dtype, shape, strides)
        values = {"out": out, "se": _numbers(_scalar(kernel, "se", 2), [start, step]), "base": 0}
        values |= {"ndim": len(shape), "sizes": shape[::-1], "strides": strides[::-1]}
        want = pack(dtype, [start + step * i for i in range(count)])
        step_ = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{shape}, strides {strides}", steps=[step_], checks=[Known(got=out, want=want)])


def spaced(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`linspace_strided`, `logspace`, `logspace_strided`: v (start, step, end, base); p (count, stride, first)."""
    dtype, is_log = kernel.dtype("out"), kernel.name.startswith("logspace")
    is_strided = kernel.has("strides")
    for number, (shape, strides, _) in enumerate(LAYOUTS):
        if not is_strided:
            shape, strides = (math.prod(shape),), (number + 1,)
        count = math.prod(shape)
        start, end, base = ((-1.5, 3.25, 2.5), (2.0, -7.0, 3.0), (0.5, 4.0, 0.5))[number]
        if dtype.is_exact:
            # Steps that floats have exactly, results that the type holds: what is cut off does not depend on rounding.
            start, end, base = (
                (0.0, 0.0, 5.0) if is_log else (1.0, 1.0 + (count - 1) * (1.5 if count % 2 else 0.5), 1.0)
            )
            base = 1.0 if dtype.name == "bool" else base
            end = 3.0 if is_log and count == 4 else end
        step = (end - start) / (count - 1)
        numbers = [start, step, end, base][: 4 if is_log else 3]
        out = _out(dtype, shape, strides)
        values = {
            "out": out,
            "v": _numbers(_scalar(kernel, "v", len(numbers)), numbers),
            "p": span(kernel, count, strides[0]),
        }
        values |= {"sp": (count, 0), "steps": count, "ndim": len(shape), "sizes": shape[::-1], "strides": strides[::-1]}
        inputs = {"start": start, "end": end, "count": count, "shape": list(shape), "base": base if is_log else 0.0}
        scale = max(abs(start), abs(end)) * {"half": 2.0**-8, "half2": 2.0**-8, "bfloat": 2.0**-5}.get(
            dtype.name, 2.0**-20
        )
        scale = 0.0 if dtype.is_exact or is_log else scale
        check = Reference(got=out, name="made_spaced", inputs=inputs, scale=scale)
        step_ = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{shape} from {start} to {end}", steps=[step_], checks=[check])


def whole_steps(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`linspace_integral`: params (start, end, whole part and rest of a step), as unsigned words; cut towards zero."""
    dtype, is_strided = kernel.dtype("out"), kernel.has("strides")
    bounds = ((-70, 95), (1 << 30, -(1 << 30)), (-5, 3), (7, 7))
    for (start, end), (shape, strides, _) in zip(bounds, (*LAYOUTS, LAYOUTS[0]), strict=True):
        if not is_strided:
            shape, strides = (math.prod(shape),), (2,)
        count = math.prod(shape)
        whole, rest = divmod(abs(end - start), count - 1)
        out = _out(dtype, shape, strides)
        params = pack(DTYPES["ulong"], [start & (2**64 - 1), end & (2**64 - 1), whole, rest])
        values = {"out": out, "params": params, "p": span(kernel, count, strides[0])}
        values |= {"sp": (count, 0), "steps": count, "ndim": len(shape), "sizes": shape[::-1], "strides": strides[::-1]}
        want = pack(dtype, [math.trunc(start + Fraction(end - start, count - 1) * i) for i in range(count)])
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} from {start} to {end}", steps=[step], checks=[Known(got=out, want=want)])
