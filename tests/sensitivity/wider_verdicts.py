"""Whether a change of the wider rules may be asked of every device: why not, or nothing. As in rule_verdicts.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.fx.experimental import _config as config

import operand_verdicts
from device_suite.overloads.asking import attempt_answers, flat_answers
from device_suite.overloads.described import VIEWS, shape_of, texts
from device_suite.overloads.forwards import choices_of
from device_suite.rules.asked import stored
from device_suite.rules.changes import ChangedCall
from device_suite.rules.derived import Derived
from device_suite.rules.form import FREE, form_of
from device_suite.rules.handed import TABLE, taken
from device_suite.rules.handed import handed as hands
from device_suite.rules.public import Public, public_of
from device_suite.rules.refusing import attempted
from device_suite.runs import Bench
from free_choice import ChoosesOtherwise
from little_memory import little_memory
from rounding import RoundsOtherwise
from rule_verdicts import _CHOSEN, CPU, Overload, Verdict, _why_refused, answered, is_equal, refused
from rule_verdicts_views import lays_anew
from unasked import UNASKED

_ITS_OWN = "its own call is refused: other values are drawn than it needs"


def _is_answered(told: Overload) -> bool:
    """Say whether the call without a change is answered: what is refused otherwise says nothing about the change."""
    if "plain" not in told.found:
        bench = Bench(CPU)
        plain = ChangedCall(told.func, told.call, [], choices_of(told.name))
        told.found["plain"] = attempted(public_of(told.func), plain, bench.same(), bench)[0] is None
    return bool(told.found["plain"])


def options(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep numbers that the CPU refuses by a check of its own."""
    if not _is_answered(told):
        return _ITS_OWN, changes
    with little_memory():
        raised, _ = attempted(public_of(told.func), made, Bench(CPU).same(), Bench(CPU))
    if raised is not None and _NO_MEMORY.search(str(raised) or type(raised).__name__):
        return "it takes much memory before it is refused", changes
    return _why_refused(told, made, changes), changes


_NO_MEMORY = re.compile("can't allocate|allocate memory|bad_alloc|MemoryError")


