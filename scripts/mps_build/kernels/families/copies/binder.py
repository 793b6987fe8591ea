"""Copies of bytes: as they lie, row by row, into longer tensors, channels last."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Known, Program, View, inout_buffer, input_buffer, output_buffer
from ..shared.contracts import Case, Kernel
from ..shared.strided import random_bytes
from ..shared.tensors import bound, groups, threads

BYTE = DTYPES["uchar"]


def contiguous(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`contiguous_byte_copy`: `chunk_bytes` from `base` on; every alignment of the two."""
    for count, base in ((1, 0), (16, 0), (77, 0), (128, 16), (50, 8), (35, 4), (31, 2), (40, 3)):
        data, before = random_bytes(case, base + count + 5), random_bytes(case, base + count + 5)
        out = View(buffer=inout_buffer(before, align=16), dtype=BYTE, shape=(len(before),))
        values = {"out": out, "in": input_buffer(data, align=16), "chunk_bytes": count, "base": base}
        want = before[:base] + data[base : base + count] + before[base + count :]
        step = threads(kernel, bound(kernel, values), (-(-count // 16),))
        yield Program(label=f"{count} bytes from {base}", steps=[step], checks=[Known(got=out, want=want)])


# Outer sizes, bytes of a row, and bytes between rows of the input and of the result.
ROWS = (
    ((3,), 32, 48, 32),
    ((2, 3), 7, 9, 8),
    ((4,), 20, 24, 20),
    ((1,), 100, 100, 100),
    ((2, 2), 6, 6, 10),
    ((3,), 33, 40, 34),
)


def inner_contiguous(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`inner_contiguous_copy`: rows of bytes; outer sizes and strides innermost first."""
    for outer, inner, step_in, step_out in ROWS:
        count = math.prod(outer)
        data, before = random_bytes(case, step_in * count), random_bytes(case, step_out * count)
        out = View(buffer=inout_buffer(before, align=16), dtype=BYTE, shape=(len(before),))
        first = outer[-1]
        values: dict[str, object] = {"output": out, "input": input_buffer(data, align=16)}
        values |= {"outer_sizes": outer[::-1], "ndim_outer_inner_bytes": (len(outer), inner)}
        # The innermost of the outer dimensions has the longer step: rows of the result lie in another order.
        values |= {"input_outer_strides": [step_in, step_in * first][: len(outer)]}
        turned = [step_out * (count // first), step_out] if len(outer) == 2 else [step_out]
        values |= {"output_outer_strides": turned}
        want = bytearray(before)
        for at in range(count):
            place = at % first * turned[0] + (at // first * turned[1] if len(outer) == 2 else 0)
            want[place : place + inner] = data[at * step_in : at * step_in + inner]
        step = threads(kernel, bound(kernel, values), (-(-inner // 16), count))
        yield Program(label=f"{outer} rows of {inner}", steps=[step], checks=[Known(got=out, want=bytes(want))])


def scatter(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`inner_contiguous_scatter`: slices that lie side by side, each into a longer one of the result, at an offset."""
    for count, size, long, offset, begin in (
        (3, 32, 48, 16, 0),
        (5, 7, 9, 1, 0),
        (2, 100, 128, 20, 32),
        (4, 6, 8, 2, 0),
    ):
        data, before = random_bytes(case, count * size), random_bytes(case, count * long)
        out = View(buffer=inout_buffer(before, align=16), dtype=BYTE, shape=(len(before),))
        total = len(data) - begin
        params = {"chunk_base": begin, "slice_bytes": size, "out_stride_bytes": long, "off_bytes": offset}
        values = {"input": input_buffer(data, align=16), "output": out, "params": params | {"nbytes": total}}
        want = bytearray(before)
        for at in range(begin, len(data)):
            want[at // size * long + at % size + offset] = data[at]
        step = threads(kernel, bound(kernel, values), (-(-total // 16),))
        yield Program(
            label=f"{count} slices of {size}, from {begin}", steps=[step], checks=[Known(got=out, want=bytes(want))]
        )


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
        arguments = bound(kernel, {"src": input_buffer(data), "dst": out, "dims": (channels, pixels)})
        launch = groups(kernel, arguments, (-(-pixels // wide), -(-channels // tall), batch), (256,))
        got = View(buffer=out, dtype=dtype, shape=(batch * channels * pixels,))
        yield Program(label=f"{batch} x {channels} x {pixels}", steps=[launch], checks=[Known(got=got, want=want)])
