"""Radix sorts, each kernel alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ...program.dtypes import DTYPES, DType
from ...program.launch import Check, Known, Program, View, inout_buffer, input_buffer, output_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, groups

UINT = DTYPES["uint"]


def _digits(kernel: Kernel, dtype: DType, data: bytes, shift: int, desc: bool) -> list[int]:
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


def _threads(kernel: Kernel) -> tuple[int, int]:
    """Return the threads of a threadgroup and the elements of its tile: keys of 16 bits have room for 1024 threads."""
    dtype = kernel.dtype("input" if kernel.has("input") else "keys_in")
    is_wide = kernel.parts["bits"] == "8"
    threads = int(kernel.parts.get("threads") or (1024 if is_wide and dtype.size == 2 else 512))
    return threads, threads * (4 if is_wide else 8)


def _cases(kernel: Kernel, dtype: DType) -> Iterator[tuple[int, int, int, bool]]:
    """Rows, length, shift, descending."""
    (_, tile), last = _threads(kernel), 8 * dtype.size - int(kernel.parts["bits"])
    yield 2, tile + tile // 2 + 1, 0, False
    yield 1, 2 * tile + 5, last, True
    yield 2, 33, last, False
    yield 3, 2 * tile, 0, False  # whole tiles: a longer row begins like it
    # In shorter rows indices are of 16 bits. A fused kernel adds up counts of few tiles: torch launches it only where
    # the square of a row's tiles times the rows is at most 128 (Sort.mm, sort_radix, 2.15.0).
    if "final" in kernel.name and "fused" not in kernel.name and kernel.name.endswith("_tptg512"):
        yield 2, (1 << 16) + tile // 2, 0, False


def _keys(case: Case, dtype: DType, count: int) -> bytes:
    if dtype.kind != "float":
        return case.values.sweep(dtype, count)
    # Numbers alone: which bits stand for NaN and for -0 is the kernel's choice.
    return pack(
        dtype, [case.values.random.choice((1, -1)) * case.values.random.randint(1, 250) / 4 for _ in range(count)]
    )


def _counts(digits: Sequence[int], bins: int, tile: int) -> list[list[int]]:
    """Return how often each digit comes in each tile: [digit][tile]."""
    tiles = -(-len(digits) // tile)
    table = [[0] * tiles for _ in range(bins)]
    for at, digit in enumerate(digits):
        table[digit][at // tile] += 1
    return table


def count(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`radix_count`: dims (length, tiles, shift). `count_scan`: one threadgroup a row, which adds them up."""
    scans = "count_scan" in kernel.name
    dtype, (threads, tile), bins = kernel.dtype("input"), _threads(kernel), 1 << int(kernel.parts["bits"])
    for rows, length, shift, desc in _cases(kernel, dtype):
        data, tiles, want = _keys(case, dtype, rows * length), -(-length // tile), list[int]()
        for r in range(rows):
            row = data[r * length * dtype.size : (r + 1) * length * dtype.size]
            flat = list(itertools.chain(*_counts(_digits(kernel, dtype, row, shift, desc), bins, tile)))
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


def scatter(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`radix_scatter`: offsets are added-up counts, or with `fused` the counts; flags (desc, values are places)."""
    dtype, (threads, tile), bins = kernel.dtype("keys_in"), _threads(kernel), 1 << int(kernel.parts["bits"])
    value_type, result_type, size = kernel.dtype("vals_in"), kernel.dtype("vals_out"), dtype.size
    for number, (rows, length, shift, desc) in enumerate(_cases(kernel, dtype)):
        data, tiles = _keys(case, dtype, rows * length), -(-length // tile)
        is_first = number == 1
        begin, kept = (length // 3, length // 2) if kernel.has("sel") else (0, length)
        given = [label for _ in range(rows) for label in case.values.random.sample(range(length), length)]
        offsets, keys, values = list[int](), b"", list[int]()
        for r in range(rows):
            row = data[r * length * size : (r + 1) * length * size]
            digits = _digits(kernel, dtype, row, shift, desc)
            flat = list(itertools.chain(*_counts(digits, bins, tile)))
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


def scan(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`radix_scan`: in place, the sum of all counts of a row before each; 1024 threads."""
    for rows, entries in ((2, 5), (1, 1024), (3, 2500), (2, 512)):
        counts = [case.values.integers(entries, 0, 99) for _ in range(rows)]
        data = inout_buffer(pack(UINT, list(itertools.chain(*counts))))
        want = [total for row in counts for total in [0, *itertools.accumulate(row)][:-1]]
        arguments = bound(kernel, {"histograms": data, "n_entries": entries})
        step = groups(kernel, arguments, (1, rows), (1024,))
        check = Known(got=View(buffer=data, dtype=UINT, shape=(len(want),)), want=pack(UINT, want))
        yield Program(label=f"{rows} rows of {entries}", steps=[step], checks=[check])
