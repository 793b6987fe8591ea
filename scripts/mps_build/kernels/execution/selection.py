"""Which kernels a run looks at: by name, by operator, or one representative of each operator and form."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..families.shared.contracts import Contract, load_contracts
from ..judge.references import load_references
from ..program.dtypes import DTYPES
from ..read.library import KERNEL_TYPE, Function, Library

_TYPE = re.compile("|".join(sorted([*DTYPES, "float16", "bfloat16", "float32"], key=len, reverse=True)))
_THREADS = re.compile(r"(?<=_tptg)\d+")
# The form that is held against torch; all others are held against it.
_DENSE = ("unary.dense", "binary.dense")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the options ask for: a shell pattern on names, an aten name, one of each form; or exactly these names."""

    pattern: str | None = None
    operator: str | None = None
    is_quick: bool = False
    names: frozenset[str] | None = None


def choose(library: Library, choice: Choice) -> list[int]:
    """Return the places of the kernels that a run looks at, in the library's order."""
    operator = None if choice.operator is None else bare_operator(choice.operator)
    found = _meant(library, choice, operator)
    if not found and operator and operator.startswith("_"):  # `_softmax` computes `softmax`
        found = _meant(library, choice, operator.lstrip("_"))
    return _representatives(library.functions, found) if choice.is_quick else found


def _meant(library: Library, choice: Choice, operator: str | None) -> list[int]:
    hints = _hints(operator) if operator else ()
    return [
        number
        for number, function in enumerate(library.functions)
        if function.kind == KERNEL_TYPE
        and (choice.names is None or function.name in choice.names)
        and (choice.pattern is None or fnmatch.fnmatchcase(function.name, choice.pattern))
        and (operator is None or _computes(function.name, operator, hints))
    ]


def _hints(operator: str) -> tuple[re.Pattern[str] | str, ...]:
    """Return what a kernel's name must fit, or hold, to compute an operator: few names do, and are looked at."""
    hints: list[re.Pattern[str] | str] = [operator]
    hints += [
        row.removeprefix("reduce_")
        for row, values in load_references().items()
        if str(values.get("aten", "")).removeprefix("special_") == operator.removeprefix("special_")
    ]
    return (*hints, *(each.pattern for each in load_contracts() if operator in _aten_of(each)))


def _computes(name: str, operator: str, hints: Sequence[re.Pattern[str] | str]) -> bool:
    return any(
        hint in name if isinstance(hint, str) else hint.fullmatch(name) for hint in hints
    ) and operator in operators_of(name)


def bare_operator(text: str) -> str:
    """Return an operator's name without namespace and overload.

    >>> bare_operator("aten::add.Tensor"), bare_operator("aten.exp"), bare_operator("torch.special.i0")
    ('add', 'exp', 'i0')
    """
    name = text.replace("::", ".")
    for prefix in ("torch.ops.", "torch.special.", "torch.nn.functional.", "torch.", "aten."):
        name = name.removeprefix(prefix)
    return name.partition(".")[0].rstrip("_")


def operators_of(name: str) -> set[str]:
    """Return what a kernel's operator may be called, by its name alone: its contracts' `op` and their aten names."""
    operators: set[str] = set()
    for contract in load_contracts():
        match = contract.pattern.fullmatch(name)
        if not match:
            continue
        operators |= _aten_of(contract)
        operator = match.groupdict().get("op")
        if operator:
            operators |= _names_of(operator)
    return operators


def _aten_of(contract: Contract) -> set[str]:
    aten = contract.options.get("aten", ())
    return {aten} if isinstance(aten, str) else set(aten)


def _names_of(operator: str) -> set[str]:
    names = {operator, operator.removesuffix("_forward"), operator.removesuffix("_alpha").removesuffix("_scalar")}
    for row in (operator, f"reduce_{operator}"):
        found: Any = load_references().get(row, {}).get("aten")
        if found:
            names |= {found, found.removeprefix("special_")}
    return names


def _representatives(functions: Sequence[Function], places: Sequence[int]) -> list[int]:
    """Return all types of dense forms, and of everything else one kernel of each operator and form, float first.

    Of a kernel that is there for several sizes of a threadgroup: the smallest and the largest.
    """
    chosen: list[int] = []
    best: dict[str, int] = {}
    for place in places:
        name = functions[place].name
        if _is_dense(name):
            chosen.append(place)
            continue
        key = _TYPE.sub("T", name)
        if key not in best or ("float" in name and "float" not in functions[best[key]].name):
            best[key] = place
    sizes: dict[str, dict[int, int]] = {}
    for key, place in best.items():
        if size := _THREADS.search(key):
            sizes.setdefault(_THREADS.sub("N", key), {})[int(size[0])] = place
        else:
            chosen.append(place)
    chosen += [place for found in sizes.values() for place in {found[min(found)], found[max(found)]}]
    return sorted(chosen)


def _is_dense(name: str) -> bool:
    return any(each.binder in _DENSE and each.pattern.fullmatch(name) for each in load_contracts())
