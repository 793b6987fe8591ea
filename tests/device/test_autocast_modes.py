"""Autocast and the modes of gradients: what it keeps of a weight in one mode must serve in the next."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.answers import attempt

cases = Cases("autocast")


def _without(form: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        form(x, w)
    return form(x, w)


def _detached(form: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    form(x, w.detach())
    return form(x, w)


def _between(form: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    first = form(x, w)
    with torch.no_grad():
        form(x, w)
    return first + form(x * 0.5, w)


def _graded(form: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), torch.enable_grad():
        form(x, w)
    return form(x, w)


def _set(form: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    torch.set_grad_enabled(False)
    try:
        form(x, w)
    finally:
        torch.set_grad_enabled(True)
    return form(x, w)


_ORDERS = {"without": _without, "detached": _detached, "between": _between, "graded": _graded, "set": _set}
_FORMS = {
    "linear": lambda x, w: F.linear(x, w),
    "matmul": lambda x, w: x @ w.t(),
    "conv": lambda x, w: F.conv1d(x.t()[None], w[:, :, None]),
    "turned": lambda x, w: torch.mm(w, x.t()),
}


def _asked(low: torch.dtype) -> Any:
    def act(run: Any, x: torch.Tensor, w: torch.Tensor) -> Any:
        def answer(order: Any, form: Any) -> Any:
            weight = leaf(w)
            with torch.autocast(run.device.type, dtype=low, enabled=not run.precise):
                found = order(form, x, weight)
            found.to(x.dtype).square().sum().backward()
            return found, weight.grad

        return {
            f"{name}-{kind}": attempt(lambda order=order, form=form: answer(order, form))
            for name, order in _ORDERS.items()
            for kind, form in _FORMS.items()
        }

    return act


for _low in (torch.float16, torch.bfloat16):
    cases.add(
        f"autocast-modes-{str(_low)[6:]}",
        _asked(_low),
        make=lambda d: (d.normal(4, 6), d.normal(3, 6)),
        terms=64,
        floor=0.5,
        since="2.6",
        states=("fresh",),
        may_be_missing=True,
        autocast=_low,
    )
