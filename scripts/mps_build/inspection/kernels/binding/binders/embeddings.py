"""Gradients of embeddings, and of im2col: sums into what was looked up."""

from __future__ import annotations

from collections.abc import Iterator

from ...dtypes import DTYPES
from ...program import Program, Reference, Value, View, input_buffer
from ...values import pack
from ..contracts import Case, Kernel
from .sampling import zeroed
from .tensors import filled, result, strides_of, threads

WEIGHTS = 7


def dense_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A thread for each feature of each index; `count`: for each index. The weights' gradient begins as zeros."""
    is_count = not kernel.has("grad")
    kind = kernel.dtype("indices")
    for shape, features, padding, by_count in (((3, 4), 5, -1, False), ((19,), 3, 2, True), ((2, 3, 3), 1, -1, True)):
        total = 1
        for each in shape:
            total *= each
        numbers = case.values.integers(total, 0, WEIGHTS - 1)
        indices = View(buffer=input_buffer(pack(kind, numbers)), dtype=kind, shape=shape)
        grad = filled(case, DTYPES["float"] if is_count else kernel.dtype("grad"), (*shape, features))
        params = {
            "outer_sizes": shape,
            "grad_outer_strides": strides_of(grad)[:-1],
            "indices_strides": strides_of(indices),
            "grad_feature_stride": 1,
            "outer_ndim": len(shape),
            "feature_size": features,
            "padding_idx": padding,
            "scale_grad_by_freq": by_count,
        }
        arguments: dict[str | int, Value] = {"indices": indices.buffer, "params": kernel.pack("params", params)}
        inputs: dict[str, object] = {"indices": indices, "count": WEIGHTS, "padding": padding}
        if is_count:
            got = zeroed(DTYPES["int"], (WEIGHTS,))
            arguments["counts"] = got.buffer
            check = Reference(got=got, name="nn_embedding_count", inputs=inputs)
            grid = total
        else:
            got = zeroed(DTYPES["float"], (WEIGHTS, features))  # summed up in float, whatever the gradient is
            counts = input_buffer(pack(DTYPES["uint"], [numbers.count(each) for each in range(WEIGHTS)]))
            arguments |= {"grad": grad.buffer, "counts": counts, "grad_weight": got.buffer}
            inputs |= {"grad": grad, "by_count": by_count}
            check = Reference(got=got, name="nn_embedding_backward", inputs=inputs, scale=2.0**-18)
            grid = grad.count
        unordered = "" if is_count else "float atomics"
        yield Program(
            label=f"{shape} x {features}",
            steps=[threads(kernel, arguments, (grid,))],
            checks=[check],
            unordered=unordered,
        )


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
