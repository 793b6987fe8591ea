"""A value where a mask is true."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.launch import Known, Program, View, inout_buffer, input_buffer
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments, known_bytes, one_launch, random_bytes
from ..shared.tensors import bound, threads


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`masked_fill_scalar_strided`: sizes and strides innermost first, of the tensor and of the mask."""
    dtype = kernel.dtype("input")
    size = dtype.size
    for shape, gap, spread in (((5, 7), 3, 1), ((2, 3, 4), 1, 0), ((40,), 2, 2)):
        row, mask_row = shape[-1] + gap, shape[-1] * (spread + 1)
        strides = [1 if len(shape) > 1 else 2, row, row * shape[-2] + 1 if len(shape) > 2 else 0][: len(shape)]
        masks = [spread + 1, mask_row, 0][: len(shape)]  # the outermost of three is broadcast
        span = 1 + sum((n - 1) * s for n, s in zip(shape[::-1], strides, strict=True))
        mask_span = 1 + sum((n - 1) * s for n, s in zip(shape[::-1], masks, strict=True))
        before, mask = random_bytes(case, span * size), bytes(case.values.integers(mask_span, 0, 1))
        value = random_bytes(case, size)
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


def dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`masked_fill_scalar`, dense, and with a mask that repeats (`mask_numel`)."""
    dtype = kernel.dtype("input")
    for count, period in ((77, 11), (128, 32), (5, 5)):
        length = period if kernel.has("mask_numel") else count
        mask = [case.values.random.randrange(2) for _ in range(length)]
        before, value, size = case.values.sweep(dtype, count), case.values.moderate(dtype, 1, 1, 100), dtype.size
        want = b"".join(value if mask[i % length] else before[i * size : (i + 1) * size] for i in range(count))
        data = inout_buffer(before)
        arguments: Arguments = {"input": data, "mask": input_buffer(bytes(mask)), "val": kernel.pack("val", value)}
        if kernel.has("mask_numel"):
            arguments["mask_numel"] = kernel.pack("mask_numel", length)
        yield Program(
            label=f"{count} elements, {length} of the mask",
            steps=[one_launch(kernel, arguments, (count, 1, 1))],
            checks=[known_bytes(data, dtype, want)],
        )
