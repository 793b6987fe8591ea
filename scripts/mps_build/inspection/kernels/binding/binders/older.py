"""Kernels of older releases: offsets of every element in a table, index_copy by sizes, lerp with a tensor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...dtypes import DTYPES, DType
from ...program import Addresses, Buffer, Known, Program, Reference, Shape, View, dense_strides, input_buffer
from ...values import pack
from ..contracts import Case, Kernel, NotBound
from .elementwise import dense_view, spread, spread_output
from .indexed import CASES, _indices, _room
from .tensors import bound, filled, numbered, result, strides_of, swept, threads

LONG = DTYPES["long"]


def _offsets(views: Sequence[View], shape: Shape) -> list[int]:
    """Return the byte offsets of each element in each view, one element after the other."""
    numbers = []
    for position in itertools.product(*map(range, shape)):
        for view in views:
            numbers.append(sum(p * s for p, s in zip(position, strides_of(view), strict=True)) * view.dtype.size)
    return numbers


def _table(kernel: Kernel, views: Sequence[View], shape: Shape, width: int | None = None) -> bytes:
    """Return vectors of three offsets, in the element type that the argument has (16 or 32 bytes each)."""
    rows = _offsets(views, shape)
    argument = kernel.argument("offsets")
    kind = DTYPES["ulong" if "long" in argument.type or width == 64 else "uint"]
    padded = [part for at in range(0, len(rows), 3) for part in (*rows[at : at + 3], 0)]
    return pack(kind, padded)


def binary(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`fmax`, `copysign` and others up to 2.6: offsets (result, left, right) in bytes for each element."""
    name = str(kernel.options.get("reference") or kernel.parts.get("op"))
    if name not in case.references:
        raise NotBound(f"no reference for the operator {name}")
    first, second = next(
        pair for pair in (("input_", "other_"), ("real_", "imag_"), ("abs_", "angle_")) if kernel.has(pair[0])
    )
    dtype = DTYPES[kernel.parts["T"]]
    makes_complex = first != "input_"
    complex_of = {"float": DTYPES["float2"], "half": DTYPES["half2"]}
    if name == "complex_mul":
        dtype = complex_of[dtype.name]
    target = complex_of[dtype.name] if makes_complex else dtype
    if name == "copysign" and dtype.is_exact:
        target = DTYPES["float"]
    for shape, order in (((4099,), (0,)), ((7, 9), (1, 0)), ((3, 4, 5), (2, 0, 1))):
        count = math.prod(shape)
        one, two = case.values.pairs(dtype, dtype, count)
        if name == "polar":
            one, two = (case.values.moderate(dtype, count, -4, 4) for _ in range(2))
        x, y = dense_view(one, dtype, shape), dense_view(two, dtype, shape)
        a, b = spread(one, dtype, shape, order), spread(two, dtype, shape, tuple(range(len(shape))))
        out = spread_output(target, shape, order)
        values = {first: a, second: b, "out_": out, "offsets": input_buffer(_table(kernel, (out, a, b), shape))}
        check = Reference(got=out, name=name, inputs={"x": x, "y": y})
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{shape}, as {order}", steps=[step], checks=[check])


