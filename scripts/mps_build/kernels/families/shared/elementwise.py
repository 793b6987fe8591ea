"""One thread an element: layouts and casts of elementwise operators, and forms that the contract's options state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ...program.dtypes import DTYPES, DType
from ...program.launch import (
    Check,
    NotBound,
    Program,
    Reference,
    Value,
    View,
    WrongBinding,
    dense_strides,
    input_buffer,
    output_buffer,
)
from ...program.values import every_e4m3, pack
from .contracts import Case, Kernel
from .tensors import filled, result, threads

GROUP = (64, 1, 1)
# Shape, the order in which the input's dimensions lie in memory (outermost first), and the output's.
LAYOUTS: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...] = (
    ((7,), (0,), (0,)),
    ((5, 3), (1, 0), (0, 1)),
    ((2, 3, 5, 2), (3, 1, 0, 2), (0, 1, 2, 3)),
    ((3, 1, 67), (0, 1, 2), (2, 1, 0)),
    ((33, 34), (1, 0), (1, 0)),
)
QUICK_LAYOUTS = (LAYOUTS[1], LAYOUTS[2])
# What casting kernels are tested to read or write.
CASTS = ("bool", "uchar", "char", "short", "int", "long", "half", "bfloat", "float", "half2", "float2", "ushort",
         "uint", "ulong", "float8_e4m3fn")  # fmt: skip


def layouts_of(case: Case) -> tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...]:
    """Return the (shape, strides, result strides) to run: a few of them for `--quick`."""
    return QUICK_LAYOUTS if case.is_quick else LAYOUTS


def reference(kernel: Kernel, case: Case) -> str:
    """Return the reference of the kernel's operator.

    Raises:
        NotBound: there is none.
    """
    for name in (kernel.options.get("reference"), kernel.parts.get("op")):
        if name and name in case.references:
            return str(name)
    raise NotBound(f"no reference for the operator {kernel.parts.get('op')}")


def lanes_of(kernel: Kernel) -> int:
    """Elements a thread: the length of the code's local `metal::array`."""
    return max(kernel.metadata.arrays, default=1)


def result_dtype(kernel: Kernel, argument: str) -> DType:
    """Return the result's type: where the metadata has a functor's decltype, the name says it."""
    try:
        return kernel.dtype(argument)
    except (NotBound, WrongBinding):
        pass
    found = DTYPES.get(kernel.parts.get("out", ""))
    if found is None:
        raise NotBound(f"the type of its result is not known ({kernel.argument(argument).type})")
    return found


def alphas(kernel: Kernel, case: Case) -> list[Mapping[str, Any]]:
    """Return the values of `alpha` (and what the reference calls them); one empty mapping for operators without.

    Raises:
        NotBound: the operator's reference has none.
    """
    name = alpha_name(kernel)
    if not kernel.has(name):
        return [{}]
    rows = case.references.get(kernel.parts.get("op", ""), {}).get("alpha")
    if not rows:
        raise NotBound(f"no values of alpha for the operator {kernel.parts.get('op')}")
    dtype = DTYPES.get(kernel.argument(name).type)
    if dtype is not None and dtype.is_exact:
        rows = [each for each in rows if isinstance(each, Mapping) or float(each).is_integer()] or [1]
        if dtype.kind in ("unsigned", "bool"):
            most = 1 if dtype.kind == "bool" else math.inf
            rows = [each for each in rows if isinstance(each, Mapping) or 0 <= each <= most] or [1]
    return [{"value": each, "inputs": dict(each) if isinstance(each, Mapping) else {"alpha": each}} for each in rows]


def with_alpha(kernel: Kernel, arguments: dict[str | int, Any], alpha: Mapping[str, Any]) -> dict[str | int, Any]:
    """Add the argument `alpha` where the kernel has one."""
    name = alpha_name(kernel)
    if kernel.has(name):
        arguments[name] = kernel.pack(name, alpha.get("value", 0))
    return arguments


def alpha_name(kernel: Kernel) -> str:
    """Return the name of the kernel's scale argument, which contracts may state."""
    return str(kernel.options.get("alpha", "alpha"))


def gather(view: View) -> bytes:
    """Return a view's elements of its buffer's initial data, dense."""
    size, data = view.dtype.size, view.buffer.data
    strides = view.strides if view.strides is not None else dense_strides(view.shape)
    offsets = [view.offset]
    for length, stride in zip(view.shape, strides, strict=True):
        offsets = [offset + i * stride for offset in offsets for i in range(length)]
    return b"".join([data[offset * size : (offset + 1) * size] for offset in offsets])


