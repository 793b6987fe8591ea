"""Pools and unpooling, `im2col`, `col2im`, `unfold`, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import NotBound, Program, Reference, Value, View, inout_buffer, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, result, strides_of, threads, zeroed

# Shape, kernel, stride, padding, dilation.
WINDOWS = (
    ((2, 3, 7, 9), (3, 2), (2, 1), (1, 1), (1, 2)),
    ((1, 2, 5, 6, 7), (2, 3, 2), (1, 2, 2), (0, 1, 1), (1, 1, 1)),
    ((2, 2, 1, 11), (1, 4), (1, 3), (0, 2), (1, 1)),
)


def out_size(n: int, k: int, s: int, p: int, d: int) -> int:
    """Return how many windows of `k` elements fit along `n`: stride, padding and dilation are s, p and d."""
    return (n + 2 * p - d * (k - 1) - 1) // s + 1


def max_unpool(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each input; indices count within the image; what none names stays as it was."""
    dtype = kernel.dtype("input")
    for shape, large in (((2, 3, 2, 3), (4, 7)), ((1, 2, 2, 1, 3), (4, 3, 5))):
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


def _windows(kernel: Kernel, dilated: bool) -> Iterator[tuple[int, tuple[int, ...], tuple[int, ...], list[list[int]]]]:
    for number, (shape, size, stride, padding, dilation) in enumerate(WINDOWS):
        spread = dilation if dilated else (1,) * len(size)
        spatial = tuple(map(out_size, shape[2:], size, stride, padding, spread))
        yield number, shape, (*shape[:2], *spatial), [list(size), list(stride), list(padding), list(spread)]


