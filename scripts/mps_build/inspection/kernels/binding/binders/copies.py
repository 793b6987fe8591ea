"""Kernels that only move bytes, sixteen a thread."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...dtypes import DTYPES
from ...program import Known, Program, View, inout_buffer, input_buffer, output_buffer
from ..contracts import Case, Kernel
from .tensors import bound, threads

BYTE = DTYPES["uchar"]


def _bytes(case: Case, count: int) -> bytes:
    return bytes(case.values.integers(count, 0, 255))


def contiguous(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`contiguous_byte_copy`: `chunk_bytes` from `base` on; every alignment of the two."""
    for count, base in ((1, 0), (16, 0), (77, 0), (128, 16), (50, 8), (35, 4), (31, 2), (40, 3)):
        data, before = _bytes(case, base + count + 5), _bytes(case, base + count + 5)
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
        data, before = _bytes(case, step_in * count), _bytes(case, step_out * count)
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
        data, before = _bytes(case, count * size), _bytes(case, count * long)
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


def strided_mask_fill(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`masked_fill_scalar_strided`: sizes and strides innermost first, of the tensor and of the mask."""
    dtype = kernel.dtype("input")
    size = dtype.size
    for shape, gap, spread in (((5, 7), 3, 1), ((2, 3, 4), 1, 0), ((40,), 2, 2)):
        row, mask_row = shape[-1] + gap, shape[-1] * (spread + 1)
        strides = [1 if len(shape) > 1 else 2, row, row * shape[-2] + 1 if len(shape) > 2 else 0][: len(shape)]
        masks = [spread + 1, mask_row, 0][: len(shape)]  # the outermost of three is broadcast
        span = 1 + sum((n - 1) * s for n, s in zip(shape[::-1], strides, strict=True))
        mask_span = 1 + sum((n - 1) * s for n, s in zip(shape[::-1], masks, strict=True))
        before, mask = _bytes(case, span * size), bytes(case.values.integers(mask_span, 0, 1))
        value = _bytes(case, size)
        after = bytearray(before)
        for number in range(math.prod(shape)):
            at = place = 0
            rest = number
            for n, s, m in zip(shape[::-1], strides, masks, strict=True):
                at, place, rest = at + rest % n * s, place + rest % n * m, rest // n
            if mask[place]:
                after[at * size : at * size + size] = value
        out = View(buffer=inout_buffer(before), dtype=dtype, shape=(span,))
        values = {"input": out, "mask": input_buffer(mask), "val": value, "sizes": shape[::-1], "ndim": len(shape)}
        arguments = bound(kernel, values | {"input_strides": strides, "mask_strides": masks})
        step = threads(kernel, arguments, (math.prod(shape),))
        yield Program(label=f"{shape}, strides {strides}", steps=[step], checks=[Known(got=out, want=bytes(after))])


def set_mask(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_set_mask`: the indices' places become true; `index_fill_zero_mask`: all become false."""
    for size, count, every in ((9, 4, 1), (50, 33, 2)):
        if not kernel.has("indices"):
            out = View(buffer=output_buffer(size), dtype=DTYPES["bool"], shape=(size,))
            step = threads(kernel, bound(kernel, {"mask": out}), (size,))
            yield Program(label=f"{size} places", steps=[step], checks=[Known(got=out, want=bytes(size))])
            continue
        chosen = [
            each - size if k % 2 else each for k, each in enumerate(case.values.random.sample(range(size), count))
        ]
        spread = [0] * ((count - 1) * every + 1)
        spread[::every] = chosen
        marked = {each % size for each in chosen}
        out = View(buffer=inout_buffer(bytes(size)), dtype=DTYPES["bool"], shape=(size,))
        values = {"mask": out, "indices": spread, "dim_size": size, "indices_stride": every}
        want = bytes(int(at in marked) for at in range(size))
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} of {size}, every {every}", steps=[step], checks=[Known(got=out, want=want)])
