"""Operators of two operands and of three: dense, repeated, cast."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...program.dtypes import DTYPES, DType
from ...program.launch import (
    Check,
    Known,
    NotBound,
    Program,
    Reference,
    Same,
    Shape,
    Step,
    View,
    dense_strides,
    input_buffer,
)
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.elementwise import (
    GROUP,
    alphas,
    byte_strides,
    cast_pair,
    dense_output,
    dense_view,
    known_types,
    lanes_of,
    layouts_of,
    reference,
    result_dtype,
    spread,
    spread_output,
    stored_types,
    with_alpha,
)
from ..shared.tensors import bound, filled, offsets_table, result, strides_of, threads

Alpha = Mapping[str, Any]


# What an operand is called in each form, and in references.
OPERANDS = ("input", "other", "broadcast", "scalar", "other1", "other2")


NAMES = ("x", "y", "z")


def result_of(kernel: Kernel) -> str:
    """Return the name of the kernel's result argument, which releases spell differently."""
    return "out" if kernel.has("out") else "output"


def operands_of(kernel: Kernel) -> list[str]:
    """Return the operands' names in slot order."""
    return [each.name for each in kernel.metadata.arguments if each.name in OPERANDS]


def dtypes_of(kernel: Kernel) -> list[DType]:
    """Return the types that a dense kernel computes in."""
    return [kernel.dtype(each) for each in operands_of(kernel)]


