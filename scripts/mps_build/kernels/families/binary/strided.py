"""Operators of two operands and of three over strided tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...program.dtypes import DType
from ...program.launch import Check, Program, Reference, Same, Step, View
from ..shared.contracts import Case, Kernel
from ..shared.elementwise import (
    GROUP,
    byte_strides,
    cast_pair,
    dense_output,
    dense_view,
    known_types,
    lanes_of,
    layouts_of,
    spread,
    spread_output,
    with_alpha,
)
from .binder import Alpha, beside, count_of, dense_step, draw, operands_of, result_of, row_of, rows_of


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_strided`: sizes and byte strides, innermost first."""
    companion, kinds, target, alpha = beside(kernel, case)
    for shape, order, order_out in layouts_of(case):
        count = count_of(shape)
        data = draw(kinds, case, count, row_of(kernel, case))
        operands = [dense_view(each, kind, shape) for each, kind in zip(data, kinds, strict=True)]
        orders = [order, order_out, order][: len(kinds)]
        shown = [
            spread(view.buffer.data, view.dtype, shape, each, gap=1 + number)
            for number, (view, each) in enumerate(zip(operands, orders, strict=True))
        ]
        out, want = spread_output(target, shape, order_out), dense_output(target, shape)
        steps = [dense_step(companion, operands, want, alpha), strided_step(kernel, shown, out, alpha)]
        yield Program(label=f"shape {shape}, operands as {orders}", steps=steps, checks=[Same(got=out, want=want)])
    yield _expanded(kernel, companion, kinds, target, alpha, case)


def _expanded(
    kernel: Kernel, companion: Kernel, kinds: list[DType], target: DType, alpha: Alpha, case: Case
) -> Program:
    """A program whose second operand is expanded: stride 0 along one dimension."""
    shape = (4, 9)
    data = draw(kinds, case, 36, row_of(kernel, case))
    row = data[1][: 9 * kinds[1].size]
    operands = [dense_view(each, kind, shape) for each, kind in zip(data, kinds, strict=True)]
    operands[1] = dense_view(row * 4, kinds[1], shape)
    shown = [*operands]
    shown[1] = View(buffer=dense_view(row, kinds[1]).buffer, dtype=kinds[1], shape=shape, strides=(0, 1))
    out, want = dense_output(target, shape), dense_output(target, shape)
    steps = [dense_step(companion, operands, want, alpha), strided_step(kernel, shown, out, alpha)]
    return Program(label="an expanded operand", steps=steps, checks=[Same(got=out, want=want)])


