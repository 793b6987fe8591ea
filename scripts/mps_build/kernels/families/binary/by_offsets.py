"""Operators of two operands where a table holds the offset of every element (up to 2.6)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.errors import NotBound
from ...program.launch import Known, Program, Reference, View, input_buffer
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.elementwise import dense_view, spread, spread_output
from ..shared.offsets import offsets_table
from ..shared.tensors import bound, result, threads


def by_offsets(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`fmax`, `copysign` and others up to 2.6: offsets (result, left, right) in bytes for each element."""
    name = str(kernel.options.get("reference") or kernel.parts.get("op"))
    if name not in case.references:
        raise NotBound(f"no reference for the operator {name}")
    first, second = next(
        pair for pair in (("input_", "other_"), ("real_", "imag_"), ("abs_", "angle_")) if kernel.has(pair[0])
    )
    dtype = DTYPES[kernel.parts["T"]]
    makes_complex = first != "input_"
    complex_of = {"float": DTYPES["float2"], "half": DTYPES["half2"]}
    if name == "complex_mul":
        dtype = complex_of[dtype.name]
    target = complex_of[dtype.name] if makes_complex else dtype
    if name == "copysign" and dtype.is_exact:
        target = DTYPES["float"]
    for shape, order in (((4099,), (0,)), ((7, 9), (1, 0)), ((3, 4, 5), (2, 0, 1))):
        count = math.prod(shape)
        one, two = case.values.pairs(dtype, dtype, count)
        if name == "polar":
            one, two = (case.values.moderate(dtype, count, -4, 4) for _ in range(2))
        x, y = dense_view(one, dtype, shape), dense_view(two, dtype, shape)
        a, b = spread(one, dtype, shape, order), spread(two, dtype, shape, tuple(range(len(shape))))
        out = spread_output(target, shape, order)
        values = {first: a, second: b, "out_": out, "offsets": input_buffer(offsets_table(kernel, (out, a, b), shape))}
        check = Reference(got=out, name=name, inputs={"x": x, "y": y})
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{shape}, as {order}", steps=[step], checks=[check])


def offsets(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`kernel_index_offset`: the offset of each element from sizes and strides, outermost first; `s`: three at once."""
    wide = kernel.parts.get("bits") == "64"
    several = 3 if "offsets" in kernel.name else 1
    kind = DTYPES["ulong" if wide else "uint"]
    for shape in ((7,), (3, 5), (2, 3, 4)):
        steps = [case.values.integers(several, 1, 100) for _ in shape]
        want: list[int] = []
        for position in itertools.product(*map(range, shape)):
            sums = [sum(p * s[at] for p, s in zip(position, steps, strict=True)) for at in range(several)]
            want += [*sums, *([0] if several == 3 else [])]
        count, width = math.prod(shape), 4 if several == 3 else 1
        out = View(buffer=result(kind, (count * width,)).buffer, dtype=kind, shape=(count, several), strides=(width, 1))
        # Three at once: dimensions innermost first, three words for each.
        rows, sizes = (steps[::-1], shape[::-1]) if several == 3 else (steps, shape)
        count, width = math.prod(shape), 4 if several == 3 else 1
        out = View(buffer=result(kind, (count * width,)).buffer, dtype=kind, shape=(count, several), strides=(width, 1))
        # A vector of three takes four places.
        flat = [each for row in rows for each in row]
        values: dict[str, object] = {"strides": pack(DTYPES["uint"], flat), "data_offsets": out}
        values["iter_shape"] = pack(DTYPES["uint"], list(sizes))
        values["num_dimensions"] = len(shape)
        wanted = [each for at in range(0, len(want), width) for each in want[at : at + several]]
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{shape}", steps=[step], checks=[Known(got=out, want=pack(kind, wanted))])
