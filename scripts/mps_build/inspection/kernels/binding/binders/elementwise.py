"""Unary operators: eight forms of one function (and four with `alpha`), the dense one against torch, the others against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...dtypes import DTYPES, DType
from ...program import (
    Buffer,
    Program,
    Reference,
    Same,
    Step,
    View,
    dense_strides,
    input_buffer,
    output_buffer,
)  # fmt: skip
from ...values import every_value
from ..contracts import Case, Kernel, NotBound
from ..pack import WrongBinding

GROUP = (64, 1, 1)
SHAPES = ((7,), (5, 3), (4, 1, 6), (2, 3, 5, 2))


def reference(kernel: Kernel, case: Case) -> str:
    """Return the row of references/*.yaml for the kernel's operator.

    Raises:
        NotBound: there is none.
    """
    for name in (kernel.options.get("reference"), kernel.parts.get("op")):
        if name and name in case.references:
            return str(name)
    raise NotBound(f"no reference for the operator {kernel.parts.get('op')}")


def inputs_of(dtype: DType, case: Case, row: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the inputs of a dense form: all values of 8 and 16 bits, else edges and every exponent."""
    if dtype.size <= 2 and dtype.kind != "bool" and not case.is_quick:
        yield f"all {dtype.name} values", every_value(dtype)
    elif dtype.kind == "bool":
        yield "both values", bytes([0, 1, 1, 0, 1])
    else:
        yield f"2049 {dtype.name} values", case.values.sweep(dtype, 2049)


def dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_dense`: numel elements, several a thread; or one a thread where there is no numel."""
    source, target = kernel.dtype("input"), _output_dtype(kernel)
    name = reference(kernel, case)
    for label, data in inputs_of(source, case, case.references[name]):
        count = len(data) // source.size
        alphas = _alphas(kernel, case)
        for alpha in alphas:
            x, out = input_buffer(data), output_buffer(count * target.size)
            step = dense_step(kernel, x, out, count, alpha)
            inputs = {"x": View(buffer=x, dtype=source, shape=(count,)), **_named(alpha)}
            got = View(buffer=out, dtype=target, shape=(count,))
            yield Program(label=f"{label}{_said(alpha)}", steps=[step], checks=[Reference(got=got, name=name, inputs=inputs)])
    for count in (1, 3, 4, 5, 129):  # every remainder of a thread's share
        data = case.values.sweep(source, count)
        x, out = input_buffer(data), output_buffer(count * target.size)
        got = View(buffer=out, dtype=target, shape=(count,))
        inputs = {"x": View(buffer=x, dtype=source, shape=(count,)), **_named(alphas[0])}
        step = dense_step(kernel, x, out, count, alphas[0])
        yield Program(label=f"{count} elements", steps=[step], checks=[Reference(got=got, name=name, inputs=inputs)])


def dense_step(kernel: Kernel, x: Buffer, out: Buffer, count: int, alpha: Mapping[str, Any] | None) -> Step:
    """Return the launch of a dense form over `count` elements."""
    arguments: dict[str | int, Any] = {"output": out, "input": x}
    threads = count
    if kernel.has("numel"):
        arguments["numel"] = kernel.pack("numel", count)
        threads = -(-count // lanes_of(kernel))
    if kernel.has("alpha"):
        arguments["alpha"] = kernel.pack("alpha", alpha["value"] if alpha else 0)
    return Step(kernel=kernel.name, arguments=arguments, grid=(threads, 1, 1), threadgroup=GROUP)


def lanes_of(kernel: Kernel) -> int:
    """Elements a thread: the length of the code's local `metal::array`."""
    return max(kernel.metadata.arrays, default=1)


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_strided`: sizes and byte strides, innermost first; threads (sizes[0], the rest)."""
    companion = case.companion(_companion(kernel))
    source, target = companion.dtype("input"), _output_dtype(companion)
    for shape, order in layouts():
        alpha = _alphas(kernel, case)[0]
        x, view_x = spread(case, source, shape, order)
        out, view_out = spread_output(target, shape, order[::-1])
        sizes = list(shape[::-1])
        arguments: dict[str | int, Any] = {
            "output": out,
            "input": x,
            "sizes": kernel.pack("sizes", sizes),
            "input_strides": kernel.pack("input_strides", byte_strides(view_x)),
            "output_strides": kernel.pack("output_strides", byte_strides(view_out)),
            "ndim": kernel.pack("ndim", len(shape)),
        }
        if kernel.has("alpha"):
            arguments["alpha"] = kernel.pack("alpha", alpha["value"] if alpha else 0)
        rest = view_x.count // sizes[0]
        step = Step(kernel=kernel.name, arguments=arguments, grid=(sizes[0], rest, 1), threadgroup=(8, 4, 1))
        yield beside_dense(companion, step, view_x, view_out, alpha, f"shape {shape}, order {order}", case)


def beside_dense(
    companion: Kernel, step: Step, view_x: View, view_out: View, alpha: Mapping[str, Any] | None, label: str, case: Case
) -> Program:
    """Return a program that runs a form and the dense form on the same logical values, and compares them."""
    count, size = view_x.count, view_x.dtype.size
    x = input_buffer(gather(view_x))
    out = output_buffer(count * view_out.dtype.size)
    del size, case
    want = View(buffer=out, dtype=view_out.dtype, shape=view_out.shape)
    steps = [dense_step(companion, x, out, count, alpha), step]
    return Program(label=label, steps=steps, checks=[Same(got=view_out, want=want)])


def gather(view: View) -> bytes:
    """Return a view's elements of its buffer's initial data, dense."""
    size, data = view.dtype.size, view.buffer.data
    strides = view.strides if view.strides is not None else dense_strides(view.shape)
    offsets = [view.offset]
    for length, stride in zip(view.shape, strides, strict=True):
        offsets = [offset + i * stride for offset in offsets for i in range(length)]
    return b"".join(data[offset * size : (offset + 1) * size] for offset in offsets)


def layouts() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield shapes with the order in which their dimensions lie in memory: dense, transposed, permuted, large."""
    for shape in SHAPES:
        yield shape, tuple(range(len(shape)))
        if len(shape) > 1:
            yield shape, tuple(reversed(range(len(shape))))
    yield (3, 4, 5), (1, 2, 0)
    yield (33, 67), (1, 0)


def placed_strides(shape: tuple[int, ...], order: tuple[int, ...], gap: int = 1) -> tuple[tuple[int, ...], int]:
    """Return strides, in elements, of dimensions that lie in `order` (outermost first), and how many elements it takes.

    The innermost dimension has a gap, so that a kernel that takes a strided operand for a dense one is seen.
    """
    strides, step = [0] * len(shape), gap
    for dimension in reversed(order):
        strides[dimension] = step
        step = step * shape[dimension] + 1
    return tuple(strides), 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def spread(case: Case, dtype: DType, shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[Buffer, View]:
    """Return a strided input."""
    strides, count = placed_strides(shape, order, gap=2)
    buffer = input_buffer(case.values.sweep(dtype, count))
    return buffer, View(buffer=buffer, dtype=dtype, shape=shape, strides=strides)


def spread_output(dtype: DType, shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[Buffer, View]:
    """Return a strided output, whose gaps must stay as they are."""
    strides, count = placed_strides(shape, order, gap=1)
    buffer = output_buffer(count * dtype.size)
    return buffer, View(buffer=buffer, dtype=dtype, shape=shape, strides=strides)


def byte_strides(view: View) -> list[int]:
    """Return strides in bytes, innermost first."""
    strides = view.strides if view.strides is not None else dense_strides(view.shape)
    return [each * view.dtype.size for each in reversed(strides)]


def _companion(kernel: Kernel) -> str:
    from ..contracts import companions_of

    return companions_of(kernel)[0]


def _output_dtype(kernel: Kernel) -> DType:
    """The output's type: where it is a functor's decltype, the name says it."""
    try:
        return kernel.dtype("output")
    except (NotBound, WrongBinding):
        pass
    found = DTYPES.get(kernel.parts.get("out", ""))
    if found is None:
        raise NotBound(f"the type of its output is not known ({kernel.argument('output').type})")
    return found


def _alphas(kernel: Kernel, case: Case) -> list[Mapping[str, Any] | None]:
    """Return the values of `alpha`, each with the names that the reference uses."""
    if not kernel.has("alpha"):
        return [None]
    row = case.references.get(kernel.parts.get("op", ""), {})
    rows = row.get("alpha")
    if not rows:
        raise NotBound(f"no values of alpha for the operator {kernel.parts.get('op')}")
    return [{"value": each, "inputs": each if isinstance(each, Mapping) else {"alpha": each}} for each in rows]


def _named(alpha: Mapping[str, Any] | None) -> dict[str, Any]:
    return dict(alpha["inputs"]) if alpha else {}


def _said(alpha: Mapping[str, Any] | None) -> str:
    return f", alpha {alpha['value']}" if alpha else ""

