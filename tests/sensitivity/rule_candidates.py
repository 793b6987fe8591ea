"""What each rule could ask of an overload: changes of a described call, before the CPU is asked what is right.

The lists of changes: tests/device/device_suite/rules/changes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from device_suite.overloads.described import dtype_of, shape_of, texts
from device_suite.rules.asked import packet_of, stored
from device_suite.rules.asking import ALGEBRAIC
from device_suite.rules.chains import MODES
from device_suite.rules.changes import words_of
from rounding import EXACT
from rule_candidates_wide import RULES as _WIDE
from rule_candidates_wide import RULES_IN_WORDS as _WIDE_IN_WORDS
from rule_candidates_wide import rounded_once, truths

_FLOATS = ("float32", "float16", "bfloat16")
_DTYPES = ("bool", "int64", "float32", "float16", "complex64")
_WHOLE = ("int64", "int32")
# Numbers that stand for a word.
_MODES = ("reduction", "interpolation_mode", "padding_mode", "mode")
# Numbers that stand for a dtype or a layout; a wrong one, and a count that no check looks at, ends the CPU's process.
_NO_OPTION = ("dtype", "layout", "memory_format", "device", "pin_memory", "self_num_batch_dims")
_FAR = 70  # rows of a table, at most
_SIDES = (7, 9, 11, 13)
Change = list[Any]


def candidates(rule: str, func: Any, call: Any) -> Iterator[list[Change]]:
    """Yield the changes that a rule may make to a call."""
    yield from _RULES[rule](func, call)


def is_written(func: Any, call: Any, *, as_out: bool = False) -> list[bool]:
    """Return of each tensor, in the order of its texts, whether the call writes to it; `as_out`: to an `out=`."""
    found: list[bool] = []
    for place, argument in enumerate(func._schema.arguments):
        value = call[0][place] if place < len(call[0]) and not argument.kwarg_only else call[1].get(argument.name)
        writes = argument.alias_info is not None and argument.alias_info.is_write
        found += [writes and (argument.kwarg_only or not as_out)] * len(texts(value))
    return found


def _refused(func: Any, call: Any) -> Iterator[list[Change]]:
    every, writes, outs = texts(call), is_written(func, call), is_written(func, call, as_out=True)
    alone = any(writes) and is_asked_without_writing(func)
    for number, text in enumerate(every[:5]):
        shape = shape_of(text)
        if alone and not writes[number]:
            continue
        if shape and not outs[number]:
            yield from ([["side", number, dim, 1]] for dim in sorted({0 if number < 2 else -1, -1} - {-len(shape)}))
            yield [["rank", number, -1]]
        if not outs[number]:  # PyTorch resizes an out=, with a warning
            yield [["rank", number, 1]]
        names = ("bool", "int64") if writes[number] else _DTYPES
        yield from ([["dtype", number, one]] for one in names if text.split(" ")[0][1:] != one)
        if writes[number]:
            if shape and shape[0] > 1:
                yield [["layout", number, "expanded"]]
            for other, beside in enumerate(every[:5]):
                if not writes[other] and shape and shape_of(beside) == shape and dtype_of(beside) == dtype_of(text):
                    yield [["shifted", number, other]]
    if not alone:
        yield from _options(func, call)


def is_asked_without_writing(func: Any) -> bool:
    """Say whether an overload that writes to nothing has the same operands: what it refuses is asked there."""
    packet = getattr(torch.ops.aten, func._schema.name.split("::")[1].rstrip("_"), None)
    rest = [one.name for one in func._schema.arguments if not (one.kwarg_only and one.alias_info is not None)]
    for name in packet.overloads() if packet is not None else ():
        other = getattr(packet, name)._schema
        if not other.is_mutable and [one.name for one in other.arguments] == rest:
            return True
    return False


def _options(func: Any, call: Any) -> Iterator[list[Change]]:
    for place, argument in enumerate(func._schema.arguments):
        kind, name = str(argument.type), argument.name
        if name in _NO_OPTION:
            continue
        given = call[0][place] if place < len(call[0]) and not argument.kwarg_only else call[1].get(name)
        if "List[int]" in kind and isinstance(given, list) and given:
            yield from ([["first", name, value]] for value in (-3, 0, 99))
            yield [["longer", name]]
        elif "str" in kind:
            yield [["arg", name, "none such"]]
        elif "Tensor" in kind or "List" in kind or "bool" in kind:
            continue
        elif "int" in kind.lower() and "number" not in kind.lower():
            yield from ([["arg", name, value]] for value in ((7, -7) if name in _MODES else (99, -99, -1)))
        elif "float" in kind:
            yield from ([["arg", name, value]] for value in (-1.5, 2.5))


def _places(func: Any, call: Any) -> Iterator[list[Change]]:
    """Give places in order from the table: the first that is refused is kept, of those past the end and those below."""
    every = texts(call)
    beside: list[Change] = [
        ["layout", number, "inside"]
        for number, text in enumerate(every[:5])
        if text.split(" ")[0][1:] in _FLOATS and shape_of(text) and text.split(" ")[2] == "dense"
    ]
    for number, text in enumerate(every[:6]):
        if text.split(" ")[0][1:] in _WHOLE and 0 not in shape_of(text):
            yield [*beside, ["order", number]]
            yield from ([*beside, ["place", number, value]] for value in range(1, _FAR))
            yield from ([*beside, ["place", number, -value]] for value in range(1, _FAR))


def _special(func: Any, call: Any) -> Iterator[list[Change]]:
    every, name = texts(call), func._schema.name.split("::")[1].rstrip("_")
    if name.startswith(_WEIGHTED):
        return
    yield from truths(func, call)
    pointwise = torch.Tag.pointwise in func.tags
    numbers = {0, len(every) - 1} if name.startswith("_foreach") else set(range(6))
    for number, text in enumerate(every):
        dtype = dtype_of(text)
        if number not in numbers or 0 in shape_of(text) or dtype == torch.bool:
            continue
        if len(every) > 1 and is_written(func, call)[number]:
            continue
        if dtype == torch.float32:
            words = _special_words(name, pointwise)
            root = "pow" in name and _has_root(call)
            yield from ([["put", number, word]] for word in words if not (root and word in ("-inf", "none")))
            if pointwise and not root:
                yield [["kind", "float32", "float16"], ["put", number, "none"]]
                yield [["kind", "float32", "bfloat16"], ["fill", number, "every"]]
            if pointwise:
                yield [["kind", "float32", "complex64"], ["put", number, "far"]]
        elif not any(dtype_of(one).is_floating_point for one in every):  # beside floats whole numbers are places
            yield from ([["put", number, word]] for word in words_of(dtype))


# Interpolation: a weight of zero times infinity or NaN, or no such product: either is right.
_WEIGHTED = ("upsample", "_upsample", "grid_sampler", "affine_grid")
# Gradients, statistics and ranges: infinity less infinity, at a place that the formula chooses.
_CHOSEN_FORMULA = ("norm", "backward", "std", "var", "lerp", "addcmul", "addcdiv", "weight", "linspace", "logspace")


def _special_words(name: str, pointwise: bool) -> tuple[str, ...]:
    """Return what is put into float32: the dtype's ends where nothing that is computed on the way may overflow."""
    ends = ("ends",) if (pointwise and "backward" not in name) or name in EXACT else ()
    if any(part in name for part in _CHOSEN_FORMULA):
        return ("nan",)
    return ("none", *ends) if pointwise else ("nan", "inf", "-inf", *ends)


