"""Sorts: a row by one threadgroup, or tiles of it and then merges of runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...program.dtypes import DType
from ...program.errors import NotBound
from ...program.launch import Known, Program, Reference, View, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.ordered import Number, tied_numbers
from ..shared.tensors import bound, groups, result

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


def blocks(kernel: Kernel, case: Case) -> Iterator[Program]:
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


def merge(kernel: Kernel, case: Case) -> Iterator[Program]:
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
