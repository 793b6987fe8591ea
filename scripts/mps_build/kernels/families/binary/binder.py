"""Operators of two operands and of three: dense, repeated, cast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...program.dtypes import DType
from ...program.launch import Program, Reference, Same, Step, View
from ...program.values import pack
from ..shared.contracts import Case, Kernel
from ..shared.elementwise import (
    GROUP,
    alphas,
    cast_pair,
    dense_output,
    dense_view,
    lanes_of,
    reference,
    result_dtype,
    stored_types,
    with_alpha,
)

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
