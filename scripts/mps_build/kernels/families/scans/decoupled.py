"""Scans whose threadgroups look back at those before them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Growth, Program, Reference, View, every, inout_buffer, input_buffer
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, groups, growing, result
from .binder import scale_of, values_of

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
