"""Running sums, products, minima and maxima along a dimension."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import replace

from ...program.dtypes import DTYPES, DType
from ...program.launch import (
    Buffer,
    Check,
    Growth,
    NotBound,
    Program,
    Reference,
    Shape,
    Step,
    View,
    every,
    inout_buffer,
    input_buffer,
    output_buffer,
    scratch_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.reduced import factors
from ..shared.tensors import Arguments, bound, groups, growing, result
from ..shared.tensors import groups as launch

COLUMNS = 32


def innermost(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`innermost`: a threadgroup a row; rows along y and z."""
    for rows, length, threads, high in ((3, 100, 32, 1), (4, 1, 64, 2), (2, 1030, 128, 1), (1, 300, 1024, 1)):
        yield _program(kernel, case, (rows, length), 1, {"axis_size": length}, (1, rows // high, high), threads)


def outer(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`outer`: 32 columns a threadgroup, 32 rows at once; (outer, axis, columns)."""
    for batch, length, columns in ((2, 70, 37), (1, 5, 3), (2, 33, 32)):
        blocks = -(-columns // COLUMNS)
        constants = {"axis_size": length, "stride": columns, "stride_blocks": blocks}
        yield _program(
            kernel, case, (batch, length, columns), 1, constants, (1, blocks * batch, 1), threads_of(kernel, COLUMNS)
        )


def _reads(kernel: Kernel) -> int:
    """How many elements a thread takes at once: fewer of wide ones."""
    out = next(each.name for each in kernel.metadata.arguments if each.name in ("out", "out_values", "block_sums"))
    return 4 if kernel.dtype(out).size <= 4 else 2


def threads_of(kernel: Kernel, columns: int) -> int:
    """Return how many threads share so many columns."""
    return 32 * columns // _reads(kernel)


def _program(
    kernel: Kernel,
    case: Case,
    shape: Shape,
    dim: int,
    constants: dict[str, int],
    groups: Shape,
    threads: int,
    strides: Shape | None = None,
) -> Program:
    dtype = kernel.dtype("in")
    x = input_buffer(values_of(kernel, case, dtype, math.prod(shape)))
    arguments: Arguments = {"in": x, **{name: kernel.pack(name, value) for name, value in constants.items()}}
    checks: list[Check] = []
    for name in ("out", "out_values", "out_indices"):
        if kernel.has(name):
            whole = result(kernel.dtype(name), (math.prod(shape),))
            view = replace(whole, shape=shape, strides=strides)
            arguments[name] = view.buffer
            suffix = name.removeprefix("out")
            checks.append(check_of(kernel, case, view, View(buffer=x, dtype=dtype, shape=shape), dim, suffix))
    step = launch(kernel, arguments, groups, (threads,))
    return Program(label=f"{shape} along {dim}, {threads} threads", steps=[step], checks=checks)


def check_of(kernel: Kernel, case: Case, got: View, x: View, dim: int, suffix: str = "") -> Reference:
    """Return what a scan of `x` along `dim` must be; `suffix`: of its values or of its indices."""
    name = f"scan_{kernel.parts['op']}{suffix}"
    if name not in case.references:
        raise NotBound(f"no reference {name}")
    length = x.shape[dim]
    return Reference(
        got=got, name=name, inputs={"x": x, "dim": dim}, scale=scale_of(kernel.parts["op"], got.dtype, length)
    )


def scale_of(op: str, dtype: DType, length: int) -> float:
    """Sums of `length` values up to 2, rounded as they go."""
    if dtype.kind not in ("float", "complex") or op in ("cummin", "cummax"):
        return 0.0
    if (op, dtype.name) == ("logcumsumexp", "half2"):
        raise NotBound("no bound is known for complex logarithms that go on from results rounded to 16 bits")
    return length * 2.0**-22


def values_of(kernel: Kernel, case: Case, dtype: DType, count: int) -> bytes:
    """Return inputs that tell the operator from others: ties for minima, factors near one for products."""
    op = kernel.parts["op"]
    if op == "cumprod":
        return factors(case, dtype, count)
    if op in ("cummin", "cummax"):
        # Few different values: ties tell which index is kept.
        random = case.values.random
        low = 0 if dtype.kind in ("unsigned", "bool") else -9
        return pack(dtype, [random.randint(low, 1 if dtype.kind == "bool" else 9) for _ in range(count)])
    if op == "logcumsumexp" and dtype.kind == "complex":
        # Angles that do not cancel: a sum near zero has no accurate logarithm.
        return case.values.moderate(dtype, count, 0, 1)
    return case.values.moderate(dtype, count)


def transposed(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`innermost_transposed`: columns of (axis, columns) are added up like `outer`; the result is (columns, axis)."""
    for length, columns in ((70, 37), (5, 3), (33, 64)):
        blocks = -(-columns // COLUMNS)
        constants = {"axis_size": length, "n_cols": columns, "stride_blocks": blocks}
        groups, threads = (1, blocks, 1), threads_of(kernel, COLUMNS)
        yield _program(kernel, case, (length, columns), 0, constants, groups, threads, strides=(1, length))


def tiny(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`tiny_innermost`: short rows, several a threadgroup."""
    for rows, length, together in ((9, 5, 4), (33, 2, 32), (3, 32, 1), (65, 7, 16)):
        constants = {"axis_size": length, "n_scans": rows, "rows_per_tg": together}
        yield _program(kernel, case, (rows, length), 1, constants, (-(-rows // together), 1, 1), 128)


# Long scans in blocks: each block reduced, the totals scanned, then carried into the blocks.


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


# Scans whose threadgroups look back at those before them.
# Rows, and their length in tiles and elements beyond them.
ROWS = ((3, 2, 5), (1, 0, 7), (2, 3, 0), (1, 1, 1))


PER_THREAD = 16
# What tiles begin with that have none before them; only these operators have such kernels.
NOTHING = {"cumsum": 0.0, "cumprod": 1.0}


def scan(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`contig`: 16 elements a thread; `strided`: columns that lie side by side, `tall` rows a thread."""
    dtype, out_kind = kernel.dtype("in"), kernel.dtype("out")
    columns, tall = int(kernel.parts.get("columns") or 1), int(kernel.parts.get("tall") or PER_THREAD)
    for (rows, whole, rest), width in zip(ROWS, (32, 64, 32, 128), strict=True):
        tile = width * tall
        length = whole * tile + rest
        tiles = -(-length // tile)
        shape = (rows, length, columns) if columns > 1 else (rows, length)
        count = rows * length * columns
        x = View(buffer=input_buffer(values_of(kernel, case, dtype, count)), dtype=dtype, shape=shape)
        out = result(out_kind, shape)
        words = 4 * rows * tiles * columns
        values: dict[str, object] = {"in": x, "out": out, "tile_counter": inout_buffer(bytes(4))}
        values |= {"status": inout_buffer(bytes(4 * rows * tiles)), "axis_size": length, "num_tiles": tiles}
        values |= {name: inout_buffer(b"\xff" * words) for name in ("aggregates", "inclusive")}
        op = kernel.parts["op"]
        scale = scale_of(op, DTYPES["float"], length)
        check = Reference(got=out, name=f"scan_{op}", inputs={"x": x, "dim": 1}, scale=scale)
        step = groups(kernel, bound(kernel, values), (rows * tiles,), (width,))
        yield Program(label=f"{shape} in {tiles} tiles, {width} threads", steps=[step], checks=[check])
    if kernel.parts["op"] in NOTHING:
        yield _behind_others(kernel, case, columns, tall)


def _behind_others(kernel: Kernel, case: Case, columns: int, tall: int) -> Program:
    """The last tiles of a long row, whose threadgroups come when those of the first ones are done."""
    op, width, done, more = kernel.parts["op"], 32, 1, 2
    dtype, out_kind, tile, tiles = kernel.dtype("in"), kernel.dtype("out"), width * tall, done + more
    x = input_buffer(values_of(kernel, case, dtype, tiles * tile * columns))
    out = result(out_kind, (tiles * tile * columns,))
    empty = b"\xff" * (4 * columns)
    before = struct.pack("<f", NOTHING[op]) * columns
    values: dict[str, object] = {
        "in": x,
        "out": out,
        "tile_counter": inout_buffer(struct.pack("<I", done)),
        "status": inout_buffer(struct.pack("<I", 2) * done + bytes(4 * more)),  # 2: its sum with all before it is there
        "aggregates": inout_buffer(empty * tiles),
        "inclusive": inout_buffer(before * done + empty * more),
        "axis_size": tiles * tile,
        "num_tiles": tiles,
    }
    shape = (1, more * tile, columns) if columns > 1 else (1, more * tile)
    given, got = (
        View(buffer=buffer, dtype=kind, shape=shape, offset=done * tile * columns)
        for buffer, kind in ((x, dtype), (out.buffer, out_kind))
    )
    scale = scale_of(op, DTYPES["float"], more * tile)
    check = Reference(got=got, name=f"scan_{op}", inputs={"x": given, "dim": 1}, scale=scale)
    arguments = bound(kernel, values)
    moved = {"in": tile * columns * dtype.size, "out": tile * columns * out_kind.size, "status": 4}
    moved |= {"aggregates": 4 * columns, "inclusive": 4 * columns}
    growth = Growth(
        groups=1,
        bytes={name: by for name, by in moved.items() if name in arguments},
        words={name: growing(kernel, name, by) for name, by in (("axis_size", tile), ("num_tiles", 1))},
        values={"tile_counter": every(4, 4, 1)},
        results={"tile_counter": every(4, 4, 1)},
    )
    step = groups(kernel, arguments, (more,), (width,))
    label = f"tiles {done} to {tiles - 1} of {tiles}, {width} threads"
    return Program(label=label, steps=[step], checks=[check], growth=growth)