def placed_strides(shape: tuple[int, ...], order: tuple[int, ...], gap: int) -> tuple[tuple[int, ...], int]:
    """Return strides, in elements, of dimensions that lie in `order` (outermost first), and how many elements it takes.

    The innermost dimension has steps of `gap`, and one element lies between rows: a kernel that takes a strided
    operand for a dense one is seen.
    """
    strides, step = [0] * len(shape), gap
    for dimension in reversed(order):
        strides[dimension] = step
        step = step * shape[dimension] + 1
    return tuple(strides), 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def spread(data: bytes, dtype: DType, shape: tuple[int, ...], order: tuple[int, ...], gap: int = 2) -> View:
    """Return a strided input that holds dense elements; what lies between is the first element's complement."""
    strides, count = placed_strides(shape, order, gap)
    size = dtype.size
    filler = bytes(each ^ 0xFF for each in data[:size]) if dtype.kind != "bool" else bytes([1 - data[0]])
    memory = bytearray(filler * count)
    offsets = [0]
    for length, stride in zip(shape, strides, strict=True):
        offsets = [offset + i * stride for offset in offsets for i in range(length)]
    for number, offset in enumerate(offsets):
        memory[offset * size : (offset + 1) * size] = data[number * size : (number + 1) * size]
    return View(buffer=input_buffer(bytes(memory)), dtype=dtype, shape=shape, strides=strides)


def spread_output(dtype: DType, shape: tuple[int, ...], order: tuple[int, ...], gap: int = 1) -> View:
    """Return a strided output, whose gaps must stay as they are."""
    strides, count = placed_strides(shape, order, gap)
    return View(buffer=output_buffer(count * dtype.size), dtype=dtype, shape=shape, strides=strides)


def dense_view(data: bytes, dtype: DType, shape: tuple[int, ...] | None = None) -> View:
    """Return a contiguous input of these bytes; without a shape it is one-dimensional."""
    return View(buffer=input_buffer(data), dtype=dtype, shape=shape or (len(data) // dtype.size,))


def dense_output(dtype: DType, shape: tuple[int, ...]) -> View:
    """Return a contiguous output of a shape, as many bytes as its elements need."""
    count = View(buffer=output_buffer(0), dtype=dtype, shape=shape).count
    return View(buffer=output_buffer(count * dtype.size), dtype=dtype, shape=shape)


def byte_strides(view: View) -> list[int]:
    """Return strides in bytes, innermost first."""
    strides = view.strides if view.strides is not None else dense_strides(view.shape)
    return [each * view.dtype.size for each in reversed(strides)]


def known_types(kernel: Kernel) -> list[DType]:
    """Return the types that a casting kernel knows, as its own code chooses between them; all, if that is not seen."""
    codes = kernel.metadata.types
    return [DTYPES[name] for name in CASTS if not codes or DTYPES[name].code in codes]


def stored_types(computed: DType, case: Case, kernel: Kernel) -> Iterator[DType]:
    """Yield the types that a casting kernel may have to read an operand of type `computed` from."""
    types = known_types(kernel)
    for dtype in types[:9:4] if case.is_quick else types:
        if (dtype.kind == "complex") <= (computed.kind == "complex"):
            yield dtype


def common_numbers(
    stored: DType, computed: DType, case: Case, count: int, *, is_divisor: bool
) -> list[int] | list[float]:
    """Return numbers that both types hold exactly, so that the cast itself is known."""
    kinds = {stored.kind, computed.kind}
    if stored.name == "float8_e4m3fn" and computed.kind in ("float", "complex") and computed.size > 1:
        return [every_e4m3(case.values.random.randrange(256)) for _ in range(count)]
    low, high = (0, 1) if "bool" in kinds else (0, 100) if "unsigned" in kinds else (-100, 100)
    if "float8" in stored.name + computed.name:
        low, high = max(low, -8), min(high, 8)
    components = 2 if stored.kind == "complex" else 1
    random = case.values.random
    numbers: list[float] = [random.randint(low, high) * (random.random() < 0.75) for _ in range(count * components)]
    if is_divisor:
        numbers = [each or 1 for each in numbers]
    if kinds <= {"float", "complex"} and high > 8:
        numbers = [each / 8 for each in numbers]
    return numbers


def cast_pair(
    stored: DType, computed: DType, case: Case, count: int, *, is_divisor: bool = False
) -> tuple[bytes, bytes]:
    """Return the same numbers as the stored type and as the type that a kernel computes in."""
    numbers = common_numbers(stored, computed, case, count, is_divisor=is_divisor)
    if stored.kind != "complex" and computed.kind == "complex":
        return pack(stored, numbers), pack(computed, [part for each in numbers for part in (each, 0)])
    return pack(stored, numbers), pack(computed, numbers)


def elements(kernel: Kernel, case: Case) -> Iterator[Program]:
    """The row's options: `inputs` with bounds, `scalars` with values, `outputs` with references; `scale`."""
    options = kernel.options
    for count in (1, 37, 300):
        arguments: dict[str | int, Value] = {}
        inputs: dict[str, object] = {}
        for name, (low, high) in options["inputs"].items():
            view = filled(case, kernel.dtype(name), (count,), low=low, high=high)
            arguments[name], inputs[name] = view.buffer, view
        for name, value in options.get("scalars", {}).items():
            arguments[name], inputs[name] = kernel.pack(name, value), value
        checks: list[Check] = []
        for name, reference in options["outputs"].items():
            got = result(kernel.dtype(name), (count,))
            arguments[name] = got.buffer
            checks.append(Reference(got=got, name=reference, inputs=inputs, scale=float(options.get("scale", 0.0))))
        yield Program(label=f"{count} elements", steps=[threads(kernel, arguments, (count,))], checks=checks)
