"""Convolutions by kernels of their own, and their weights rearranged."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.launch import Program, Reference, Value
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, groups, result, strides_of, swept, threads

# Batch, input and output channels, groups, image, kernel, stride, padding, dilation.
CONVOLUTIONS = (
    (2, 4, 6, 2, (7, 9), (3, 2), (1, 1), (1, 0), (1, 2)),
    (1, 3, 5, 1, (5, 21), (2, 3), (2, 3), (0, 2), (2, 1)),
    (1, 2, 4, 2, (1, 17), (1, 4), (1, 1), (0, 3), (1, 1)),
)


def direct(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`conv2d_r`: a thread for r neighbours of a row; `conv1d_depthwise`: for eight; (width, channels, batch)."""
    is_depthwise = "depthwise" in kernel.name
    dtype = kernel.dtype("input")
    for number, (n, c_in, c_out, count, image, size, stride, padding, dilation) in enumerate(CONVOLUTIONS):
        if is_depthwise:
            c_out, count, image, size = c_out // c_in * c_in or c_in, c_in, (1, image[1]), (1, size[1])
            stride, padding, dilation = (1, stride[1]), (0, padding[1]), (1, dilation[1])
        out = tuple(
            (i + 2 * p - d * (k - 1) - 1) // s + 1
            for i, k, s, p, d in zip(image, size, stride, padding, dilation, strict=True)
        )
        x = filled(case, dtype, (n, c_in, *image))
        w = filled(case, kernel.dtype("weight"), (c_out, c_in // count, *size))
        bias = filled(case, kernel.dtype("bias"), (c_out,)) if number != 1 else None
        shape = (n, c_out, *out)
        strides = (c_out * math.prod(out), 1, c_out * out[1], c_out) if "_nlc_" in kernel.name else None
        y = result(kernel.dtype("output"), shape, strides=strides)
        params: dict[str, object] = {"N": n, "C_in": c_in, "C_out": c_out, "has_bias": bias is not None}
        params |= {"C_in_per_group": c_in // count, "C_out_per_group": c_out // count}
        for names, pair in zip(("H W", "outH outW", "kH kW", "sH sW", "padH padW", "dH dW"),
                               (image, out, size, stride, padding, dilation), strict=True):  # fmt: skip
            params |= dict(zip(names.split(), pair, strict=True))
        arguments: dict[str | int, Value] = {
            "input": x.buffer,
            "weight": w.buffer,
            "bias": bias.buffer if bias else None,
            "output": y.buffer,
            "p": kernel.pack("p", params),
        }
        run = 8 if is_depthwise else int(kernel.parts["r"])
        row = -(-out[1] // run)
        grid = (row, c_out, n) if is_depthwise else (row * out[0] * c_out * n,)
        inputs: dict[str, object] = {"x": x, "w": w, "bias": bias or 0, "stride": list(stride)}
        inputs |= {"padding": list(padding), "dilation": list(dilation), "groups": count}
        check = Reference(got=y, name="nn_conv2d", inputs=inputs, scale=2.0**-17)
        yield Program(label=f"{x.shape} * {w.shape}", steps=[threads(kernel, arguments, grid)], checks=[check])


def dhwio(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (output channels, input channels, depth * height): rows of a kernel, moved."""
    dtype = kernel.dtype("source")
    for o, i, d, h, w in ((5, 3, 2, 3, 4), (1, 2, 1, 1, 3)):
        x = swept(case, dtype, (o, i, d, h, w))
        y = result(kernel.dtype("destination"), (d, h, w, i, o))
        names = ("output_channel", "input_channel", "depth", "height", "width")
        params: dict[str, object] = {f"{n}_stride": s for n, s in zip(names, strides_of(x), strict=True)}
        params |= {"output_channels": o, "input_channels_per_group": i, "kernel_height": h, "kernel_width": w}
        arguments: dict[str | int, Value] = {
            "source": x.buffer,
            "destination": y.buffer,
            "params": kernel.pack("params", params),
        }
        check = Reference(got=y, name="nn_dhwio", inputs={"x": x})
        yield Program(label=f"{x.shape}", steps=[threads(kernel, arguments, (o, i, d * h))], checks=[check])


# Batch, input and output channels of a group, groups, volume, kernel, stride, padding, dilation.
VOLUMES = (
    (2, 16, 8, 1, (4, 5, 6), (2, 3, 2), (1, 1, 2), (0, 1, 1), (1, 2, 1)),
    (1, 32, 70, 2, (3, 7, 6), (1, 2, 3), (2, 1, 1), (1, 0, 2), (2, 1, 1)),
    (1, 16, 24, 1, (2, 9, 9), (2, 2, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1)),
)


def volumes(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`conv3d_simd`: channels last; weights (kD, kH, kW, in, out); the pixels of one output plane in tiles."""
    tall, wide, down, across = (int(kernel.parts[name]) for name in ("bm", "bn", "wm", "wn"))
    dtype = kernel.dtype("act")
    for number, (n, c_in, c_out, count, volume, size, stride, padding, dilation) in enumerate(VOLUMES):
        out = tuple(
            (i + 2 * p - d * (k - 1) - 1) // s + 1
            for i, k, s, p, d in zip(volume, size, stride, padding, dilation, strict=True)
        )
        channels, outs = c_in * count, c_out * count
        shape, whole = (n, channels, *volume), (n, outs, *out)
        x = filled(case, dtype, shape, strides=_channels_last(shape), align=16)
        w = filled(case, dtype, (outs, c_in, *size), strides=_last(size, c_in, outs), align=16)
        bias, planar = filled(case, dtype, (outs,)), number == 2
        y = result(dtype, whole, strides=None if planar else _channels_last(whole), align=16)
        params: dict[str, object] = {"N": n, "C_in": channels, "C_out": outs, "has_bias": number != 1}
        params |= {"C_in_per_group": c_in, "C_out_per_group": c_out}
        own: dict[str, object] = {"out_ncdhw": planar}
        for names, triple in zip(("D H W", "outD outH outW", "kD kH kW", "sD sH sW", "padD padH padW", "dD dH dW"),
                                 (volume, out, size, stride, padding, dilation), strict=True):  # fmt: skip
            deep, high, broad = names.split()
            own[deep] = triple[0]
            params |= {high: triple[1], broad: triple[2]}
        values = {"act": x, "wts": w, "dst": y, "bias": bias, "gP": {"conv2d": params, **own}}
        inputs: dict[str, object] = {"x": x, "w": w, "bias": bias if number != 1 else 0, "stride": list(stride)}
        inputs |= {"padding": list(padding), "dilation": list(dilation), "groups": count}
        terms = c_in * math.prod(size)
        check = Reference(got=y, name="nn_conv3d", inputs=inputs, scale=terms * 2.0**-19)
        grid = (count * -(-c_out // wide), -(-(out[1] * out[2]) // tall), n * out[0])
        step = groups(kernel, bound(kernel, values), grid, (32 * down * across,))
        yield Program(label=f"{shape} * {(outs, c_in, *size)}", steps=[step], checks=[check])


def _channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    _, c, d, h, w = shape
    return (c * d * h * w, 1, h * w * c, w * c, c)


def _last(size: tuple[int, ...], c_in: int, outs: int) -> tuple[int, ...]:
    _, h, w = size
    return (1, outs, h * w * c_in * outs, w * c_in * outs, c_in * outs)
