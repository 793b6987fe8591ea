"""Whether a changed call of views may be asked of every device: chains in place, and the form of results."""

from __future__ import annotations

from typing import Any

import torch

from device_suite.rules.chains import chained
from device_suite.rules.changes import ChangedCall
from device_suite.rules.form import FREE, form_of
from device_suite.runs import Bench
from free_choice import ChoosesOtherwise
from rule_kinds import is_backward, is_structured
from rule_verdicts import CPU, Overload, Verdict, answered, is_equal, tensors
from unasked import UNASKED


def chains(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep one chain of an overload in each dtype, in which each call leaves something else than there was."""
    key = f"chain {[one for one in changes if one[0] == 'kind']}"
    if key in told.found:
        return "another chain is asked", changes
    chain = chained(told.func, made, changes)
    reason, _ = answered(Overload(chain, told.name, made.call), made, changes)
    if not reason and not _each_call_shows(told.func, made, changes):
        reason = "the change does not show"
    if not reason:
        told.found[key] = True
    return reason, changes


def _each_call_shows(func: Any, made: ChangedCall, changes: list[Any]) -> bool:
    """Say whether each call of a chain leaves something else in its view than there was."""
    shows = []

    def noted(view: torch.Tensor, *operands: Any, **options: Any) -> None:
        before = view.clone()
        func(view, *operands, **options)
        shows.append(not is_equal(before, view))

    args, kwargs = made.arguments(Bench(CPU).same().copy(made.bases), CPU, lambda dtype: dtype)
    chained(func, made, changes).calling(noted)(*args, **kwargs)
    return all(shows)


def form(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep a layout once: strides are compared where all devices share what says them."""
    mine = form_of(told.func, made, Bench(CPU).same(), strides=True)
    if isinstance(mine, Exception):
        return "the CPU refuses it with these operands", changes
    if lays_anew(told.func, made):
        return "the CPU lays a result anew that it was given", changes
    other = form_of(told.func, made, Bench(CPU, around=lambda: ChoosesOtherwise(UNASKED)).device_run(), strides=True)
    if str(other) != str(mine):
        return "a device may choose its answer", changes
    shares = any(isinstance(one, tuple) and one[4] is not None for one in mine)
    alone = is_backward(told.func) and not is_structured(told.func, behind_python=True)  # each back end's own kernel
    pointwise = torch.Tag.pointwise in told.func.tags and not alone
    free = not (shares or pointwise or is_structured(told.func))
    key = str((mine, free, made.call[1].get("memory_format")))
    plain = told.found.setdefault("forms", set())
    if free and plain:
        return "strides are a back end's own choice: one layout is asked", changes
    if key in plain and changes:
        return "another layout has the same form", changes
    plain.add(key)
    return "", [FREE, *changes] if free else changes


def lays_anew(func: Any, made: ChangedCall) -> bool:
    """Say whether a tensor that the call writes to has other strides or another shape after it."""
    bases = Bench(CPU).same().copy(made.bases)
    args, kwargs = made.arguments(bases, CPU, lambda dtype: dtype)
    named = dict(zip((one.name for one in func._schema.arguments), args)) | kwargs
    written = [
        one
        for argument in func._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
        for one in tensors(named.get(argument.name))
    ]
    before = [(one.shape, one.stride()) for one in written]
    func(*args, **kwargs)
    return before != [(one.shape, one.stride()) for one in written]


VERDICTS = {"chains": chains, "form": form}
