"""Tensors turned around along dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, Value, dense_strides, input_buffer, output_buffer
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments, known_bytes, one_launch, padded, places_of, reach
from ..shared.tensors import result, strides_of, swept, threads


def by_width(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Strided copies by element width; sizes and strides innermost first, in bytes; `direct`: a thread a position."""
    dtype = {"8": DTYPES["char"], "16": DTYPES["short"], "32": DTYPES["int"], "64": DTYPES["long"]}[
        kernel.parts["bits"]
    ]
    for shape in ((3, 5, 7), (1, 4, 2)):
        a, _, c = shape
        x = swept(case, dtype, shape, strides=(2, 2 * a * c, 2 * a))
        y = result(dtype, shape, strides=(1, a * c, a))
        arguments: dict[str | int, Value] = {
            "output": y.buffer,
            "input": x.buffer,
            "output_strides": kernel.pack("output_strides", [s * dtype.size for s in strides_of(y)[::-1]]),
            "input_strides": kernel.pack("input_strides", [s * dtype.size for s in strides_of(x)[::-1]]),
        }
        if kernel.has("sizes"):
            arguments |= {"sizes": kernel.pack("sizes", shape[::-1]), "ndim": kernel.pack("ndim", 3)}
        grid = (x.count,) if kernel.has("sizes") else shape[::-1]
        check = Reference(got=y, name="nn_copy", inputs={"x": x})
        yield Program(label=f"{shape}", steps=[threads(kernel, arguments, grid)], checks=[check])


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
