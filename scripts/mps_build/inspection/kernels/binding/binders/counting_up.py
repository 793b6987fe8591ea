"""nonzero, histc, histogramdd: elements that are counted, and where they are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from ...dtypes import DTYPES, DType
from ...program import Known, Program, Reference, Step, View, dense_strides, scratch_buffer
from ...values import pack
from ..contracts import Case, Kernel
from .sampling import zeroed
from .tensors import bound, filled, groups, numbered, result, threads

# Shape, and threads of a group: a whole number of groups, a rest, less than one.
SHAPES = (((3, 5, 7), 32), ((2, 200), 96), ((1030,), 1024), ((4, 8), 32))


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
        values |= {"block_offsets": offsets, "max_entries": most, "flat_base": 0, "block_base": 0}
        before = [sum(kept[at - at % width : at]) for at in range(count)]
        values["prefix"] = numbered(DTYPES["uint"], before)
        yield Program(
            label=f"{shape}, at most {most}",
            steps=[_launch(kernel, values, count, width)],
            checks=[Known(got=out, want=pack(DTYPES["long"], rows))],
        )


def histc(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`histc_atomic`: bins of equal width, the last one closed; in threadgroup memory first where that is named so."""
    dtype = kernel.dtype("input")
    for count, stride, bins, low, high in (
        (333, 1, 8, 0, 64),
        (70, 3, 5, 10, 60),
        (500, 1, 64, 0, 64),
        (40, 1, 1, 5, 6),
    ):
        if dtype.size == 1:
            low, high = low // 2, high // 2
        numbers = [
            (each, math.nan)[not dtype.is_exact and i % 41 == 40] for i, each in
            enumerate(case.values.integers(count * stride, max(low - 5, 0), high + 5))
        ]  # fmt: skip
        numbers[: 2 * stride : stride] = [low, high]
        edges = [low + (high - low) * i / bins for i in range(bins + 1)]
        if dtype.is_exact:
            edges = [math.floor(each) for each in edges]
        x = numbered(dtype, numbers)
        taken = [each for each in numbers[::stride] if low <= each <= high]
        counts = [0] * bins
        for each in taken:
            counts[min(int((each - low) * bins / (high - low)), bins - 1)] += 1
        out = zeroed(DTYPES["uint"], (bins,))
        values = {"input": x, "counts": out, "input_stride": stride, "num_elements": count, "num_bins": bins}
        values |= {"bin_edges": numbered(kernel.dtype("bin_edges"), edges)}
        check = Known(got=out, want=pack(DTYPES["uint"], counts))
        if kernel.has("local_counts"):
            width, many = 64, 128
            arguments = bound(kernel, {**values, "total_threads": many})
            step = Step(
                kernel=kernel.name, arguments=arguments, grid=(many, 1, 1), threadgroup=(width, 1, 1), free=False,
                threadgroup_bytes={"local_counts": -(-4 * bins // 16) * 16},
            )  # fmt: skip
        else:
            step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} into {bins} bins from {low} to {high}", steps=[step], checks=[check])


# Bins along each dimension, and how a bin is found: by its width, then looked up nearby, or by bisection.
BINS = (((4,), 0), ((3, 5), 1), ((5, 2, 4), 2), ((6, 3), 0), ((7,), 1))


def histogramdd(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`histogramdd`: a thread an element of some dimensions; with weights each has its own histogram."""
    dtype, is_atomic = kernel.dtype("input_"), kernel.has("counts")
    for number, (bins, algorithm) in enumerate(BINS):
        dims, count = len(bins), 41
        low, step_ = -2.0, 0.5
        edges = [[low + step_ * i for i in range(n + 1)] for n in bins]
        if algorithm == 2:
            edges = [[e + (i % 2) * 0.125 for i, e in enumerate(row)] for row in edges]
        # Eighths: positions are exact in every type; some are beyond, some on an edge.
        numbers = [[each / 8 for each in case.values.integers(dims, -20, 8 * 2)] for _ in range(count)]
        numbers[0], numbers[1] = [row[0] for row in edges], [row[-1] for row in edges]
        numbers[2] = [math.nan] * dims
        if dtype.is_exact:
            # An unsigned type has none of the negative numbers: all are moved up by as much as the least one needs.
            up = 100 if dtype.kind == "unsigned" else 0
            numbers = [[up - 100 if math.isnan(each) else up + math.floor(each) for each in row] for row in numbers]
            edges = [[up + math.floor(each * 4) for each in row] for row in edges]
        x = numbered(dtype, [part for row in numbers for part in row], (count, dims))
        weight = filled(case, dtype, (2 * count,), low=1 if dtype.is_exact else 0.5, high=2)
        has_weight = number % 2 == 0 and not is_atomic
        kind = DTYPES["uint"] if is_atomic else dtype
        out = zeroed(kind, bins if is_atomic else (count, *bins))
        strides = dense_strides(bins)
        values: dict[str, object] = {"input_": x, "input_strides": (dims, 1), "num_dims": dims, "weight": weight}
        values |= {"bin_seq": numbered(dtype, [e for row in edges for e in row]), "counts": out, "local_out": out}
        values |= {"num_bin_edges": [n + 1 for n in bins], "hist_strides": strides, "algorithm": algorithm}
        values |= {"local_out_strides": (math.prod(bins), *strides), "weight_stride": 2 if has_weight else -1}
        values |= {"leftmost_edge": numbered(dtype, [row[0] for row in edges]), "has_weight": int(has_weight)}
        values["offsets"] = pack(DTYPES["uint"], list(range(count * dims)))
        if kernel.has("has_weight"):
            weight, values["weight"] = (half := View(buffer=weight.buffer, dtype=dtype, shape=(count,))), half
        values |= {"rightmost_edge": numbered(dtype, [row[-1] for row in edges])}
        inputs: dict[str, object] = {"x": x, "edges": edges, "each": not is_atomic}
        if has_weight:
            step_of = 1 if kernel.has("has_weight") else 2
            inputs["weight"] = View(buffer=weight.buffer, dtype=dtype, shape=(count,), strides=(step_of,))
        check = Reference(got=out, name="counted_histogram", inputs=inputs)
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} into {bins}, way {algorithm}", steps=[step], checks=[check])
