"""`index` and `index_put` where a table holds the offset of every element (up to 2.6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...program.dtypes import DTYPES, DType
from ...program.launch import Addresses, Buffer, Program, Reference, View, dense_strides, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.offsets import offsets_table
from ..shared.tensors import bound, filled, numbered, result, swept, threads
from .binder import CASES, indices_of, room_of

LONG = DTYPES["long"]


def indexed(kernel: Kernel, case: Case) -> Iterator[Program]:
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
