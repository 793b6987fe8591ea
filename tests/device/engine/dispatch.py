"""What dispatches an operator: descriptions, and cases of the core. They are run on the CPU to know."""

from __future__ import annotations

import contextlib
import difflib
import functools
import types
import warnings
from typing import Any, Iterable, Iterator

import torch

import operators
import transforms

from . import trial
from .cases import Case
from .description import spellings
from .keys import Dispatched
from .runs import Bench
from .sampler import Case as DrawnCase
from .sampler import draw
from .states import answers_of

# The ways of a description that dispatch other overloads than its common form.
_WAYS = ("common", "inplace", "out", "gradient")


def wanted_names(name: str) -> str:
    """Return an operator as the dispatcher writes it.

    >>> wanted_names("aten::add.Tensor"), wanted_names("softmax")
    ('aten.add.Tensor', 'aten.softmax')
    """
    name = name.replace("::", ".")
    return name if name.startswith("aten.") or name.count(".") > 1 else f"aten.{name}"


def is_among(name: str, dispatched: Iterable[str]) -> bool:
    """Say whether an overload `aten.add.Tensor`, or any of `aten.add`, is among what was dispatched."""
    wanted = wanted_names(name)
    return any(one == wanted or one.startswith(f"{wanted}.") for one in dispatched)


def of_descriptions() -> dict[str, frozenset[str]]:
    """Return what each description dispatches: its common form, in place, with out=, and its gradient."""
    every, ways, bench = operators.described(), transforms.known(), Bench(torch.device("cpu"))
    found = {}
    for name, operator in every.items():
        seen = Dispatched()
        for way in (ways[one] for one in _WAYS):
            if not way.applies(operator):
                continue
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call = draw(DrawnCase(name, way.name, 0), operator, way)
                if call is not None:
                    with seen.watching():
                        trial.reference_of(call, way, bench)
        found[name] = frozenset(seen.operators)
    return found


def dispatching(operator: str, descriptions: dict[str, frozenset[str]]) -> frozenset[str]:
    """Return the descriptions that dispatch an operator, or that have its name: vander is made of others."""
    return frozenset(
        name for name, dispatched in descriptions.items() if is_among(operator, {f"aten.{name}", *dispatched})
    )


def names_of(operator: str, descriptions: dict[str, frozenset[str]]) -> frozenset[str]:
    """Return how code spells an operator: its own name, and the names of what dispatches it; none of an empty text.

    >>> sorted(names_of("aten.mm.default", {"linear": frozenset({"aten.mm.default"}), "exp": frozenset()}))
    ['linear', 'linear_', 'mm', 'mm_']
    """
    if not operator:
        return frozenset()
    found = dispatching(operator, descriptions)
    names = {wanted_names(operator).split(".")[1], *found}
    for one in (operators.described()[name] for name in found if name in operators.described()):
        names |= {spelled for _, spelled in spellings(one.name, one.paths)}
    return frozenset(names | {f"{name}_" for name in names})


def of_case(case: Case, seed: int) -> frozenset[str] | None:
    """Return what a case of the core dispatches; None where it is not run to know: it takes memory, or a process."""
    if case.full or case.alone or case.memory_bytes or (case.devices and "cpu" not in case.devices):
        return None
    seen = Dispatched()
    bench = Bench(torch.device("cpu"), around=seen.watching, seed=seed)
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.check:
            case.act(bench)
        else:
            answers_of(case, bench, bench.device_run(), (0, 0))
    return frozenset(seen.operators) or None


def names_in(act: Any) -> frozenset[str]:
    """Return the names that a function's code has, with that of the functions and texts that it holds or calls.

    >>> sorted(names_in(lambda x, name="relu": getattr(torch.nn.functional, name)(x.abs())))[:3]
    ['abs', 'functional', 'getattr']
    """
    return frozenset(_names(act, set()))


def _names(value: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(value, (dict, types.CodeType, types.FunctionType)):  # a list may be gone, and its id another's
        if id(value) in seen:
            return
        seen.add(id(value))
    if isinstance(value, str):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _names(one, seen)
    elif isinstance(value, dict):
        yield from _names(list(value.items()), seen)
    elif isinstance(value, functools.partial):
        yield from _names([value.func, value.args, value.keywords], seen)
    elif isinstance(value, types.CodeType):
        yield from value.co_names
        yield from _names([one for one in value.co_consts if isinstance(one, (types.CodeType, str))], seen)
    elif callable(value) and not (isinstance(value, types.FunctionType) and _is_of_a_case(value)):
        yield getattr(value, "__name__", "")  # a function of torch is what it is called
    elif isinstance(value, types.FunctionType):
        yield from _names([value.__code__, value.__defaults__ or (), value.__kwdefaults__ or {}], seen)
        with contextlib.suppress(ValueError):  # a cell that is empty still
            yield from _names([cell.cell_contents for cell in value.__closure__ or ()], seen)
        own = [value.__globals__.get(name) for name in value.__code__.co_names]
        yield from _names([one for one in own if _is_ours(one, value.__module__)], seen)


def _is_of_a_case(value: types.FunctionType) -> bool:
    return not value.__module__.startswith("torch")


def _is_ours(value: Any, module: str) -> bool:
    return isinstance(value, (dict, list, tuple)) or getattr(value, "__module__", None) == module


def like(name: str, dispatched: Iterable[str]) -> list[str]:
    """Return operators that look alike."""
    known = {one for full in dispatched for one in (full, full.rpartition(".")[0])}
    return difflib.get_close_matches(wanted_names(name), sorted(known), n=3, cutoff=0.7)
