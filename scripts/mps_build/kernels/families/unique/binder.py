"""`unique`: boundaries of runs, their values, counts and the inverse."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...program.dtypes import DTYPES, DType
from ...program.launch import Known, Program, View, input_buffer, output_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.strided import Arguments, known_bytes, one_launch
from ..shared.tensors import bound, numbered, threads


def counts(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`unique_counts`: from where each value ends, how often it comes."""
    kind = DTYPES["long"]
    for count in (1, 45):
        numbers = case.values.integers(count, 1, 9)
        begins = [sum(numbers[:at]) for at in range(count)]
        out = View(buffer=output_buffer(8 * count), dtype=kind, shape=(count,))
        values = {"bound_pos": numbered(kind, begins), "counts": out, "num_unique": count, "numel": sum(numbers)}
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} values", steps=[step], checks=[Known(got=out, want=pack(kind, numbers))])


def boundaries(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def emit(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def inverse(kernel: Kernel, case: Case) -> Iterator[Program]:
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