def cross(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`cross` up to 2.11: offsets (result, left, right) of each product, and the strides along the three numbers."""
    dtype = DTYPES[kernel.parts["T"]]
    for shape in ((5, 3), (2, 4, 3), (33, 3)):
        low, high = (0, 5) if dtype.size == 1 else (-2, 2)
        a = filled(case, dtype, shape, strides=tuple(2 * each for each in dense_strides(shape)), low=low, high=high)
        b = filled(case, dtype, shape, low=low, high=high)
        out = result(dtype, shape)
        rows = [replace(each, shape=shape[:-1], strides=strides_of(each)[:-1]) for each in (out, a, b)]
        values: dict[str, object] = {"input_": a, "other_": b, "out_": out}
        values["offsets"] = input_buffer(_table(kernel, rows, shape[:-1]))
        values |= {"outStride": 1, "inputStride": 2, "otherStride": 1}
        scale = {"half": 2.0**-8, "bfloat": 2.0**-5}.get(dtype.name, 0.0 if dtype.is_exact else 2.0**-20)
        check = Reference(got=out, name="spread_cross", inputs={"a": a, "b": b, "dim": -1}, scale=scale)
        step = threads(kernel, bound(kernel, values), (math.prod(shape[:-1]),))
        yield Program(label=f"{shape}", steps=[step], checks=[check])


def offsets(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`kernel_index_offset`: the offset of each element from sizes and strides, outermost first; `s`: three at once."""
    wide = kernel.parts.get("bits") == "64"
    several = 3 if "offsets" in kernel.name else 1
    kind = DTYPES["ulong" if wide else "uint"]
    for shape in ((7,), (3, 5), (2, 3, 4)):
        steps = [case.values.integers(several, 1, 100) for _ in shape]
        want: list[int] = []
        for position in itertools.product(*map(range, shape)):
            sums = [sum(p * s[at] for p, s in zip(position, steps, strict=True)) for at in range(several)]
            want += [*sums, *([0] if several == 3 else [])]
        count, width = math.prod(shape), 4 if several == 3 else 1
        out = View(buffer=result(kind, (count * width,)).buffer, dtype=kind, shape=(count, several), strides=(width, 1))
        # Three at once: dimensions innermost first, three words for each.
        rows, sizes = (steps[::-1], shape[::-1]) if several == 3 else (steps, shape)
        count, width = math.prod(shape), 4 if several == 3 else 1
        out = View(buffer=result(kind, (count * width,)).buffer, dtype=kind, shape=(count, several), strides=(width, 1))
        # A vector of three takes four places.
        flat = [each for row in rows for each in row]
        values: dict[str, object] = {"strides": pack(DTYPES["uint"], flat), "data_offsets": out}
        values["iter_shape"] = pack(DTYPES["uint"], list(sizes))
        values["num_dimensions"] = len(shape)
        wanted = [each for at in range(0, len(want), width) for each in want[at : at + several]]
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{shape}", steps=[step], checks=[Known(got=out, want=pack(kind, wanted))])


def index_copy(kernel: Kernel, case: Case) -> Iterator[Program]:
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
        check = Reference(
            got=out, name="older_index_copy", inputs={"x": x, "source": source, "index": chosen, "dim": dim}
        )
        step = threads(kernel, bound(kernel, values), (out.count,))
        yield Program(label=f"{shape}, dim {dim}, {numel} indices", steps=[step], checks=[check])


def indexed(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`index_select`, `index_put` up to 2.6: offsets (result, input, indices) in bytes for each element."""
    is_get, adds, is_serial = "select" in kernel.name, "accumulate" in kernel.parts, "serial" in kernel.parts
    widths = {"8": "char", "16": "short", "32": "int", "64": "long"}
    dtype: DType = DTYPES[kernel.parts.get("T") or widths[kernel.parts["bits"]]]
    for shape, count, where in CASES:
        rest = shape[count:]
        if not is_get and not adds and math.prod(where) > math.prod(shape[:count]):
            continue
        columns = _indices(case, shape, count, where, distinct=not is_get and not adds and not is_serial)
        iteration = (*where, *rest)
        large = filled(case, dtype, shape, low=-3, high=3) if adds else swept(case, dtype, shape)
        small = filled(case, dtype, iteration, low=-3, high=3) if adds else swept(case, dtype, iteration)
        strides = dense_strides(shape)
        walk = replace(large, shape=iteration, strides=(*([0] * len(where)), *strides[count:]))
        table_of = View(
            buffer=large.buffer, dtype=LONG, shape=iteration, strides=(*dense_strides(where), *([0] * len(rest)))
        )
        out = result(dtype, small.shape) if is_get else _room(large)
        order = (small, walk, table_of) if is_get else (walk, small, table_of)
        table = _table(kernel, order, iteration, int(kernel.parts["wide"]))
        pointers: dict[int, Buffer] = {8 * at: input_buffer(pack(LONG, column)) for at, column in enumerate(columns)}
        values: dict[str, object] = {"indexAB": Addresses(data=bytes(8 * count), places=pointers)}
        values |= {"indexSizes": pack(LONG, list(shape[:count])), "offsets": input_buffer(table)}
        values |= {"indexStrides": pack(LONG, [each * dtype.size for each in strides[:count]]), "num_indices": count}
        values |= {"inputData": large if is_get else small, "outputData": out, "numIters": small.count}
        inputs: dict[str, object] = {"x": large, "small": small, "where": list(where)}
        inputs |= {f"i{at}": numbered(LONG, column) for at, column in enumerate(columns)}
        inputs["way"] = "get" if is_get else "add" if adds else "put"
        scale = 2.0**-18 * small.count if adds and not dtype.is_exact else 0.0
        check = Reference(got=out, name="indexed", inputs=inputs, scale=scale)
        step = threads(kernel, bound(kernel, values), (1 if is_serial else small.count,))
        unordered = "float atomics" if adds and not dtype.is_exact else ""
        yield Program(label=f"{shape} at {count} x {where}", steps=[step], checks=[check], unordered=unordered)


def lerp(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`lerp_tensor` up to 2.14: dense, or by byte strides, innermost first; one weight for all, or one for each."""
    dtype = DTYPES[kernel.parts["T"]]
    n = int(kernel.parts.get("n") or 0)
    is_dense = not kernel.has("out_strides")
    shapes: tuple[Shape, ...] = (
        ((5, 7), (33, 2)) if n == 2 else ((3, 4, 5), (2, 1, 9)) if n == 3 else ((37,), (3, 4, 5))
    )
    for shape in shapes:
        gap = None if is_dense else tuple(2 * each for each in dense_strides(shape))
        low, high = (0, 9) if dtype.is_exact else (-2, 2)
        a, b = (filled(case, dtype, shape, strides=gap, low=low, high=high) for _ in range(2))
        one = kernel.parts.get("form") == "scalar_weight"
        weight = filled(case, dtype, (1,) if one else shape, low=0, high=1 if not dtype.is_exact else 2)
        out = result(dtype, shape)
        values: dict[str, object] = {"out": out, "self": a, "end": b, "weight": weight, "out_ptr": out, "self_ptr": a}
        values |= {"end_ptr": b, "weight_ptr": weight, "sizes": shape[::-1], "ndim": len(shape)}
        for name, view in (("out", out), ("self", a), ("end", b), ("weight", weight)):
            values[f"{name}_strides"] = [each * dtype.size for each in strides_of(view)[::-1]]
        grid = (shape[-1], math.prod(shape[:-1])) if n == 2 else shape[::-1] if n == 3 else (math.prod(shape),)
        scale = {"half": 2.0**-9, "half2": 2.0**-8, "bfloat": 2.0**-6}.get(
            dtype.name, 0.0 if dtype.is_exact else 2.0**-20
        )
        check = Reference(got=out, name="older_lerp", inputs={"a": a, "b": b, "w": weight}, scale=scale)
        step = threads(kernel, bound(kernel, values), grid)
        yield Program(label=f"{shape}", steps=[step], checks=[check])


def matmul(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`naive_matmul` up to 2.6: a thread a column; sizes (M, K, N), strides (row, column) of all three."""
    dtype = kernel.dtype("mat1Data")
    for m, k, n in ((5, 7, 3), (33, 16, 17), (1, 40, 20)):
        a, b, out = filled(case, dtype, (m, k)), filled(case, dtype, (k, n)), result(dtype, (m, n))
        strides = [strides_of(each) for each in (a, b, out)]
        values = {"mat1Data": a, "mat2Data": b, "outputData": out, "strides": strides, "sizes": (m, k, n)}
        scale = k * {"half": 2.0**-9, "bfloat": 2.0**-6}.get(dtype.name, 2.0**-20)
        check = Reference(got=out, name="nn_matmul", inputs={"a": a, "b": b}, scale=scale)
        step = threads(kernel, bound(kernel, values), (m * n,))
        yield Program(label=f"{m} x {k} x {n}", steps=[step], checks=[check])
