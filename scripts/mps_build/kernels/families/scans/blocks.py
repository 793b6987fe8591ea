"""Long scans in blocks: each block reduced, the totals scanned, then carried into the blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.errors import NotBound
from ...program.launch import (
    Buffer,
    Check,
    Program,
    Reference,
    Shape,
    Step,
    View,
    input_buffer,
    output_buffer,
    scratch_buffer,
)
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments
from .binder import check_of, scale_of, threads_of, values_of


def block_reduce(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`block_reduce`: the sum of each block of each row (or of each column of `vec` and `strided` forms)."""
    yield from _blocks(kernel, None, None, case)


def block_carry(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`block_carry`: each block's running sums, begun with the sums of the blocks before it; block_reduce comes first.

    The strided form reads sums that `scan_block_sums` has added up; the others add them up themselves.
    """
    reduce = case.companion(kernel.name.replace("_carry", "_reduce"))
    scan = None
    if kernel.parts.get("form") == "strided_":
        names = [
            f"{kernel.parts['op']}_scan_block_sums_{each}"
            for each in (kernel.parts["T"], kernel.argument("block_sums").type)
        ]
        scan = next((case.kernels[name] for name in names if name in case.kernels), None)
        if scan is None:
            raise NotBound(f"the library has no {names[0]}")
    yield from _blocks(reduce, scan, kernel, case)


def _blocks(reduce: Kernel, scan: Kernel | None, carry: Kernel | None, case: Case) -> Iterator[Program]:
    kernel = carry or reduce
    dtype, sums = reduce.dtype("in"), reduce.dtype("block_sums")
    form, width = kernel.parts.get("form") or "", int(kernel.parts.get("width") or 1)
    for batch, length, many, block, plain in ((2, 100, 13, 32, 32), (1, 300, 40, 128, 64), (3, 65, 5, 64, 128)):
        columns = width if form == "vec_" else many if form == "strided_" else 1
        column_blocks = -(-columns // width) if form == "strided_" else 1
        blocks = -(-length // block)
        shape = (batch, length, columns)
        x = input_buffer(values_of(kernel, case, dtype, math.prod(shape)))
        partial = (
            output_buffer(batch * blocks * columns * sums.size)
            if carry is None
            else scratch_buffer(batch * blocks * columns * sums.size)
        )
        threads = threads_of(reduce, width) if form == "strided_" else plain
        constants = {
            "axis_size": length,
            "block_size": block,
            "num_blocks": blocks,
            "n_orows": batch,
            "stride": columns,
            "stride_blocks": column_blocks,
        }
        groups = (blocks, batch, 1) if not form else (1, blocks * column_blocks, batch)
        launches = [_launch(reduce, {"in": x, "block_sums": partial}, constants, groups, threads)]
        checks: list[Check] = []
        # The sums of a column's blocks lie side by side, but for `vec`, where the columns of a block do.
        apart, beside = (1, columns) if form == "vec_" else (blocks, 1)
        if carry is None:
            for first, count, size in ((0, length // block, block), (length // block, 1, length % block)):
                if not count or not size:
                    continue
                view = View(
                    buffer=x,
                    dtype=dtype,
                    shape=(batch, count, size, columns),
                    offset=first * block * columns,
                    strides=(length * columns, block * columns, columns, 1),
                )
                got = View(
                    buffer=partial,
                    dtype=sums,
                    shape=(batch, count, 1, columns),
                    offset=first * beside,
                    strides=(blocks * columns, beside, 1, apart),
                )
                checks.append(_sum_check(kernel.parts["op"], got, view, size))
        else:
            if scan is not None:
                launches.append(_launch(scan, {"block_sums": partial}, constants, (1, batch * columns, 1), 32))
            out = View(
                buffer=output_buffer(math.prod(shape) * carry.dtype("out").size), dtype=carry.dtype("out"), shape=shape
            )
            launches.append(
                _launch(carry, {"in": x, "out": out.buffer, "block_sums": partial}, constants, groups, threads)
            )
            checks.append(check_of(carry, case, out, View(buffer=x, dtype=dtype, shape=shape), 1))
        yield Program(label=f"{shape} in blocks of {block}, {threads} threads", steps=launches, checks=checks)


def _sum_check(op: str, got: View, x: View, length: int) -> Reference:
    scale = length * 2.0**-22 if got.dtype.kind in ("float", "complex") else 0.0
    return Reference(
        got=got, name=f"reduced_{op.removeprefix('cum')}", inputs={"x": x, "dims": [2], "param": 0.0}, scale=scale
    )


def _launch(kernel: Kernel, buffers: Arguments, constants: dict[str, int], groups: Shape, threads: int) -> Step:
    arguments = buffers | {name: kernel.pack(name, value) for name, value in constants.items() if kernel.has(name)}
    return Step(
        kernel=kernel.name,
        arguments=arguments,
        threadgroup=(threads, 1, 1),
        free=False,
        grid=(groups[0] * threads, groups[1], groups[2]),
    )


def block_sums(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`scan_block_sums`: rows of sums become, in place, the sums up to each block."""
    dtype = kernel.dtype("block_sums")
    for rows, blocks, threads in ((2, 5, 32), (1, 300, 64), (3, 33, 128)):
        before = values_of(kernel, case, dtype, rows * blocks)
        data = Buffer(size=len(before), role="inout", data=before)
        view = View(buffer=input_buffer(before), dtype=dtype, shape=(rows, blocks))
        got = View(buffer=data, dtype=dtype, shape=(rows, blocks))
        check = Reference(
            got=got,
            name=f"scan_{kernel.parts['op']}",
            inputs={"x": view, "dim": 1},
            scale=scale_of("cumsum", dtype, blocks),
        )
        yield Program(
            label=f"{rows} rows of {blocks}",
            checks=[check],
            steps=[_launch(kernel, {"block_sums": data}, {"num_blocks": blocks}, (1, rows, 1), threads)],
        )
