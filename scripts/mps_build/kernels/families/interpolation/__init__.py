"""Images made larger or smaller, grid samplers, and their gradients."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...program.launch import NotBound, Program, Reference, Shape, Value, View, dense_strides
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, result, strides_of, threads, zeroed

# Batch, channels, input sizes, output sizes: outputs are powers of two, so that positions are exact in float.
UPSAMPLED = (
    (2, 3, (3, 5, 7), (4, 8, 16)),
    (1, 2, (6, 3, 12), (4, 4, 8)),
    (2, 1, (1, 4, 1), (2, 4, 4)),
)


def upsample(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each output position; sizes and strides outermost first, scales innermost first."""
    mode, nd, is_backward = _mode(kernel), _dimensions(kernel), "_backward" in kernel.name
    source, target = ("gradOutputData", "gradInputData") if is_backward else ("inputData", "outputData")
    dtype = kernel.dtype(source)
    if dtype.kind == "complex":
        raise NotBound("no reference for complex images")
    has_corners = mode in ("linear", "bilinear", "trilinear", "bicubic")
    gathers = is_backward and any(each.type == "uint3" for each in kernel.metadata.arguments)
    for number, (n, c, sizes, outs) in enumerate(UPSAMPLED):
        small, large = (n, c, *sizes[-nd:]), (n, c, *outs[-nd:])
        align = has_corners and number % 2 == 1
        low, high = (0.0, 255.0) if dtype.name == "uchar" else (-99.0, 99.0) if dtype.is_exact else (-2.0, 2.0)
        if not is_backward:
            x = filled(case, dtype, small, strides=tuple(2 * s for s in dense_strides(small)), low=low, high=high)
            got = result(kernel.dtype(target), large)
        else:
            x, got = filled(case, dtype, large), result(dtype, small) if gathers else zeroed(dtype, small)
        inner, outer = (got, x) if is_backward else (x, got)
        params: dict[str, object] = {
            "input_strides": strides_of(inner),
            "input_sizes": inner.shape,
            "output_strides": strides_of(outer),
            "output_sizes": outer.shape,
            "scales": [_scale(i, o, align) for i, o in zip(reversed(small[2:]), reversed(large[2:]), strict=True)],
        }
        arguments: dict[str | int, Value] = {source: x.buffer, target: got.buffer}
        if kernel.has("params"):
            if has_corners or any(each.name == "align_corners" for each in kernel.argument("params").fields):
                params["align_corners"] = align
            arguments["params"] = kernel.pack("params", params)
        else:  # up to 2.13 each is an argument of its own; one scale is both
            params |= {"align_corners": align, "scales": (list(params["scales"]) * 2)[:2]}  # type: ignore[call-overload]
            if not any(each.startswith("upsample_linear1d") for each in case.kernels):
                # Before the release that brought linear1d, sizes and strides came innermost first.
                inner_first = ("input_strides", "input_sizes", "output_strides", "output_sizes")
                params |= {name: tuple(reversed(params[name])) for name in inner_first}  # type: ignore[call-overload]
            arguments |= {name: kernel.pack(name, value) for name, value in params.items()}
        count = 1
        for each in large[2:]:
            count *= each
        grid = (small[3], small[2], n * c) if gathers else (count,)
        inputs: dict[str, object] = {"x": x, "mode": mode, "align": align if has_corners else None}
        inputs |= {"antialias": "_aa" in kernel.name, "small": list(small), "large": list(large[2:])}
        name = "nn_upsample_backward" if is_backward else "nn_upsample"
        atomic = is_backward and not gathers
        scale = 0.0 if mode.startswith("nearest") and not is_backward else 2.0**-17
        if atomic and dtype.size == 2:
            scale = 64 * 2.0 ** (-7 if dtype.name == "bfloat" else -10)
        check = Reference(got=got, name=name, inputs=inputs, scale=scale)
        steps = [threads(kernel, arguments, grid)]
        label = f"{small} to {large[2:]}, align {align}"
        yield Program(label=label, steps=steps, checks=[check], varies="float atomics" if atomic else "")


def _scale(small: int, large: int, align: bool) -> float:
    if align:
        return (small - 1) / (large - 1) if large > 1 else 0.0
    return small / large


def _mode(kernel: Kernel) -> str:
    name = kernel.parts["mode"]
    if name.startswith("nearest_exact"):
        return "nearest-exact"
    return next(each for each in ("nearest", "trilinear", "bilinear", "bicubic", "linear") if name.startswith(each))


def _dimensions(kernel: Kernel) -> int:
    name = kernel.parts["mode"]
    return 3 if "3d" in name or "trilinear" in name else 2 if "2d" in name else 1


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


def grid_sampler(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def grid_sampler_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def grid_sampler_backward_of_volumes(kernel: Kernel, case: Case) -> Iterator[Program]:
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
