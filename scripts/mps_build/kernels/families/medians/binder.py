"""Medians by histograms of digits."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES, DType
from ...program.launch import Growth, Known, Program, Reference, View
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, groups, growing, numbered, result, threads
from ..shared.zeroed import zeroed

# As many threads as torch launches for many numbers, in smaller threadgroups: 256 of 256.
GROUP, THREADS = 32, 65536


def _sample(case: Case, dtype: DType, count: int, nans: int) -> View:
    low, high = (0, 1) if dtype.kind == "bool" else (0, 200) if dtype.kind == "unsigned" else (-100, 100)
    numbers: list[float] = [*case.values.integers(count, low, high)]
    if not dtype.is_exact:
        numbers = [each / 8 for each in numbers]
        for at in case.values.random.sample(range(count), nans):
            numbers[at] = math.nan
    return numbered(dtype, numbers)


def digits(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`median_select_hist` counts the values' next 8 bits, `median_select_pick` chooses the ones of the median."""
    other = case.first_companion(kernel)
    hist, pick = (kernel, other) if kernel.has("shift") else (other, kernel)
    dtype = hist.dtype("input")
    if hist is kernel:
        yield _counted(kernel, case, dtype)
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


def _counted(kernel: Kernel, case: Case, dtype: DType) -> Program:
    """The first counts of as many numbers as threads are launched for at most: they go around for all further ones."""
    count = THREADS - 100
    numbers = [0, 255 if dtype.kind == "unsigned" else -1]
    chosen = case.values.random.choices(numbers, k=count)
    x, state, counts = numbered(dtype, chosen), zeroed(DTYPES["uint"], (6,)), zeroed(DTYPES["uint"], (257,))
    values: dict[str, object] = {"input": x, "state": state, "hist": counts, "numel": count}
    values |= {"shift": 8 * dtype.size - 8, "first_pass": True}
    want = [0] * 257
    for number in numbers:
        want[_first_digit(dtype, number)] = chosen.count(number)
    check = Known(got=counts, want=pack(DTYPES["uint"], want))
    # Elements in front, which are 0: one more for each thread.
    growth = Growth(
        bytes={"input": THREADS * dtype.size},
        words={"numel": growing(kernel, "numel", THREADS)},
        results={"hist": ((4 * _first_digit(dtype, 0), 4, GROUP),)},
        only=(0,),
    )
    step = groups(kernel, bound(kernel, values), (THREADS // GROUP,), (GROUP,))
    return Program(label=f"first counts of {count} values", steps=[step], checks=[check], growth=growth)


def _first_digit(dtype: DType, number: int) -> int:
    """Return the 8 highest bits of a number's key, by which keys are in the order of the numbers."""
    (highest,) = pack(dtype, [number])[-1:]
    if dtype.kind == "unsigned":
        return highest
    return highest ^ 0xFF if not dtype.is_exact and highest & 0x80 else highest ^ 0x80


def gather(kernel: Kernel, case: Case) -> Iterator[Program]:
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
