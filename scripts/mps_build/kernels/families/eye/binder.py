"""Identity matrices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...program.launch import Known, Program, Reference, Step, Value, View, inout_buffer, output_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments
from ..shared.tensors import result, threads


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


def eye_of_strides(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Ones on the diagonal: of the whole matrix, or alone (`eye_diag`, into zeros)."""
    dtype = kernel.dtype("output")
    is_diagonal = kernel.has("diag_stride")
    for rows, columns in ((3, 5), (6, 2), (1, 1)):
        data = bytes(rows * columns * dtype.size)
        if is_diagonal:
            got = View(buffer=inout_buffer(data), dtype=dtype, shape=(rows, columns))
            arguments: dict[str | int, Value] = {"diag_stride": kernel.pack("diag_stride", columns + 1)}
            grid: tuple[int, ...] = (min(rows, columns),)
        else:
            got = result(dtype, (rows, columns))
            arguments = {"stride0": kernel.pack("stride0", columns), "stride1": kernel.pack("stride1", 1)}
            grid = (columns, rows)
        arguments["output"] = got.buffer
        check = Reference(got=got, name="nn_eye", inputs={"rows": rows, "columns": columns})
        yield Program(label=f"{rows} x {columns}", steps=[threads(kernel, arguments, grid)], checks=[check])
