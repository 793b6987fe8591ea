"""Running sums, products, minima: along rows, along columns, and by blocks whose sums are carried on."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...dtypes import DType
from ...program import Buffer, Check, Program, Reference, Shape, Step, View, input_buffer, output_buffer, scratch_buffer
from ...values import pack
from ..contracts import Case, Kernel, NotBound
from .reduced import factors

Arguments = dict[str | int, Buffer | bytes]
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
            kernel, case, (batch, length, columns), 1, constants, (1, blocks * batch, 1), _threads(kernel, COLUMNS)
        )


def _reads(kernel: Kernel) -> int:
    """How many elements a thread takes at once: fewer of wide ones."""
    out = next(each.name for each in kernel.metadata.arguments if each.name in ("out", "out_values", "block_sums"))
    return 4 if kernel.dtype(out).size <= 4 else 2


def _threads(kernel: Kernel, columns: int) -> int:
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
    x = input_buffer(_values(kernel, case, dtype, math.prod(shape)))
    arguments: Arguments = {"in": x, **{name: kernel.pack(name, value) for name, value in constants.items()}}
    checks: list[Check] = []
    for name in ("out", "out_values", "out_indices"):
        if kernel.has(name):
            view = View(
                buffer=output_buffer(math.prod(shape) * kernel.dtype(name).size),
                dtype=kernel.dtype(name),
                shape=shape,
                strides=strides,
            )
            arguments[name] = view.buffer
            suffix = name.removeprefix("out")
            checks.append(_check(kernel, case, view, View(buffer=x, dtype=dtype, shape=shape), dim, suffix))
    step = Step(
        kernel=kernel.name,
        arguments=arguments,
        threadgroup=(threads, 1, 1),
        free=False,
        grid=(groups[0] * threads, groups[1], groups[2]),
    )
    return Program(label=f"{shape} along {dim}, {threads} threads", steps=[step], checks=checks)


def _check(kernel: Kernel, case: Case, got: View, x: View, dim: int, suffix: str = "") -> Reference:
    name = f"scan_{kernel.parts['op']}{suffix}"
    if name not in case.references:
        raise NotBound(f"no reference {name}")
    length = x.shape[dim]
    return Reference(
        got=got, name=name, inputs={"x": x, "dim": dim}, scale=_scale(kernel.parts["op"], got.dtype, length)
    )


def _scale(op: str, dtype: DType, length: int) -> float:
    """Sums of `length` values up to 2, rounded as they go."""
    if dtype.kind not in ("float", "complex") or op in ("cummin", "cummax"):
        return 0.0
    if (op, dtype.name) == ("logcumsumexp", "half2"):
        raise NotBound("no bound is known for complex logarithms that go on from results rounded to 16 bits")
    return length * 2.0**-22


def _values(kernel: Kernel, case: Case, dtype: DType, count: int) -> bytes:
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
        groups, threads = (1, blocks, 1), _threads(kernel, COLUMNS)
        yield _program(kernel, case, (length, columns), 0, constants, groups, threads, strides=(1, length))


def tiny(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`tiny_innermost`: short rows, several a threadgroup."""
    for rows, length, together in ((9, 5, 4), (33, 2, 32), (3, 32, 1), (65, 7, 16)):
        constants = {"axis_size": length, "n_scans": rows, "rows_per_tg": together}
        yield _program(kernel, case, (rows, length), 1, constants, (-(-rows // together), 1, 1), 128)


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
        x = input_buffer(_values(kernel, case, dtype, math.prod(shape)))
        partial = (
            output_buffer(batch * blocks * columns * sums.size)
            if carry is None
            else scratch_buffer(batch * blocks * columns * sums.size)
        )
        threads = _threads(reduce, width) if form == "strided_" else plain
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
            checks.append(_check(carry, case, out, View(buffer=x, dtype=dtype, shape=shape), 1))
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
        before = _values(kernel, case, dtype, rows * blocks)
        data = Buffer(size=len(before), role="inout", data=before)
        view = View(buffer=input_buffer(before), dtype=dtype, shape=(rows, blocks))
        got = View(buffer=data, dtype=dtype, shape=(rows, blocks))
        check = Reference(
            got=got,
            name=f"scan_{kernel.parts['op']}",
            inputs={"x": view, "dim": 1},
            scale=_scale("cumsum", dtype, blocks),
        )
        yield Program(
            label=f"{rows} rows of {blocks}",
            checks=[check],
            steps=[_launch(kernel, {"block_sums": data}, {"num_blocks": blocks}, (1, rows, 1), threads)],
        )
