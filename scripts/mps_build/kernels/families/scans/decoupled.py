"""Scans whose threadgroups look back at those before them."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, View, inout_buffer, input_buffer
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, groups, result
from .binder import scale_of, values_of

# Rows, and their length in tiles and elements beyond them.
ROWS = ((3, 2, 5), (1, 0, 7), (2, 3, 0), (1, 1, 1))


PER_THREAD = 16


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
