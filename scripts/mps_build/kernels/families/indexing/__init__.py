"""`index`, `index_put`, `gather`, `scatter` and their reductions: an index for each element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...program.dtypes import DTYPES, DType
from ...program.launch import (
    Addresses,
    Buffer,
    Check,
    Known,
    NotBound,
    Program,
    Reference,
    Shape,
    Step,
    View,
    dense_strides,
    inout_buffer,
    input_buffer,
    output_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import (
    Arguments,
    bound,
    error_buffer,
    filled,
    grid_of,
    no_error,
    numbered,
    offsets_table,
    padded,
    places_of,
    reach,
    result,
    scale_of,
    strides_of,
    swept,
    threads,
)

LONG = DTYPES["long"]


# Shape of the tensor, which of its leading dimensions are indexed, shape of the indices (broadcast: 0 strides).
CASES = (((5, 7, 3), 2, (4, 6)), ((9,), 1, (33,)), ((4, 6), 1, (5,)), ((3, 4, 5), 3, (2, 3)), ((6, 4), 1, (3,)))


def indices_of(
    case: Case, shape: Sequence[int], count: int, where: Sequence[int], *, distinct: bool
) -> list[list[int]]:
    """Return for each indexed dimension one index for each place; negative ones count from the end."""
    total = math.prod(where)
    if distinct:
        flat = case.values.random.sample(range(math.prod(shape[:count])), total)
    else:
        flat = case.values.integers(total, 0, math.prod(shape[:count]) - 1)
    columns: list[list[int]] = []
    for size in reversed(shape[:count]):
        columns.insert(0, [each % size - (size if k % 3 == 1 else 0) for k, each in enumerate(flat)])
        flat = [each // size for each in flat]
    return columns


def indexed(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Sizes and strides (bytes) of the whole iteration, innermost first; index_sizes and index_strides of `count`
    dimensions; pointers to the indices lie in a buffer."""
    dtype, is_get = kernel.dtype("output"), kernel.name.startswith("index_select")
    name = kernel.name
    adds = "accumulate" in name
    for shape, count, where in CASES:
        total, rest = math.prod(where), shape[count:]
        if not is_get and not adds and total > math.prod(shape[:count]):
            continue
        # One thread after the other: a repeated index keeps what was put last.
        distinct = not is_get and not adds and "serial" not in name
        columns = indices_of(case, shape, count, where, distinct=distinct)
        large = filled(case, dtype, shape, low=-3, high=3) if adds else swept(case, dtype, shape)
        iteration = (*where, *rest)
        small = filled(case, dtype, iteration, low=-3, high=3) if adds else swept(case, dtype, iteration)
        if adds and dtype.name == "bool":
            large, small = (filled(case, dtype, each.shape, low=0, high=1) for each in (large, small))
        yield _program(kernel, case, (large, small), columns, (shape, count, where), adds=adds, is_get=is_get)


def _program(
    kernel: Kernel,
    case: Case,
    views: tuple[View, View],
    columns: list[list[int]],
    sizes: tuple[tuple[int, ...], int, tuple[int, ...]],
    *,
    adds: bool,
    is_get: bool,
) -> Program:
    (large, small), (shape, count, where) = views, sizes
    dtype, size, rest = large.dtype, large.dtype.size, len(shape) - count
    buffers = [input_buffer(pack(LONG, column)) for column in columns]
    strides = [each * size for each in dense_strides(shape)]
    outer = [0] * len(where) + strides[count:]
    dense = [each * size for each in strides_of(small)]
    index_strides = [each * 8 for each in dense_strides(where)] + [0] * rest
    out = result(dtype, small.shape) if is_get else room_of(large)
    error = error_buffer()
    values: dict[str, object] = {"output": out, "input": large if is_get else small, "error_buffer": error}
    values |= {"indices": Addresses(data=bytes(8 * count), places={8 * at: each for at, each in enumerate(buffers)})}
    values |= {"sizes": small.shape[::-1], "indices_strides": index_strides[::-1]}
    values |= {
        "output_strides": (dense if is_get else outer)[::-1],
        "input_strides": (outer if is_get else dense)[::-1],
    }
    values |= {"index_sizes": shape[:count], "index_strides": strides[:count]}
    numbers = (len(small.shape), count, small.count, 0)
    values |= {"ndim_nindices_numel": numbers, "ndim_nindices": numbers[:2], "numel": small.count}
    arguments = bound(kernel, values)
    is_serial = "serial" in kernel.name
    step = threads(kernel, arguments, (1 if is_serial else small.count,))
    inputs: dict[str, object] = {"x": large, "small": small, "where": list(where)}
    inputs |= {f"i{at}": numbered(LONG, column) for at, column in enumerate(columns)}
    inputs["way"] = "get" if is_get else "add" if adds else "put"
    scale = small.count * 2.0 ** (-6 if dtype.name == "bfloat" else -9) if adds and dtype.size == 2 else 0.0
    scale = 2.0**-18 * small.count if adds and dtype.name in ("float", "float2") else scale
    scale = small.count * 2.0**-9 if adds and dtype.name == "half2" else scale
    check = Reference(got=out, name="indexed", inputs=inputs, scale=scale)
    return Program(
        label=f"{shape} at {count} x {where}",
        steps=[step],
        checks=[check, no_error(error)],
        varies="float atomics" if adds and not is_serial and not dtype.is_exact else "",
    )


