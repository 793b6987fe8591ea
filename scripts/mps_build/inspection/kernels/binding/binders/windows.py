"""Pooling, im2col and unfold: windows over an image."""

from __future__ import annotations

from collections.abc import Iterator

from ...dtypes import DTYPES
from ...program import Program, Reference, Value, View, input_buffer
from ..contracts import Case, Kernel, NotBound
from .sampling import zeroed
from .tensors import filled, result, strides_of, threads

# Shape, kernel, stride, padding, dilation.
POOLS = (
    ((2, 3, 7, 9), (3, 2), (2, 1), (1, 1), (1, 2)),
    ((1, 2, 5, 6, 7), (2, 3, 2), (1, 2, 2), (0, 1, 1), (1, 1, 1)),
    ((2, 2, 1, 11), (1, 4), (1, 3), (0, 2), (1, 1)),
)


def _out_size(n: int, k: int, s: int, p: int, d: int) -> int:
    return (n + 2 * p - d * (k - 1) - 1) // s + 1


def _windows(kernel: Kernel, dilated: bool) -> Iterator[tuple[int, tuple[int, ...], tuple[int, ...], list[list[int]]]]:
    for number, (shape, size, stride, padding, dilation) in enumerate(POOLS):
        spread = dilation if dilated else (1,) * len(size)
        spatial = tuple(map(_out_size, shape[2:], size, stride, padding, spread))
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
        unordered = "float atomics" if is_backward else ""
        yield Program(label=f"{shape}, {size}", steps=steps, checks=[check], unordered=unordered)


def im2col(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (windows, channels, batch); sizes and strides innermost first."""
    dtype = kernel.dtype("inputData")
    for shape, size, stride, padding, dilation in ((s, *rest) for s, *rest in POOLS if len(s) == 4):
        h, w = map(_out_size, shape[2:], size, stride, padding, dilation)
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
        yield Program(label=f"{shape} from {out}", steps=steps, checks=[check], unordered="float atomics")
