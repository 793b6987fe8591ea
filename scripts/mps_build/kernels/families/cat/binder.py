"""Tensors put one behind the other."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.launch import Program, Reference, Step, View, input_buffer, output_buffer
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments, grid_of, padded, reach


def cat(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`cat`: one input into its place along `cat_dim`; strides in elements, outermost first; two launches share it."""
    source, target = kernel.dtype("input"), kernel.dtype("output")
    for shape, dim, offset, total, pad, split in (
        ((2, 3, 5), 1, 4, 9, 0, 0),
        ((4, 37), 1, 0, 40, 1, 70),
        ((7,), 0, 2, 9, 0, 3),
        ((3, 2, 1, 6), 0, 1, 5, 2, 0),
    ):
        out_shape = tuple(total if d == dim else n for d, n in enumerate(shape))
        in_strides, out_strides = padded(shape, pad)[::1], padded(out_shape, pad)
        if pad and len(shape) > 1:
            in_strides = tuple(reversed(padded(shape[::-1], pad)))
        x = input_buffer(case.values.sweep(source, reach(shape, in_strides)))
        out = output_buffer(reach(out_shape, out_strides) * target.size)
        count, steps = math.prod(shape), []
        shared = {"ndim": len(shape), "cat_dim": dim, "output_strides": out_strides, "output_sizes": out_shape}
        for begin, threads in ((0, split or count), (split, count - split))[: 2 if split else 1]:
            own = {
                "cat_dim_offset": offset,
                "input_element_offset": begin,
                "input_strides": in_strides,
                "input_sizes": shape,
            }
            arguments: Arguments = {
                "input": x,
                "output": out,
                "shared_params": kernel.pack("shared_params", shared),
                "input_params": kernel.pack("input_params", own),
            }
            steps.append(
                Step(
                    kernel=kernel.name,
                    arguments=arguments,
                    grid=grid_of(threads),
                    threadgroup=grid_of(min(threads, 32)),
                )
            )
        view = View(buffer=x, dtype=source, shape=shape, strides=in_strides)
        got = View(buffer=out, dtype=target, shape=shape, strides=out_strides, offset=offset * out_strides[dim])
        check = Reference(got=got, name="cast", inputs={"x": view, "to": target.torch})
        yield Program(label=f"{shape} at {offset} of {total} along {dim}, gaps of {pad}", steps=steps, checks=[check])
