"""One value into all elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...program.launch import Known, Program, Step, View
from ..shared.contracts import Case, Kernel
from ..shared.elementwise import GROUP, byte_strides, dense_output, lanes_of, layouts_of, spread_output


def dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`fill_scalar_dense`: numel elements, several a thread."""
    dtype = kernel.part_dtype("T")
    for count in (1, 3, 6, 33, 4099):
        value = case.values.sweep(dtype, 2)[dtype.size :]
        out = dense_output(dtype, (count,))
        arguments: dict[str | int, Any] = {"out": out.buffer, "fill_val": value, "numel": kernel.pack("numel", count)}
        step = Step(
            kernel=kernel.name, arguments=arguments, grid=(-(-count // lanes_of(kernel)), 1, 1), threadgroup=GROUP
        )
        yield Program(label=f"{count} elements", steps=[step], checks=[Known(got=out, want=value * count)])


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`fill_scalar_strided`: byte strides, innermost first; threads (the rest, sizes[0])."""
    dtype = kernel.part_dtype("T")
    for shape, order, _ in layouts_of(case):
        value = case.values.sweep(dtype, 2)[dtype.size :]
        out: View = spread_output(dtype, shape, order, gap=2)
        sizes = list(reversed(shape))
        arguments: dict[str | int, Any] = {
            "out": out.buffer,
            "fill_val": value,
            "sizes": kernel.pack("sizes", sizes),
            "strides": kernel.pack("strides", byte_strides(out)),
            "ndim": kernel.pack("ndim", len(sizes)),
        }
        step = Step(
            kernel=kernel.name, arguments=arguments, grid=(out.count // sizes[0], sizes[0], 1), threadgroup=(8, 4, 1)
        )
        yield Program(
            label=f"shape {shape}, order {order}", steps=[step], checks=[Known(got=out, want=value * out.count)]
        )