def misfits(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what the plain rule keeps, of calls that are answered."""
    return refused(told, made, changes) if _is_answered(told) else (_ITS_OWN, changes)


def indices(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep places that the CPU refuses."""
    if choices_of(told.name) is not None:
        return _CHOSEN, changes
    return options(told, made, changes)


def outs(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what is written to an `out=` of another layout, all that lies between its elements with it."""
    if isinstance(attempt_answers(told.func, made, Bench(CPU).same()), Exception):
        return "the CPU refuses it with these operands", changes
    if lays_anew(told.func, made):
        return "the CPU lays a result anew that it was given", changes
    if not _writes_there_alone(told, made, changes):
        return "the CPU writes otherwise, or elsewhere, than to a dense result", changes
    return answered(told, made, changes)


def resized(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep an `out=` of another shape that the CPU gives the shape of its answer."""
    asked = Public(told.func)
    plain, own = (
        attempt_answers(asked, one, Bench(CPU).same()) for one in (ChangedCall(told.func, told.call, []), made)
    )
    if isinstance(plain, Exception) or isinstance(own, Exception):
        return "the CPU refuses it with these operands", changes
    results = len(told.func._schema.returns)
    if any(one.shape != other.shape for (one, _), (other, _) in zip(plain[:results], own[:results])):
        return "the CPU keeps the shape that is given", changes
    return answered(Overload(asked, told.name, made.call), made, changes)


def _writes_there_alone(told: Overload, made: ChangedCall, changes: list[Any]) -> bool:
    """Say whether the CPU writes what it writes to dense results, and nothing between their elements.

    Met with narrow_copy.out: it takes whatever it is given to be dense, and writes beyond it.
    """
    plain = ChangedCall(told.func, told.call, [])
    found = []
    for one in (plain, made):
        bases = Bench(CPU).same().copy(one.bases)
        args, kwargs = one.arguments(bases, CPU, lambda dtype: dtype)
        told.func(*args, **kwargs)
        cuts = [VIEWS[texts(one.call)[number].split(" ")[2]] for _, number, _ in changes]
        views = [
            cut.cut(bases[number], shape_of(texts(one.call)[number])) for cut, (_, number, _) in zip(cuts, changes)
        ]
        found.append([view.clone() for view in views])
        for view, (_, number, _) in zip(views, changes):
            before = one.bases[number].clone()
            VIEWS[texts(one.call)[number].split(" ")[2]].cut(before, view.shape).zero_()
            view.zero_()
            if not torch.equal(before, bases[number]):
                return False
    return all(is_equal(mine, its) for mine, its in zip(*found))


def strides(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep strides that torch's own description of the overload, without memory, has too."""
    if any(FREE not in one for _, *one in stored()["form"].get(told.name, ())):
        return "the rule of the form asks it", changes
    mine = form_of(told.func, made, Bench(CPU).same(), strides=True)
    if isinstance(mine, Exception):
        return "the CPU refuses it with these operands", changes
    for around in (partial(ChoosesOtherwise, UNASKED), partial(RoundsOtherwise, 2.0)):
        other = form_of(told.func, made, Bench(CPU, around=around).device_run(), strides=True)
        if str(other) != str(mine):
            return "a device may choose its answer", changes
    if not described_so(told.func, made):
        return "strides are a back end's own choice: torch describes none, or others", changes
    if all(isinstance(one, tuple) and len(one[2]) < 2 for one in mine):
        return "no strides to choose", changes
    return "", changes


def described_so(func: Any, made: ChangedCall) -> bool:
    """Say whether a call on tensors without memory lays its answers as the CPU does; a count may be another."""
    args, kwargs = made.arguments(made.bases, CPU, lambda dtype: dtype)
    meta = torch.device("meta")
    try:
        own = flat_answers(func(*args, **kwargs))
        args, kwargs = made.arguments([base.to(meta) for base in made.bases], meta, lambda dtype: dtype)
        with config.patch(meta_nonzero_assume_all_nonzero=True):
            told = flat_answers(func(*args, **kwargs))
    except Exception:
        return False
    if len(own) != len(told):
        return False
    return all(_order(one) == _order(two) for one, two in zip(own, told) if isinstance(one, torch.Tensor))


def _order(x: torch.Tensor) -> Any:
    """Return the dimensions from the widest step to the least, and whether there are gaps."""
    wide = [dim for dim in range(x.dim()) if x.shape[dim] != 1]
    return sorted(wide, key=lambda dim: -x.stride(dim)), x.numel() == 0 or min((x.stride(d) for d in wide), default=1)


def handed(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what consumers of the answer say, as the first kind of answer that it is."""
    kind = changes[-1][1]
    try:
        args, kwargs = made.arguments(made.bases, CPU, lambda dtype: dtype)
        answer = taken(told.func(*args, **kwargs))
    except Exception:
        return "no mask and no whole numbers", changes
    if (answer.dtype == torch.bool) != (kind == "mask"):
        return "no mask and no whole numbers", changes
    if kind == "places" and not (answer.numel() and int(answer.min()) >= 0 and int(answer.max()) < TABLE):
        return "no places in a table", changes
    if kind == "whole" and f"places {changes[:-1]}" in told.found:
        return "its answer is handed on as places", changes
    return answered(Overload(hands(told.func, changes), told.name, made.call), made, changes)


def again(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep another option with the same shapes, if it shows in an answer or a gradient."""
    plain = ChangedCall(told.func, told.call, changes[:-1])
    both = [attempt_answers(Derived(told.func), one, Bench(CPU).same()) for one in (plain, made)]
    if any(isinstance(one, Exception) for one in both):
        return "the CPU refuses it with these operands", changes
    first, second = ([one for one, _ in each] for each in both)
    if len(first) < 2 or len(first) != len(second):
        return "it has no gradient", changes
    if any(one.shape != two.shape for one, two in zip(first, second)):
        return "the shapes change", changes
    if all(is_equal(one, two) for one, two in zip(first, second)):
        return "the change does not show", changes
    for one in (plain, made):
        reason, _ = answered(Overload(Derived(told.func), told.name, one.call), one, changes)
        if reason:
            return reason, changes
    return "", changes


def deterministic(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what has a gradient; an answer counts as empty where an operand is not."""
    asked = Derived(told.func, deterministic=True)
    own = attempt_answers(asked, made, Bench(CPU).same())
    if isinstance(own, Exception):
        return "the CPU refuses it with these operands", changes
    answers = [one for one, _ in own]
    if changes[-1][0] == "arg" and (answers[0].numel() or not any(base.numel() for base in made.bases)):
        return "something is left", changes
    plain = attempt_answers(told.func, made, Bench(CPU).same())
    if isinstance(plain, Exception) or len(answers) // 2 <= len(plain):
        return "it has no gradient", changes
    return answered(Overload(asked, told.name, made.call), made, changes)


def _noting(verdict: Callable[[Overload, ChangedCall, list[Any]], Verdict]) -> Any:
    def noted(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
        reason, kept = verdict(told, made, changes)
        if not reason:
            told.found[getattr(changes, "kind", "")] = True
        return reason, kept

    return noted


VERDICTS = {
    one.__name__: _noting(one)
    for one in (options, indices, misfits, outs, resized, strides, handed, again, deterministic)
}
VERDICTS.update({name: _noting(one) for name, one in operand_verdicts.VERDICTS.items()})
