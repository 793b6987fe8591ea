"""Identity matrices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...program.launch import Known, Program, Step, View, output_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments


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
