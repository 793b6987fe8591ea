"""Embedding bags, and the gradients of embeddings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Program, Reference, Value, View, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, error_buffer, filled, no_error, numbered, result, strides_of, threads, zeroed

WEIGHTS = 7


def embedding_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
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


# Weights, features, bags, indices; first indices of the bags; a padding index.
BAGS = ((9, 5, (0, 3, 3, 7), 12, -1), (20, 3, (0, 2), 33, 4), (5, 40, (0,), 6, 0))


MODES = ("sum", "mean", "max")


def embedding_bag(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`embedding_bag`: a thread a feature of a bag."""
    dtype, kind = kernel.dtype("weight"), kernel.dtype("indices")
    for (many, width, offsets, count, padding), mode in itertools.product(BAGS, range(3)):
        weight = filled(case, dtype, (many, width), strides=(width + 1, 1))
        index = numbered(kind, case.values.integers(count, 0, many - 1))
        each = filled(case, dtype, (count,), strides=(2,))
        bags, weighted = len(offsets), mode == 0 and many != 20
        out, where = result(dtype, (bags, width)), zeroed(kind, (bags, width))
        of_bag, size, error = result(kind, (count,)), result(kind, (bags,)), error_buffer()
        params = {"weight_strides": (width + 1, 1), "output_strides": (width, 1), "max_indices_strides": (width, 1)}
        more = {"per_sample_weights_stride": 2, "num_indices": count, "num_bags": bags, "feature_size": width}
        more |= {"num_weights": many, "mode": mode, "padding_idx": padding, "use_per_sample_weights": weighted}
        values: dict[str, object] = {"weight": weight, "indices": index, "offsets": numbered(kind, offsets)}
        values |= {"per_sample_weights": each, "output": out, "offset2bag": of_bag, "bag_size": size}
        values |= {"max_indices": where, "params": {**params, **more}, "error_buf": error}
        inputs: dict[str, object] = {"weight": weight, "index": index, "offsets": list(offsets), "mode": MODES[mode]}
        inputs |= {"padding": padding, "each": each if weighted else 0}
        scale = count * {"half": 2.0**-9, "bfloat": 2.0**-6}.get(dtype.name, 2.0**-20) if mode < 2 else 0.0
        checks = [Reference(got=out, name="bag_values", inputs={**inputs, "which": 0}, scale=scale)]
        checks += [
            Reference(got=got, name="bag_values", inputs={**inputs, "which": which})
            for which, got in ((1, of_bag), (2, size), *(((3, where),) if mode == 2 else ()))
        ]
        step = threads(kernel, bound(kernel, values), (bags * width,))
        label = f"{count} of {many} x {width} into {bags} bags, {MODES[mode]}"
        yield Program(label=label, steps=[step], checks=[*checks, no_error(error)])


def embedding_bag_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`embedding_bag_backward`: a thread a feature of an index (of a bag for max); sums into float words."""
    dtype, kind = kernel.dtype("output_grad"), kernel.dtype("indices")
    for (many, width, offsets, count, padding), mode in itertools.product(BAGS, range(3)):
        bags, weighted = len(offsets), mode == 0 and many != 20
        numbers = case.values.integers(count, 0, many - 1)
        of_bag = [sum(begin <= at for begin in offsets) - 1 for at in range(count)]
        sizes = [sum(b == bag and n != padding for b, n in zip(of_bag, numbers, strict=True)) for bag in range(bags)]
        best = case.values.integers(bags * width, 0, many - 1)
        dy, each = filled(case, dtype, (bags, width)), filled(case, dtype, (count,), strides=(2,))
        dw = zeroed(dtype, (many, width))
        params: dict[str, object] = {"weight_grad_strides": (width, 1), "output_grad_strides": (width, 1)}
        params |= {"max_indices_strides": (width, 1), "per_sample_weights_stride": 2, "feature_size": width}
        params |= {"mode": mode, "padding_idx": padding, "use_per_sample_weights": weighted}
        index, owner = numbered(kind, numbers), numbered(kind, of_bag)
        where, size = numbered(kind, best, (bags, width)), numbered(kind, sizes)
        values: dict[str, object] = {"output_grad": dy, "indices": index, "offset2bag": owner, "bag_size": size}
        values |= {"max_indices": where, "per_sample_weights": each, "weight_grad": dw, "params": params}
        inputs: dict[str, object] = {"dy": dy, "index": index, "owner": owner, "size": size, "where": where}
        inputs |= {"each": each if weighted else 0, "mode": MODES[mode], "padding": padding, "many": many}
        scale = count * {"half": 2.0**-8, "bfloat": 2.0**-5}.get(dtype.name, 2.0**-19)
        check = Reference(got=dw, name="bag_gradient", inputs=inputs, scale=scale)
        step = threads(kernel, bound(kernel, values), ((bags if mode == 2 else count) * width,))
        label = f"{count} of {many} x {width} into {bags} bags, {MODES[mode]}"
        yield Program(label=label, steps=[step], checks=[check], varies="float atomics")


def bag_weights_backward(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`embedding_bag_per_sample_weights_backward`: the product of an index's row and its bag's gradient."""
    dtype, kind = kernel.dtype("output_grad"), kernel.dtype("indices")
    for many, width, offsets, count, padding in BAGS:
        bags = len(offsets)
        owner = numbered(kind, [sum(begin <= at for begin in offsets) - 1 for at in range(count)])
        index = numbered(kind, case.values.integers(count, 0, many - 1))
        weight, dy = filled(case, dtype, (many, width), strides=(width + 1, 1)), filled(case, dtype, (bags, width))
        out = zeroed(dtype, (count,))
        params: dict[str, object] = {"output_grad_strides": (width, 1), "weight_strides": (width + 1, 1)}
        params |= {"per_sample_weights_grad_stride": 1, "feature_size": width, "padding_idx": padding}
        values: dict[str, object] = {"output_grad": dy, "weight": weight, "indices": index, "offset2bag": owner}
        values |= {"per_sample_weights_grad": out, "params": params}
        inputs: dict[str, object] = {"dy": dy, "weight": weight, "index": index, "owner": owner, "padding": padding}
        scale = width * {"half": 2.0**-8, "bfloat": 2.0**-5}.get(dtype.name, 2.0**-19)
        check = Reference(got=out, name="bag_weights_gradient", inputs=inputs, scale=scale)
        step = threads(kernel, bound(kernel, values), (count * width,))
        yield Program(
            label=f"{count} of {many} x {width} into {bags} bags",
            steps=[step],
            checks=[check],
            varies="float atomics",
        )
