"""Tensors turned around along dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, dense_strides, input_buffer, output_buffer
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments, known_bytes, one_launch, padded, places_of, reach


def flip(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`flip`: strides in bytes of both, innermost first; what turns is given by the strides."""
    size = int(kernel.parts["bits"]) // 8
    dtype = {1: DTYPES["uchar"], 2: DTYPES["ushort"], 4: DTYPES["uint"], 8: DTYPES["ulong"]}[size]
    for shape, gap in (((3, 7, 5), 0), ((2, 4, 9), 1), ((1, 1, 40), 2)):
        order = list(reversed(range(len(shape))))
        source = padded(shape, gap)
        # A permuted result: what is turned about is where each element goes.
        target = tuple(reversed(dense_strides(shape[::-1])))
        data, want = case.values.sweep(dtype, reach(shape, source)), bytearray(math.prod(shape) * size)
        for at, to in zip(places_of(shape, source), places_of(shape, target), strict=True):
            want[to * size : (to + 1) * size] = data[at * size : (at + 1) * size]
        out = output_buffer(len(want))
        arguments: Arguments = {
            "output": out,
            "input": input_buffer(data),
            "output_strides": kernel.pack("output_strides", [target[d] * size for d in order]),
            "input_strides": kernel.pack("input_strides", [source[d] * size for d in order]),
        }
        grid = (math.prod(shape), 1, 1)
        if kernel.has("sizes"):
            arguments |= {
                "sizes": kernel.pack("sizes", [shape[d] for d in order]),
                "ndim": kernel.pack("ndim", len(shape)),
            }
        else:
            grid = (shape[2], shape[1], shape[0])
        yield Program(
            label=f"{shape}, gaps of {gap}",
            steps=[one_launch(kernel, arguments, grid)],
            checks=[known_bytes(out, dtype, bytes(want))],
        )