def room_of(view: View) -> View:
    """The tensor that is put into, in whole words: 16-bit elements are added by way of 32-bit atomics."""
    data = view.buffer.data
    return View(buffer=inout_buffer(data + bytes(-len(data) % 4)), dtype=view.dtype, shape=view.shape)


def check_bounds(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_check_bounds`: good indices leave the count of errors alone; each bad one adds to it."""
    kind = kernel.dtype("index")
    for size, every, bad in ((9, 1, ()), (5, 2, ()), (9, 1, (9, -10)), (1, 3, (1,)), (40, 1, (-1,))):
        chosen = [*case.values.integers(33, 0, size - 1), 0, size - 1, *bad]
        spread = [0] * ((len(chosen) - 1) * every + 1)
        spread[::every] = chosen
        wrong = sum(not 0 <= each < size for each in chosen)
        error = error_buffer()
        values = {"index": numbered(kind, spread), "index_stride": every, "dim_size": size, "error_buf": error}
        step = threads(kernel, bound(kernel, values), (len(chosen),))
        check = Known(got=error, want=pack(DTYPES["uint"], [wrong]))
        yield Program(label=f"{wrong} of {len(chosen)} out of {size}", steps=[step], checks=[check])


# `index` and `index_put` where a table holds the offset of every element (up to 2.6).


def offset_indexed(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_select`, `index_put` up to 2.6: offsets (result, input, indices) in bytes for each element."""
    is_get, adds, is_serial = "select" in kernel.name, "accumulate" in kernel.parts, "serial" in kernel.parts
    widths = {"8": "char", "16": "short", "32": "int", "64": "long"}
    dtype: DType = DTYPES[kernel.parts.get("T") or widths[kernel.parts["bits"]]]
    for shape, count, where in CASES:
        rest = shape[count:]
        if not is_get and not adds and math.prod(where) > math.prod(shape[:count]):
            continue
        columns = indices_of(case, shape, count, where, distinct=not is_get and not adds and not is_serial)
        iteration = (*where, *rest)
        large = filled(case, dtype, shape, low=-3, high=3) if adds else swept(case, dtype, shape)
        small = filled(case, dtype, iteration, low=-3, high=3) if adds else swept(case, dtype, iteration)
        strides = dense_strides(shape)
        walk = replace(large, shape=iteration, strides=(*([0] * len(where)), *strides[count:]))
        table_of = View(
            buffer=large.buffer, dtype=LONG, shape=iteration, strides=(*dense_strides(where), *([0] * len(rest)))
        )
        out = result(dtype, small.shape) if is_get else room_of(large)
        order = (small, walk, table_of) if is_get else (walk, small, table_of)
        table = offsets_table(kernel, order, iteration, int(kernel.parts["wide"]))
        pointers: dict[int, Buffer] = {8 * at: input_buffer(pack(LONG, column)) for at, column in enumerate(columns)}
        values: dict[str, object] = {"indexAB": Addresses(data=bytes(8 * count), places=pointers)}
        values |= {"indexSizes": pack(LONG, list(shape[:count])), "offsets": input_buffer(table)}
        values |= {"indexStrides": pack(LONG, [each * dtype.size for each in strides[:count]]), "num_indices": count}
        values |= {"inputData": large if is_get else small, "outputData": out, "numIters": small.count}
        inputs: dict[str, object] = {"x": large, "small": small, "where": list(where)}
        inputs |= {f"i{at}": numbered(LONG, column) for at, column in enumerate(columns)}
        inputs["way"] = "get" if is_get else "add" if adds else "put"
        scale = 2.0**-18 * small.count if adds and not dtype.is_exact else 0.0
        check = Reference(got=out, name="indexed", inputs=inputs, scale=scale)
        step = threads(kernel, bound(kernel, values), (1 if is_serial else small.count,))
        varies = "float atomics" if adds and not dtype.is_exact else ""
        yield Program(label=f"{shape} at {count} x {where}", steps=[step], checks=[check], varies=varies)


INDEXED = (((2, 5, 3), (2, 4, 3), 1, 0), ((11, 2), (9, 2), 0, 1), ((3, 40), (3, 33), 1, 2))
"""Shapes of the indexed tensor and of the index, the dimension, and gaps of the strided forms."""


def _indices(case: Case, dtype: DType, shape: Shape, dim: int, size: int, *, unique: bool, bad: bool) -> list[int]:
    """Return indices along `dim`, row-major: each at most once (`unique`), and with `bad` some out of range."""
    columns = math.prod(n for d, n in enumerate(shape) if d != dim)
    random, length = case.values.random, shape[dim]
    drawn = [
        random.sample(range(size), length) if unique else [random.randrange(size) for _ in range(length)]
        for _ in range(columns)
    ]
    inner = math.prod(shape[dim + 1 :])
    flat = [0] * (columns * length)
    for column, values in enumerate(drawn):
        for k, value in enumerate(values):
            flat[(column // inner * length + k) * inner + column % inner] = value
    if bad:
        for at, value in zip(random.sample(range(len(flat)), 3), (size, -1, size + 7), strict=True):
            flat[at] = value
    return flat


def _error_buffer(kernel: Kernel) -> Buffer:
    size = max(kernel.argument("error_buf").element or 0, 16384)
    return inout_buffer(bytes(size))


def _error_count(buffer: Buffer, count: int) -> Known:
    return Known(got=View(buffer=buffer, dtype=DTYPES["uint"], shape=(1,)), want=count.to_bytes(4, "little"))


def gather(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`gather`: out[i] = input at index[i] along `dim`; an index out of range gives 0 and an error message."""
    dtype, index_type = kernel.dtype("output"), kernel.dtype("index")
    is_strided = kernel.has("ndim_dim")
    for number, (shape, index_shape, dim, pad) in enumerate(INDEXED):
        gap, bad = pad if is_strided else 0, number == 2
        flat = _indices(case, index_type, index_shape, dim, shape[dim], unique=False, bad=bad)
        strides, out_strides, index_strides = (
            padded(shape, gap),
            padded(index_shape, 2 * gap),
            padded(index_shape, gap),
        )
        data = case.values.sweep(dtype, reach(shape, strides))
        index_data = [0] * reach(index_shape, index_strides)
        want = b""
        for position, at, value in zip(
            itertools.product(*map(range, index_shape)), places_of(index_shape, index_strides), flat, strict=True
        ):
            index_data[at] = value
            there = [value if d == dim else p for d, p in enumerate(position)]
            place = sum(p * s for p, s in zip(there, strides, strict=True))
            want += (
                data[place * dtype.size : (place + 1) * dtype.size] if 0 <= value < shape[dim] else bytes(dtype.size)
            )
        out = output_buffer(reach(index_shape, out_strides) * dtype.size)
        error = _error_buffer(kernel)
        common: Arguments = {
            "output": out,
            "input": input_buffer(data),
            "index": input_buffer(pack(index_type, index_data)),
            "error_buf": error,
        }
        if is_strided:
            common |= {
                "sizes": kernel.pack("sizes", index_shape),
                "output_strides": kernel.pack("output_strides", out_strides),
                "input_strides": kernel.pack("input_strides", strides),
                "index_strides": kernel.pack("index_strides", index_strides),
                "ndim_dim": kernel.pack("ndim_dim", (len(shape), dim, 0)),
                "input_dim_size": kernel.pack("input_dim_size", shape[dim]),
            }
        else:
            common |= {
                "inner_size": kernel.pack("inner_size", math.prod(shape[dim + 1 :])),
                "output_dim_size": kernel.pack("output_dim_size", index_shape[dim]),
                "input_dim_size": kernel.pack("input_dim_size", shape[dim]),
            }
        checks: list[Check] = [
            Known(got=View(buffer=out, dtype=dtype, shape=index_shape, strides=out_strides), want=want),
            _error_count(error, 3 if bad else 0),
        ]
        yield Program(
            label=f"{shape}, index {index_shape}, dim {dim}, gaps of {gap}",
            steps=_launches(kernel, common, len(flat)),
            checks=checks,
        )


def _launches(kernel: Kernel, common: Arguments, count: int) -> list[Step]:
    """Two launches: the second begins where the first ended (`tid_offset`)."""
    first = count * 2 // 3
    return [
        Step(
            kernel=kernel.name,
            arguments=common | {"tid_offset": kernel.pack("tid_offset", begin)},
            grid=grid_of(threads),
            threadgroup=grid_of(min(threads, 32)),
        )
        for begin, threads in ((0, first), (first, count - first))
    ]


def scatter(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`scatter`: out at index[i] along `dim` = source[i], or combined with it; the output is there before."""
    op, dtype, index_type = kernel.parts["op"], kernel.part_dtype("T"), kernel.dtype("index")
    if op != "set" and f"scattered_{op}" not in case.references:
        raise NotBound(f"no reference scattered_{op}")
    is_strided, is_value = kernel.has("ndim_dim"), kernel.has("value")
    for number, (shape, index_shape, dim, pad) in enumerate(INDEXED):
        gap, bad = pad if is_strided else 0, number == 2 and op == "set"
        flat = _indices(case, index_type, index_shape, dim, shape[dim], unique=op == "set", bad=bad)
        strides, src_strides, index_strides = (
            padded(shape, gap),
            padded(index_shape, 2 * gap),
            padded(index_shape, gap),
        )
        span = -(-reach(shape, strides) // 4) * 4
        before, source = _scattered_values(case, op, dtype, span, 1 if is_value else reach(index_shape, src_strides))
        index_data = [0] * reach(index_shape, index_strides)
        after, total = bytearray(before), 0
        for position, at, src, value in zip(
            itertools.product(*map(range, index_shape)),
            places_of(index_shape, index_strides),
            places_of(index_shape, src_strides),
            flat,
            strict=True,
        ):
            index_data[at] = value
            if not 0 <= value < shape[dim]:
                total += 1
                continue
            there = [value if d == dim else p for d, p in enumerate(position)]
            place = sum(p * s for p, s in zip(there, strides, strict=True)) * dtype.size
            begin = 0 if is_value else src * dtype.size
            after[place : place + dtype.size] = source[begin : begin + dtype.size]
        out, error, index = (
            inout_buffer(before, align=4),
            _error_buffer(kernel),
            input_buffer(pack(index_type, index_data)),
        )
        common: Arguments = {"output": out, "index": index, "error_buf": error}
        src_buffer = input_buffer(source)
        if is_value:
            common["value"] = kernel.pack("value", source)
        else:
            common["src"] = src_buffer
        if is_strided:
            common |= {
                "index_sizes": kernel.pack("index_sizes", index_shape),
                "output_strides": kernel.pack("output_strides", strides),
                "src_strides": kernel.pack("src_strides", src_strides),
                "index_strides": kernel.pack("index_strides", index_strides),
                "ndim_dim": kernel.pack("ndim_dim", (len(shape), dim, 0)),
                "dim_size": kernel.pack("dim_size", shape[dim]),
            }
        else:
            common |= {
                "inner_size": kernel.pack("inner_size", math.prod(shape[dim + 1 :])),
                "index_dim_size": kernel.pack("index_dim_size", index_shape[dim]),
                "output_dim_size": kernel.pack("output_dim_size", shape[dim]),
            }
        whole = View(buffer=out, dtype=dtype, shape=(span,))
        checks: list[Check] = [_error_count(error, total)]
        if op == "set":
            checks.append(Known(got=whole, want=bytes(after)))
        else:
            inputs = {
                "before": View(buffer=input_buffer(before), dtype=dtype, shape=shape, strides=strides),
                "source": View(buffer=src_buffer, dtype=dtype, shape=index_shape, strides=src_strides),
                "index": View(buffer=index, dtype=index_type, shape=index_shape, strides=index_strides),
                "dim": dim,
            }
            checks.append(
                Reference(
                    got=View(buffer=out, dtype=dtype, shape=shape, strides=strides),
                    name=f"scattered_{op}",
                    inputs=inputs,
                    scale=scale_of(dtype),
                )
            )
        varies = "" if op == "set" or dtype.is_exact or op in ("amax", "amin") else "atomic sums and products of floats"
        steps = _launches(kernel, common, len(flat))
        if dtype.name == "long" and op in ("amin", "amax"):
            # The atomics compare unsigned numbers: the sign bits are turned before, and back again after.
            turn = _turn_signs(case.companion("scatter_signbit_xor_long"), out, span)
            steps = [turn, *steps, turn]
        yield Program(
            label=f"{shape}, index {index_shape}, dim {dim}, gaps of {gap}",
            steps=steps,
            checks=checks,
            varies=varies,
        )


def _turn_signs(kernel: Kernel, data: Buffer, count: int) -> Step:
    arguments: Arguments = {"data": data, "tid_offset": kernel.pack("tid_offset", 0)}
    return Step(kernel=kernel.name, arguments=arguments, grid=grid_of(count), threadgroup=grid_of(min(count, 32)))


def signbit(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`scatter_signbit_xor`: every number's sign bit turned; two launches."""
    dtype, count = kernel.dtype("data"), 77
    before = case.values.sweep(dtype, count)
    want = b"".join(before[at : at + 7] + bytes([before[at + 7] ^ 0x80]) for at in range(0, len(before), 8))
    data = inout_buffer(before)
    check = Known(got=View(buffer=data, dtype=dtype, shape=(count,)), want=want)
    yield Program(label=f"{count} numbers", steps=_launches(kernel, {"data": data}, count), checks=[check])


def _scattered_values(case: Case, op: str, dtype: DType, before: int, source: int) -> tuple[bytes, bytes]:
    draw = case.values.sweep if op == "set" else case.values.moderate
    return draw(dtype, before), draw(dtype, source)
