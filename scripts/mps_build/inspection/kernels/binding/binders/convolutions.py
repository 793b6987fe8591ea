"""Convolutions a thread computes alone, unpooling, and the gradient of distances."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...dtypes import DTYPES
from ...program import Program, Reference, Value, View, inout_buffer, input_buffer
from ...values import pack
from ..contracts import Case, Kernel
from .sampling import zeroed
from .tensors import filled, groups, result, strides_of, threads

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


def max_unpool(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each input; indices count within the image; what none names stays as it was."""
    dtype = kernel.dtype("input")
    for shape, large in (((2, 3, 2, 3), (5, 7)), ((1, 2, 2, 1, 3), (4, 3, 5))):
        x, y = filled(case, dtype, shape, low=1.0, high=99.0), zeroed(dtype, (*shape[:2], *large))
        plane = math.prod(shape[2:])
        places = [
            i for _ in range(shape[0] * shape[1]) for i in case.values.random.sample(range(math.prod(large)), plane)
        ]
        kind = DTYPES["long"]
        index = View(buffer=input_buffer(pack(kind, places)), dtype=kind, shape=shape)
        params = {
            "dims": len(shape),
            "pooling_dims": len(large),
            "input_sizes": shape,
            "input_strides": strides_of(x),
            "output_sizes": y.shape,
            "output_strides": strides_of(y),
            "indices_strides": strides_of(index),
        }
        arguments: dict[str | int, Value] = {
            "output": y.buffer,
            "input": x.buffer,
            "indices": index.buffer,
            "params": kernel.pack("params", params),
            "error_buffer": inout_buffer(bytes(16384)),
        }
        inputs = {"x": x, "index": index, "shape": list(y.shape)}
        check = Reference(got=y, name="nn_max_unpool", inputs=inputs)
        yield Program(label=f"{shape} to {large}", steps=[threads(kernel, arguments, (x.count,))], checks=[check])


def cdist_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (features, rows, batch) in groups along the features; p0 is the norm 1, p1 the largest, p2 any other."""
    dtype, norm, width = kernel.dtype("x1"), int(kernel.parts["p"]), int(kernel.parts["width"])
    for batch, p, r, d in ((2, 3, 5, 7), (1, 2, 37, 40), (1, 1, 130, 3)):
        # Multiples of 1/8: differences and the largest of them are exact in every type.
        left, right = ([n / 8 for n in case.values.integers(batch * k * d, -12, 12)] for k in (p, r))
        power = 2.5
        distances = []
        for row in range(batch * p):
            for column in range(r):
                begin = (row // p * r + column) * d
                gaps = [abs(a - b) for a, b in zip(left[row * d : row * d + d], right[begin : begin + d], strict=True)]
                distances.append(max(gaps) if norm == 1 else sum(g**power for g in gaps) ** (1 / power))
        x1 = View(buffer=input_buffer(pack(dtype, left)), dtype=dtype, shape=(batch, p, d))
        x2 = View(buffer=input_buffer(pack(dtype, right)), dtype=dtype, shape=(batch, r, d))
        far = View(buffer=input_buffer(pack(DTYPES["float"], distances)), dtype=DTYPES["float"], shape=(batch, p, r))
        grad, out = filled(case, kernel.dtype("grad"), (batch, p, r)), result(kernel.dtype("out"), (batch, p, d))
        params = {"B": batch, "P": p, "R": r, "D": d, "p_minus_1": power - 1}
        arguments: dict[str | int, Value] = {
            "x1": x1.buffer,
            "x2": x2.buffer,
            "grad": grad.buffer,
            "cdist": far.buffer,
            "out": out.buffer,
            "params": kernel.pack("params", params),
        }
        inputs = {"x1": x1, "x2": x2, "grad": grad, "far": far, "norm": norm, "power": power}
        check = Reference(got=out, name="nn_cdist_backward", inputs=inputs, scale=r * 2.0**-19)
        step = groups(kernel, arguments, (-(-d // width), p, batch), (width,))
        yield Program(label=f"{batch} x {p} x {r}, {d} features", steps=[step], checks=[check])
