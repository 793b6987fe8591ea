"""Slices that an index or a mask chooses: selected, copied, filled, added, reduced into."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import (
    Known,
    NotBound,
    Program,
    Reference,
    Step,
    View,
    dense_strides,
    inout_buffer,
    input_buffer,
    output_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import (
    SELECTED,
    Arguments,
    bound,
    grid_of,
    known_bytes,
    numbered,
    one_launch,
    padded,
    places_of,
    random_bytes,
    reach,
    result,
    scale_of,
    strides_of,
    swept,
    threads,
)


def select_dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_select_dim_dense`: threads (inner, indices, outer); indices out of range are clamped."""
    dtype, kind = kernel.dtype("output"), kernel.dtype("index")
    for outer, size, inner, count, every in ((2, 5, 7, 4, 1), (1, 9, 1, 33, 2), (3, 1, 40, 2, 1)):
        chosen = case.values.integers(count, 0, size - 1)
        chosen[0], chosen[-1] = size - 1, 0
        spread = [0] * ((count - 1) * every + 1)
        spread[::every] = chosen
        x, out = swept(case, dtype, (outer, size, inner)), result(dtype, (outer, count, inner))
        row = inner * dtype.size
        want = b"".join(x.buffer.data[(o * size + each) * row :][:row] for o in range(outer) for each in chosen)
        params = {"inner": inner, "in_dim_size": size, "out_dim_size": count, "index_stride": every}
        values = {"output": out, "input": x, "index": numbered(kind, spread), "params": params}
        step = threads(kernel, bound(kernel, values), (inner, count, outer))
        yield Program(
            label=f"{outer} x {size} x {inner}, {count} indices", steps=[step], checks=[Known(got=out, want=want)]
        )


def select_strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_select_dim`: IndexReduceParams, `self` the input and `source` the result; indices are kept in range."""
    dtype, index_type = kernel.dtype("output"), kernel.dtype("index")
    for shape, dim, numel, gap in SELECTED:
        out_shape = tuple(numel if d == dim else n for d, n in enumerate(shape))
        strides, out_strides = padded(shape, gap), padded(out_shape, 2 * gap)
        data, size = case.values.sweep(dtype, reach(shape, strides)), dtype.size
        chosen = case.values.integers(numel, 0, shape[dim] - 1)
        chosen[-1] = shape[dim] - 1
        want = b""
        for position in itertools.product(*map(range, out_shape)):
            at = sum((chosen[p] if d == dim else p) * strides[d] for d, p in enumerate(position)) * size
            want += data[at : at + size]
        params = {
            "ndim": len(shape),
            "reduce_dim": dim,
            "self_strides": strides,
            "self_sizes": shape,
            "source_strides": out_strides,
            "source_sizes": out_shape,
            "index_stride": 1,
        }
        out = output_buffer(reach(out_shape, out_strides) * size)
        arguments: Arguments = {
            "output": out,
            "index": input_buffer(pack(index_type, chosen)),
            "input": input_buffer(data),
            "params": kernel.pack("params", params),
        }
        check = Known(got=View(buffer=out, dtype=dtype, shape=out_shape, strides=out_strides), want=want)
        yield Program(
            label=f"{shape}, dim {dim}, {numel} indices, gaps of {gap}",
            checks=[check],
            steps=[one_launch(kernel, arguments, (math.prod(out_shape), 1, 1))],
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
        varies = "" if dtype.is_exact or op in ("reduce_amax", "reduce_amin") else "atomic sums and products of floats"
        check = Reference(got=got, name=name, inputs=inputs, scale=4 * scale_of(dtype))
        yield Program(
            label=f"{shape}, dim {dim}, {numel} indices, gaps of {gap}",
            steps=[step],
            checks=[check],
            varies=varies,
        )


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


def by_sizes(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_copy` up to 2.11: a thread an element of the result, which looks for its own index."""
    dtype, kind, is_strided = kernel.dtype("output"), kernel.dtype("indices"), kernel.has("input_strides")
    for shape, dim, numel in (((3, 7, 5), 1, 4), ((40,), 0, 33), ((2, 3, 4, 5), 3, 2)):
        chosen = case.values.random.sample(range(shape[dim]), numel)
        source_shape = tuple(numel if d == dim else n for d, n in enumerate(shape))
        double = {
            s: tuple(2 * each for each in dense_strides(s)) if is_strided else None for s in (shape, source_shape)
        }
        x = swept(case, dtype, shape, strides=double[shape])
        source = swept(case, dtype, source_shape, strides=double[source_shape])
        out = result(dtype, shape)
        every = 2 if is_strided else 1
        spaced = [0] * ((numel - 1) * every + 1)
        spaced[::every] = chosen
        values: dict[str, object] = {"output": out, "input": x, "source": source, "indices": numbered(kind, spaced)}
        values |= {"dim": dim, "sizes": shape, "ndim": len(shape), "indices_numel": numel, "indices_stride": every}
        for name, view in (("input", x), ("output", out), ("source", source)):
            values[f"{name}_strides"] = strides_of(view)
        check = Reference(got=out, name="index_copied", inputs={"x": x, "source": source, "index": chosen, "dim": dim})
        step = threads(kernel, bound(kernel, values), (out.count,))
        yield Program(label=f"{shape}, dim {dim}, {numel} indices", steps=[step], checks=[check])


def set_mask(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_set_mask`: the indices' places become true; `index_fill_zero_mask`: all become false."""
    for size, count, every in ((9, 4, 1), (50, 33, 2)):
        if not kernel.has("indices"):
            out = View(buffer=output_buffer(size), dtype=DTYPES["bool"], shape=(size,))
            step = threads(kernel, bound(kernel, {"mask": out}), (size,))
            yield Program(label=f"{size} places", steps=[step], checks=[Known(got=out, want=bytes(size))])
            continue
        chosen = [
            each - size if k % 2 else each for k, each in enumerate(case.values.random.sample(range(size), count))
        ]
        spread = [0] * ((count - 1) * every + 1)
        spread[::every] = chosen
        marked = {each % size for each in chosen}
        out = View(buffer=inout_buffer(bytes(size)), dtype=DTYPES["bool"], shape=(size,))
        values = {"mask": out, "indices": spread, "dim_size": size, "indices_stride": every}
        want = bytes(int(at in marked) for at in range(size))
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} of {size}, every {every}", steps=[step], checks=[Known(got=out, want=want)])


