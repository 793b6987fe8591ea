"""Reflection, replication and constant pads, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.launch import Program, Reference, Value, View, dense_strides
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, result, strides_of, swept, threads

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


# Input sizes, pads before and after, outermost first.
PADDED = (((3, 4, 7), (1, 0, 2), (0, 2, 3)), ((2, 5, 9), (0, 1, 0), (0, 0, 0)), ((1, 1, 1), (2, 1, 5), (1, 3, 4)))


def constant_pad(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Four elements a thread; sizes innermost first; three dimensions where all is dense, else up to 16 and strides."""
    dtype, is_dense = kernel.dtype("input"), kernel.parts["form"] == "_dense"
    for number, (sizes, before, after) in enumerate(PADDED):
        large = tuple(n + a + b for n, a, b in zip(sizes, before, after, strict=True))
        gaps = tuple(2 * each for each in dense_strides(sizes)) if not is_dense and number % 2 == 0 else None
        x, got = swept(case, dtype, sizes, strides=gaps), result(dtype, large)
        fill = swept(case, dtype, (1,))
        params: dict[str, object] = {
            "output_sizes": large[::-1],
            "input_sizes": sizes[::-1],
            "left_pad": before[::-1],
        }
        quarter = -(-large[2] // 4)
        if is_dense:
            grid: tuple[int, ...] = (quarter, large[1], large[0])
        else:
            params |= {"input_strides": strides_of(x)[::-1], "output_strides": strides_of(got)[::-1], "ndim": 3}
            grid = (quarter, large[1] * large[0])
        arguments: dict[str | int, Value] = {
            "input": x.buffer,
            "output": got.buffer,
            "params": kernel.pack("params", params),
            "fill_value": fill.buffer.data,
        }
        inputs = {"x": x, "fill": fill, "left": list(before), "large": list(large)}
        check = Reference(got=got, name="nn_constant_pad", inputs=inputs)
        yield Program(label=f"{sizes} to {large}", steps=[threads(kernel, arguments, grid)], checks=[check])


def replicated_rows(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`replication_pad1d`: threads (width, channels, batch); sizes_pad = (input width, output width, left pad, -)."""
    is_backward = kernel.has("grad_input")
    source, target = ("grad_output", "grad_input") if is_backward else ("input", "output")
    dtype = kernel.dtype(source)
    for n, c, width, left, right in ((2, 3, 7, 4, 2), (1, 1, 1, 0, 9), (3, 2, 40, 33, 1)):
        small, large = (n, c, width), (n, c, width + left + right)
        x = filled(case, dtype, large if is_backward else small)
        got = result(kernel.dtype(target), small if is_backward else large)
        arguments: dict[str | int, Value] = {
            source: x.buffer,
            target: got.buffer,
            "sizes_pad": kernel.pack("sizes_pad", [width, large[2], left, 0]),
        }
        inputs = {"x": x, "left": [left], "small": [width], "large": [large[2]], "mode": "replication"}
        name = "nn_pad_backward" if is_backward else "nn_pad_forward"
        scale = 2.0**-17 if is_backward else 0.0
        check = Reference(got=got, name=name, inputs=inputs, scale=scale)
        steps = [threads(kernel, arguments, (got.shape[2], c, n))]
        yield Program(label=f"{small} to {large}", steps=steps, checks=[check])
