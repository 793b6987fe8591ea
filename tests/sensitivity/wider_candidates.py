"""What the wider rules could ask of an overload, before the CPU is asked what is right: as in rule_candidates.py.

A candidate comes with its kind: of one kind the first that is kept is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

import operand_candidates
from conditions import is_view
from conditions_reach import name_of
from device_suite.overloads.described import shape_of, texts
from device_suite.rules.asked import samples_of, stored
from device_suite.rules.public import is_composite
from overload_calls import is_drawn
from rule_candidates import (
    _FAR,
    _FLOATS,
    _MODES,
    _NO_OPTION,
    _WHOLE,
    Change,
    _others,
    _places,
    _refused,
    is_asked_without_writing,
    is_written,
)
from rule_gpus import why_right
from rule_kinds import is_backward
from rule_verdicts import Candidate

_NAN = "@number nan"
# What a caller promises so that a device need not look: by its documentation, so as not to wait for it.
_PROMISES = {"repeat_interleave": "output_size"}
OF_NO_FORWARD = "a gradient with options or places that no forward leaves: nobody says what comes of it"
NO_CONDITION = "no condition of this rule"
# Past what a dtype's lower half holds: nothing that is made in this size.
_LONG = 1 << 31


def _is_asked_elsewhere(func: Any) -> bool:
    """Say whether an overload that writes to nothing has the same operands, and a call: it is asked in its place."""
    if not func._schema.is_mutable or not is_asked_without_writing(func):
        return False
    name = func._schema.name.split("::")[1].rstrip("_")
    return any(samples_of(f"{name}.{one}") for one in getattr(torch.ops.aten, name).overloads())


def _given(func: Any, call: Any, place: int) -> Any:
    argument = func._schema.arguments[place]
    given = call[0][place] if place < len(call[0]) and not argument.kwarg_only else call[1].get(argument.name)
    return argument.default_value if given is None and argument.has_default_value() else given


def options(func: Any, call: Any) -> Iterator[tuple[str, list[Change]]]:
    """Give each number and each list of numbers values of every kind: none, below, a little off, far past.

    An `out=` gets the layouts that have no strides.
    """
    for number, text in enumerate(texts(call)):
        if is_written(func, call, as_out=True)[number] and "float" in text.split(" ")[0]:
            yield from ((f"out {name}", [["sparse", number, name]]) for name in ("csr", "coo"))
    if _is_asked_elsewhere(func):
        return
    for place, argument in enumerate(func._schema.arguments):
        kind, name, given = str(argument.type), argument.name, _given(func, call, place)
        promised = name == _PROMISES.get(func._schema.name.split("::")[1])
        # Without the list that it asks for, an optimiser of CUDA ends the process.
        if kind == "bool" and isinstance(given, bool) and "_fused" not in func._schema.name:
            yield f"{name} turned", [["arg", name, not given]]
        if promised or name in _NO_OPTION or "Tensor" in kind or "bool" in kind or "str" in kind:
            if "str" in kind and "List" not in kind:
                yield f"{name} word", [["arg", name, "none such"]]
            continue
        for word, value in _values(kind, name, given):
            if value != given:
                yield f"{name} {word}", [["arg", name, value]]


def _values(kind: str, name: str, given: Any) -> Iterator[tuple[str, Any]]:
    if "List[int]" in kind:
        yield from _lists(given)
    elif "List" in kind:
        if isinstance(given, list) and given:
            yield "short", given[:-1]
            yield "long", [*given, given[-1]]
    elif "int" in kind.lower() and "number" not in kind.lower():
        yield from _whole(name, given)
    elif "float" in kind or "number" in kind.lower():
        yield from (("zero", 0.0), ("below", -1e-3), ("below", -1.5), ("beyond", 1.001), ("beyond", 2.5), ("nan", _NAN))


def _whole(name: str, given: Any) -> Iterator[tuple[str, int]]:
    if name in _MODES:
        yield from (("beyond", 7), ("below", -7))
        return
    middle = given if isinstance(given, int) else 1
    yield "zero", 0
    yield from (("below", -1), ("below", -99))
    yield from (("more", middle + 1), ("more", 2 * middle + 1), ("more", middle + 5), ("more", 99))
    yield from (("less", middle - 1), ("less", middle // 2))
    yield from (("far", _LONG + middle), ("far", 1 << 40))


def _lists(given: Any) -> Iterator[tuple[str, list[int]]]:
    if not isinstance(given, list) or not given:
        yield from (("zero", [0]), ("below", [-1]), ("beyond", [99]), ("long", [1, 1, 1, 1, 1, 1, 1]))
        return
    for where, place in (("first", 0), ("last", len(given) - 1)):
        values = (("zero", 0), ("below", -1), ("below", -7), ("more", given[place] + 1), ("more", given[place] * 2 + 3))
        for word, value in (*values, ("more", 99), ("less", given[place] - 1)):
            yield f"{where} {word}", [*given[:place], value, *given[place + 1 :]]
        if len(given) == 1:
            break
    yield "none", []
    yield "long", [*given, given[-1]]
    yield "short", given[:-1]


def indices(func: Any, call: Any) -> Iterator[tuple[str, list[Change]]]:
    """Put wrong places into each tensor of whole numbers: ends of lists, a valid place 2**32 away; empty tables."""
    if _is_asked_elsewhere(func):
        return
    every, name = texts(call), f"{func._schema.name.split('::')[1]}.{func._overloadname}"
    places = stored()["places"].get(name, ())
    for number, text in enumerate(every[:8]):
        dtype, shape = text.split(" ")[0][1:], shape_of(text)
        if dtype not in _WHOLE or 0 in shape:
            continue
        if not any(one[-1][0] == "place" and one[-1][1] == number for _, *one in places):
            yield from ((f"{number} {one[-1][-1] > 0}", one) for one in _places_of(func, call, number))
        ends = (0, -1) if shape else ()
        for place in ends:
            for value in (1, 2, -1, 99):
                yield f"{number} at {place} {value > 0}", [["at", number, place, value]]
        if dtype == "int64":
            yield from ((f"{number} wide {turn}", [["wide", number, turn]]) for turn in (1, -1))
        for other, beside in enumerate(every[:5]):
            sides = shape_of(beside)
            if beside.split(" ")[0][1:] in _FLOATS and sides and other != number:
                for dim in range(len(sides)):
                    yield f"{other} empty {dim}", [["side", other, dim, -sides[dim]]]


def _places_of(func: Any, call: Any, number: int) -> Iterator[list[Change]]:
    """Return the places that the plain rule would give one tensor: an overload of the pool has none yet."""
    for one in _places(func, call):
        if one[-1][0] == "place" and one[-1][1] == number and abs(one[-1][2]) <= _FAR:
            yield one


def misfits(func: Any, call: Any) -> Iterator[tuple[str, list[Change]]]:
    """Ask what the plain rule asks of overloads that MPS runs: sides, ranks, dtypes, memory that is shared."""
    for changes in _refused(func, call):
        kind, where, *_ = changes[-1]
        if kind not in ("arg", "first", "longer"):
            yield f"{kind} {where}", changes


def outs(func: Any, call: Any) -> Iterator[tuple[str, list[Change]]]:
    """Lay what is written to by `out=` otherwise."""
    written = [number for number, one in enumerate(is_written(func, call, as_out=True)) if one]
    for name in ("transposed", "step", "channels_last", "inside"):
        if any(shape_of(texts(call)[number]) for number in written):
            yield name, [["layout", number, name] for number in written]


def resized(func: Any, call: Any) -> Iterator[tuple[str, list[Change]]]:
    """Give what is written to by `out=` a dimension more than the answer: it could be spread over that."""
    written = [number for number, one in enumerate(is_written(func, call, as_out=True)) if one]
    if written:
        yield "wider", [["rank", number, 1] for number in written]


def strides(func: Any, call: Any) -> Iterator[tuple[str, list[Change]]]:
    """Lay the first operand otherwise: what else has its strides from code of all devices is asked by `form`."""
    yield "plain", []
    if texts(call) and len(shape_of(texts(call)[0])) > 1:
        yield from ((name, [["layout", 0, name]]) for name in ("transposed", "step"))


def handed(func: Any, call: Any) -> Iterator[tuple[str, list[Change]]]:
    """Hand the answer on as what it can be; with operands that are equal, a mask is all true or all false."""
    alike = [[], [["alike"]]] if len(texts(call)) > 1 else [[]]
    for more in alike:
        for kind in ("mask", "places", "whole"):
            yield f"{kind} {more}", [*more, ["handed", kind]]


def again(func: Any, call: Any) -> Iterator[tuple[str, list[Change]]]:
    """Change one option beside which all shapes stay; where they do not, another list of numbers makes room first."""
    for place, argument in enumerate(func._schema.arguments):
        given = _given(func, call, place)
        for value in _others(argument, given):
            change = ["arg", argument.name, value]
            yield argument.name, [change]
            for other, beside in enumerate(func._schema.arguments):
                room = _given(func, call, other)
                if other != place and isinstance(room, list) and room and all(type(one) is int for one in room):
                    yield argument.name, [["arg", beside.name, [4 * max(one, 1) for one in room]], change]


def deterministic(func: Any, call: Any) -> Iterator[tuple[str, list[Change]]]:
    """Ask with deterministic algorithms; operands without elements, and answers without any of operands with some."""
    asked: list[Change] = ["deterministic"]
    if torch.Tag.pointwise not in func.tags:
        yield "plain", [asked]
    for number, text in enumerate(texts(call)[:3]):
        sides = shape_of(text)
        yield from ((f"operand {number}", [asked, ["side", number, dim, -sides[dim]]]) for dim in range(len(sides)))
    for place, argument in enumerate(func._schema.arguments):
        given = _given(func, call, place)
        if isinstance(given, list) and given and all(type(one) is int for one in given):
            for where in range(len(given)):
                for value in (0, *range(-1, -_SIDE, -1)):
                    yield "answer", [asked, ["arg", argument.name, [*given[:where], value, *given[where + 1 :]]]]
        elif type(given) is int:
            yield "answer", [asked, ["arg", argument.name, 0]]


_SIDE = 12  # a negative padding of so much leaves nothing


def why_not_at_all(rule: str, func: Any) -> str:
    """Return why a wider rule asks nothing of an overload, or an empty text."""
    # A GPU that is right about an `out=` of another layout is right about one of another shape.
    if reason := why_right("outs" if rule == "resized" else rule, func):
        return reason
    if rule == "misfits" and name_of(func) in stored()["samples"]:
        return NO_CONDITION  # `refused` asks it
    if rule in ("options", "indices", "misfits"):
        return OF_NO_FORWARD if is_backward(func) else ""
    writes = any(one.alias_info is not None and one.alias_info.is_write for one in func._schema.arguments)
    if rule in ("outs", "resized", "typed"):
        has_out = any(one.kwarg_only and one.alias_info is not None for one in func._schema.arguments)
        return "" if has_out else NO_CONDITION
    if writes:
        return NO_CONDITION
    if is_drawn(func):
        return "its answer is drawn"
    if rule in ("lazy", "wanting", "twice", "emptied", "emptied_refused") and is_view(func):
        return NO_CONDITION
    if rule in ("again", "deterministic") and (is_backward(func) or is_view(func)):
        return NO_CONDITION  # with its forward; a view has no options
    if rule == "deterministic" and "_foreach" in func._schema.name:
        return "its operator is asked by the overload of one tensor"
    if rule in RULES_OF_OPERANDS:
        return ""
    return NO_CONDITION if rule != "strides" and is_composite(func) else ""


def _of_a_kind(rule: Callable[[Any, Any], Iterator[tuple[str, list[Change]]]]) -> Callable[[Any, Any], Iterator[Any]]:
    def candidates(func: Any, call: Any) -> Iterator[Candidate]:
        for kind, changes in rule(func, call):
            made = Candidate(changes)
            made.kind = kind
            yield made

    return candidates


RULES_OF_OPERANDS = tuple(rule.__name__ for rule in operand_candidates.RULES)
RULES_IN_WORDS = {
    "options": "1: a number, a list of numbers or a word out of range, too many, too few; an `out=` without strides",
    "indices": "1: a place past the end, below it, 2**32 away, in a table of nothing; ends of offsets and lengths",
    "misfits": "1: a side, a rank, a dtype or a shared memory that the CPU refuses",
    "outs": "5: an `out=` of another layout, and all that lies between its elements",
    "resized": "5: an `out=` of another shape than the answer",
    "strides": "5: strides that torch describes for tensors without memory as the CPU has them",
    "handed": "6: a mask or whole numbers as the very next operand of up to 18 functions, no copy in between",
    "again": "6: a call with its gradient, before and after one with another option and the same shapes",
    "deterministic": "6: a call with its gradient, with deterministic algorithms: an empty operand, an empty answer",
    **operand_candidates.RULES_IN_WORDS,
}
WIDER = {
    rule.__name__: _of_a_kind(rule)
    for rule in (
        options,
        indices,
        misfits,
        outs,
        resized,
        strides,
        handed,
        again,
        deterministic,
        *operand_candidates.RULES,
    )
}
