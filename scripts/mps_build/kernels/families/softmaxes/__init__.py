"""Softmax: in one kernel, by rows, or in parts that are put together."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.launch import Program, Reference, Step, Value, View, dense_strides, scratch_buffer
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, groups, result, strides_of


def row(kernel: Kernel, case: Case) -> Iterator[Program]:
    """One simdgroup a row."""
    for rows, length in ((3, 37), (1, 1), (9, 128), (2, 700)):
        x = filled(case, kernel.dtype("input"), (rows, length), low=-8.0, high=8.0)
        y = result(kernel.dtype("output"), (rows, length))
        params = {"dim_size": length, "num_rows": rows, "inner_size": 1, "chunk_size": length, "n_chunks": 1}
        params |= {"ndim": 2, "dim": 1}
        packed = kernel.pack("params", {**params, "sizes": [rows, length], "strides": [length, 1]})
        width = 64 if rows > 1 else 32
        arguments: dict[str | int, Value] = {"input": x.buffer, "output": y.buffer, "params": packed}
        steps = [groups(kernel, arguments, (-(-rows // (width // 32)),), (width,))]
        scale = 2.0**-18 if kernel.parts["op"] == "log_softmax" else 2.0**-21
        check = Reference(got=y, name=f"nn_{kernel.parts['op']}", inputs={"x": x, "dim": 1}, scale=scale)
        yield Program(label=f"{rows} rows of {length}", steps=steps, checks=[check])


# Shape, dimension, threads along inner elements and along the dimension, elements a chunk.
CASES = (((3, 37, 5), 1, 4, 8, 16), ((2, 3, 70), 1, 32, 2, 2), ((40, 3), 0, 2, 64, 40), ((2, 4, 9, 1), 2, 1, 16, 4))


LAST = (((3, 37), 1, 1, 64, 16), ((1, 1000), 1, 1, 256, 300), ((2, 5), 1, 1, 32, 5))


def _params(kernel: Kernel, x: View, dim: int, chunk: int) -> bytes:
    shape, length = x.shape, x.shape[dim]
    inner = math.prod(shape[dim + 1 :])
    values = {
        "dim_size": length,
        "num_rows": x.count // length,
        "inner_size": inner,
        "chunk_size": chunk,
        "n_chunks": -(-length // chunk),
        "ndim": len(shape),
        "dim": dim,
        "sizes": shape,
        "strides": strides_of(x),
    }
    return kernel.pack("params", values)


def _check(kernel: Kernel, x: View, y: View, dim: int) -> Reference:
    is_log = kernel.name.startswith("log_")
    scale = 2.0**-17 if is_log else 2.0**-20
    return Reference(got=y, name="nn_log_softmax" if is_log else "nn_softmax", inputs={"x": x, "dim": dim}, scale=scale)


def at_once(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Threads (inner, along the dimension); groups (inner, outer); the input has strides, the result is dense."""
    for number, (shape, dim, tx, ty, _) in enumerate(CASES):
        strides = tuple(2 * s for s in dense_strides(shape)) if number % 2 else None
        x = filled(case, kernel.dtype("input"), shape, strides=strides, low=-8.0, high=8.0)
        y = result(kernel.dtype("output"), shape)
        inner, outer = math.prod(shape[dim + 1 :]), math.prod(shape[:dim])
        packed = _params(kernel, x, dim, shape[dim])
        arguments: dict[str | int, Value] = {"input": x.buffer, "output": y.buffer, "params": packed}
        step = groups(kernel, arguments, (-(-inner // tx), outer), (tx, ty))
        yield Program(label=f"{shape}, dim {dim}", steps=[step], checks=[_check(kernel, x, y, dim)])


def in_parts(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`partial` gives maximum and sum of each chunk, `finalize` the result; of a kernel of either sort, the chain."""
    other = case.first_companion(kernel)
    first, second = (kernel, other) if kernel.has("partials") and not kernel.has("output") else (other, kernel)
    is_strided = "_strided_" in kernel.name
    for number, (shape, dim, tx, ty, chunk) in enumerate(CASES if is_strided else LAST):
        strides = tuple(2 * s for s in dense_strides(shape)) if is_strided and number % 2 else None
        x = filled(case, first.dtype("input"), shape, strides=strides, low=-8.0, high=8.0)
        y = result(second.dtype("output"), shape)
        inner, outer, chunks = math.prod(shape[dim + 1 :]), math.prod(shape[:dim]), -(-shape[dim] // chunk)
        partials = scratch_buffer(inner * outer * chunks * 8)
        arguments: dict[str | int, Value] = {"input": x.buffer, "partials": partials}
        count, width = ((-(-inner // tx), outer, chunks), (tx, ty)) if is_strided else ((chunks, outer), (ty,))
        steps: list[Step] = []
        for each in (first, second):
            own = {**arguments, "params": _params(each, x, dim, chunk)}
            steps.append(groups(each, own if each is first else {**own, "output": y.buffer}, count, width))
        yield Program(label=f"{shape}, dim {dim}, {chunks} chunks", steps=steps, checks=[_check(second, x, y, dim)])
