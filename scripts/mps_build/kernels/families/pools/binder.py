"""Max and average pools, their gradients, and unpooling."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.errors import NotBound
from ...program.launch import Program, Reference, Value, View, inout_buffer, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, result, strides_of, threads
from ..shared.windows import WINDOWS, out_size
from ..shared.zeroed import zeroed


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
