"""Gradients of embeddings."""

from __future__ import annotations

from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, Value, View, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, strides_of, threads
from ..shared.zeroed import zeroed

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
        varies = "" if is_count else "float atomics"
        yield Program(
            label=f"{shape} x {features}",
            steps=[threads(kernel, arguments, (grid,))],
            checks=[check],
            varies=varies,
        )
