"""Operators of one operand: dense against torch, every other form against the dense one, bit for bit."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...program.dtypes import DTYPES, DType
from ...program.launch import Check, NotBound, Program, Reference, Same, Step, View, dense_strides, scratch_buffer
from ...program.values import every_value
from ..shared.contracts import Case, Kernel
from ..shared.elementwise import (
    GROUP,
    alphas,
    byte_strides,
    dense_output,
    dense_view,
    known_types,
    lanes_of,
    layouts_of,
    reference,
    result_dtype,
    spread,
    spread_output,
    with_alpha,
)
from ..shared.tensors import bound, filled, strides_of, threads

Alpha = Mapping[str, Any]


def dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_dense`: against torch, for all values of 8 and 16 bits, else edges and every exponent."""
    source, target, name = kernel.dtype("input"), result_dtype(kernel, "output"), reference(kernel, case)
    values = alphas(kernel, case)
    for alpha in values:
        data, label = _inputs(source, case)
        data = _from_least(data, source, case.references[name].get("least"))
        yield _against_torch(kernel, data, source, target, name, alpha, f"{label}{_said(alpha)}")
    for count in (1, 3, 6):  # every remainder of a thread's share
        data = case.values.sweep(source, count)
        yield _against_torch(kernel, data, source, target, name, values[0], f"{count} elements")


def _from_least(data: bytes, source: DType, least: float | None) -> bytes:
    """Return floats, those below `least` (negative) brought near: stepping from there to 0 takes too long."""
    if least is None or source.name != "float":
        return data
    return array(
        "f", [math.fmod(each, least) if -math.inf < each < least else each for each in array("f", data)]
    ).tobytes()


def _inputs(source: DType, case: Case) -> tuple[bytes, str]:
    if source.size <= 2 and source.kind != "bool":
        return every_value(source.size), f"all {source.name} values"
    if source.kind == "bool":
        return bytes([0, 1, 1, 0, 1]), "both values"
    return case.values.sweep(source, 4097), f"4097 {source.name} values"


def _against_torch(
    kernel: Kernel, data: bytes, source: DType, target: DType, name: str, alpha: Alpha, label: str
) -> Program:
    x = dense_view(data, source)
    out = dense_output(target, x.shape)
    inputs = {"x": x, **alpha.get("inputs", {})}
    step = dense_step(kernel, x, out, alpha)
    if name == "abs" and target.kind == "complex":
        # The host takes the real part; what is in the other differs between releases.
        buffer = scratch_buffer(out.buffer.size)
        step = replace(step, arguments={**step.arguments, "output": buffer})
        part = DTYPES["half" if target.name == "half2" else "float"]
        out = View(buffer=buffer, dtype=part, shape=x.shape, strides=(2,))
    return Program(label=label, steps=[step], checks=[Reference(got=out, name=name, inputs=inputs)])


