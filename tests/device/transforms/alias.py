"""Operands that share memory: one tensor two times, and windows of one line that overlap."""

from __future__ import annotations

from typing import Any

import torch

from engine.calls import flatten, operands_of, target
from engine.description import HOMES, Operator, spellings
from engine.layouts import CONTIGUOUS
from engine.reference import Truth
from engine.transformation import Call, Factor, Transformation


class _Alias(Transformation):
    name, graphs, share = "alias", 0.5, 0.7
    free = ("@shared",)

    def applies(self, operator: Operator) -> bool:
        return super().applies(operator) and len(operator.operands) > 1

    def factors(self, operator: Operator) -> list[Factor]:
        names = spellings(operator.name, operator.paths) if operator.act is None else ()
        in_place = any(hasattr(HOMES[home], f"{name}_") for home, name in names)
        return [("@shared", ("same", "windows", *(("written",) if in_place else ())))]

    def perform(self, call: Call, run: Any, truth: Truth | None) -> list[Any]:
        first, *rest = call.bases(run)
        tensors = [one[0] if one[1] is not None else None for one in (first, *rest)]
        shared = [
            number for number, one in enumerate(tensors) if _is_alike(one, tensors[0], (first, *rest)[number], first)
        ]
        if len(shared) < 2:
            raise NotImplementedError("not implemented: no two operands are alike")
        how = call.levels["@shared"]
        if how == "windows":
            base, layout, shape = first
            line = torch.cat([base.reshape(-1), base.reshape(-1)[: len(shared)]]).to(run.device)
            parts = [line[place : place + base.numel()].view(base.shape) for place in range(len(shared))]
        else:
            parts = [first[0].to(run.device)] * len(shared)
        views = []
        for number, (base, layout, shape) in enumerate((first, *rest)):
            here = parts[shared.index(number)] if number in shared else _moved(base, run)
            views.append(here if layout is None else layout.cut(here, shape))
        if how == "written":
            views = [views[0] if number in shared else one for number, one in enumerate(views)]
        operands, args = operands_of(call.row, run, views)
        answer = target(call.operator, call.changed(form="inplace" if how == "written" else "call").row)(
            *operands, **args
        )
        return [*flatten(answer), parts[0]]


def _is_alike(one: Any, first: Any, placed: Any, other: Any) -> bool:
    return (
        isinstance(one, torch.Tensor)
        and isinstance(first, torch.Tensor)
        and (one.shape, one.dtype) == (first.shape, first.dtype)
        and placed[2] == other[2]
        and (placed[1] or CONTIGUOUS).name == (other[1] or CONTIGUOUS).name
    )


def _moved(value: Any, run: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_moved(one, run) for one in value)
    return value.to(run.device) if isinstance(value, torch.Tensor) else value


transformation = _Alias()
