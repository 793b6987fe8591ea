"""Reflection and replication pads, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator

from ...program import Program, Reference, Value, View
from ..contracts import Case, Kernel
from .tensors import filled, result, strides_of, swept, threads

# Batch, channels, spatial sizes (outermost first), pads before and after each.
CASES = (
    (2, 3, (4, 5, 7), (1, 2, 3), (2, 1, 4)),
    (1, 1, (3, 2, 37), (2, 1, 36), (0, 0, 5)),
    (3, 2, (2, 3, 4), (0, 1, 0), (1, 0, 3)),
)


def spatial(kernel: Kernel, case: Case) -> Iterator[Program]:
    """PadParams: sizes innermost first; strides of up to three spatial dimensions, then channel, then batch."""
    ndim, is_backward = int(kernel.parts["n"]), kernel.parts["way"] == "backward"
    source, target = ("grad_output", "grad_input") if is_backward else ("input", "output")
    for batch, channels, sizes, before, after in CASES:
        inner, left, right = sizes[-ndim:], before[-ndim:], after[-ndim:]
        outer = tuple(n + a + b for n, a, b in zip(inner, left, right, strict=True))
        shape_in, shape_out = (batch, channels, *inner), (batch, channels, *outer)
        got: View
        if is_backward:
            x = filled(case, kernel.dtype(source), shape_out)
            got, small, large = result(kernel.dtype(target), shape_in), shape_in, x
            in_strides, out_strides, grid = strides_of(got), strides_of(large), inner
        else:
            gaps = tuple(each * 2 for each in strides_of(result(kernel.dtype(source), shape_in)))
            x, small = swept(case, kernel.dtype(source), shape_in, strides=gaps), shape_in
            got = result(kernel.dtype(target), shape_out)
            in_strides, out_strides, grid = gaps, strides_of(got), outer
        params = {
            "input_sizes": _spatial(small[2:], 1),
            "output_sizes": _spatial(outer, 1),
            "left_pad": _spatial(left, 0),
            "input_strides": [*_spatial(in_strides[2:], 0), in_strides[1], in_strides[0]],
            "output_strides": [*_spatial(out_strides[2:], 0), out_strides[1], out_strides[0]],
            "channels": channels,
        }
        w, h, d = _spatial(grid, 1)
        arguments: dict[str | int, Value] = {
            source: x.buffer,
            target: got.buffer,
            "params": kernel.pack("params", params),
        }
        step = threads(kernel, arguments, (w, h, d * channels * batch))
        inputs = {"x": x, "left": list(left), "small": list(inner), "large": list(outer), "mode": kernel.parts["op"]}
        name = f"nn_pad_{kernel.parts['way']}"
        scale = 64 * 2.0**-22 if is_backward and kernel.dtype(target).kind in ("float", "complex") else 0.0
        check = Reference(got=got, name=name, inputs=inputs, scale=scale)
        yield Program(label=f"{shape_in} to {shape_out}", steps=[step], checks=[check])


def _spatial(values: tuple[int, ...], missing: int) -> list[int]:
    """Return three values, innermost first."""
    return [*reversed(values), missing, missing][:3]
