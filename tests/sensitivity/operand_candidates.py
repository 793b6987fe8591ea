"""What the rules on operands could ask of an overload: long sides, numbers of every size, lazy views, wanted gradients.

As in wider_candidates.py: of one kind the first that is kept is enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import torch

from device_suite.overloads.described import dtype_of, shape_of, texts
from device_suite.rules.changes import ChangedCall
from device_suite.rules.ways import DERIVE, TWICE, WANTING
from rule_candidates import Change, is_written
from rule_candidates_wide import sized
from rule_kinds import is_backward

Kinds = Iterator[tuple[str, list[Change]]]
# Past 16 bits, and what a loop over blocks, rows or matrices may stop at; no power of two.
_LONG = (65_543, 16_411, 4_111, 1_031, 257, 67)
_LEADING = (65_543, 4_111, 513, 70)
_SQUARE = (1_031, 1_033)  # 2**20 elements and more
_MATRICES = ("1031x1033", "517x521")
MANY = 1 << 18
_TO_HALF = ([["kind", "float32", "float16"]], [["kind", "float32", "bfloat16"]])
# Words of windows.FILLS: of every type, and of float32 alone.
_WORDS, _WIDE_WORDS = ("tenths", "ties", "large", "low", "small"), ("larger", "smaller")
# Of matrices that are solved or raised to a power nobody says what comes of numbers so far apart; CUDA's exponential
# does not end.
_SOLVED = (
    *("linalg_", "matrix_exp", "matrix_power", "cholesky", "lu_solve", "lu_with", "qr", "svd", "pinverse", "logdet"),
    *("slogdet", "lstsq", "inverse", "ormqr", "orgqr", "geqrf", "triangular"),
)
_NOT_SOLVED = ("linalg_vector", "linalg_cross", "linalg_vecdot", "linalg_diagonal", "linalg_norm", "linalg_multi_dot")
_LISTS = ("_foreach", "_fused", "_amp")
# The CPU writes where lengths say, past its operands: of other sides they say something else.
_UNCHECKED = ("_segment_reduce_backward",)
_NUMBERS = (0.1, 0.25, 3.0, -2.5, 200.0)


def sizes(func: Any, call: Any) -> Kinds:
    """Make each side long in all operands that have it; one dimension more, of many; and 2**18 elements and more."""
    every = texts(call)
    unchecked = func._schema.name.split("::")[1] in _UNCHECKED
    if func._schema.is_mutable or not every or unchecked or _is_solved(func):
        return
    if torch.Tag.pointwise in func.tags:
        yield from (("many", sized(call, sides)) for sides in _MATRICES)
        return
    found = sorted({side for text in every for side in shape_of(text) if side > 1})
    for old in found:
        for new in _LONG:
            yield f"side {old}", [["grown", old, new]]
            yield f"side {old}", [["grown", old, new, 1]]
    for one, other in itertools.permutations(found, 2):
        yield "many", [["grown", one, _SQUARE[0]], ["grown", other, _SQUARE[1]]]
    if _is_called_by_another(func):  # it does not look whether operands are of one call
        return
    if len(every) == 1:
        shape = shape_of(every[0])
        for dim, new in itertools.product(range(len(shape)), _LONG):
            yield _side(shape, dim), [["side", 0, dim, new - shape[dim]]]
    for new in _LEADING:
        yield "leading", [_led(number, text, new) for number, text in enumerate(every)]
        yield "leading", [_led(0, every[0], new)]
    if len(every) == 1:
        shape = shape_of(every[0])
        for one, other in itertools.permutations(range(len(shape)), 2):
            yield (
                "many",
                [["side", 0, one, _SQUARE[0] - shape[one]], ["side", 0, other, _SQUARE[1] - shape[other]]],
            )


def _side(shape: Any, dim: int) -> str:
    """Return the kind of a change of one side: a side that no other is like has changed everywhere already."""
    return f"side {shape[dim]}" if shape.count(shape[dim]) == 1 else f"dim {dim}"


def _led(number: int, text: str, count: int) -> Change:
    return ["sides", number, "x".join(map(str, (count, *shape_of(text))))]


def in_float32(func: Any, call: Any) -> tuple[list[Change], Any]:
    """Return changes by which a call without any float32 has it, where it may, and the call with them."""
    found = {text.split(" ")[0][1:] for text in texts(call)}
    if "float32" in found:
        return [], call
    changes = [["kind", one, "float32"] for one in sorted(found - {"bool"} or found)]
    return changes, ChangedCall(func, call, changes).call


def _is_called_by_another(func: Any) -> bool:
    return func._schema.name.split("::")[1].startswith("_") or is_backward(func)


def _is_solved(func: Any) -> bool:
    name = func._schema.name.split("::")[1].lstrip("_")
    return name == "det" or (name.startswith(_SOLVED) and not name.startswith(_NOT_SOLVED))


def numbers(func: Any, call: Any) -> Kinds:
    """Fill each operand with numbers of one size, in float32 and both halves; along each dimension; beside numbers."""
    if func._schema.is_mutable or _is_solved(func):
        return
    kinds, call = in_float32(func, call)
    every = texts(call)
    first = [*kinds, *(sized(call, "3x7", fewest=8) if torch.Tag.pointwise in func.tags else [])]
    floats = [number for number, text in enumerate(every) if dtype_of(text) == torch.float32]
    if "polynomial" in func._schema.name:  # the degree says how many steps are made
        floats = floats[:1]
    lists = func._schema.name.split("::")[1].startswith(_LISTS)  # each tensor of a list is like the others
    filled = _filled(floats, lists=lists, backward=is_backward(func))
    for kind, rest in filled:
        # A sum of such numbers is past what float16 holds.
        if torch.Tag.pointwise in func.tags or not (rest[0] in _TO_HALF[0] and rest[-1][2] == "large"):
            yield kind, [*first, *rest]
    if floats and not lists:
        more = itertools.chain(_along(func, every, floats[0]), _beside(func, call, floats[0]))
        yield from ((kind, [*first, *rest]) for kind, rest in more)


def _filled(floats: list[int], *, lists: bool, backward: bool) -> Kinds:
    for word in ("tenths", "ties") if backward else (*_WORDS, *_WIDE_WORDS):
        fills = [["fill", number, word] for number in floats]
        for kind in ([], *_TO_HALF) if word in ("large", "low") else ([],):
            for number, fill in () if lists else zip(floats, fills):
                yield f"{number} {word} {kind}", [*kind, fill]
            if len(fills) > 1 and word not in _WIDE_WORDS:  # no product of such numbers is one
                yield f"all {word} {kind}", [*kind, *fills]


def _along(func: Any, every: list[str], number: int) -> Kinds:
    for argument in func._schema.arguments:
        if argument.name == "dim":
            for dim, kind in itertools.product(range(-1, -1 - len(shape_of(every[0])), -1), ([], *_TO_HALF)):
                given = [dim] if "List" in str(argument.type) else dim
                yield f"dim {dim} {kind}", [*kind, ["fill", number, "low"], ["arg", "dim", given]]


def _beside(func: Any, call: Any, number: int) -> Kinds:
    for place, argument in enumerate(func._schema.arguments):
        given = call[0][place] if place < len(call[0]) and not argument.kwarg_only else call[1].get(argument.name)
        if "number" in str(argument.type).lower() or "float" in str(argument.type):
            for value, word in itertools.product(_NUMBERS, ("tenths", "large")):
                if value != given:
                    yield f"{argument.name} {value} {word}", [["fill", number, word], ["arg", argument.name, value]]


def lazy(func: Any, call: Any) -> Kinds:
    """Give each operand that is only read as a view that is conjugated, or negated, when it is read."""
    kinds, call = in_float32(func, call)
    written = is_written(func, call)
    lists = func._schema.name.split("::")[1].startswith(_LISTS)
    for number, text in enumerate(texts(call)[: 1 if lists else 6]):
        dtype, shape = dtype_of(text), shape_of(text)
        if written[number] or math.prod(shape) == 0:
            continue
        low, high = map(float, text.split(" ")[3:])
        if dtype == torch.float32:
            yield f"negated {number}", [*kinds, ["within", number, -high, -low], ["layout", number, "negated"]]
        if dtype in (torch.float32, torch.complex64):
            kind = [["kind", "float32", "complex64"]] if dtype == torch.float32 else []
            yield f"conjugated {number}", [*kinds, *kind, ["layout", number, "conjugated"]]


def wanting(func: Any, call: Any) -> Kinds:
    """Let the operands want a gradient."""
    kinds, call = in_float32(func, call)
    if not func._schema.is_mutable and any(text.startswith(("@float", "@complex")) for text in texts(call)):
        yield "plain", [*kinds, WANTING]


def typed(func: Any, call: Any) -> Kinds:
    """Let `out=` have another dtype than the answer, where that holds it."""
    written = [number for number, one in enumerate(is_written(func, call, as_out=True)) if one]
    for number in () if _is_called_by_another(func) else written:
        own = texts(call)[number].split(" ")[0][1:]
        for dtype in ("float16", "bfloat16", "complex64", "float32"):
            if dtype != own:
                yield f"{number} {dtype}", [["dtype", number, dtype]]


def twice(func: Any, call: Any) -> Kinds:
    """Ask for the gradients of the gradients."""
    kinds, call = in_float32(func, call)
    has_any = any(text.startswith(("@float", "@complex")) for text in texts(call))
    if has_any and not (func._schema.is_mutable or is_backward(func)):
        yield "plain", [*kinds, TWICE]
        if "topk" not in func._schema.name:  # which of equal numbers it takes is free
            yield "zeros", [*kinds, ["fill", 0, "unit"], TWICE]


def halves(func: Any, call: Any) -> Kinds:
    """Ask for the gradients, and for gradients of gradients, in half precision and of complex numbers."""
    for kind, changes in itertools.islice(twice(func, call), 1):
        for dtype in ("float16", "bfloat16", "complex64"):
            for way in (DERIVE, TWICE):
                yield f"{kind} {dtype} {way}", [*changes[:-1], ["kind", "float32", dtype], way]


def emptied(func: Any, call: Any) -> Kinds:
    """Leave nothing of each side, in all operands that have it, and of all sides; also along no chosen dimension."""
    every = texts(call)
    if func._schema.is_mutable or _is_called_by_another(func):
        return
    if len({dtype_of(text).is_floating_point for text in every if dtype_of(text) != torch.bool}) > 1:
        return  # whole numbers beside others are places, and no place is in a table of nothing
    found = sorted({side for text in every for side in shape_of(text) if side})
    ways: dict[str, list[Change]] = {f"side {old}": [["grown", old, 0]] for old in found}
    if len(every) == 1:
        shape = shape_of(every[0])
        for dim, side in enumerate(shape):
            if shape.count(side) > 1 and side:
                ways[f"dim {dim}"] = [["side", 0, dim, -side]]
    ways["all"] = [["grown", old, 0] for old in found]
    if any(dtype_of(text) == torch.float32 for text in every):
        for one in ("float16", "bfloat16", "int64"):
            ways[f"all {one}"] = [["kind", "float32", one], *ways["all"]]
    for kind, changes in ways.items():
        yield kind, changes
        for argument in func._schema.arguments:
            if argument.name == "dim" and argument.has_default_value():
                yield f"{kind} default", [*changes, ["arg", "dim", argument.default_value]]


def emptied_refused(func: Any, call: Any) -> Kinds:
    """Ask the same where the CPU refuses it."""
    yield from emptied(func, call)


_DIMENSIONS = ("dim", "dim0", "dim1", "dim2", "axis", "axis0", "axis1", "start_dim", "end_dim")


def dims(func: Any, call: Any) -> Kinds:
    """Ask along each dimension, counted from both ends; of one operand with a dimension more as well."""
    every = texts(call)
    names = [one.name for one in func._schema.arguments if one.name in _DIMENSIONS]
    if func._schema.is_mutable or not every or is_backward(func):
        return
    for more, name in itertools.product((0, 1) if len(every) == 1 else (0,), names):
        rank = len(shape_of(every[0])) + more
        listed = next("List" in str(one.type) for one in func._schema.arguments if one.name == name)
        for dim in range(-rank, rank):
            shape: list[Change] = [["rank", 0, more]] if more else []
            yield f"{name} {dim} of {rank}", [*shape, ["arg", name, [dim] if listed else dim]]


def amid(func: Any, call: Any) -> Kinds:
    """Let NaN, or the largest number, lie in the memory before and behind each operand that is only read."""
    every = texts(call)
    if not func._schema.is_mutable and every and all(math.prod(shape_of(text)) for text in every):
        yield "all", [["amid", number] for number in range(min(len(every), 6))]


def vast(func: Any, call: Any) -> Kinds:
    """Fill each operand with whole numbers that no floating dtype holds, in place of those with a fraction."""
    every = texts(call)
    floats = [number for number, text in enumerate(every) if dtype_of(text) == torch.float32]
    if not func._schema.is_mutable and not is_backward(func):
        for dtype, word in (("int64", "vast"), ("int32", "vast32")):
            for number in floats:
                yield f"{number} {dtype}", [["kind", "float32", dtype], ["fill", number, word]]
            if len(floats) > 1:
                yield f"all {dtype}", [["kind", "float32", dtype], *(["fill", number, word] for number in floats)]


def cuts(func: Any, call: Any) -> Kinds:
    """Fill an operand with complex numbers on both sides of the cuts of roots, logarithms and inverse functions."""
    kinds, call = in_float32(func, call)
    if torch.Tag.pointwise in func.tags and not func._schema.is_mutable and not is_backward(func):
        for number, text in enumerate(texts(call)):
            if dtype_of(text) in (torch.float32, torch.complex64):
                wide = [] if dtype_of(text) == torch.complex64 else [["kind", "float32", "complex64"]]
                yield str(number), [*kinds, *wide, *sized(call, "3x7", fewest=20), ["fill", number, "cuts"]]


def stray(func: Any, call: Any) -> Kinds:
    """Let each side be 1 in all operands that have it, with a stride that leads nowhere: transposed views have it."""
    every = texts(call)
    if func._schema.is_mutable or is_backward(func):
        return
    for old in sorted({side for text in every for side in shape_of(text) if side}):
        shapes = [[1 if side == old else side for side in shape_of(text)] for text in every]
        laid: list[Change] = [["layout", number, "stray"] for number, shape in enumerate(shapes) if 1 in shape]
        yield f"side {old}", [["grown", old, 1], *laid]


RULES_IN_WORDS = {
    "sizes": "3: each side of 2**16 elements, or as many as end soon, in all operands at once; 2**18 elements and more",
    "numbers": "2: multiples of 0.1, halves, numbers far from 1 in each operand, in each number beside them",
    "lazy": "5: each operand as a view that is conjugated, or negated, when it is read",
    "typed": "5: an `out=` of each dtype that the CPU takes",
    "wanting": "6: operands that want a gradient, which nobody asks for",
    "twice": "6: gradients of gradients",
    "halves": "6: gradients, and gradients of gradients, in half precision and of complex numbers",
    "emptied": "3: nothing of a side, of all sides, answered",
    "emptied_refused": "1: nothing of a side, of all sides, refused",
    "dims": "5: along each dimension, counted from both ends",
    "amid": "2: NaN and the largest numbers in the memory beside each operand",
    "vast": "2: whole numbers that float64, and float32, do not hold",
    "cuts": "2: complex numbers on both sides of the cuts of functions",
    "stray": "5: sides of 1 whose stride leads nowhere",
}
RULES = (sizes, numbers, lazy, typed, wanting, twice, halves, emptied, emptied_refused, dims, amid, vast, cuts, stray)
