"""Kernels that make or rearrange tensors: arange, linspace, eye, triu and tril, channels moved last."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...dtypes import DTYPES, DType
from ...program import Buffer, Known, Program, Reference, Step, View, input_buffer, output_buffer
from ...values import pack
from ..contracts import Case, Kernel

Arguments = dict[str | int, Buffer | bytes | None]


def arange(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`arange`: se (start, step), p (stride, first index)."""
    dtype = kernel.dtype("out")
    for count, stride, begin, start, step in ((77, 1, 0, 3, 2), (33, 3, 0, 1, 1), (64, 1, 5, 0, 3)):
        if begin and not kernel.has("p"):
            continue
        out = output_buffer(((count + begin - 1) * stride + 1) * dtype.size)
        arguments: Arguments = {
            "out": out,
            "se": pack(_scalar(kernel), [start, step]),
        }
        if kernel.has("p"):
            arguments["p"] = pack(_word(kernel, "p", 2), [stride, begin])
        else:
            arguments["stride"] = kernel.pack("stride", stride)
        launch = Step(kernel=kernel.name, arguments=arguments, grid=(count, 1, 1), threadgroup=(32, 1, 1))
        want = pack(dtype, [start + step * (i + begin) for i in range(count)])
        got = View(buffer=out, dtype=dtype, shape=(count,), strides=(stride,), offset=begin * stride)
        yield Program(label=f"{count} from {start} by {step}", steps=[launch], checks=[Known(got=got, want=want)])


def _scalar(kernel: Kernel) -> DType:
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
            "p": kernel.pack("p", (count, stride, begin)),
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


def channels_last(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`nchw_to_nhwc`: dims (channels, pixels); a threadgroup of 256 a tile; images along z."""
    dtype, tall, wide = kernel.dtype("src"), int(kernel.parts["tall"]), int(kernel.parts["wide"])
    whole = [kernel.parts[name] == "true" for name in ("in_vectors", "out_vectors")]
    for batch, tall_by, wide_by in ((2, 5, 38), (1, tall, wide), (1, 2 * tall + 2, wide + 6)):
        channels, pixels = (
            tall_by + (4 - tall_by % 4 if whole[1] else 0),
            wide_by + (4 - wide_by % 4 if whole[0] else 0),
        )
        data = case.values.sweep(dtype, batch * channels * pixels)
        size, want = dtype.size, b""
        for b, p, c in itertools.product(range(batch), range(pixels), range(channels)):
            at = ((b * channels + c) * pixels + p) * size
            want += data[at : at + size]
        out = output_buffer(len(data))
        arguments: Arguments = {"src": input_buffer(data), "dst": out, "dims": kernel.pack("dims", (channels, pixels))}
        groups = (-(-pixels // wide), -(-channels // tall), batch)
        launch = Step(
            kernel=kernel.name,
            arguments=arguments,
            grid=(groups[0] * 256, groups[1], groups[2]),
            threadgroup=(256, 1, 1),
            free=False,
        )
        got = View(buffer=out, dtype=dtype, shape=(batch * channels * pixels,))
        yield Program(label=f"{batch} x {channels} x {pixels}", steps=[launch], checks=[Known(got=got, want=want)])
