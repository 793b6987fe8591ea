"""`cat`, and `index_copy`, `index_add` and their kin: rows put where indices say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...program import (
    Known,
    Program,
    Reference,
    Step,
    View,
    inout_buffer,
    input_buffer,
    output_buffer,
)
from ...values import pack
from ..contracts import Case, Kernel, NotBound
from .indexing import (
    Arguments,
    grid_of,
    padded,
    reach,
    scale_of,
)


def cat(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`cat`: one input into its place along `cat_dim`; strides in elements, outermost first; two launches share it."""
    source, target = kernel.dtype("input"), kernel.dtype("output")
    for shape, dim, offset, total, pad, split in (
        ((2, 3, 5), 1, 4, 9, 0, 0),
        ((4, 37), 1, 0, 40, 1, 70),
        ((7,), 0, 2, 9, 0, 3),
        ((3, 2, 1, 6), 0, 1, 5, 2, 0),
    ):
        out_shape = tuple(total if d == dim else n for d, n in enumerate(shape))
        in_strides, out_strides = padded(shape, pad)[::1], padded(out_shape, pad)
        if pad and len(shape) > 1:
            in_strides = tuple(reversed(padded(shape[::-1], pad)))
        x = input_buffer(case.values.sweep(source, reach(shape, in_strides)))
        out = output_buffer(reach(out_shape, out_strides) * target.size)
        count, steps = math.prod(shape), []
        shared = {"ndim": len(shape), "cat_dim": dim, "output_strides": out_strides, "output_sizes": out_shape}
        for begin, threads in ((0, split or count), (split, count - split))[: 2 if split else 1]:
            own = {
                "cat_dim_offset": offset,
                "input_element_offset": begin,
                "input_strides": in_strides,
                "input_sizes": shape,
            }
            arguments: Arguments = {
                "input": x,
                "output": out,
                "shared_params": kernel.pack("shared_params", shared),
                "input_params": kernel.pack("input_params", own),
            }
            steps.append(
                Step(
                    kernel=kernel.name,
                    arguments=arguments,
                    grid=grid_of(threads),
                    threadgroup=grid_of(min(threads, 32)),
                )
            )
        view = View(buffer=x, dtype=source, shape=shape, strides=in_strides)
        got = View(buffer=out, dtype=target, shape=shape, strides=out_strides, offset=offset * out_strides[dim])
        check = Reference(got=got, name="cast", inputs={"x": view, "to": target.torch})
        yield Program(label=f"{shape} at {offset} of {total} along {dim}, gaps of {pad}", steps=steps, checks=[check])


def copy_dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_copy_dense`: threads (inner, indices, outer)."""
    dtype, index_type = kernel.dtype("output"), kernel.dtype("indices")
    for outer, size, inner, numel in ((3, 7, 5, 4), (1, 40, 1, 33), (2, 3, 70, 2)):
        chosen = case.values.random.sample(range(size), numel)
        before, source = case.values.sweep(dtype, outer * size * inner), case.values.sweep(dtype, outer * numel * inner)
        after, row = bytearray(before), inner * dtype.size
        for o, (k, index) in itertools.product(range(outer), enumerate(chosen)):
            after[(o * size + index) * row : (o * size + index + 1) * row] = source[
                (o * numel + k) * row : (o * numel + k + 1) * row
            ]
        out = inout_buffer(before)
        arguments: Arguments = {
            "output": out,
            "source": input_buffer(source),
            "indices": input_buffer(pack(index_type, chosen)),
            "dim_size": kernel.pack("dim_size", size),
            "inner": kernel.pack("inner", inner),
            "indices_numel": kernel.pack("indices_numel", numel),
        }
        step = Step(
            kernel=kernel.name, arguments=arguments, grid=(inner, numel, outer), threadgroup=(min(inner, 8), 4, 1)
        )
        got = View(buffer=out, dtype=dtype, shape=(outer * size * inner,))
        yield Program(
            label=f"{outer} x {size} x {inner}, {numel} indices",
            steps=[step],
            checks=[Known(got=got, want=bytes(after))],
        )


def copy_strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_copy_strided`: a slice's sizes and strides without `dim`; negative indices wrap."""
    dtype, index_type = kernel.dtype("output"), kernel.dtype("indices")
    for shape, dim, numel, gap, step_of_index in (
        ((3, 7, 5), 1, 4, 1, 2),
        ((40,), 0, 33, 0, 1),
        ((2, 3, 4, 5), 3, 2, 2, 1),
    ):
        chosen = [
            i - shape[dim] if k % 2 else i for k, i in enumerate(case.values.random.sample(range(shape[dim]), numel))
        ]
        source_shape = tuple(numel if d == dim else n for d, n in enumerate(shape))
        strides, source_strides = padded(shape, gap), padded(source_shape, 2 * gap)
        before, source = (
            case.values.sweep(dtype, reach(shape, strides)),
            case.values.sweep(dtype, reach(source_shape, source_strides)),
        )
        after, size = bytearray(before), dtype.size
        for position in itertools.product(*map(range, source_shape)):
            there = [chosen[p] % shape[dim] if d == dim else p for d, p in enumerate(position)]
            a, b = (
                sum(p * s for p, s in zip(at, by, strict=True)) * size
                for at, by in ((there, strides), (position, source_strides))
            )
            after[a : a + size] = source[b : b + size]
        others = [d for d in reversed(range(len(shape))) if d != dim]
        indices = [0] * (numel * step_of_index)
        indices[::step_of_index] = chosen
        indices = indices[: (numel - 1) * step_of_index + 1]
        out, slice_numel = inout_buffer(before), math.prod(shape[d] for d in others)
        constants: dict[str, object] = {
            "dim_size": shape[dim],
            "dim_out_stride": strides[dim],
            "dim_source_stride": source_strides[dim],
            "slice_sizes": [shape[d] for d in others] or [1],
            "slice_out_strides": [strides[d] for d in others] or [0],
            "slice_source_strides": [source_strides[d] for d in others] or [0],
            "slice_ndim": len(others),
            "slice_numel": slice_numel,
            "indices_stride": step_of_index,
        }
        arguments: Arguments = {
            "output": out,
            "source": input_buffer(source),
            "indices": input_buffer(pack(index_type, indices)),
        }
        arguments |= {name: kernel.pack(name, value) for name, value in constants.items()}
        step = Step(kernel=kernel.name, arguments=arguments, grid=grid_of(numel * slice_numel), threadgroup=grid_of(32))
        got = View(buffer=out, dtype=dtype, shape=(reach(shape, strides),))
        yield Program(
            label=f"{shape}, dim {dim}, {numel} indices, gaps of {gap}",
            steps=[step],
            checks=[Known(got=got, want=bytes(after))],
        )


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
        unordered = (
            "" if dtype.is_exact or op in ("reduce_amax", "reduce_amin") else "atomic sums and products of floats"
        )
        check = Reference(got=got, name=name, inputs=inputs, scale=4 * scale_of(dtype))
        yield Program(
            label=f"{shape}, dim {dim}, {numel} indices, gaps of {gap}",
            steps=[step],
            checks=[check],
            unordered=unordered,
        )