def _has_root(call: Any) -> bool:
    """Say whether a call has the number 1/2: C's power of -inf is then inf, the root is NaN; the CPU has both."""
    if isinstance(call, dict):
        call = list(call.values())
    return any(map(_has_root, call)) if isinstance(call, list) else call in (0.5, -0.5)


def _turns(func: Any, call: Any) -> Iterator[list[Change]]:
    every = texts(call)
    for place, argument in enumerate(func._schema.arguments):
        given = call[0][place] if place < len(call[0]) and not argument.kwarg_only else call[1].get(argument.name)
        if given is None and argument.has_default_value():
            given = argument.default_value
        yield from ([["arg", argument.name, value]] for value in _others(argument, given))
    sides = sorted({side for text in every for side in shape_of(text) if side > 1})
    yield from ([["swap", one, other]] for one in sides for other in sides if one < other)
    yield from ([["swap", one, _SIDES[one % 4]]] for one in sides if _SIDES[one % 4] not in sides)
    groups = {text.split(" ")[0][1:] for text in every}
    for old, new in (
        ("float32", "float16"),
        ("float32", "bfloat16"),
        ("int64", "int32"),
    ):  # complex: a layer of its own
        if old in groups:
            yield [["kind", old, new]]


def _others(argument: Any, given: Any) -> list[Any]:
    """Return other values of an argument, by its type and what it was given."""
    kind, name = str(argument.type), argument.name
    if "Tensor" in kind or name in (*_NO_OPTION, "non_blocking", "implicit", "generator"):
        return []
    if isinstance(given, bool):
        return [not given]
    if "bool" in kind:
        return [True, False]
    if isinstance(given, int) and name in _MODES:
        return [one for one in (0, 1, 2) if one != given]
    if isinstance(given, int):
        return [given + 1, given - 1, -given - 1]
    if isinstance(given, float):
        return [given * 2 + 0.25, -given - 0.5, given / 2]
    if isinstance(given, list) and given and all(type(one) is int for one in given):
        return [given[::-1], [one + 1 for one in given], [given[0] + 1, *given[1:]], [*given[:-1], given[-1] - 1]]
    if isinstance(given, list) and given and all(type(one) is float for one in given):
        return [[one * 2 + 0.25 for one in given]]
    if "number" in kind.lower() or "Scalar" in kind:
        return [2, -1, 0.5]
    if "int" in kind.lower() and "List" not in kind:
        return [0, 1, 2]
    if "str" in kind:
        return [
            one for one in ("floor", "trunc", "tanh", "none", "amax", "amin", "prod", "sum", "mean") if one != given
        ]
    return [0.5] if "float" in kind and "List" not in kind else []