def dense_step(kernel: Kernel, x: View, out: View, alpha: Alpha) -> Step:
    """Return the launch of a dense form, several elements a thread where it has `numel`."""
    arguments: dict[str | int, Any] = {"output": out.buffer, "input": x.buffer}
    threads = x.count
    if kernel.has("numel"):
        arguments["numel"] = kernel.pack("numel", x.count)
        threads = -(-x.count // lanes_of(kernel))
    return Step(
        kernel=kernel.name, arguments=with_alpha(kernel, arguments, alpha), grid=(threads, 1, 1), threadgroup=GROUP
    )


def one_per_thread(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_dense_scalar`: against the dense form; where there is none (older releases), it is the dense form."""
    try:
        companion = case.first_companion(kernel)
    except NotBound:
        yield from dense(kernel, case)
        return
    source, target = kernel.dtype("input"), result_dtype(companion, "output")
    for alpha in alphas(kernel, case):
        for count in (1, 515):
            x = dense_view(case.values.sweep(source, count), source)
            want, out = dense_output(target, x.shape), dense_output(target, x.shape)
            steps = [dense_step(companion, x, want, alpha), dense_step(kernel, x, out, alpha)]
            yield Program(label=f"{count} elements{_said(alpha)}", steps=steps, checks=[Same(got=out, want=want)])


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_strided`: sizes and byte strides, innermost first; threads (sizes[0], the rest)."""
    yield from _placed_out(kernel, case, _strided_step, None)


def inner_contiguous(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_inner_contiguous`: the innermost dimension is dense; threads (its length / W, the outer elements)."""
    yield from _placed_out(kernel, case, _inner_step, None)


def dense_castout(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_dense_castout`, also `_ilp`: the result is written as another type."""
    yield from _cast_out(kernel, case, _dense_cast_step, ((517,), (0,), (0,)))


def strided_castout(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_strided_castout`: strided, and the result is written as another type."""
    yield from _placed_out(kernel, case, _strided_step, "half")
    yield from _cast_out(kernel, case, _strided_step, ((9, 2, 23), (2, 0, 1), (0, 1, 2)))


def inner_castout(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_inner_contiguous_castout`: inner_contiguous, and the result is written as another type."""
    yield from _placed_out(kernel, case, _inner_step, "half")
    yield from _cast_out(kernel, case, _inner_step, ((9, 2, 23), (1, 0, 2), (0, 1, 2)))


def _placed_out(kernel: Kernel, case: Case, step_of: Any, stored: str | None) -> Iterator[Program]:
    """Yield a program for each layout: the dense form on the same logical values, and this form beside it."""
    companion = case.first_companion(kernel)
    source, computed = companion.dtype("input"), result_dtype(companion, "output")
    target = _stored(computed, stored)
    alpha = alphas(kernel, case)[-1]
    is_inner = step_of is _inner_step
    for shape, order, order_out in layouts_of(case):
        gap = 2
        if is_inner:
            last = len(shape) - 1
            order = (*(d for d in order if d != last), last)
            order_out, gap = (*(d for d in order_out if d != last), last), 1
        x = dense_view(case.values.sweep(source, _count(shape)), source, shape)
        want = dense_output(computed, shape)
        view = spread(x.buffer.data, source, shape, order, gap)
        out = spread_output(target, shape, order_out)
        steps = [dense_step(companion, x, want, alpha), step_of(kernel, view, out, alpha)]
        label = f"shape {shape}, input as {order}, output as {order_out}{_said(alpha)}"
        yield Program(label=label, steps=steps, checks=[_equal(out, want)])


def _stored(computed: DType, name: str | None) -> DType:
    if name is None:
        return computed
    return DTYPES["half2"] if computed.kind == "complex" else DTYPES[name]


def _cast_out(
    kernel: Kernel, case: Case, step_of: Any, layout: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
) -> Iterator[Program]:
    """Yield one program that writes the results as every type."""
    companion = case.first_companion(kernel)
    source, computed = companion.dtype("input"), result_dtype(companion, "output")
    alpha = alphas(kernel, case)[0]
    shape, order, order_out = layout
    x = dense_view(case.values.sweep(source, _count(shape)), source, shape)
    gap = 1 if step_of is not _strided_step else 2
    view = spread(x.buffer.data, source, shape, order, gap) if len(shape) > 1 else x
    want = dense_output(computed, shape)
    steps, checks = [dense_step(companion, x, want, alpha)], []
    types = [each for each in known_types(kernel) if (each.kind == "complex") == (computed.kind == "complex")]
    for dtype in (types[2::3] or types) if case.is_quick else types:
        out = spread_output(dtype, shape, order_out) if len(shape) > 1 else dense_output(dtype, shape)
        steps.append(step_of(kernel, view, out, alpha))
        checks.append(_equal(out, want))
    yield Program(label=f"shape {shape}, written as each type", steps=steps, checks=checks)


def _equal(out: View, want: View) -> Check:
    if out.dtype == want.dtype:
        return Same(got=out, want=want)
    return Reference(got=out, name="cast", inputs={"x": want, "to": out.dtype.torch})


def _dense_cast_step(kernel: Kernel, x: View, out: View, alpha: Alpha) -> Step:
    arguments: dict[str | int, Any] = {"output": out.buffer, "input": x.buffer}
    threads = x.count
    if kernel.has("size_outtype_numel"):
        arguments["size_outtype_numel"] = kernel.pack("size_outtype_numel", (out.dtype.size, out.dtype.code, x.count))
        threads = -(-x.count // lanes_of(kernel))
    else:
        arguments["size_outtype"] = kernel.pack("size_outtype", (out.dtype.size, out.dtype.code))
    return Step(
        kernel=kernel.name, arguments=with_alpha(kernel, arguments, alpha), grid=(threads, 1, 1), threadgroup=GROUP
    )


def _strided_step(kernel: Kernel, x: View, out: View, alpha: Alpha) -> Step:
    sizes = list(reversed(x.shape))
    arguments: dict[str | int, Any] = {
        "output": out.buffer,
        "input": x.buffer,
        "sizes": kernel.pack("sizes", sizes),
        "input_strides": kernel.pack("input_strides", _strides(kernel, x)),
        "output_strides": kernel.pack("output_strides", _strides(kernel, out)),
    }
    if kernel.has("ndim_outtype"):
        arguments["ndim_outtype"] = kernel.pack("ndim_outtype", (len(sizes), out.dtype.code))
    else:
        arguments["ndim"] = kernel.pack("ndim", len(sizes))
    is_flat = bool(kernel.options.get("elements"))
    grid = (x.count, 1, 1) if is_flat else (sizes[0], x.count // sizes[0], 1)
    group = GROUP if is_flat else (8, 4, 1)
    return Step(kernel=kernel.name, arguments=with_alpha(kernel, arguments, alpha), grid=grid, threadgroup=group)


def _strides(kernel: Kernel, view: View) -> list[int]:
    """Strides, innermost first: in bytes; in elements up to 2.12."""
    strides = byte_strides(view)
    return [each // view.dtype.size for each in strides] if kernel.options.get("elements") else strides


def _inner_step(kernel: Kernel, x: View, out: View, alpha: Alpha) -> Step:
    outer, inner = list(reversed(x.shape[:-1])) or [1], x.shape[-1]
    strides_in, strides_out = byte_strides(x)[1:] or [0], byte_strides(out)[1:] or [0]
    arguments: dict[str | int, Any] = {
        "output": out.buffer,
        "input": x.buffer,
        "outer_sizes": kernel.pack("outer_sizes", outer),
        "input_outer_strides": kernel.pack("input_outer_strides", strides_in),
        "output_outer_strides": kernel.pack("output_outer_strides", strides_out),
    }
    if kernel.has("ndimO_inner_elem_outtype"):
        numbers = (len(outer), inner, out.dtype.size, out.dtype.code)
        arguments["ndimO_inner_elem_outtype"] = kernel.pack("ndimO_inner_elem_outtype", numbers)
    else:
        arguments["ndim_outer_inner"] = kernel.pack("ndim_outer_inner", (len(outer), inner))
    grid = (-(-inner // lanes_of(kernel)), x.count // inner, 1)
    return Step(kernel=kernel.name, arguments=with_alpha(kernel, arguments, alpha), grid=grid, threadgroup=(8, 4, 1))


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _said(alpha: Alpha) -> str:
    return f", alpha {alpha['value']}" if alpha else ""


def frexp_strided(kernel: Kernel, case: Case) -> Iterator[Program]:
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
