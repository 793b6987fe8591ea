"""`nonzero` and `unique`: blocks are counted, then each element finds its place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from ...program.dtypes import DTYPES, DType
from ...program.launch import Known, Program, Step, View, dense_strides, input_buffer, output_buffer, scratch_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import Arguments, bound, groups, known_bytes, numbered, one_launch, result, threads

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


def nonzero_blocks(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def nonzero_add_up(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def nonzero_places(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def unique_counts(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`unique_counts`: from where each value ends, how often it comes."""
    kind = DTYPES["long"]
    for count in (1, 45):
        numbers = case.values.integers(count, 1, 9)
        begins = [sum(numbers[:at]) for at in range(count)]
        out = View(buffer=output_buffer(8 * count), dtype=kind, shape=(count,))
        values = {"bound_pos": numbered(kind, begins), "counts": out, "num_unique": count, "numel": sum(numbers)}
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} values", steps=[step], checks=[Known(got=out, want=pack(kind, numbers))])


def unique_boundaries(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`unique_mark_boundaries`: 1 where a sorted value differs from the one before, and at the first."""
    dtype = kernel.dtype("sorted")
    for count in (77, 1, 128):
        numbers = _runs(case, dtype, count)
        out = output_buffer(count * 4)
        want = [int(i == 0 or numbers[i] != numbers[i - 1]) for i in range(count)]
        launch = one_launch(kernel, {"sorted": input_buffer(pack(dtype, numbers)), "mask": out}, (count, 1, 1))
        yield Program(
            label=f"{count} values", steps=[launch], checks=[known_bytes(out, DTYPES["int"], pack(DTYPES["int"], want))]
        )


def _runs(case: Case, dtype: DType, count: int) -> list[int]:
    low = 0 if dtype.kind in ("bool", "unsigned") else -9
    return sorted(case.values.integers(count, low, 1 if dtype.kind == "bool" else 9))


def unique_emit(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`unique_emit`: each marked value and its place go where the running count of marks says."""
    dtype, scan_type = kernel.dtype("sorted"), kernel.dtype("scan")
    for count in (77, 1, 128):
        numbers = _runs(case, dtype, count)
        mask = [int(i == 0 or numbers[i] != numbers[i - 1]) for i in range(count)]
        places = [i for i in range(count) if mask[i]]
        values, bounds = output_buffer(len(places) * dtype.size), output_buffer(len(places) * 8)
        arguments: Arguments = {
            "sorted": input_buffer(pack(dtype, numbers)),
            "mask": input_buffer(pack(DTYPES["int"], mask)),
            "scan": input_buffer(pack(scan_type, list(itertools.accumulate(mask)))),
            "unique_values": values,
            "bound_pos": bounds,
        }
        yield Program(
            label=f"{count} values",
            steps=[one_launch(kernel, arguments, (count, 1, 1))],
            checks=[
                known_bytes(values, dtype, pack(dtype, [numbers[i] for i in places])),
                known_bytes(bounds, DTYPES["long"], pack(DTYPES["long"], places)),
            ],
        )


def unique_inverse(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`unique_inverse`: inverse[sort_idx[i]] = scan[i] - 1."""
    for count in (77, 1, 128):
        order = case.values.random.sample(range(count), count)
        scan = list(itertools.accumulate([1, *case.values.integers(count - 1, 0, 1)]))
        want = [0] * count
        for place, total in zip(order, scan, strict=True):
            want[place] = total - 1
        out = output_buffer(count * 8)
        arguments: Arguments = {
            "sort_idx": input_buffer(pack(DTYPES["long"], order)),
            "scan": input_buffer(pack(kernel.dtype("scan"), scan)),
            "inverse": out,
        }
        yield Program(
            label=f"{count} values",
            steps=[one_launch(kernel, arguments, (count, 1, 1))],
            checks=[known_bytes(out, DTYPES["long"], pack(DTYPES["long"], want))],
        )
