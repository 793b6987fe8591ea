"""What the forms of reductions share: a launch of a form as a program, values that tell faults apart, the check."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps

from ...program.dtypes import DTYPES, DType
from ...program.launch import (
    Buffer,
    NotBound,
    Program,
    Reference,
    Shape,
    Step,
    View,
    dense_strides,
    input_buffer,
    output_buffer,
)
from ...program.values import pack
from .contracts import Binder, Case, Kernel

TRIPLE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One launch of a form: how the input lies, what is reduced, constants and grid."""

    shape: Shape
    dims: Shape
    constants: Mapping[str, object]
    groups: Shape
    threads: Shape
    strides: Shape | None = None
    elements: int | None = None
    param: float | None = None


def parts_of(length: int, parts: int) -> int:
    """Return the length of a part, rounded up, where `length` elements are divided into so many."""
    return -(-length // parts)


def params_of(kernel: Kernel, length: int) -> tuple[float, ...]:
    """Return the values of `param` that matter: 0, and where the operator finishes with it, another."""
    op = kernel.parts["op"]
    if op in ("var", "std"):
        return (1.0, 0.0)
    if op == "norm":
        return (0.0, 1.0, 2.0, 3.0, math.inf, -math.inf)
    if op == "sum" and kernel.dtype("output").kind in ("float", "complex"):
        return (0.0, float(length))
    if op.startswith("norm_l2"):  # up to 2.14, where there is a `divisor`, the root is always taken
        return (0.0, 1.0) if kernel.has("param") else (1.0,)
    return (0.0,)


def of_layouts(layouts: Callable[[Kernel], Iterator[Layout]]) -> Binder:
    """Make a binder of the layouts that a kernel is tested in: one program for each parameter that fits the length."""

    @wraps(layouts)
    def binder(kernel: Kernel, case: Case) -> Iterator[Program]:
        for layout in layouts(kernel):
            length = math.prod(layout.shape[d] for d in layout.dims)
            for param in params_of(kernel, length) if layout.param is None else (layout.param,):
                yield _program(kernel, case, layout, param, length)

    return binder


def _program(kernel: Kernel, case: Case, layout: Layout, param: float, length: int) -> Program:
    op = kernel.parts["op"]
    name = f"reduced_{op}"
    if name not in case.references:
        raise NotBound(f"no reference {name}")
    elements = layout.elements or math.prod(layout.shape)
    strides = layout.strides or dense_strides(layout.shape)
    out_shape = tuple(1 if d in layout.dims else n for d, n in enumerate(layout.shape))
    inputs: dict[str, object] = {"dims": list(layout.dims), "param": param}
    if kernel.argument("input").type == "float3":
        buffer, inputs["x"] = _triples(case, layout.shape, strides, elements)
        inputs["dims"] = [*layout.dims, len(layout.shape)]
        length *= 3
        out_shape = (*out_shape, 1)
    else:
        source = kernel.dtype("input")
        buffer = input_buffer(_values(case, op, source, elements))
        inputs["x"] = View(buffer=buffer, dtype=source, shape=layout.shape, strides=strides)
    count = math.prod(out_shape)
    checks = []
    if kernel.argument("output").type == "float3":
        out, result = output_buffer(count * TRIPLE), DTYPES["float"]
        checks = [
            _check(
                f"reduced_{part}",
                View(
                    buffer=out,
                    dtype=result,
                    shape=out_shape,
                    strides=tuple(4 * s for s in dense_strides(out_shape)),
                    offset=at,
                ),
                inputs,
                length,
            )
            for at, part in enumerate(("mean", "m2", "count"))
        ]
    else:
        result = kernel.dtype("output")
        out = output_buffer(count * result.size)
        checks = [_check(name, View(buffer=out, dtype=result, shape=out_shape), inputs, length)]
    arguments: dict[str | int, Buffer | bytes] = {"input": buffer, "output": out}
    arguments |= {key: kernel.pack(key, value) for key, value in layout.constants.items()}
    for each in ("param", "divisor"):
        if kernel.has(each):
            arguments[each] = kernel.pack(each, param)
    x, y, z = layout.threads
    step = Step(
        kernel=kernel.name,
        arguments=arguments,
        threadgroup=(x, y, z),
        free=False,
        grid=(layout.groups[0] * x, layout.groups[1] * y, layout.groups[2] * z),
    )
    label = f"shape {layout.shape}, dims {layout.dims}, param {param:g}, {layout.groups} groups of {layout.threads}"
    return Program(label=label, steps=[step], checks=checks)


def _check(name: str, got: View, inputs: dict[str, object], length: int) -> Reference:
    scale = 0.0
    if got.dtype.kind in ("float", "complex") and name.split("_")[1] not in ("max", "min"):
        # Sums of `length` values up to 2, and the squares in a variance.
        # A running sum of squares is rounded at each value, to its own last place: it grows with the length.
        scale = length * (2.0**-20 if name == "reduced_m2" else 2.0**-22)
    return Reference(got=got, name=name, inputs=inputs, scale=scale)


def _values(case: Case, op: str, dtype: DType, count: int) -> bytes:
    """Return values that tell this operator's faults apart: zeros for counts, NaN for nansum, else ordinary ones."""
    if op in ("max", "min", "norm_inf", "norm_neginf"):
        return case.values.sweep(dtype, count) if dtype.is_exact else case.values.moderate(dtype, count, -900, 900)
    if op in ("any", "count_nonzero", "norm_l0"):
        return _sparse(case, dtype, count, 0.06 if op == "any" else 0.5)
    if op == "all":
        return _sparse(case, dtype, count, 0.97)
    if op == "nansum" and dtype.kind == "float":
        values = case.values.random
        return pack(dtype, [math.nan if values.random() < 0.2 else values.uniform(-2, 2) for _ in range(count)])
    if op == "prod":
        return factors(case, dtype, count)
    return case.values.moderate(dtype, count)


def _sparse(case: Case, dtype: DType, count: int, share: float) -> bytes:
    random, components = case.values.random, 2 if dtype.kind == "complex" else 1
    return pack(dtype, [random.choice((1, 2, 3)) if random.random() < share else 0 for _ in range(count * components)])


def factors(case: Case, dtype: DType, count: int) -> bytes:
    """Factors whose products stay in range: powers of two for 16 bits, near the unit circle for complex types."""
    random = case.values.random
    if dtype.is_exact:
        return pack(dtype, [random.choice((1, 3, 5, 7) if random.random() < 0.95 else (2,)) for _ in range(count)])
    if dtype.kind == "complex":
        choices = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
        return pack(dtype, [part for _ in range(count) for part in random.choice(choices)])
    few = {random.randrange(count) for _ in range(6)}
    return pack(
        dtype, [random.choice((1.5, 0.75, -1.25)) if at in few else random.choice((1.0, -1.0)) for at in range(count)]
    )


def _triples(case: Case, shape: Shape, strides: Shape, elements: int) -> tuple[Buffer, View]:
    """Partial variances of three values each, and the values themselves (one more dimension)."""
    raw = case.values.moderate(DTYPES["float"], elements * 3)
    numbers = struct.unpack(f"<{elements * 3}f", raw)
    packed = bytearray()
    for at in range(0, elements * 3, 3):
        mean = sum(numbers[at : at + 3]) / 3
        packed += struct.pack("<4f", mean, sum((each - mean) ** 2 for each in numbers[at : at + 3]), 3.0, 0.0)
    values = input_buffer(raw)
    view = View(buffer=values, dtype=DTYPES["float"], shape=(*shape, 3), strides=(*(3 * s for s in strides), 1))
    return input_buffer(bytes(packed)), view