def _chains(func: Any, call: Any) -> Iterator[list[Change]]:
    """Chain what writes to its first operand; where its own call has too little of that, as its sibling is called."""
    if not is_in_place(func):
        return
    packet, _, rest = str(func).removeprefix("aten.").partition(".")
    sibling = stored()["samples"].get(f"{packet.rstrip('_')}.{rest}", ())
    for beside in (call, *sibling):
        first = shape_of(texts(beside)[0])
        if first and torch.Size(first).numel() >= _LINKED:
            other = [] if beside is call else [["call", beside]]
            yield from ([*other, ["layout", 0, "chained"], ["chain", mode]] for mode in MODES)
            if any(text.startswith("@float32 ") for text in texts(beside)):
                half = [*other, ["kind", "float32", "float16"], ["layout", 0, "chained"]]
                yield from ([*half, ["chain", mode]] for mode in MODES)


def is_in_place(func: Any) -> bool:
    """Say whether an overload writes to its first operand, a tensor, as its name says."""
    first = func._schema.arguments[0] if func._schema.arguments else None
    writes = first is not None and first.alias_info is not None and first.alias_info.is_write
    return writes and str(first.type) == "Tensor" and func._schema.name.endswith("_")


_LINKED = 4  # elements of a view, at least


def _form(func: Any, call: Any) -> Iterator[list[Change]]:
    yield []
    if "_fused_" in func._schema.name:  # one list's tensors must lie as another's
        return
    every, writes = texts(call), is_written(func, call)
    for number, text in enumerate(every[:4]):
        for layout in ("transposed", "inside", "step", "channels_last", *(() if writes[number] else ("expanded",))):
            if shape_of(text) and 0 not in shape_of(text) and text.split(" ")[2] != layout:
                yield [["layout", number, layout]]
    if len(every) > 1:
        for layout in ("transposed", "channels_last", "step"):
            if all(shape_of(text) for text in every):
                yield [["layout", number, layout] for number in range(len(every))]


def _rounding(func: Any, call: Any) -> Iterator[list[Change]]:
    if packet_of(func._schema.name.split("::")[1]) in ALGEBRAIC:
        for new in ("float16", "bfloat16"):
            if any(text.startswith("@float32 ") for text in texts(call)):
                yield [["kind", "float32", new]]
    yield from rounded_once(func, call)


_RULES = {
    "refused": _refused,
    "places": _places,
    "special": _special,
    "turns": _turns,
    "chains": _chains,
    "form": _form,
    "rounding": _rounding,
    **_WIDE,
}

RULES_IN_WORDS = {
    "refused": "1: a side, a rank, a dtype, an option, a list or a shared memory that the CPU refuses",
    "places": "1: the first place past a table's end, the first below it, offsets that fall",
    "special": "2: NaN, infinity, signed zero, the dtype's ends, parts of complex numbers: in each operand alone",
    "turns": "6: one argument, two sides, one dtype changed, all called one behind the other",
    "chains": "6: an overload in place on views of one memory that share rows, all read after each call",
    "form": "5: dtype, shape, strides, offset and shared memory of each result",
    "rounding": "7: half precision, one rounding, of gradients too",
    **_WIDE_IN_WORDS,
}
