"""Performs a call on a run: its bases are moved, its views cut, its function called."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch

from .description import DRAWN, HOMES, Operator, Row, spellings
from .drawing import Placed


def perform(operator: Operator, row: Row, run: Any, bases: list[Placed], places: list[Placed]) -> list[Any]:
    """Return what a row answers on a run: move, cut, call; an in-place call and out= answer with their whole base."""
    placed = bring(run, bases)
    operands, args = operands_of(row, run, [taken(one, operator, run) for one in placed])
    form = row.levels["@form"]
    function = target(operator, row)
    if form == "grad":
        return derive(operator, function, operands, args, [taken(one, operator, run) for one in bring(run, places)])
    if form == "inplace":
        function(*operands, **args)
        return [placed[0][0]]
    if form == "out":
        outs = bring(run, places)
        views = tuple(cut(one) for one in outs)
        function(*operands, **args, out=views[0] if len(views) == 1 else views)
        return [view if one[2] == (0,) else one[0] for view, one in zip(views, outs)]
    return flatten(finished(operator, function(*operands, **args)))


def operands_of(
    row: Row, run: Any, views: list[Any], instead: dict[str, Any] | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """Return what a function takes by position and by name, given its tensors; `instead`: arguments in their place."""
    args = {**row.args(run.cast), **(instead or {})}
    for key in DRAWN:
        args.pop(key, None)
    return [*views, *(args.pop(key) for key in list(args) if key[0] == "_")], args


def target(operator: Operator, row: Row) -> Any:
    """Return the spelling that a row asks, looked up now: a fault may have replaced it."""
    if operator.act is not None:
        return operator.act
    every, form = spellings(operator.name, operator.paths), row.levels["@form"]
    if form == "inplace":
        every = tuple(
            (home, name + "_") for home, name in (*every, ("aten", operator.name)) if hasattr(HOMES[home], name + "_")
        )
    elif form == "out":
        every = tuple((home, name) for home, name in every if home not in ("Tensor", "F")) or (("aten", operator.name),)
    if not every:
        raise NotImplementedError(f"this torch has no {operator.name}")
    home, name = every[row.number % len(every)]
    return getattr(HOMES[home], name)


def derive(operator: Operator, function: Any, operands: list[Any], args: Any, grads: list[Any]) -> list[Any]:
    starts = [one.detach().requires_grad_() if can_want(one) else one for one in operands]
    results = [one for one in flatten(finished(operator, function(*starts, **args))) if can_want(one)]
    pairs = [(result, grad) for result, grad in zip(results, grads) if result.requires_grad]
    if not pairs:
        raise NotImplementedError("not implemented: no gradient")
    leaves = [one for one in starts if isinstance(one, torch.Tensor) and one.requires_grad]
    found = torch.autograd.grad([one for one, _ in pairs], leaves, [one for _, one in pairs], allow_unused=True)
    # Autograd itself demands that a gradient lies where its operand does: that of a number of the host is there.
    return [one.to(pairs[0][0].device) for one in found if one is not None]


def can_want(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def finished(operator: Operator, answer: Any) -> Any:
    return answer if operator.finish is None else operator.finish(answer)


def flatten(answer: Any) -> list[Any]:
    """Return the parts of nested tuples and lists, in order."""
    if isinstance(answer, (tuple, list)):
        return [one for part in answer for one in flatten(part)]
    return [answer]


def bring(run: Any, placed: list[Placed]) -> list[Placed]:
    return [(_moved(run, base), layout, shape) for base, layout, shape in placed]


def _moved(run: Any, base: Any) -> Any:
    if isinstance(base, (tuple, list)):
        return type(base)(_moved(run, one) for one in base)
    return base.to(run.device) if isinstance(base, torch.Tensor) else base


def cut(placed: Placed) -> Any:
    base, layout, shape = placed
    return base if layout is None else layout.cut(base, shape)


def taken(placed: Placed, operator: Operator, run: Any) -> Any:
    view = cut(placed)
    is_dense = operator.dense_on_cpu and run.device.type == "cpu" and isinstance(view, torch.Tensor)
    return view.contiguous() if is_dense else view


@contextlib.contextmanager
def float64_by_default() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
