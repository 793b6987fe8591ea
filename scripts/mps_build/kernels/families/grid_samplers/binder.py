"""Grid samplers and their gradients."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...program.launch import Program, Reference, Shape, Value, View, dense_strides
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, result, strides_of, threads
from ..shared.zeroed import zeroed

PADDING = ("zeros", "border", "reflection")


MODES = ("bilinear", "nearest", "bicubic")


# Batch, channels, input and output sizes, outermost first.
GRIDS = ((2, 3, (3, 5, 7), (2, 4, 3)), (1, 2, (4, 2, 3), (3, 3, 5)))


def _params(x: View | Shape, grid: View, out: Shape, nd: int, align: bool) -> dict[str, object]:
    shape, strides = (x.shape, strides_of(x)) if isinstance(x, View) else (x, dense_strides(x))
    return {
        "sampler_dims": nd,
        "output_sizes": out,
        "output_strides": dense_strides(out),
        "input_sizes": shape,
        "input_strides": strides,
        "grid_sizes": grid.shape,
        "grid_strides": strides_of(grid),
        "align_corners": align,
    }


def forward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each output pixel (2d), and channel (3d); sizes and strides outermost first.

    Mode and padding are in the kernel's name, or up to 2.11 in its parameters: then the contract says which there are.
    """
    parts, dtype = kernel.parts, kernel.dtype("input")
    nd = int(parts.get("n") or kernel.options["n"])
    modes = [(parts["mode"], parts["pad"])] if "mode" in parts else kernel.options["modes"]
    for (mode, pad), (number, (n, c, sizes, outs)) in itertools.product(modes, enumerate(GRIDS)):
        size, out_size = sizes[-nd:], outs[-nd:]
        x = filled(case, dtype, (n, c, *size), strides=tuple(2 * s for s in dense_strides((n, c, *size))))
        grid = filled(case, kernel.dtype("grid"), (n, *out_size, nd), low=-1.6, high=1.6)
        out = result(kernel.dtype("output"), (n, c, *out_size))
        params = _params(x, grid, out.shape, nd, bool(number))
        if "mode" not in parts:
            params |= {"interpolation_mode": MODES.index(mode), "padding_mode": PADDING.index(pad)}
        count = out.count if nd == 3 else out.count // c
        arguments: dict[str | int, Value] = {
            "output": out.buffer,
            "input": x.buffer,
            "grid": grid.buffer,
            "params": kernel.pack("params", params),
        }
        inputs = {"x": x, "grid": grid, "mode": mode, "pad": pad, "align": bool(number)}
        check = Reference(got=out, name="nn_grid_sample", inputs=inputs, scale=2.0**-17)
        label = f"{x.shape} at {out_size}, {mode}, {pad}"
        yield Program(label=label, steps=[threads(kernel, arguments, (count,))], checks=[check])


def backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """2d: a thread for each output pixel; the input's gradient is added up from zeros."""
    dtype, is_input = kernel.dtype("grad_output"), kernel.has("grad_input")
    paddings = (kernel.parts["pad"],) if kernel.parts["pad"] else PADDING
    for number, pad in enumerate((*paddings, paddings[0])):
        n, c, sizes, outs = GRIDS[number % 2]
        size, out_size, align = sizes[-2:], outs[-2:], number % 2 == 0
        dy = filled(case, dtype, (n, c, *out_size))
        x = filled(case, dtype, (n, c, *size))
        grid = filled(case, kernel.dtype("grid"), (n, *out_size, 2), low=-1.6, high=1.6)
        dx, dgrid = zeroed(dtype, x.shape), result(dtype, grid.shape)
        got = dx if is_input else dgrid
        params = {
            "forward": _params(x, grid, dy.shape, 2, align),
            "grad_output_strides": strides_of(dy),
            "grad_input_strides": strides_of(dx),
            "grad_grid_strides": strides_of(dgrid),
            "padding_mode": PADDING.index(pad),
            "interpolation_mode": MODES.index(kernel.parts["mode"]),
            "compute_grad_input": is_input,
            "compute_grad_grid": not is_input,
        }
        arguments: dict[str | int, Value] = {
            "grad_output": dy.buffer,
            "grid": grid.buffer,
            "params": kernel.pack("params", params),
        }
        arguments |= {"grad_input": dx.buffer} if is_input else {"grad_grid": dgrid.buffer, "input": x.buffer}
        inputs: dict[str, object] = {"dy": dy, "x": x, "grid": grid, "mode": MODES.index(kernel.parts["mode"])}
        inputs |= {"pad": PADDING.index(pad), "align": align, "which": 0 if is_input else 1}
        # Sums in 16 bits are rounded at each of the atomic additions.
        scale = (
            2.0**-15 if dtype.size == 4 or not is_input else dy.count * 2.0 ** (-6 if dtype.name == "bfloat" else -9)
        )
        check = Reference(got=got, name="nn_grid_sample_backward", inputs=inputs, scale=scale)
        step = threads(kernel, arguments, (dy.count // c,))
        varies = "float atomics" if is_input else ""
        yield Program(label=f"{x.shape}, {pad}, align {align}", steps=[step], checks=[check], varies=varies)


def backward_of_volumes(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (width, height * depth, batch) of the result; both gradients in one launch."""
    dtype = kernel.dtype("grad_output")
    for number, pad in enumerate(PADDING):
        n, c, size, out_size = GRIDS[number % 2]
        mode, align = number % 2, number % 2 == 0
        dy, x = filled(case, dtype, (n, c, *out_size)), filled(case, dtype, (n, c, *size))
        grid = filled(case, kernel.dtype("grid"), (n, *out_size, 3), low=-1.6, high=1.6)
        # Nearest has no gradient of the grid, and leaves the zeros that it is given.
        dx, dgrid = zeroed(dtype, x.shape), result(dtype, grid.shape) if mode == 0 else zeroed(dtype, grid.shape)
        params = {
            "forward": _params(x, grid, dy.shape, 3, align),
            "grad_output_strides": strides_of(dy),
            "grad_input_strides": strides_of(dx),
            "grad_grid_strides": strides_of(dgrid),
            "padding_mode": number,
            "interpolation_mode": mode,
            "compute_grad_input": True,
            "compute_grad_grid": True,
        }
        arguments: dict[str | int, Value] = {
            "grad_output": dy.buffer,
            "input": x.buffer,
            "grid": grid.buffer,
            "grad_input": dx.buffer,
            "grad_grid": dgrid.buffer,
            "params": kernel.pack("params", params),
        }
        inputs: dict[str, object] = {"dy": dy, "x": x, "grid": grid, "mode": mode, "pad": number, "align": align}
        rounded = dy.count * 2.0 ** (-6 if dtype.name == "bfloat" else -9) if dtype.size == 2 else 2.0**-15
        checks = [
            Reference(got=got, name="nn_grid_sample_backward", inputs={**inputs, "which": which}, scale=scale)
            for which, (got, scale) in enumerate(((dx, rounded), (dgrid, 2.0**-14)))
        ]
        step = threads(kernel, arguments, (out_size[2], out_size[1] * out_size[0], n))
        yield Program(label=f"{x.shape}, {pad}, {MODES[mode]}", steps=[step], checks=checks, varies="float atomics")
