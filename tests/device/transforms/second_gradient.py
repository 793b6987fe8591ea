"""The gradient of a gradient: with respect to the operands, and to the gradient of the answer."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from engine import comparison
from engine.calls import bring, can_want, cut, flatten, operands_of, target
from engine.compare import Error
from engine.reference import Truth
from engine.transformation import Call, Transformation


class _Second(Transformation):
    name, forms, graphs, share = "second_gradient", ("grad",), 7.8, 0.5

    def judge(self, call: Call, bench: Any, truth: Truth, answer: Any) -> Error:
        """Judge as any other, with a bound two times as wide: two times as many numbers are rounded on the way."""
        terms = call.operator.terms
        lenient = dataclasses.replace(call.operator, terms=terms if terms == "all" else 4 * terms)
        return comparison.judge(lenient, call.row, bench, truth, answer)

    def perform(self, call: Call, run: Any, truth: Truth | None) -> list[Any]:
        bases = [cut(one) for one in bring(run, call.bases(run))]
        starts, args = operands_of(call.row, run, [x.detach().requires_grad_() if can_want(x) else x for x in bases])
        answers = flatten(target(call.operator, call.changed(form="call").row)(*starts, **args))
        results = [one for one in answers if can_want(one) and one.requires_grad]
        if not results:
            raise NotImplementedError("not implemented: no gradient")
        leaves = [one for one in starts if isinstance(one, torch.Tensor) and one.requires_grad]
        grads = [_sloped(one).requires_grad_() for one in results]
        first = torch.autograd.grad(results, leaves, grads, allow_unused=True, create_graph=True)
        first = [one for one in first if one is not None and one.requires_grad]
        if not first:
            raise NotImplementedError("not implemented: no second gradient")
        second = torch.autograd.grad(first, [*leaves, *grads], [_sloped(one) for one in first], allow_unused=True)
        return [one for one in (*first, *second) if one is not None]


def _sloped(like: torch.Tensor) -> torch.Tensor:
    """Return numbers of the same shape that are exact in every dtype and the same on every device."""
    numbers = torch.arange(like.numel(), device=like.device) % 7 - 3
    return (numbers / 4).reshape(like.shape).to(like.dtype)


transformation = _Second()
