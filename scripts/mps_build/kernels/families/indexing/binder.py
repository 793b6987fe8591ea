"""`index`, `index_put` and their checks: a tensor of indices for each of several dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...program.dtypes import DTYPES
from ...program.launch import Addresses, Known, Program, Reference, View, dense_strides, inout_buffer, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, error_buffer, filled, no_error, numbered, result, strides_of, swept, threads

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