def fill_dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_dense`: a thread an element of the slices that are filled; negative indices wrap."""
    dtype = kernel.dtype("output")
    for outer, size, inner, numel in ((3, 7, 5, 4), (1, 40, 1, 33), (2, 3, 70, 2)):
        chosen = [i - size if k % 2 else i for k, i in enumerate(case.values.random.sample(range(size), numel))]
        before, value = case.values.sweep(dtype, outer * size * inner), case.values.moderate(dtype, 1, 1, 2)
        after, row = bytearray(before), inner * dtype.size
        for o, i in itertools.product(range(outer), chosen):
            at = (o * size + i % size) * row
            after[at : at + row] = value * inner
        out = inout_buffer(before)
        arguments: Arguments = {
            "output": out,
            "indices": input_buffer(pack(DTYPES["long"], chosen)),
            "fill_val": kernel.pack("fill_val", value),
            "dim_size": kernel.pack("dim_size", size),
            "dim_stride": kernel.pack("dim_stride", inner),
            "slice_numel": kernel.pack("slice_numel", outer * inner),
        }
        launch = one_launch(kernel, arguments, (numel * outer * inner, 1, 1))
        yield Program(
            label=f"{outer} x {size} x {inner}, {numel} indices",
            steps=[launch],
            checks=[known_bytes(out, dtype, bytes(after))],
        )


def fill_strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_strided`: the slice's sizes and strides without `dim`."""
    dtype = kernel.dtype("output")
    for number, (shape, dim, numel, gap) in enumerate(SELECTED):
        every, size = number + 1, dtype.size
        chosen = [
            i - shape[dim] if k % 2 else i for k, i in enumerate(case.values.random.sample(range(shape[dim]), numel))
        ]
        strides = padded(shape, gap)
        before, value = case.values.sweep(dtype, reach(shape, strides)), case.values.moderate(dtype, 1, 1, 2)
        after, taken = bytearray(before), {i % shape[dim] for i in chosen}
        for position, at in zip(itertools.product(*map(range, shape)), places_of(shape, strides), strict=True):
            if position[dim] in taken:
                after[at * size : (at + 1) * size] = value
        others = [d for d in reversed(range(len(shape))) if d != dim]
        indices = [0] * ((numel - 1) * every + 1)
        indices[::every] = chosen
        slice_numel, out = math.prod(shape[d] for d in others), inout_buffer(before)
        constants: dict[str, object] = {
            "fill_val": value,
            "dim_size": shape[dim],
            "dim_out_stride": strides[dim],
            "slice_sizes": [shape[d] for d in others] or [1],
            "slice_out_strides": [strides[d] for d in others] or [0],
            "slice_ndim": len(others),
            "slice_numel": slice_numel,
            "indices_stride": every,
        }
        arguments: Arguments = {"output": out, "indices": input_buffer(pack(DTYPES["long"], indices))}
        arguments |= {name: kernel.pack(name, each) for name, each in constants.items()}
        launch = one_launch(kernel, arguments, (numel * slice_numel, 1, 1))
        yield Program(
            label=f"{shape}, dim {dim}, gaps of {gap}", steps=[launch], checks=[known_bytes(out, dtype, bytes(after))]
        )


