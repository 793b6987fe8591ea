"""searchsorted, and medians: by sorting, or a digit at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...dtypes import DTYPES, DType
from ...program import Known, Program, Reference, Step, View, output_buffer
from ...values import pack
from ..contracts import Case, Kernel
from .sampling import zeroed
from .tensors import bound, groups, numbered, result, threads


def searchsorted(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A loop over all values; boundaries of one dimension serve all rows; data_sort says in which order they rise."""
    dtype, kind = kernel.dtype("data_in"), kernel.dtype("data_out")
    for number, (rows, many, limits) in enumerate(((3, 9, 17), (1, 70, 32), (4, 5, 1), (2, 40, 33))):
        for right in (0, 1):
            is_flat = number == 1
            low = 0 if dtype.kind == "unsigned" else -12
            lines = [sorted(case.values.integers(limits, low, 40)) for _ in range(1 if is_flat else rows)]
            orders = []
            for _ in lines:
                order = list(range(limits))
                case.values.random.shuffle(order)
                orders.append(order)
            asked: list[float] = [*case.values.integers(rows * many - 2, low - 2 if low else 0, 45), low, 40]
            stored = [0] * (limits * len(lines))
            if kernel.has("data_sort"):
                for row, (line, order) in enumerate(zip(lines, orders, strict=True)):
                    for rank, at in enumerate(order):
                        stored[row * limits + at] = line[rank]
            else:
                stored = [each for line in lines for each in line]
            x = numbered(dtype, asked, (rows, many))
            out = result(kind, (rows, many))
            values: dict[str, object] = {"data_in": x, "data_bd": numbered(dtype, stored), "data_out": out}
            values |= {"idim_in": many, "idim_bd": limits, "numel_in": rows * many, "right": right}
            values |= {"is_1d_boundaries": int(is_flat), "data_sort": [each for order in orders for each in order]}
            found = []
            for at, each in enumerate(asked):
                line = lines[0 if is_flat else at // many]
                found.append(sum(other <= each if right else other < each for other in line))
            step = Step(
                kernel=kernel.name, arguments=bound(kernel, values), grid=(64, 1, 1), threadgroup=(16, 1, 1), free=False
            )
            yield Program(
                label=f"{rows} x {many} in {limits}, right {right}",
                steps=[step],
                checks=[Known(got=out, want=pack(kind, found))],
            )


def _sample(case: Case, dtype: DType, count: int, nans: int) -> View:
    low, high = (0, 1) if dtype.kind == "bool" else (0, 200) if dtype.kind == "unsigned" else (-100, 100)
    numbers: list[float] = [*case.values.integers(count, low, high)]
    if not dtype.is_exact:
        numbers = [each / 8 for each in numbers]
        for at in case.values.random.sample(range(count), nans):
            numbers[at] = math.nan
    return numbered(dtype, numbers)


def median_digits(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`median_select_hist` counts the values' next 8 bits, `median_select_pick` chooses the ones of the median."""
    other = case.first_companion(kernel)
    hist, pick = (kernel, other) if kernel.has("shift") else (other, kernel)
    dtype = hist.dtype("input")
    for count, nans, ignores in (
        (1, 0, False),
        (501, 0, False),
        (64, 0, True),
        (77, 5, True),
        (90, 3, False),
        (6, 6, True),
    ):
        if dtype.is_exact and nans:
            continue
        x, out = _sample(case, dtype, count, nans), result(dtype, (1,))
        state = View(buffer=zeroed(DTYPES["uint"], (6,)).buffer, dtype=DTYPES["uint"], shape=(6,))
        counts = zeroed(DTYPES["uint"], (257,))
        steps = []
        for shift in range(8 * dtype.size - 8, -1, -8):
            values: dict[str, object] = {"input": x, "state": state, "hist": counts, "numel": count, "shift": shift}
            values |= {"first_pass": shift == 8 * dtype.size - 8, "last_pass": shift == 0, "ignore_nan": ignores}
            values["out"] = out
            steps.append(groups(hist, bound(hist, values), (2,), (64,)))
            steps.append(threads(pick, bound(pick, values), (1,)))
        check = Reference(got=out, name="median_of", inputs={"x": x, "ignores": ignores})
        yield Program(label=f"{count} values, {nans} of them NaN", steps=steps, checks=[check])


def median_gather(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`median_gather`: the middle of each sorted row (NaN last), and where it came from."""
    dtype, kind = kernel.dtype("sorted_vals"), DTYPES["long"]
    for count, ignores in ((1, False), (8, True), (33, False), (40, False), (41, True)):
        rows, numbers, orders, wanted, places = 5, [], [], [], []
        for row in range(rows):
            nans = (0, 1, count, count // 2, 0)[row]
            line: list[float] = sorted(each / 8 for each in case.values.integers(count - nans, -90, 90))
            order = case.values.integers(count, 0, 1000)
            at = (count - nans - 1) // 2 if ignores or not nans else count - nans
            at = 0 if at < 0 else at
            line += [math.nan] * nans
            numbers += line
            orders += order
            wanted.append(line[at])
            places.append(order[at])
        x, out, where = numbered(dtype, numbers), result(dtype, (rows,)), result(kind, (rows,))
        values: dict[str, object] = {"sorted_vals": x, "sorted_idxs": numbered(kind, orders), "out_vals": out}
        values |= {"out_idxs": where, "sort_size": count, "ignore_nan": ignores}
        checks = [Known(got=out, want=pack(dtype, wanted)), Known(got=where, want=pack(kind, places))]
        step = threads(kernel, bound(kernel, values), (rows,))
        yield Program(label=f"{rows} rows of {count}", steps=[step], checks=checks)


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
