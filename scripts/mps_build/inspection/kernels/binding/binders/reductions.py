"""Reductions: each form against torch over the same elements, at several threadgroup sizes."""

from __future__ import annotations

from collections.abc import Iterator

from ...program import Program, Reference, Step, View, dense_strides, input_buffer, output_buffer
from ..contracts import Case, Kernel, NotBound

# Shapes with the reduced dimensions; lengths of one, no multiple of 32, and more than a threadgroup.
CASES = (
    ((6, 100), (1,)),
    ((3, 7, 5), (1,)),
    ((37, 4), (0,)),
    ((2, 1, 3), (1,)),
    ((4, 3, 9), (0, 2)),
    ((1, 2500), (1,)),
)
GROUPS = (32, 64, 96, 1024)


def general(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_reduction`: one threadgroup an output element; sizes and strides in elements, outermost first."""
    name = f"reduce_{kernel.parts['op']}"
    if name not in case.references:
        raise NotBound(f"no reference {name}")
    source, target = kernel.dtype("input"), kernel.dtype("output")
    for number, (shape, dims) in enumerate(CASES):
        group = min(GROUPS[number % len(GROUPS)], kernel.metadata.max_threads or 1024)
        out_shape = tuple(1 if d in dims else n for d, n in enumerate(shape))
        x_view = View(buffer=input_buffer(b""), dtype=source, shape=shape)
        x = input_buffer(case.values.moderate(source, x_view.count))
        x_view = View(buffer=x, dtype=source, shape=shape)
        got = View(buffer=output_buffer(0), dtype=target, shape=out_shape)
        got = View(buffer=output_buffer(got.count * target.size), dtype=target, shape=out_shape)
        length = x_view.count // got.count
        params = {
            "reduction_size": length,
            "ndim": len(shape),
            "input_sizes": shape,
            "input_strides": dense_strides(shape),
            "output_sizes": out_shape,
            "output_strides": dense_strides(out_shape),
        }
        step = Step(
            kernel=kernel.name,
            arguments={"input": x, "output": got.buffer, "params": kernel.pack("params", params)},
            grid=(got.count * group, 1, 1),
            threadgroup=(group, 1, 1),
            free=False,
        )
        inputs = {"x": x_view, "dims": list(dims)}
        check = Reference(got=got, name=name, inputs=inputs, scale=length * 2.0**-22 if target.kind == "float" else 0.0)
        yield Program(label=f"shape {shape}, dims {dims}, {group} threads", steps=[step], checks=[check])
