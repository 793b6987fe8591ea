"""`histc`, `histogram` and `histogramdd`."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Known, Program, Reference, Step, View, dense_strides
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, filled, numbered, threads, zeroed


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
