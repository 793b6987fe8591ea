"""Tensors made of numbers alone: fills, ranges, identity matrices, triangles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from ...program.dtypes import DTYPES, DType
from ...program.launch import Buffer, Known, Program, Reference, Shape, Step, View, input_buffer, output_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.elementwise import GROUP, byte_strides, dense_output, lanes_of, layouts_of, spread_output
from ..shared.tensors import Arguments, bound, extent, result, threads


def fill_dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`fill_scalar_dense`: numel elements, several a thread."""
    dtype = kernel.part_dtype("T")
    for count in (1, 3, 6, 33, 4099):
        value = case.values.sweep(dtype, 2)[dtype.size :]
        out = dense_output(dtype, (count,))
        arguments: dict[str | int, Any] = {"out": out.buffer, "fill_val": value, "numel": kernel.pack("numel", count)}
        step = Step(
            kernel=kernel.name, arguments=arguments, grid=(-(-count // lanes_of(kernel)), 1, 1), threadgroup=GROUP
        )
        yield Program(label=f"{count} elements", steps=[step], checks=[Known(got=out, want=value * count)])


def fill_strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`fill_scalar_strided`: byte strides, innermost first; threads (the rest, sizes[0])."""
    dtype = kernel.part_dtype("T")
    for shape, order, _ in layouts_of(case):
        value = case.values.sweep(dtype, 2)[dtype.size :]
        out: View = spread_output(dtype, shape, order, gap=2)
        sizes = list(reversed(shape))
        arguments: dict[str | int, Any] = {
            "out": out.buffer,
            "fill_val": value,
            "sizes": kernel.pack("sizes", sizes),
            "strides": kernel.pack("strides", byte_strides(out)),
            "ndim": kernel.pack("ndim", len(sizes)),
        }
        step = Step(
            kernel=kernel.name, arguments=arguments, grid=(out.count // sizes[0], sizes[0], 1), threadgroup=(8, 4, 1)
        )
        yield Program(
            label=f"shape {shape}, order {order}", steps=[step], checks=[Known(got=out, want=value * out.count)]
        )


def eye(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`eye`: threads (columns, rows); `eye_diag`: a thread an element of the diagonal; strides in elements."""
    dtype = kernel.dtype("output")
    for rows, columns, stride0, stride1 in ((5, 7, 7, 1), (33, 9, 20, 2), (4, 4, 1, 6)):
        span = (rows - 1) * stride0 + (columns - 1) * stride1 + 1
        out = output_buffer(span * dtype.size)
        if kernel.has("diag_stride"):
            count = min(rows, columns)
            arguments: Arguments = {"output": out, "diag_stride": kernel.pack("diag_stride", stride0 + stride1)}
            got = View(buffer=out, dtype=dtype, shape=(count,), strides=(stride0 + stride1,))
            want, grid, group = (
                pack(dtype, [1] * count if dtype.kind != "complex" else [1, 0] * count),
                (count, 1, 1),
                (4, 1, 1),
            )
        else:
            arguments = {
                "output": out,
                "stride0": kernel.pack("stride0", stride0),
                "stride1": kernel.pack("stride1", stride1),
            }
            got = View(buffer=out, dtype=dtype, shape=(rows, columns), strides=(stride0, stride1))
            ones = [int(r == c) for r, c in itertools.product(range(rows), range(columns))]
            want = pack(dtype, [part for one in ones for part in (one, 0)] if dtype.kind == "complex" else ones)
            grid, group = (columns, rows, 1), (4, 2, 1)
        launch = Step(kernel=kernel.name, arguments=arguments, grid=grid, threadgroup=group)
        yield Program(
            label=f"{rows} x {columns}, strides {stride0}, {stride1}",
            steps=[launch],
            checks=[Known(got=got, want=want)],
        )


def span(kernel: Kernel, count: int, stride: int, first: int = 0) -> tuple[int, ...]:
    """Return `p`: number of elements, stride in elements, and from torch 2.15 on the first element's index."""
    if not kernel.has("p"):
        return ()
    argument, word = kernel.argument("p"), 8 if kernel.name.endswith("_i64") else 4
    return (count, stride) if (argument.size or argument.element) == 2 * word else (count, stride, first)


def arange(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`arange`: se (start, step), p (stride, first index)."""
    dtype = kernel.dtype("out")
    for count, stride, begin, start, step in ((77, 1, 0, 3, 2), (33, 3, 0, 1, 1), (64, 1, 5, 0, 3)):
        if begin and not kernel.has("p"):
            continue
        out = output_buffer(((count + begin - 1) * stride + 1) * dtype.size)
        arguments: Arguments = {
            "out": out,
            "se": pack(_arange_scalar(kernel), [start, step]),
        }
        if kernel.has("p"):
            arguments["p"] = pack(_word(kernel, "p", 2), [stride, begin])
        else:
            arguments["stride"] = kernel.pack("stride", stride)
        launch = Step(kernel=kernel.name, arguments=arguments, grid=(count, 1, 1), threadgroup=(32, 1, 1))
        want = pack(dtype, [start + step * (i + begin) for i in range(count)])
        got = View(buffer=out, dtype=dtype, shape=(count,), strides=(stride,), offset=begin * stride)
        yield Program(label=f"{count} from {start} by {step}", steps=[launch], checks=[Known(got=got, want=want)])


def _arange_scalar(kernel: Kernel) -> DType:
    """Return the type of start and step: floats, and for integers long."""
    argument = kernel.argument("se")
    if kernel.dtype("out").is_exact:
        return DTYPES["long" if (argument.size or argument.element) == 16 else "int"]
    return DTYPES["float"]


def linspace(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`linspace`: v (start, step, end), p (steps, stride, first index); the second half counts from the end."""
    dtype = kernel.dtype("out")
    for count, stride, begin, low, high in ((77, 1, 0, -1.5, 3.25), (32, 3, 0, 2.0, -7.0), (9, 1, 0, 0.5, 1000.0)):
        start, end = low, high
        if dtype.is_exact:
            # Steps that floats have exactly: what is cut off then does not depend on rounding.
            start, end = 1.0, 1.0 + (count - 1) * (1.5 if count % 2 else 0.5)
        step = (end - start) / (count - 1)
        v = kernel.argument("v")
        scalar = dtype if not dtype.is_exact and (v.size or v.element) == 3 * dtype.size else None
        out = output_buffer(((count - 1) * stride + 1) * dtype.size)
        arguments: Arguments = {
            "out": out,
            "v": pack(scalar or DTYPES["float"], [start, step, end]),
            "p": kernel.pack("p", span(kernel, count, stride, begin)),
        }
        launch = Step(kernel=kernel.name, arguments=arguments, grid=(count, 1, 1), threadgroup=(32, 1, 1))
        got = View(buffer=out, dtype=dtype, shape=(count,), strides=(stride,))
        scale = max(abs(start), abs(end)) * {"half": 2.0**-8, "bfloat": 2.0**-5}.get(dtype.name, 2.0**-20)
        check = Reference(
            got=got, name="made_linspace", inputs={"start": start, "end": end, "count": count}, scale=scale
        )
        yield Program(label=f"{count} from {start} to {end}", steps=[launch], checks=[check])


def _word(kernel: Kernel, name: str, length: int) -> DType:
    argument = kernel.argument(name)
    return DTYPES["long" if (argument.size or argument.element) == 8 * length else "int"]


# `arange`, `linspace` and `logspace` into strided tensors.
# Sizes and strides of the result, outermost first, and the number at which the launch begins.
LAYOUTS: tuple[tuple[Shape, Shape, int], ...] = (((77,), (1,), 0), ((5, 7), (1, 6), 0), ((3, 4, 5), (41, 10, 2), 0))


def _strided_scalar(kernel: Kernel, name: str, count: int) -> DType:
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
        values = {"out": out, "se": _numbers(_strided_scalar(kernel, "se", 2), [start, step]), "base": 0}
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
            "v": _numbers(_strided_scalar(kernel, "v", len(numbers)), numbers),
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


def triangle_indices(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`tril_indices`, `triu_indices`: the rows, then the columns, of a triangle above or below a diagonal."""
    dtype, is_lower = kernel.dtype("tensor"), kernel.name.startswith("tril")
    for rows, columns, offset in ((5, 7, 0), (9, 4, -2), (3, 8, 2), (60, 50, -9), (1, 1, 0), (4, 6, 5), (2, 33, 30)):
        positions = itertools.product(range(rows), range(columns))
        taken = [(r, c) for r, c in positions if (c - r <= offset if is_lower else c - r >= offset)]
        if not taken:
            continue
        out = result(dtype, (2 * len(taken),))
        values: dict[str, object] = {"tensor": out, "col": columns}
        if is_lower:
            first = min(columns, 1 + offset) if offset > 0 else int(rows + offset > 0)
            begin = max(0, -offset)
            full = begin + columns - first + 1
            rectangle = max(rows - full, 0) * columns
            values |= {"row_offset": begin, "trapezoid_size": len(taken) - rectangle, "tril_size": len(taken)}
        else:
            first = max(columns - offset, 0) if offset > 0 else columns
            rectangle = min(rows, -offset) * columns if offset < 0 else 0
            values |= {"col_offset": max(0, offset), "rectangle_size": rectangle, "triu_size": len(taken)}
        values["m_first_row"] = first
        want = pack(dtype, [r for r, _ in taken] + [c for _, c in taken])
        step = threads(kernel, bound(kernel, values), (len(taken),))
        yield Program(label=f"{rows} x {columns}, {offset}", steps=[step], checks=[Known(got=out, want=want)])


def triangle(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`triu`, `tril`: sizes and strides in elements, innermost first; k_ndim (diagonal, dimensions)."""
    is_upper, in_place = kernel.parts["op"] == "triu", kernel.has("self")
    first = "self" if in_place else "out"
    dtype = kernel.dtype(first)
    for shape, k, pad in (((5, 7), 0, 0), ((2, 4, 3), 1, 0), ((2, 3, 6, 5), -2, 1), ((9, 4), -1, 2)):
        rows, columns = shape[-2:]
        row = columns + pad
        strides = [1, row]
        for size in reversed(shape[1:-1]):
            strides.append(strides[-1] * size)
        if len(shape) > 2:
            strides = [1, row, row * rows] + [
                row * rows * math.prod(shape[-2 - d : -2]) for d in range(1, len(shape) - 2)
            ]
        outermost_first = tuple(reversed(strides))
        span = 1 + sum((n - 1) * s for n, s in zip(shape, outermost_first, strict=True))
        data = case.values.sweep(dtype, span)
        want = b""
        for position in itertools.product(*map(range, shape)):
            at = sum(p * s for p, s in zip(position, outermost_first, strict=True)) * dtype.size
            distance = position[-1] - position[-2] - k
            want += data[at : at + dtype.size] if (distance >= 0 if is_upper else distance <= 0) else bytes(dtype.size)
        sizes, count = list(reversed(shape)), math.prod(shape[:-2])
        common: Arguments = {"sizes": kernel.pack("sizes", sizes), "k_ndim": kernel.pack("k_ndim", (k, len(shape)))}
        if in_place:
            out = Buffer(size=len(data), role="inout", data=data)
            arguments = common | {"self": out, "strides": kernel.pack("strides", strides)}
        else:
            out = output_buffer(span * dtype.size)
            arguments = common | {
                "out": out,
                "inp": input_buffer(data),
                "out_strides": kernel.pack("out_strides", strides),
                "inp_strides": kernel.pack("inp_strides", strides),
            }
        launch = Step(kernel=kernel.name, arguments=arguments, grid=(columns, rows, count), threadgroup=(4, 2, 1))
        got = View(buffer=out, dtype=dtype, shape=shape, strides=outermost_first)
        yield Program(label=f"{shape}, diagonal {k}, gaps of {pad}", steps=[launch], checks=[Known(got=got, want=want)])