def masked(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_fill_..._from_mask`: which places of `dim` are filled is a mask."""
    dtype, is_strided = kernel.dtype("output"), kernel.has("ndim")
    for shape, dim, _, gap in SELECTED:
        strides, size = padded(shape, gap if is_strided else 0), dtype.size
        mask = [case.values.random.randrange(2) for _ in range(shape[dim])]
        mask[0], mask[-1] = 1, 0
        before, value = case.values.sweep(dtype, reach(shape, strides)), case.values.moderate(dtype, 1, 1, 2)
        after = bytearray(before)
        for position, at in zip(itertools.product(*map(range, shape)), places_of(shape, strides), strict=True):
            if mask[position[dim]]:
                after[at * size : (at + 1) * size] = value
        out, inner = inout_buffer(before), math.prod(shape[dim + 1 :])
        arguments: Arguments = {
            "output": out,
            "mask": input_buffer(bytes(mask)),
            "fill_val": kernel.pack("fill_val", value),
        }
        if is_strided:
            order = list(reversed(range(len(shape))))
            arguments |= {
                "sizes": kernel.pack("sizes", [shape[d] for d in order]),
                "out_strides": kernel.pack("out_strides", [strides[d] for d in order]),
                "dim": kernel.pack("dim", order.index(dim)),
                "ndim": kernel.pack("ndim", len(shape)),
            }
            grid = (math.prod(shape), 1, 1)
        else:
            arguments |= {
                "dim_size": kernel.pack("dim_size", shape[dim]),
                "inner_size": kernel.pack("inner_size", inner),
            }
            grid = (inner, shape[dim], math.prod(shape[:dim]))
        yield Program(
            label=f"{shape}, dim {dim}, gaps of {gap}",
            steps=[one_launch(kernel, arguments, grid)],
            checks=[known_bytes(out, dtype, bytes(after))],
        )


def masked_strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`masked_fill_scalar_strided`: sizes and strides innermost first, of the tensor and of the mask."""
    dtype = kernel.dtype("input")
    size = dtype.size
    for shape, gap, spread in (((5, 7), 3, 1), ((2, 3, 4), 1, 0), ((40,), 2, 2)):
        row, mask_row = shape[-1] + gap, shape[-1] * (spread + 1)
        strides = [1 if len(shape) > 1 else 2, row, row * shape[-2] + 1 if len(shape) > 2 else 0][: len(shape)]
        masks = [spread + 1, mask_row, 0][: len(shape)]  # the outermost of three is broadcast
        span = 1 + sum((n - 1) * s for n, s in zip(shape[::-1], strides, strict=True))
        mask_span = 1 + sum((n - 1) * s for n, s in zip(shape[::-1], masks, strict=True))
        before, mask = random_bytes(case, span * size), bytes(case.values.integers(mask_span, 0, 1))
        value = random_bytes(case, size)
        after = bytearray(before)
        for number in range(math.prod(shape)):
            at = place = 0
            rest = number
            for n, s, m in zip(shape[::-1], strides, masks, strict=True):
                at, place, rest = at + rest % n * s, place + rest % n * m, rest // n
            if mask[place]:
                after[at * size : at * size + size] = value
        out = View(buffer=inout_buffer(before), dtype=dtype, shape=(span,))
        values = {"input": out, "mask": input_buffer(mask), "val": value, "sizes": shape[::-1], "ndim": len(shape)}
        arguments = bound(kernel, values | {"input_strides": strides, "mask_strides": masks})
        step = threads(kernel, arguments, (math.prod(shape),))
        yield Program(label=f"{shape}, strides {strides}", steps=[step], checks=[Known(got=out, want=bytes(after))])


def masked_dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`masked_fill_scalar`, dense, and with a mask that repeats (`mask_numel`)."""
    dtype = kernel.dtype("input")
    for count, period in ((77, 11), (128, 32), (5, 5)):
        length = period if kernel.has("mask_numel") else count
        mask = [case.values.random.randrange(2) for _ in range(length)]
        before, value, size = case.values.sweep(dtype, count), case.values.moderate(dtype, 1, 1, 100), dtype.size
        want = b"".join(value if mask[i % length] else before[i * size : (i + 1) * size] for i in range(count))
        data = inout_buffer(before)
        arguments: Arguments = {"input": data, "mask": input_buffer(bytes(mask)), "val": kernel.pack("val", value)}
        if kernel.has("mask_numel"):
            arguments["mask_numel"] = kernel.pack("mask_numel", length)
        yield Program(
            label=f"{count} elements, {length} of the mask",
            steps=[one_launch(kernel, arguments, (count, 1, 1))],
            checks=[known_bytes(data, dtype, want)],
        )
