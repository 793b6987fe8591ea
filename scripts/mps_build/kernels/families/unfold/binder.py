"""`im2col`, `col2im` and the gradient of `unfold`."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.launch import Program, Reference, Value
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, result, strides_of, threads
from ..shared.windows import WINDOWS, out_size


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