def dense(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_dense`: one element a thread, against torch."""
    kinds, target, name = dtypes_of(kernel), result_dtype(kernel, result_of(kernel)), reference(kernel, case)
    values = alphas(kernel, case)
    for alpha in values:
        for count in (4099, 1, 70) if alpha is values[0] else (4099,):
            operands = [
                dense_view(data, kind)
                for data, kind in zip(draw(kinds, case, count, row_of(kernel, case)), kinds, strict=True)
            ]
            out = dense_output(target, (count,))
            inputs = {**dict(zip(NAMES, operands, strict=False)), **alpha.get("inputs", {})}
            step = dense_step(kernel, operands, out, alpha)
            check = Reference(got=out, name=name, inputs=inputs)
            yield Program(label=f"{count} elements{_said(alpha)}", steps=[step], checks=[check])


def draw(kinds: Sequence[DType], case: Case, count: int, row: Mapping[str, Any] | None = None) -> list[bytes]:
    """Return operands: pairs at the edges, a third independent of both; or what the reference's `draw` asks for."""
    if row and row.get("draw"):
        return [_between(kind, case, count, row["draw"].get(name)) for kind, name in zip(kinds, NAMES, strict=False)]
    first, second = case.values.pairs(kinds[0], kinds[1], count)
    if row and row.get("divides") and kinds[1].is_exact:
        second = _divisors(second, kinds[1])
    return [first, second, *(case.values.sweep(kind, count) for kind in kinds[2:])]


def _divisors(data: bytes, kind: DType) -> bytes:
    """Whole divisors without 0 and -1: the one has no answer, the other none for the smallest number."""
    size, three = kind.size, pack(kind, [3])
    refused = {bytes(size), b"\xff" * size} if kind.kind == "signed" else {bytes(size)}
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(three if part in refused else part for part in parts)


def _between(kind: DType, case: Case, count: int, bounds: Sequence[Any] | None) -> bytes:
    if bounds is None:
        return case.values.sweep(kind, count)
    if bounds == ["bits"]:
        return case.values.whole(kind, count, 0, 8 * kind.size - 1)
    if len(bounds) == 3:
        low = bounds[0] if kind.kind not in ("unsigned", "bool") else max(bounds[0], 0)
        return (
            case.values.whole(kind, count, low, bounds[1])
            if kind.is_exact
            else pack(kind, [float(each) for each in case.values.integers(count, low, bounds[1])])
        )
    stretch = 4 if kind.is_exact else 1  # whole numbers beyond -1, 0 and 1
    return case.values.moderate(kind, count, stretch * bounds[0], stretch * bounds[1])


def row_of(kernel: Kernel, case: Case) -> Mapping[str, Any]:
    """Return the reference of the kernel's operator; empty if there is none."""
    return case.references.get(kernel.parts.get("op", ""), {})


def dense_step(kernel: Kernel, operands: Sequence[View], out: View, alpha: Alpha) -> Step:
    """Return the launch of a dense form; several elements a thread where it has `numel`."""
    arguments: dict[str | int, Any] = {result_of(kernel): out.buffer}
    arguments |= {name: view.buffer for name, view in zip(operands_of(kernel), operands, strict=True)}
    threads = out.count
    if kernel.has("numel"):
        arguments["numel"] = kernel.pack("numel", out.count)
        threads = -(-out.count // lanes_of(kernel))
    return Step(
        kernel=kernel.name, arguments=with_alpha(kernel, arguments, alpha), grid=(threads, 1, 1), threadgroup=GROUP
    )


def several_per_thread(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_dense_ilp4`: against the dense form, at every remainder of a thread's share."""
    companion, kinds, target, alpha = beside(kernel, case)
    for count in (1, 3, 6, 515):
        operands = [
            dense_view(data, kind)
            for data, kind in zip(draw(kinds, case, count, row_of(kernel, case)), kinds, strict=True)
        ]
        want, out = dense_output(target, (count,)), dense_output(target, (count,))
        steps = [dense_step(companion, operands, want, alpha), dense_step(kernel, operands, out, alpha)]
        yield Program(label=f"{count} elements", steps=steps, checks=[Same(got=out, want=want)])


def beside(kernel: Kernel, case: Case) -> tuple[Kernel, list[DType], DType, Alpha]:
    """Return the dense kernel, its operands' types, its result's type and the last alpha."""
    companion = case.first_companion(kernel)
    return companion, dtypes_of(companion), result_dtype(companion, result_of(companion)), alphas(kernel, case)[-1]


def repeated(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_dense_broadcast` and `_scalar`, either side: an operand of fewer elements, taken again from its beginning."""
    companion, kinds, target, alpha = beside(kernel, case)
    names = operands_of(kernel)
    short = next(number for number, name in enumerate(names) if name in ("broadcast", "scalar"))
    for count, length in ((515, 1),) if names[short] == "scalar" else ((515, 1), (510, 30), (7, 7)):
        data = draw(kinds, case, count, row_of(kernel, case))
        operands = [dense_view(each, kind) for each, kind in zip(data, kinds, strict=True)]
        for begin in range(3 if names[short] == "scalar" and not case.is_quick else 1):
            size = kinds[short].size
            few = data[short][begin * size : (begin + length) * size]
            operands[short] = dense_view(few * (count // length), kinds[short])
            shown = [*operands]
            shown[short] = dense_view(few, kinds[short])
            yield _repeated(kernel, companion, operands, shown, target, alpha, short, count, length)


def _repeated(
    kernel: Kernel, companion: Kernel, operands: list[View], shown: list[View], target: DType, alpha: Alpha,
    short: int, count: int, length: int,
) -> Program:  # fmt: skip
    want, out = dense_output(target, (count,)), dense_output(target, (count,))
    step = _flat_step(kernel, shown, out, alpha, length)
    del short
    steps = [dense_step(companion, operands, want, alpha), step]
    return Program(label=f"{count} elements, {length} repeated", steps=steps, checks=[Same(got=out, want=want)])


def _flat_step(kernel: Kernel, operands: Sequence[View], out: View, alpha: Alpha, length: int | None) -> Step:
    """Return a launch of one thread an element, with the sizes and types that casting forms are passed."""
    arguments: dict[str | int, Any] = {result_of(kernel): out.buffer}
    arguments |= {name: view.buffer for name, view in zip(operands_of(kernel), operands, strict=True)}
    if kernel.has("broadcast_numel"):
        arguments["broadcast_numel"] = kernel.pack("broadcast_numel", length)
    codes = [each.dtype.code for each in operands]
    if kernel.has("sizes_types"):
        arguments["sizes_types"] = kernel.pack("sizes_types", [*(each.dtype.size for each in operands), *codes])
    if kernel.has("types") and kernel.has("sizes"):
        sizes = [each.dtype.size for each in operands]
        argument = kernel.argument("sizes")
        places = 4 if argument.type.endswith("4") else 3
        arguments["sizes"] = kernel.pack("sizes", [*sizes, out.dtype.size][:places])
        arguments["types"] = kernel.pack("types", [*codes, out.dtype.code][:places])
    return Step(
        kernel=kernel.name, arguments=with_alpha(kernel, arguments, alpha), grid=(out.count, 1, 1), threadgroup=GROUP
    )


def cast(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_…dense…_cast`: operands stored as any type; the same numbers in the computed type go to the dense form."""
    companion, kinds, target, alpha = beside(kernel, case)
    names = operands_of(kernel)
    count, steps, checks = 66, [], []
    for number, stored in enumerate(rows_of(kinds, case, kernel)):
        pairs = [cast_pair(each, kind, case, count) for each, kind in zip(stored, kinds, strict=True)]
        shown = [dense_view(one, each) for (one, _), each in zip(pairs, stored, strict=True)]
        logical = [dense_view(two, kind) for (_, two), kind in zip(pairs, kinds, strict=True)]
        length = count
        for at, name in enumerate(names):
            if name in ("broadcast", "scalar"):
                length = 1 if name == "scalar" else (11, 1, 66)[number % 3]
                shown[at] = dense_view(shown[at].buffer.data[: length * stored[at].size], stored[at])
                few = logical[at].buffer.data[: length * kinds[at].size]
                logical[at] = dense_view(few * (count // length), kinds[at])
        want, out = dense_output(target, (count,)), dense_output(target, (count,))
        steps += [dense_step(companion, logical, want, alpha), _flat_step(kernel, shown, out, alpha, length)]
        checks.append(Same(got=out, want=want))
    for begin in range(0, len(checks), 5):
        part = slice(2 * begin, 2 * begin + 10)
        yield Program(label="operands of other types", steps=steps[part], checks=checks[begin : begin + 5])


def rows_of(kinds: Sequence[DType], case: Case, kernel: Kernel) -> Iterator[list[DType]]:
    """Yield the stored types of all operands: each type comes at each place once."""
    choices = [list(stored_types(kind, case, kernel)) for kind in kinds]
    for number in range(max(len(each) for each in choices)):
        yield [each[(number * (2 * place + 1) + place) % len(each)] for place, each in enumerate(choices)]


def count_of(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape."""
    count = 1
    for size in shape:
        count *= size
    return count


def _said(alpha: Alpha) -> str:
    return f", alpha {alpha['value']}" if alpha else ""


# Operators of two operands and of three over strided tensors.


def strided(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_strided`: sizes and byte strides, innermost first."""
    companion, kinds, target, alpha = beside(kernel, case)
    for shape, order, order_out in layouts_of(case):
        count = count_of(shape)
        data = draw(kinds, case, count, row_of(kernel, case))
        operands = [dense_view(each, kind, shape) for each, kind in zip(data, kinds, strict=True)]
        orders = [order, order_out, order][: len(kinds)]
        shown = [
            spread(view.buffer.data, view.dtype, shape, each, gap=1 + number)
            for number, (view, each) in enumerate(zip(operands, orders, strict=True))
        ]
        out, want = spread_output(target, shape, order_out), dense_output(target, shape)
        steps = [dense_step(companion, operands, want, alpha), strided_step(kernel, shown, out, alpha)]
        yield Program(label=f"shape {shape}, operands as {orders}", steps=steps, checks=[Same(got=out, want=want)])
    yield _expanded(kernel, companion, kinds, target, alpha, case)


def _expanded(
    kernel: Kernel, companion: Kernel, kinds: list[DType], target: DType, alpha: Alpha, case: Case
) -> Program:
    """A program whose second operand is expanded: stride 0 along one dimension."""
    shape = (4, 9)
    data = draw(kinds, case, 36, row_of(kernel, case))
    row = data[1][: 9 * kinds[1].size]
    operands = [dense_view(each, kind, shape) for each, kind in zip(data, kinds, strict=True)]
    operands[1] = dense_view(row * 4, kinds[1], shape)
    shown = [*operands]
    shown[1] = View(buffer=dense_view(row, kinds[1]).buffer, dtype=kinds[1], shape=shape, strides=(0, 1))
    out, want = dense_output(target, shape), dense_output(target, shape)
    steps = [dense_step(companion, operands, want, alpha), strided_step(kernel, shown, out, alpha)]
    return Program(label="an expanded operand", steps=steps, checks=[Same(got=out, want=want)])


def strided_cast(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_strided_cast`: strided, operands stored as any type; the result is written as the type computed in."""
    companion, kinds, target, alpha = beside(kernel, case)
    shape, order, order_out = (3, 2, 11), (2, 0, 1), (0, 1, 2)
    steps: list[Step] = []
    checks: list[Check] = []
    for stored in rows_of(kinds, case, kernel):
        pairs = [cast_pair(each, kind, case, 66) for each, kind in zip(stored, kinds, strict=True)]
        operands = [dense_view(two, kind, shape) for (_, two), kind in zip(pairs, kinds, strict=True)]
        shown = [spread(one, each, shape, order) for (one, _), each in zip(pairs, stored, strict=True)]
        out, want = spread_output(target, shape, order_out), dense_output(target, shape)
        steps += [dense_step(companion, operands, want, alpha), strided_step(kernel, shown, out, alpha)]
        checks.append(Same(got=out, want=want))
    for begin in range(0, len(checks), 5):
        part = slice(2 * begin, 2 * begin + 10)
        yield Program(label="operands of other types", steps=steps[part], checks=checks[begin : begin + 5])


def strided_castout(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_strided_castout`: strided, operands stored as any type, and the result is written as any type."""
    companion, kinds, target, alpha = beside(kernel, case)
    shape, order, order_out = (3, 2, 11), (2, 0, 1), (0, 1, 2)
    steps: list[Step] = []
    checks: list[Check] = []
    outs = known_types(kernel)[2::3] if case.is_quick else known_types(kernel)
    outs = [each for each in outs if (each.kind == "complex") >= (target.kind == "complex")]
    rows = list(rows_of(kinds, case, kernel))
    for number, written in enumerate(outs):
        stored = rows[number % len(rows)]
        pairs = [cast_pair(each, kind, case, 66) for each, kind in zip(stored, kinds, strict=True)]
        operands = [dense_view(two, kind, shape) for (_, two), kind in zip(pairs, kinds, strict=True)]
        shown = [spread(one, each, shape, order) for (one, _), each in zip(pairs, stored, strict=True)]
        out, want = spread_output(written, shape, order_out), dense_output(target, shape)
        steps += [dense_step(companion, operands, want, alpha), strided_step(kernel, shown, out, alpha)]
        is_same = written == target
        checks.append(
            Same(got=out, want=want)
            if is_same
            else Reference(got=out, name="cast", inputs={"x": want, "to": written.torch})
        )
    for begin in range(0, len(checks), 5):
        part = slice(2 * begin, 2 * begin + 10)
        yield Program(label="written as other types", steps=steps[part], checks=checks[begin : begin + 5])


def strided_step(kernel: Kernel, operands: Sequence[View], out: View, alpha: Alpha) -> Step:
    """Return the launch of a strided form: one thread an element; threads in 3-D for three operands."""
    sizes = list(reversed(out.shape))
    names = operands_of(kernel)
    arguments: dict[str | int, Any] = {result_of(kernel): out.buffer}
    arguments |= {name: view.buffer for name, view in zip(names, operands, strict=True)}
    arguments["sizes"] = kernel.pack("sizes", sizes)
    arguments["output_strides"] = kernel.pack("output_strides", byte_strides(out))
    for name, view in zip(names, operands, strict=True):
        arguments[f"{name}_strides"] = kernel.pack(f"{name}_strides", byte_strides(view))
    codes = [*(each.dtype.code for each in operands), out.dtype.code]
    if kernel.has("ndim_types"):
        arguments["ndim_types"] = kernel.pack("ndim_types", [len(sizes), *codes])
    else:
        arguments["ndim"] = kernel.pack("ndim", len(sizes))
    if kernel.has("types"):
        arguments["types"] = kernel.pack("types", codes)
    grid, group = _threads(kernel, sizes)
    return Step(kernel=kernel.name, arguments=with_alpha(kernel, arguments, alpha), grid=grid, threadgroup=group)


def _threads(kernel: Kernel, sizes: list[int]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    width = next((each.type for each in kernel.metadata.arguments if each.kind == "thread_position_in_grid"), "uint")
    count = count_of(tuple(sizes))
    if width == "uint":
        return (count, 1, 1), GROUP
    if width == "uint2":
        return (sizes[0], count // sizes[0], 1), (8, 4, 1)
    second = sizes[1] if len(sizes) > 1 else 1
    return (sizes[0], second, count // sizes[0] // second), (8, 2, 2)


def inner_contiguous(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`op_inner_contiguous`: the innermost dimension of all is dense; threads (its length / W, the outer elements)."""
    companion, kinds, target, alpha = beside(kernel, case)
    for shape, order, order_out in layouts_of(case):
        data = draw(kinds, case, count_of(shape), row_of(kernel, case))
        last = len(shape) - 1
        orders = [(*(d for d in each if d != last), last) for each in (order, order_out)]
        operands = [dense_view(each, kind, shape) for each, kind in zip(data, kinds, strict=True)]
        shown = [
            spread(view.buffer.data, view.dtype, shape, orders[number % 2], gap=1)
            for number, view in enumerate(operands)
        ]
        out, want = spread_output(target, shape, orders[1]), dense_output(target, shape)
        outer, inner = list(reversed(shape[:-1])) or [1], shape[-1]
        arguments: dict[str | int, Any] = {result_of(kernel): out.buffer}
        arguments["outer_sizes"] = kernel.pack("outer_sizes", outer)
        arguments["output_outer_strides"] = kernel.pack("output_outer_strides", byte_strides(out)[1:] or [0])
        for name, view in zip(operands_of(kernel), shown, strict=True):
            arguments[name] = view.buffer
            arguments[f"{name}_outer_strides"] = kernel.pack(f"{name}_outer_strides", byte_strides(view)[1:] or [0])
        arguments["ndim_outer_inner"] = kernel.pack("ndim_outer_inner", (len(outer), inner))
        step = Step(
            kernel=kernel.name,
            arguments=with_alpha(kernel, arguments, alpha),
            grid=(-(-inner // lanes_of(kernel)), out.count // inner, 1),
            threadgroup=(8, 4, 1),
        )
        steps = [dense_step(companion, operands, want, alpha), step]
        yield Program(label=f"shape {shape}, operands as {orders}", steps=steps, checks=[Same(got=out, want=want)])


# Operators of two operands where a table holds the offset of every element (up to 2.6).


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


def lerp(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`lerp_tensor` up to 2.14: dense, or by byte strides, innermost first; one weight for all, or one for each."""
    dtype = DTYPES[kernel.parts["T"]]
    n = int(kernel.parts.get("n") or 0)
    is_dense = not kernel.has("out_strides")
    shapes: tuple[Shape, ...] = (
        ((5, 7), (33, 2)) if n == 2 else ((3, 4, 5), (2, 1, 9)) if n == 3 else ((37,), (3, 4, 5))
    )
    for shape in shapes:
        gap = None if is_dense else tuple(2 * each for each in dense_strides(shape))
        low, high = (0, 9) if dtype.is_exact else (-2, 2)
        a, b = (filled(case, dtype, shape, strides=gap, low=low, high=high) for _ in range(2))
        one = kernel.parts.get("form") == "scalar_weight"
        weight = filled(case, dtype, (1,) if one else shape, low=0, high=1 if not dtype.is_exact else 2)
        out = result(dtype, shape)
        values: dict[str, object] = {"out": out, "self": a, "end": b, "weight": weight, "out_ptr": out, "self_ptr": a}
        values |= {"end_ptr": b, "weight_ptr": weight, "sizes": shape[::-1], "ndim": len(shape)}
        for name, view in (("out", out), ("self", a), ("end", b), ("weight", weight)):
            values[f"{name}_strides"] = [each * dtype.size for each in strides_of(view)[::-1]]
        grid = (shape[-1], math.prod(shape[:-1])) if n == 2 else shape[::-1] if n == 3 else (math.prod(shape),)
        scale = {"half": 2.0**-9, "half2": 2.0**-8, "bfloat": 2.0**-6}.get(
            dtype.name, 0.0 if dtype.is_exact else 2.0**-20
        )
        check = Reference(got=out, name="lerp_of_tensors", inputs={"a": a, "b": b, "w": weight}, scale=scale)
        step = threads(kernel, bound(kernel, values), grid)
        yield Program(label=f"{shape}", steps=[step], checks=[check])
