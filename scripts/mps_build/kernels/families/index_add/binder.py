"""Slices added or reduced into where indices say."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.errors import NotBound
from ...program.launch import Program, Reference, Step, View, inout_buffer, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments, grid_of, padded, reach, scale_of


def combine(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_add`, `index_reduce`: rows of `source` into rows of `self` by atomics; a thread an element of `source`."""
    op, dtype, index_type = kernel.parts["op"], kernel.dtype("source"), kernel.dtype("index")
    name = f"indexed_{op}"
    if name not in case.references:
        raise NotBound(f"no reference {name}")
    for shape, dim, numel, gap, every in (((3, 7, 5), 1, 4, 1, 1), ((8,), 0, 33, 0, 2), ((2, 40), 1, 30, 0, 1)):
        source_shape = tuple(numel if d == dim else n for d, n in enumerate(shape))
        strides, source_strides = padded(shape, gap), padded(source_shape, 2 * gap)
        span = -(-reach(shape, strides) // 4) * 4
        factors = (1, 2) if "prod" in op and dtype.is_exact else (0.8, 1.25) if "prod" in op else (-2.0, 2.0)
        before = case.values.moderate(dtype, span, *factors)
        source = input_buffer(case.values.moderate(dtype, reach(source_shape, source_strides), *factors))
        indices = [0] * ((numel - 1) * every + 1)
        indices[::every] = [case.values.random.randrange(shape[dim]) for _ in range(numel)]
        index, out = input_buffer(pack(index_type, indices)), inout_buffer(before, align=4)
        params = {
            "ndim": len(shape),
            "reduce_dim": dim,
            "self_strides": strides,
            "self_sizes": shape,
            "source_strides": source_strides,
            "source_sizes": source_shape,
            "index_stride": every,
        }
        arguments: Arguments = {"self": out, "index": index, "source": source, "params": kernel.pack("params", params)}
        inputs: dict[str, object] = {
            "before": View(buffer=input_buffer(before), dtype=dtype, shape=shape, strides=strides),
            "source": View(buffer=source, dtype=dtype, shape=source_shape, strides=source_strides),
            "index": View(buffer=index, dtype=index_type, shape=(numel,), strides=(every,)),
            "dim": dim,
        }
        if kernel.has("alpha"):
            alpha: float | int = 1 if dtype.kind == "bool" else 3 if dtype.is_exact else 1.5
            arguments["alpha"] = kernel.pack("alpha", [alpha, 0.0] if dtype.kind == "complex" else alpha)
            inputs["alpha"] = alpha
        count = math.prod(source_shape)
        step = Step(kernel=kernel.name, arguments=arguments, grid=grid_of(count), threadgroup=grid_of(min(count, 32)))
        got = View(buffer=out, dtype=dtype, shape=shape, strides=strides)
        varies = "" if dtype.is_exact or op in ("reduce_amax", "reduce_amin") else "atomic sums and products of floats"
        check = Reference(got=got, name=name, inputs=inputs, scale=4 * scale_of(dtype))
        yield Program(
            label=f"{shape}, dim {dim}, {numel} indices, gaps of {gap}",
            steps=[step],
            checks=[check],
            varies=varies,
        )
