"""Reductions in their layouts: rows, columns, chunks, whole tensors; partial results where the form gives them.

A partial variance is three floats in 16 bytes: mean, sum of squared deviations, count.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...dtypes import DTYPES, DType
from ...program import Buffer, Program, Reference, Shape, Step, View, dense_strides, input_buffer, output_buffer
from ...values import pack
from ..contracts import Case, Kernel, NotBound

TRIPLE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One launch of a form: how the input lies, what is reduced, constants and grid."""

    shape: Shape
    dims: Shape
    constants: Mapping[str, object]
    groups: Shape
    threads: Shape
    strides: Shape | None = None
    elements: int | None = None
    param: float | None = None


def _ceil(length: int, parts: int) -> int:
    return -(-length // parts)


def outer(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`outer`: sizes (length, inner, chunks), strides (length, inner, outer) in elements; 32 columns a threadgroup."""
    height = min(32, (kernel.metadata.max_threads or 1024) // 32)
    for length, inner, chunks, batch, pad in ((5, 37, 1, 3, 0), (300, 33, 1, 2, 3), (96, 40, 3, 1, 0), (1, 4, 1, 1, 0)):
        row = inner + pad
        sizes = {"sizes": (length, inner, chunks, 0), "strides": (row, 1, row * length, 0)}
        threads, elements = (32, height, 1), row * length * batch
        if chunks > 1:
            shape, strides = (chunks, length // chunks, inner), (row * (length // chunks), row, 1)
            layout = Layout(
                shape=shape,
                dims=(1,),
                strides=strides,
                elements=elements,
                constants=sizes,
                groups=(_ceil(inner, 32), chunks, 1),
                threads=threads,
            )
        else:
            shape, strides = (batch, length, inner), (row * length, row, 1)
            layout = Layout(
                shape=shape,
                dims=(1,),
                strides=strides,
                elements=elements,
                constants=sizes,
                groups=(_ceil(inner, 32), 1, batch),
                threads=threads,
            )
        yield from _programs(kernel, case, layout)


def innermost(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`innermost`: sizes (rows, length); one simdgroup a row."""
    for rows, length, threads in ((3, 5, 64), (5, 300, 32), (1, 1, 96), (2, 1030, 128)):
        yield from _programs(
            kernel,
            case,
            Layout(
                shape=(rows, length),
                dims=(1,),
                constants={"sizes": (rows, length)},
                groups=(_ceil(rows, threads // 32), 1, 1),
                threads=(threads, 1, 1),
            ),
        )


def chunk(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`innermost_chunk`: sizes (rows, length, lanes a row, chunks); result (rows, chunks)."""
    for rows, length, lanes, chunks, threads in (
        (5, 36, 4, 1, 64),
        (3, 600, 32, 3, 96),
        (7, 3, 1, 1, 32),
        (2, 99, 8, 3, 32),
    ):
        yield from _programs(
            kernel,
            case,
            Layout(
                shape=(rows, chunks, length // chunks),
                dims=(2,),
                constants={"sizes": (rows, length, lanes, chunks)},
                groups=(_ceil(rows * chunks * lanes, threads), 1, 1),
                threads=(threads, 1, 1),
            ),
        )


def narrow(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`narrow`: sizes (length, inner up to 256, chunks); 256 threads go through rows of `inner` columns."""
    for length, inner, chunks, batch in ((700, 3, 1, 2), (90, 40, 3, 1), (2, 256, 1, 1), (33, 1, 1, 3)):
        if chunks > 1:
            shape, dims, groups = (chunks, length // chunks, inner), (1,), (1, chunks, 1)
        else:
            shape, dims, groups = (batch, length, inner), (1,), (1, 1, batch)
        yield from _programs(
            kernel,
            case,
            Layout(
                shape=shape,
                dims=dims,
                constants={"sizes": (length, inner, chunks, 0)},
                groups=groups,
                threads=(256, 1, 1),
            ),
        )


def flat(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`flat`: params (elements, elements a threadgroup); one partial result a threadgroup, never finished."""
    for groups, each, threads in ((1, 5, 32), (3, 1100, 64), (2, 4100, 128), (2, 36, 96)):
        yield from _programs(
            kernel,
            case,
            Layout(
                shape=(groups, each),
                dims=(1,),
                constants={"params": (groups * each, each)},
                groups=(groups, 1, 1),
                threads=(threads, 1, 1),
                param=0.0,
            ),
        )


def flat_strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`flat_strided`: n0 by n2 rows of n1 elements. `n1` gives the lanes a row has, and with the threadgroup how many
    rows it takes at once; with n2 = threadgroups * rows each threadgroup's share is a strided view.
    """
    for n0, n1, n2, step, gap, groups, threads in (
        (3, 40, 5, 1, 7, 1, 64),
        (4, 33, 6, 2, 0, 3, 128),
        (2, 600, 2, 1, 3, 2, 64),
        (5, 3, 8, 1, 1, 2, 128),
    ):
        lanes = 32
        while lanes < n1 and lanes < threads:
            lanes *= 2
        together = threads // min(lanes, threads)
        block = step * n1
        s0 = block * n2 + gap
        if groups == 1:
            shape, strides, dims = (1, n0, n2, n1), (0, s0, block, step), (1, 2, 3)
        elif n2 == groups * together:
            shape, strides, dims = (n0, groups, together, n1), (s0, together * block, block, step), (0, 2, 3)
        else:
            raise ValueError(f"{n2} rows do not divide into {groups} threadgroups of {together}")
        yield from _programs(
            kernel,
            case,
            Layout(
                shape=shape,
                dims=dims,
                strides=strides,
                elements=s0 * n0,
                param=0.0,
                constants={"sizes": (n0, n1, n2, 0), "strides": (s0, step, 0, 0)},
                groups=(groups, 1, 1),
                threads=(threads, 1, 1),
            ),
        )


def general(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_reduction`: NormParams; one threadgroup an element of the result."""
    cases = (
        ((6, 100), (1,), 32),
        ((3, 7, 5), (1,), 64),
        ((37, 4), (0,), 96),
        ((4, 3, 9), (0, 2), 64),
        ((1, 2500), (1,), 1024),
    )
    for shape, dims, threads in cases:
        out = tuple(1 if d in dims else n for d, n in enumerate(shape))
        group = min(threads, kernel.metadata.max_threads or 1024)
        length = math.prod(shape) // math.prod(out)
        params = {
            "reduction_size": length,
            "ndim": len(shape),
            "input_sizes": shape,
            "input_strides": dense_strides(shape),
            "output_sizes": out,
            "output_strides": dense_strides(out),
        }
        for p in _params(kernel, length)[:2]:
            yield from _programs(
                kernel,
                case,
                Layout(
                    shape=shape,
                    dims=dims,
                    constants={"params": {**params, "p": p}},
                    param=p,
                    groups=(math.prod(out), 1, 1),
                    threads=(group, 1, 1),
                ),
            )


def _params(kernel: Kernel, length: int) -> tuple[float, ...]:
    """Return the values of `param` that matter: 0, and where the operator finishes with it, another."""
    op = kernel.parts["op"]
    if op in ("var", "std"):
        return (1.0, 0.0)
    if op == "sum" and kernel.dtype("output").kind in ("float", "complex"):
        return (0.0, float(length))
    return (0.0, 1.0) if op.startswith("norm_l2") else (0.0,)


def _programs(kernel: Kernel, case: Case, layout: Layout) -> Iterator[Program]:
    length = math.prod(layout.shape[d] for d in layout.dims)
    for param in _params(kernel, length) if layout.param is None else (layout.param,):
        yield _program(kernel, case, layout, param, length)


def _program(kernel: Kernel, case: Case, layout: Layout, param: float, length: int) -> Program:
    op = kernel.parts["op"]
    name = f"reduced_{op}"
    if name not in case.references:
        raise NotBound(f"no reference {name}")
    elements = layout.elements or math.prod(layout.shape)
    strides = layout.strides or dense_strides(layout.shape)
    out_shape = tuple(1 if d in layout.dims else n for d, n in enumerate(layout.shape))
    inputs: dict[str, object] = {"dims": list(layout.dims), "param": param}
    if kernel.argument("input").type == "float3":
        buffer, inputs["x"] = _triples(case, layout.shape, strides, elements)
        inputs["dims"] = [*layout.dims, len(layout.shape)]
        length *= 3
        out_shape = (*out_shape, 1)
    else:
        source = kernel.dtype("input")
        buffer = input_buffer(_values(case, op, source, elements))
        inputs["x"] = View(buffer=buffer, dtype=source, shape=layout.shape, strides=strides)
    count = math.prod(out_shape)
    checks = []
    if kernel.argument("output").type == "float3":
        out, result = output_buffer(count * TRIPLE), DTYPES["float"]
        checks = [
            _check(
                f"reduced_{part}",
                View(
                    buffer=out,
                    dtype=result,
                    shape=out_shape,
                    strides=tuple(4 * s for s in dense_strides(out_shape)),
                    offset=at,
                ),
                inputs,
                length,
            )
            for at, part in enumerate(("mean", "m2", "count"))
        ]
    else:
        result = kernel.dtype("output")
        out = output_buffer(count * result.size)
        checks = [_check(name, View(buffer=out, dtype=result, shape=out_shape), inputs, length)]
    arguments: dict[str | int, Buffer | bytes] = {"input": buffer, "output": out}
    arguments |= {key: kernel.pack(key, value) for key, value in layout.constants.items()}
    for each in ("param", "divisor"):
        if kernel.has(each):
            arguments[each] = kernel.pack(each, param)
    x, y, z = layout.threads
    step = Step(
        kernel=kernel.name,
        arguments=arguments,
        threadgroup=(x, y, z),
        free=False,
        grid=(layout.groups[0] * x, layout.groups[1] * y, layout.groups[2] * z),
    )
    label = f"shape {layout.shape}, dims {layout.dims}, param {param:g}, {layout.groups} groups of {layout.threads}"
    return Program(label=label, steps=[step], checks=checks)


def _check(name: str, got: View, inputs: dict[str, object], length: int) -> Reference:
    scale = 0.0
    if got.dtype.kind in ("float", "complex") and name.split("_")[1] not in ("max", "min"):
        # Sums of `length` values up to 2, and the squares in a variance.
        scale = length * 2.0**-22
    return Reference(got=got, name=name, inputs=inputs, scale=scale)


def _values(case: Case, op: str, dtype: DType, count: int) -> bytes:
    """Return values that tell this operator's faults apart: zeros for counts, NaN for nansum, else ordinary ones."""
    if op in ("max", "min", "norm_inf", "norm_neginf"):
        return case.values.sweep(dtype, count) if dtype.is_exact else case.values.moderate(dtype, count, -900, 900)
    if op in ("any", "count_nonzero", "norm_l0"):
        return _sparse(case, dtype, count, 0.06 if op == "any" else 0.5)
    if op == "all":
        return _sparse(case, dtype, count, 0.97)
    if op == "nansum" and dtype.kind == "float":
        values = case.values.random
        return pack(dtype, [math.nan if values.random() < 0.2 else values.uniform(-2, 2) for _ in range(count)])
    if op == "prod":
        return _factors(case, dtype, count)
    return case.values.moderate(dtype, count)


def _sparse(case: Case, dtype: DType, count: int, share: float) -> bytes:
    random, components = case.values.random, 2 if dtype.kind == "complex" else 1
    return pack(dtype, [random.choice((1, 2, 3)) if random.random() < share else 0 for _ in range(count * components)])


def _factors(case: Case, dtype: DType, count: int) -> bytes:
    """Factors whose products stay in range: powers of two for 16 bits, near the unit circle for complex types."""
    random = case.values.random
    if dtype.is_exact:
        return pack(dtype, [random.choice((1, 3, 5, 7) if random.random() < 0.95 else (2,)) for _ in range(count)])
    if dtype.kind == "complex":
        choices = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
        return pack(dtype, [part for _ in range(count) for part in random.choice(choices)])
    few = {random.randrange(count) for _ in range(6)}
    return pack(
        dtype, [random.choice((1.5, 0.75, -1.25)) if at in few else random.choice((1.0, -1.0)) for at in range(count)]
    )


def _triples(case: Case, shape: Shape, strides: Shape, elements: int) -> tuple[Buffer, View]:
    """Partial variances of three values each, and the values themselves (one more dimension)."""
    raw = case.values.moderate(DTYPES["float"], elements * 3)
    numbers = struct.unpack(f"<{elements * 3}f", raw)
    packed = bytearray()
    for at in range(0, elements * 3, 3):
        mean = sum(numbers[at : at + 3]) / 3
        packed += struct.pack("<4f", mean, sum((each - mean) ** 2 for each in numbers[at : at + 3]), 3.0, 0.0)
    values = input_buffer(raw)
    view = View(buffer=values, dtype=DTYPES["float"], shape=(*shape, 3), strides=(*(3 * s for s in strides), 1))
    return input_buffer(bytes(packed)), view