def max_pool(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each element of the result; sizes and strides outermost first; indices count within the image."""
    dtype = kernel.dtype("input")
    high = 1.0 if dtype.name == "bool" else 99.0
    for _, shape, out, (size, stride, padding, dilation) in _windows(kernel, dilated=True):
        x = filled(case, dtype, shape, low=-high, high=high)
        y, at = result(kernel.dtype("output"), out), result(DTYPES["long"], out)
        params = {
            "dims": len(shape),
            "pooling_dims": len(size),
            "input_sizes": shape,
            "input_strides": strides_of(x),
            "output_sizes": out,
            "output_strides": strides_of(y),
            "indices_sizes": out,
            "indices_strides": strides_of(at),
            "kernel_size": size,
            "stride": stride,
            "padding": padding,
            "dilation": dilation,
            "return_indices": True,
        }
        arguments: dict[str | int, Value] = {
            "input": x.buffer,
            "output": y.buffer,
            "indices": at.buffer,
            "params": kernel.pack("params", params),
        }
        inputs = {"x": x, "size": size, "stride": stride, "padding": padding, "dilation": dilation}
        checks = [
            Reference(got=each, name="nn_max_pool", inputs={**inputs, "which": which})
            for which, each in enumerate((y, at))
        ]
        yield Program(label=f"{shape}, {size}", steps=[threads(kernel, arguments, (y.count,))], checks=checks)


def avg_pool(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each window, forward and backward; the input's gradient is added up from zeros."""
    is_backward = kernel.has("grad_input")
    dtype = kernel.dtype("grad_output" if is_backward else "input")
    if dtype.name == "bool":
        raise NotBound("what the mean of bools is")
    for number, shape, out, (size, stride, padding, _) in _windows(kernel, dilated=False):
        if is_backward and len(size) != 3:
            continue  # its loops are over three dimensions; two are not computed by this kernel
        x = filled(case, dtype, out if is_backward else shape)
        got: View = zeroed(dtype, shape) if is_backward else result(dtype, out)
        small, large = (got, x) if is_backward else (x, got)
        include, divisor = number % 2 == 0, 5 if number == 2 else None
        params: dict[str, object] = {
            "dims": len(shape),
            "pooling_dims": len(size),
            "input_sizes": shape,
            "input_strides": strides_of(small),
            "output_sizes": out,
            "output_strides": strides_of(large),
            "kernel_size": size,
            "stride": stride,
            "padding": padding,
            "divisor_override": divisor or 0,
            "count_include_pad": include,
            "has_divisor_override": divisor is not None,
        }
        source, target = ("grad_output", "grad_input") if is_backward else ("input", "output")
        arguments: dict[str | int, Value] = {
            source: x.buffer,
            target: got.buffer,
            "params": kernel.pack("params", params),
        }
        inputs: dict[str, object] = {"x": x, "shape": list(shape), "size": size, "stride": stride, "padding": padding}
        inputs |= {"include": include, "divisor": divisor or 0}
        name = "nn_avg_pool_backward" if is_backward else "nn_avg_pool"
        scale = 2.0**-19
        if is_backward and dtype.size == 2:
            scale = 16 * 2.0 ** (-7 if dtype.name == "bfloat" else -10)
        check = Reference(got=got, name=name, inputs=inputs, scale=scale)
        steps = [threads(kernel, arguments, (large.count,))]
        varies = "float atomics" if is_backward else ""
        yield Program(label=f"{shape}, {size}", steps=steps, checks=[check], varies=varies)


def max_pool_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each element of the result's gradient; the input's is added up from zeros."""
    dtype = kernel.dtype("grad_output")
    for _, shape, out, _ in _windows(kernel, dilated=True):
        dy, dx = filled(case, dtype, out), zeroed(dtype, shape)
        plane = dx.count // (shape[0] * shape[1])
        at = input_buffer(case.values.whole(DTYPES["long"], dy.count, 0, plane - 1))
        index = View(buffer=at, dtype=DTYPES["long"], shape=out)
        params = {
            "dims": len(shape),
            "pooling_dims": len(shape) - 2,
            "grad_input_sizes": shape,
            "grad_input_strides": strides_of(dx),
            "grad_output_sizes": out,
            "grad_output_strides": strides_of(dy),
            "indices_strides": strides_of(index),
        }
        arguments: dict[str | int, Value] = {
            "grad_input": dx.buffer,
            "grad_output": dy.buffer,
            "indices": at,
            "params": kernel.pack("params", params),
        }
        scale = 2.0**-17 if dtype.size == 4 else 32 * 2.0 ** (-7 if dtype.name == "bfloat" else -10)
        inputs = {"dy": dy, "index": index, "shape": list(shape)}
        check = Reference(got=dx, name="nn_max_pool_backward", inputs=inputs, scale=scale)
        steps = [threads(kernel, arguments, (dy.count,))]
        yield Program(label=f"{shape} from {out}", steps=steps, checks=[check], varies="float atomics")


def col2im(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (width, height, channels * batch); all pairs are (height, width)."""
    dtype = kernel.dtype("data_col")
    for n, c, image, size, stride, padding, dilation in (
        (2, 3, (7, 9), (3, 2), (2, 1), (1, 1), (1, 2)),
        (1, 2, (4, 11), (1, 4), (1, 3), (0, 2), (1, 1)),
    ):
        columns = [
            (i + 2 * p - d * (k - 1) - 1) // s + 1
            for i, k, s, p, d in zip(image, size, stride, padding, dilation, strict=True)
        ]
        shape = (n, c * size[0] * size[1], columns[0] * columns[1])
        x, y = filled(case, dtype, shape), result(kernel.dtype("data_im"), (n, c, *image))
        strides = strides_of(x)
        values: dict[str, object] = {
            "col_batch_stride": strides[0],
            "channels": c,
            "im_hw": image,
            "kernel_hw": size,
            "pad_hw": padding,
            "stride_hw": stride,
            "dilation_hw": dilation,
            "col_hw": columns,
            "im_batch_stride": strides_of(y)[0],
            "col_inner_strides": strides[1:],
        }
        arguments: dict[str | int, Value] = {"data_col": x.buffer, "data_im": y.buffer}
        arguments |= {name: kernel.pack(name, value) for name, value in values.items() if kernel.has(name)}
        inputs = {"x": x, "image": list(image), "size": list(size), "stride": list(stride), "padding": list(padding)}
        check = Reference(got=y, name="nn_fold", inputs={**inputs, "dilation": list(dilation)}, scale=2.0**-19)
        steps = [threads(kernel, arguments, (image[1], image[0], n * c))]
        yield Program(label=f"{n} x {c} x {image}", steps=steps, checks=[check])


def im2col(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (windows, channels, batch); sizes and strides innermost first."""
    dtype = kernel.dtype("inputData")
    for shape, size, stride, padding, dilation in ((s, *rest) for s, *rest in WINDOWS if len(s) == 4):
        h, w = map(out_size, shape[2:], size, stride, padding, dilation)
        n, c = shape[:2]
        x, y = filled(case, dtype, shape), result(kernel.dtype("outputData"), (n, c * size[0] * size[1], h * w))
        arguments: dict[str | int, Value] = {
            "inputData": x.buffer,
            "outputData": y.buffer,
            "kernel_dilation": kernel.pack("kernel_dilation", [*size[::-1], *dilation[::-1]]),
            "padding_stride": kernel.pack("padding_stride", [*padding[::-1], *stride[::-1]]),
            "input_strides": kernel.pack("input_strides", strides_of(x)[::-1]),
            "output_strides": kernel.pack("output_strides", [*strides_of(y)[::-1], w]),
            "input_sizes": kernel.pack("input_sizes", [*shape[:1:-1], c, n]),
        }
        inputs = {"x": x, "size": list(size), "dilation": list(dilation), "padding": list(padding)}
        check = Reference(got=y, name="nn_unfold", inputs={**inputs, "stride": list(stride)})
        yield Program(label=f"{shape}, {size}", steps=[threads(kernel, arguments, (h * w, c, n))], checks=[check])


def unfold_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each element of the gradient that is made; strides in elements, all in one order."""
    dtype = kernel.dtype("grad_in")
    for shape, dim, size, step in (((3, 11, 2), 1, 4, 3), ((2, 9), 1, 3, 1), ((8, 2), 0, 2, 4)):
        windows = (shape[dim] - size) // step + 1
        unfolded = (*shape[:dim], windows, *shape[dim + 1 :], size)
        dy, dx = filled(case, dtype, unfolded), result(kernel.dtype("grad_out"), shape)
        arguments: dict[str | int, Value] = {
            "grad_in": dy.buffer,
            "grad_out": dx.buffer,
            "input_strides": kernel.pack("input_strides", strides_of(dy)),
            "output_sizes": kernel.pack("output_sizes", shape),
            "output_strides": kernel.pack("output_strides", strides_of(dx)),
            "dim_size_step_ndim": kernel.pack("dim_size_step_ndim", [dim, size, step, len(shape)]),
        }
        inputs = {"dy": dy, "shape": list(shape), "dim": dim, "size": size, "step": step}
        check = Reference(got=dx, name="nn_unfold_backward", inputs=inputs, scale=2.0**-20)
        yield Program(label=f"{shape}, {size}", steps=[threads(kernel, arguments, (dx.count,))], checks=[check])
