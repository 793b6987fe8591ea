"""`nonzero`: counts of blocks, then the places."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from ...program.dtypes import DTYPES, DType
from ...program.launch import Known, Program, Step, View, dense_strides, scratch_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, groups, numbered, result

# Shape, and threads of a group: a whole number of groups, a rest, less than one.
SHAPES = (((3, 5, 7), 32), ((2, 200), 96), ((1030,), 1024), ((2, 2, 32), 32))


def _sparse(case: Case, dtype: DType, count: int) -> tuple[View, list[bool]]:
    """Return numbers of which a third is zero (of floats some -0, NaN and the smallest), and which are not."""
    random = case.values.random
    kept = [random.random() < 0.6 for _ in range(count)]
    odd: Sequence[float] = (1,) if dtype.is_exact else (1, -2, math.nan, 0.5)
    width = 2 if dtype.kind == "complex" else 1
    numbers: list[float] = []
    for each in kept:
        zero = 0 if dtype.is_exact else random.choice((0.0, -0.0))
        number = random.choice(odd) if each else zero
        numbers += [number] if width == 1 else random.choice(([number, zero], [zero, number]))
    return numbered(dtype, numbers, (count,)), kept


def _launch(kernel: Kernel, values: dict[str, object], count: int, width: int) -> Step:
    """The last threadgroup is smaller where `count` asks for it."""
    arguments = bound(kernel, values)
    return Step(kernel=kernel.name, arguments=arguments, grid=(count, 1, 1), threadgroup=(width, 1, 1), free=False)


def blocks(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`count_nonzero_prefix_sum`: how many of each threadgroup's elements are not zero."""
    for shape, width in SHAPES:
        count, begin = math.prod(shape), 3 if len(shape) == 2 else 0
        x, kept = _sparse(case, kernel.dtype("input"), count + begin)
        kind = kernel.dtype("block_sums")
        sums = [sum(kept[at : at + width]) for at in range(begin, begin + count, width)]
        out = result(kind, (len(sums),))
        if not kernel.has("flat_base") and begin:
            continue
        values: dict[str, object] = {"input": x, "block_sums": out, "flat_base": begin, "block_base": 0}
        values["prefix"] = scratch_buffer(4 * count)
        yield Program(
            label=f"{count} from {begin}, {width} threads",
            steps=[_launch(kernel, values, count, width)],
            checks=[Known(got=out, want=pack(kind, sums))],
        )


def add_up(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`prefix_sum_blocks`: one threadgroup; what lies before each block, and all together."""
    for count, width in ((1, 32), (70, 32), (1000, 256), (33, 1024)):
        numbers = case.values.integers(count, 0, 1000)
        before = [0, *itertools.accumulate(numbers)]
        kind, each, all_of = (kernel.dtype(name) for name in ("block_sums", "block_offsets", "total_nonzero"))
        out, total = result(each, (count,)), result(all_of, (1,))
        values = {"block_sums": numbered(kind, numbers), "block_offsets": out, "total_nonzero": total}
        checks = [
            Known(got=out, want=pack(each, before[:-1])),
            Known(got=total, want=pack(all_of, before[-1:])),
        ]
        step = groups(kernel, bound(kernel, {**values, "num_blocks": count}), (1,), (width,))
        yield Program(label=f"{count} blocks, {width} threads", steps=[step], checks=checks)


def places(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`scatter_nonzero_indices`: each element that is not zero writes its position, in order, up to max_entries."""
    for number, (shape, width) in enumerate(SHAPES):
        count = math.prod(shape)
        x, kept = _sparse(case, kernel.dtype("input"), count)
        found = [at for at, each in enumerate(kept) if each]
        most = len(found) if number else max(len(found) - 7, 0)
        offsets = [sum(kept[:at]) for at in range(0, count, width)]
        strides = dense_strides(shape)
        rows = [at // step % size for at in found[:most] for size, step in zip(shape, strides, strict=True)]
        out = result(DTYPES["long"], (most, len(shape)))
        values: dict[str, object] = {"input": x, "output": out, "ndim": len(shape), "sizes": shape}
        values["block_offsets"] = numbered(kernel.dtype("block_offsets"), offsets)
        values |= {"max_entries": most, "flat_base": 0, "block_base": 0}
        before = [sum(kept[at - at % width : at]) for at in range(count)]
        values["prefix"] = numbered(DTYPES["uint"], before)
        yield Program(
            label=f"{shape}, at most {most}",
            steps=[_launch(kernel, values, count, width)],
            checks=[Known(got=out, want=pack(DTYPES["long"], rows))],
        )