def strided_cast(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_strided_cast`: strided, operands stored as any type; the result is written as the type computed in."""
    companion, kinds, target, alpha = beside(kernel, case)
    shape, order, order_out = (3, 2, 11), (2, 0, 1), (0, 1, 2)
    steps: list[Step] = []
    checks: list[Check] = []
    for stored in rows_of(kinds, case, kernel):
        pairs = [cast_pair(each, kind, case, 66) for each, kind in zip(stored, kinds, strict=True)]
        operands = [dense_view(two, kind, shape) for (_, two), kind in zip(pairs, kinds, strict=True)]
        shown = [spread(one, each, shape, order) for (one, _), each in zip(pairs, stored, strict=True)]
        out, want = spread_output(target, shape, order_out), dense_output(target, shape)
        steps += [dense_step(companion, operands, want, alpha), strided_step(kernel, shown, out, alpha)]
        checks.append(Same(got=out, want=want))
    for begin in range(0, len(checks), 5):
        part = slice(2 * begin, 2 * begin + 10)
        yield Program(label="operands of other types", steps=steps[part], checks=checks[begin : begin + 5])


def strided_castout(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_strided_castout`: strided, operands stored as any type, and the result is written as any type."""
    companion, kinds, target, alpha = beside(kernel, case)
    shape, order, order_out = (3, 2, 11), (2, 0, 1), (0, 1, 2)
    steps: list[Step] = []
    checks: list[Check] = []
    outs = known_types(kernel)[2::3] if case.is_quick else known_types(kernel)
    outs = [each for each in outs if (each.kind == "complex") >= (target.kind == "complex")]
    rows = list(rows_of(kinds, case, kernel))
    for number, written in enumerate(outs):
        stored = rows[number % len(rows)]
        pairs = [cast_pair(each, kind, case, 66) for each, kind in zip(stored, kinds, strict=True)]
        operands = [dense_view(two, kind, shape) for (_, two), kind in zip(pairs, kinds, strict=True)]
        shown = [spread(one, each, shape, order) for (one, _), each in zip(pairs, stored, strict=True)]
        out, want = spread_output(written, shape, order_out), dense_output(target, shape)
        steps += [dense_step(companion, operands, want, alpha), strided_step(kernel, shown, out, alpha)]
        is_same = written == target
        checks.append(
            Same(got=out, want=want)
            if is_same
            else Reference(got=out, name="cast", inputs={"x": want, "to": written.torch})
        )
    for begin in range(0, len(checks), 5):
        part = slice(2 * begin, 2 * begin + 10)
        yield Program(label="written as other types", steps=steps[part], checks=checks[begin : begin + 5])


def strided_step(kernel: Kernel, operands: Sequence[View], out: View, alpha: Alpha) -> Step:
    """Return the launch of a strided form: one thread an element; threads in 3-D for three operands."""
    sizes = list(reversed(out.shape))
    names = operands_of(kernel)
    arguments: dict[str | int, Any] = {result_of(kernel): out.buffer}
    arguments |= {name: view.buffer for name, view in zip(names, operands, strict=True)}
    arguments["sizes"] = kernel.pack("sizes", sizes)
    arguments["output_strides"] = kernel.pack("output_strides", byte_strides(out))
    for name, view in zip(names, operands, strict=True):
        arguments[f"{name}_strides"] = kernel.pack(f"{name}_strides", byte_strides(view))
    codes = [*(each.dtype.code for each in operands), out.dtype.code]
    if kernel.has("ndim_types"):
        arguments["ndim_types"] = kernel.pack("ndim_types", [len(sizes), *codes])
    else:
        arguments["ndim"] = kernel.pack("ndim", len(sizes))
    if kernel.has("types"):
        arguments["types"] = kernel.pack("types", codes)
    grid, group = _threads(kernel, sizes)
    return Step(kernel=kernel.name, arguments=with_alpha(kernel, arguments, alpha), grid=grid, threadgroup=group)


def _threads(kernel: Kernel, sizes: list[int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    width = next((each.type for each in kernel.metadata.arguments if each.kind == "thread_position_in_grid"), "uint")
    count = count_of(tuple(sizes))
    if width == "uint":
        return (count, 1, 1), GROUP
    if width == "uint2":
        return (sizes[0], count // sizes[0], 1), (8, 4, 1)
    second = sizes[1] if len(sizes) > 1 else 1
    return (sizes[0], second, count // sizes[0] // second), (8, 2, 2)


def inner_contiguous(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_inner_contiguous`: the innermost dimension of all is dense; threads (its length / W, the outer elements)."""
    companion, kinds, target, alpha = beside(kernel, case)
    for shape, order, order_out in layouts_of(case):
        data = draw(kinds, case, count_of(shape), row_of(kernel, case))
        last = len(shape) - 1
        orders = [(*(d for d in each if d != last), last) for each in (order, order_out)]
        operands = [dense_view(each, kind, shape) for each, kind in zip(data, kinds, strict=True)]
        shown = [
            spread(view.buffer.data, view.dtype, shape, orders[number % 2], gap=1)
            for number, view in enumerate(operands)
        ]
        out, want = spread_output(target, shape, orders[1]), dense_output(target, shape)
        outer, inner = list(reversed(shape[:-1])) or [1], shape[-1]
        arguments: dict[str | int, Any] = {result_of(kernel): out.buffer}
        arguments["outer_sizes"] = kernel.pack("outer_sizes", outer)
        arguments["output_outer_strides"] = kernel.pack("output_outer_strides", byte_strides(out)[1:] or [0])
        for name, view in zip(operands_of(kernel), shown, strict=True):
            arguments[name] = view.buffer
            arguments[f"{name}_outer_strides"] = kernel.pack(f"{name}_outer_strides", byte_strides(view)[1:] or [0])
        arguments["ndim_outer_inner"] = kernel.pack("ndim_outer_inner", (len(outer), inner))
        step = Step(
            kernel=kernel.name,
            arguments=with_alpha(kernel, arguments, alpha),
            grid=(-(-inner // lanes_of(kernel)), out.count // inner, 1),
            threadgroup=(8, 4, 1),
        )
        steps = [dense_step(companion, operands, want, alpha), step]
        yield Program(label=f"shape {shape}, operands as {orders}", steps=steps, checks=[Same(got=out, want=want)])
