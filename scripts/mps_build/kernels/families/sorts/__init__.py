"""Sorts, radix sorts kernel by kernel, medians by histograms of digits, and searches in what is sorted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from ...program.dtypes import DTYPES, DType
from ...program.launch import (
    Check,
    Growth,
    Known,
    NotBound,
    Program,
    Reference,
    Step,
    View,
    inout_buffer,
    input_buffer,
    output_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import Number, bound, groups, growing, numbered, result, threads, tied_numbers, zeroed

EACH = 4
# Indices of longer rows do not fit into 16 bits.
SHORT = 65536


def _is_long(kernel: Kernel) -> bool:
    """Whether a kernel is launched for longer rows alone: the last step of a sort along the last dimension."""
    is_last = "final" in kernel.name or "_sort_block_fkey" in kernel.name
    return is_last and "_u16" not in kernel.name and kernel.parts["threads"] == "1024"


def sort_block(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`sort_block`: one threadgroup sorts a row; with `sel` (begin, count) only these places of it are written."""
    threads = int(kernel.parts["threads"])
    tile = EACH * threads
    for size, rows, stride, desc in (
        (tile, 2, 1, False),
        (tile - 3, 1, 2, True),
        (1, 2, 3, False),
        (tile // 2 + 1, 2, 1, True),
    ):
        begin, count = (0, size)
        if kernel.has("sel"):
            begin, count = (size // 3, max(1, size // 2)) if desc else (0, size)
        yield _sorted(kernel, case, size, rows, stride, desc, size, (begin, count), ("out_vals", "out_idx"))


def sort_blocks(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`mb_sort_block`: each threadgroup sorts its tile of a row; indices count from the row's beginning."""
    tile = EACH * int(kernel.parts["threads"])
    sizes = [(tile + tile // 2 + 1, 2, 1, False), (2 * tile - 1, 1, 3, True), (tile + 1, 1, 1, False)]
    sizes.append((tile - 3, 2, 1, True))  # one block: a sort along another dimension than the last
    for size, rows, stride, desc in [*sizes, *([(SHORT + 1, 2, 1, False)] if _is_long(kernel) else [])]:
        yield _sorted(kernel, case, size, rows, stride, desc, tile, (0, size), ("dv", "di"))


def _sorted(
    kernel: Kernel,
    case: Case,
    size: int,
    rows: int,
    stride: int,
    desc: bool,
    tile: int,
    part: tuple[int, int],
    names: tuple[str, str],
) -> Program:
    dtype, threads = kernel.dtype("inp"), int(kernel.parts["threads"])
    step, gap = stride, 5 if rows > 1 else 0
    row = size * step + gap
    numbers = tied_numbers(case, dtype, rows * row)
    values: list[Number] = []
    indices: list[int] = []
    for r in range(rows):
        order: list[int] = []
        for begin in range(0, size, tile):
            order += _order([numbers[r * row + i * step] for i in range(begin, min(begin + tile, size))], desc, begin)
        order = order[part[0] : part[0] + part[1]]
        values += [numbers[r * row + i * step] for i in order]
        indices += order
    x = input_buffer(pack(dtype, numbers))
    value_out, index_out = _outputs(kernel, names, len(values))
    views = {"inp": x, names[0]: value_out, names[1]: index_out}
    arguments = bound(kernel, {**views, "size": size, "strides": (step, row), "desc": int(desc), "sel": part})
    launch = groups(kernel, arguments, (-(-size // tile), rows), (threads,))
    turned, places = ", descending" if desc else "", f", places {part}" if kernel.has("sel") else ""
    label = f"{rows} rows of {size}, every {step}{turned}{places}"
    return Program(
        label=label,
        steps=[launch],
        checks=[
            _values_check(kernel, value_out, values, dtype, desc),
            Known(got=index_out, want=pack(index_out.dtype, indices)),
        ],
    )


def sort_merge(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`mb_merge`: dims (size, tiles that a merged run has); the two halves of each run are sorted."""
    threads = int(kernel.parts["threads"])
    tile = EACH * threads
    sizes = [(2 * tile - 7, 2, 2, False), (3 * tile + 5, 1, 4, True), (3 * tile + 1, 2, 2, True)]
    sizes += [(tile // 2, 1, 2, False), *([(SHORT + 1, 2, 2 * SHORT // tile, False)] if _is_long(kernel) else [])]
    for size, rows, tiles, desc in sizes:
        yield _merged(kernel, case, size, rows, tiles, desc)


def _merged(kernel: Kernel, case: Case, size: int, rows: int, tiles: int, desc: bool) -> Program:
    threads, tile = int(kernel.parts["threads"]), EACH * int(kernel.parts["threads"])
    is_keys = "fkey" in kernel.name
    dtype = kernel.dtype("vo") if is_keys else kernel.dtype("vi")
    half = tiles * tile // 2
    begin, count = (size // 3, size // 2) if kernel.has("sel") else (0, size)
    given: list[Number] = []
    given_indices: list[int] = []
    values: list[Number] = []
    indices: list[int] = []
    for _ in range(rows):
        numbers = tied_numbers(case, dtype, size)
        runs = [i for start in range(0, size, half) for i in _order(numbers[start : start + half], desc, start)]
        labels = list(range(size))
        case.values.random.shuffle(labels)
        row = [numbers[i] for i in runs]
        merged = [i for start in range(0, size, 2 * half) for i in _order(row[start : start + 2 * half], desc, start)]
        given, given_indices = given + row, given_indices + labels
        merged = merged[begin : begin + count]
        values, indices = values + [row[i] for i in merged], indices + [labels[i] for i in merged]
    data = _keys(kernel.dtype("vi"), dtype, given, desc) if is_keys else pack(dtype, given)
    value_out, index_out = _outputs(kernel, ("vo", "io"), len(values))
    inputs = {"vi": input_buffer(data), "ii": input_buffer(pack(kernel.dtype("ii"), given_indices))}
    numbers_of = {"dims": (size, tiles, -(-size // tile)), "desc": int(desc), "sel": (begin, count)}
    arguments = bound(kernel, {**inputs, "vo": value_out, "io": index_out, **numbers_of})
    launch = groups(kernel, arguments, (-(-size // tile), rows), (threads,))
    label = f"{rows} rows of {size}, runs of {half}{', descending' if desc else ''}"
    return Program(
        label=label,
        steps=[launch],
        checks=[
            _values_check(kernel, value_out, values, dtype, desc),
            Known(got=index_out, want=pack(index_out.dtype, indices)),
        ],
    )


def _outputs(kernel: Kernel, names: tuple[str, str], count: int) -> tuple[View, View]:
    return result(kernel.dtype(names[0]), (count,)), result(kernel.dtype(names[1]), (count,))


def _values_check(kernel: Kernel, got: View, values: Sequence[Number], dtype: DType, desc: bool) -> Known | Reference:
    """Keys and integers bit for bit; floats as values, since a key forgets which NaN it was."""
    if got.dtype != dtype:
        return Known(got=got, want=_keys(got.dtype, dtype, values, desc))
    if dtype.is_exact:
        return Known(got=got, want=pack(dtype, list(values)))
    want = View(buffer=input_buffer(pack(dtype, list(values))), dtype=dtype, shape=got.shape)
    return Reference(got=got, name="sorted_values", inputs={"x": want})


def _keys(target: DType, dtype: DType, values: Sequence[Number], desc: bool) -> bytes:
    """Return floats as unsigned integers of equal order; NaN is the largest, or with `desc` the first: 0."""
    bits = 8 * dtype.size
    if target.kind != "unsigned" or target.size != dtype.size:
        raise NotBound(f"keys of type {target.name} for {dtype.name}")
    raw, all_ones, top = pack(dtype, list(values)), (1 << bits) - 1, 1 << (bits - 1)
    out = []
    for at, value in enumerate(values):
        word = int.from_bytes(raw[at * dtype.size : (at + 1) * dtype.size], "little")
        key = word ^ (all_ones if word & top else top)
        out.append((0 if desc else all_ones) if math.isnan(value) else key ^ all_ones if desc else key)
    return pack(target, out)


def _order(values: Sequence[Number], desc: bool, base: int) -> list[int]:
    """Return the stable order of values, as indices from `base` on: NaN is the largest."""

    def key(i: int) -> tuple[bool, Number]:
        value = values[i]
        is_nan = math.isnan(value)
        return (not is_nan, 0 if is_nan else -value) if desc else (is_nan, 0 if is_nan else value)

    return [base + i for i in sorted(range(len(values)), key=key)]


UINT = DTYPES["uint"]


def _radix_digits(kernel: Kernel, dtype: DType, data: bytes, shift: int, desc: bool) -> list[int]:
    bits, size = int(kernel.parts["bits"]), dtype.size
    mask, top, found = (1 << (8 * size)) - 1, 1 << (8 * size - 1), []
    for at in range(0, len(data), size):
        word = int.from_bytes(data[at : at + size], "little")
        if dtype.kind == "signed":
            word ^= top
        elif dtype.kind == "float":
            word ^= mask if word & top else top
        found.append(((word ^ (mask if desc else 0)) >> shift) & ((1 << bits) - 1))
    return found


def _radix_threads(kernel: Kernel) -> tuple[int, int]:
    """Return the threads of a threadgroup and the elements of its tile: keys of 16 bits have room for 1024 threads."""
    dtype = kernel.dtype("input" if kernel.has("input") else "keys_in")
    is_wide = kernel.parts["bits"] == "8"
    threads = int(kernel.parts.get("threads") or (1024 if is_wide and dtype.size == 2 else 512))
    return threads, threads * (4 if is_wide else 8)


def _radix_cases(kernel: Kernel, dtype: DType) -> Iterator[tuple[int, int, int, bool]]:
    """Rows, length, shift, descending."""
    (_, tile), last = _radix_threads(kernel), 8 * dtype.size - int(kernel.parts["bits"])
    yield 2, tile + tile // 2 + 1, 0, False
    yield 1, 2 * tile + 5, last, True
    yield 2, 33, last, False
    yield 3, 2 * tile, 0, False  # whole tiles: a longer row begins like it
    # In shorter rows indices are of 16 bits. A fused kernel adds up counts of few tiles: torch launches it only where
    # the square of a row's tiles times the rows is at most 128 (Sort.mm, sort_radix, 2.15.0).
    if "final" in kernel.name and "fused" not in kernel.name and kernel.name.endswith("_tptg512"):
        yield 2, (1 << 16) + tile // 2, 0, False


def _radix_keys(case: Case, dtype: DType, count: int) -> bytes:
    if dtype.kind != "float":
        return case.values.sweep(dtype, count)
    # Numbers alone: which bits stand for NaN and for -0 is the kernel's choice.
    return pack(
        dtype, [case.values.random.choice((1, -1)) * case.values.random.randint(1, 250) / 4 for _ in range(count)]
    )


def _radix_counts(digits: Sequence[int], bins: int, tile: int) -> list[list[int]]:
    """Return how often each digit comes in each tile: [digit][tile]."""
    tiles = -(-len(digits) // tile)
    table = [[0] * tiles for _ in range(bins)]
    for at, digit in enumerate(digits):
        table[digit][at // tile] += 1
    return table


def radix_count(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`radix_count`: dims (length, tiles, shift). `count_scan`: one threadgroup a row, which adds them up."""
    scans = "count_scan" in kernel.name
    dtype, (threads, tile), bins = kernel.dtype("input"), _radix_threads(kernel), 1 << int(kernel.parts["bits"])
    for rows, length, shift, desc in _radix_cases(kernel, dtype):
        data, tiles, want = _radix_keys(case, dtype, rows * length), -(-length // tile), list[int]()
        for r in range(rows):
            row = data[r * length * dtype.size : (r + 1) * length * dtype.size]
            flat = list(itertools.chain(*_radix_counts(_radix_digits(kernel, dtype, row, shift, desc), bins, tile)))
            want += [0, *itertools.accumulate(flat)][:-1] if scans else flat
        out = output_buffer(len(want) * 4)
        values = {"input": input_buffer(data), "histograms": out, "desc": int(desc), "dims": (length, tiles, shift)}
        step = groups(kernel, bound(kernel, values), (1 if scans else tiles, rows), (threads,))
        check = Known(got=View(buffer=out, dtype=UINT, shape=(len(want),)), want=pack(UINT, want))
        yield Program(
            label=f"{rows} rows of {length}, shift {shift}{', descending' if desc else ''}",
            steps=[step],
            checks=[check],
        )


def radix_scatter(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`radix_scatter`: offsets are added-up counts, or with `fused` the counts; flags (desc, values are places)."""
    dtype, (threads, tile), bins = kernel.dtype("keys_in"), _radix_threads(kernel), 1 << int(kernel.parts["bits"])
    value_type, result_type, size = kernel.dtype("vals_in"), kernel.dtype("vals_out"), dtype.size
    for number, (rows, length, shift, desc) in enumerate(_radix_cases(kernel, dtype)):
        data, tiles = _radix_keys(case, dtype, rows * length), -(-length // tile)
        is_first = number == 1
        begin, kept = (length // 3, length // 2) if kernel.has("sel") else (0, length)
        given = [label for _ in range(rows) for label in case.values.random.sample(range(length), length)]
        offsets, keys, values = list[int](), b"", list[int]()
        for r in range(rows):
            row = data[r * length * size : (r + 1) * length * size]
            digits = _radix_digits(kernel, dtype, row, shift, desc)
            flat = list(itertools.chain(*_radix_counts(digits, bins, tile)))
            offsets += flat if "fused" in kernel.name else [0, *itertools.accumulate(flat)][:-1]
            order = sorted(range(length), key=digits.__getitem__)[begin : begin + kept]
            keys += b"".join(row[i * size : (i + 1) * size] for i in order)
            values += [i if is_first else given[r * length + i] for i in order]
        key_out, value_out = output_buffer(len(keys)), output_buffer(len(values) * result_type.size)
        arguments = {
            "keys_in": input_buffer(data),
            "vals_in": input_buffer(pack(value_type, given)),
            "keys_out": key_out,
            "vals_out": value_out,
            "offsets": input_buffer(pack(UINT, offsets)),
            "dims": (length, tiles, shift),
            "flags": (int(desc), int(is_first)),
            "sel": (begin, kept),
        }
        step = groups(kernel, bound(kernel, arguments), (tiles, rows), (threads,))
        checks: list[Check] = [
            Known(got=View(buffer=key_out, dtype=dtype, shape=(len(values),)), want=keys),
            Known(got=View(buffer=value_out, dtype=result_type, shape=(len(values),)), want=pack(result_type, values)),
        ]
        yield Program(
            label=f"{rows} rows of {length}, shift {shift}{', descending' if desc else ''}", steps=[step], checks=checks
        )


def radix_scan(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`radix_scan`: in place, the sum of all counts of a row before each; 1024 threads."""
    for rows, entries in ((2, 5), (1, 1024), (3, 2500), (2, 512)):
        counts = [case.values.integers(entries, 0, 99) for _ in range(rows)]
        data = inout_buffer(pack(UINT, list(itertools.chain(*counts))))
        want = [total for row in counts for total in [0, *itertools.accumulate(row)][:-1]]
        arguments = bound(kernel, {"histograms": data, "n_entries": entries})
        step = groups(kernel, arguments, (1, rows), (1024,))
        check = Known(got=View(buffer=data, dtype=UINT, shape=(len(want),)), want=pack(UINT, want))
        yield Program(label=f"{rows} rows of {entries}", steps=[step], checks=[check])


# As many threads as torch launches for many numbers, in smaller threadgroups: 256 of 256.
GROUP, THREADS = 32, 65536


def _median_sample(case: Case, dtype: DType, count: int, nans: int) -> View:
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
    if hist is kernel:
        yield _median_counted(kernel, case, dtype)
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
        x, out = _median_sample(case, dtype, count, nans), result(dtype, (1,))
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


def _median_counted(kernel: Kernel, case: Case, dtype: DType) -> Program:
    """The first counts of as many numbers as threads are launched for at most: they go around for all further ones."""
    count = THREADS - 100
    numbers = [0, 255 if dtype.kind == "unsigned" else -1]
    chosen = case.values.random.choices(numbers, k=count)
    x, state, counts = numbered(dtype, chosen), zeroed(DTYPES["uint"], (6,)), zeroed(DTYPES["uint"], (257,))
    values: dict[str, object] = {"input": x, "state": state, "hist": counts, "numel": count}
    values |= {"shift": 8 * dtype.size - 8, "first_pass": True}
    want = [0] * 257
    for number in numbers:
        want[_median_first_digit(dtype, number)] = chosen.count(number)
    check = Known(got=counts, want=pack(DTYPES["uint"], want))
    # Elements in front, which are 0: one more for each thread.
    growth = Growth(
        bytes={"input": THREADS * dtype.size},
        words={"numel": growing(kernel, "numel", THREADS)},
        results={"hist": ((4 * _median_first_digit(dtype, 0), 4, GROUP),)},
        only=(0,),
    )
    step = groups(kernel, bound(kernel, values), (THREADS // GROUP,), (GROUP,))
    return Program(label=f"first counts of {count} values", steps=[step], checks=[check], growth=growth)


def _median_first_digit(dtype: DType, number: int) -> int:
    """Return the 8 highest bits of a number's key, by which keys are in the order of the numbers."""
    (highest,) = pack(dtype, [number])[-1:]
    if dtype.kind == "unsigned":
        return highest
    return highest ^ 0xFF if not dtype.is_exact and highest & 0x80 else highest ^ 0x80


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
            keys: list[float] = [*case.values.integers(rows * many - 2, low - 2 if low else 0, 45), low, 40]
            stored = [0] * (limits * len(lines))
            if kernel.has("data_sort"):
                for row, (line, order) in enumerate(zip(lines, orders, strict=True)):
                    for rank, at in enumerate(order):
                        stored[row * limits + at] = line[rank]
            else:
                stored = [each for line in lines for each in line]
            x = numbered(dtype, keys, (rows, many))
            out = result(kind, (rows, many))
            values: dict[str, object] = {"data_in": x, "data_bd": numbered(dtype, stored), "data_out": out}
            values |= {"idim_in": many, "idim_bd": limits, "numel_in": rows * many, "right": right}
            values |= {"is_1d_boundaries": int(is_flat), "data_sort": [each for order in orders for each in order]}
            found = []
            for at, each in enumerate(keys):
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
