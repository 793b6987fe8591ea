"""Autocast: inside torch.func's transforms, and what it keeps of a weight from one mode of gradients to the next."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import leaf
from engine.answers import attempt

cases = Cases("scenarios")

# x of (4, 6, 6), m of (6, 5), b of (5,): one example, which vmap gets in a batch.
_FORMS: dict[str, Callable[..., Any]] = {
    "linear": lambda x, m, b: F.linear(x, m.t(), b),
    "bmm": lambda x, m, b: torch.bmm(x, x.mT),
    "conv1d": lambda x, m, b: F.conv1d(x, x[:, :, :3].reshape(2, 6, 6)),
    "attention": lambda x, m, b: F.scaled_dot_product_attention(x[None], x.flip(0)[None], x[None]),
}


def _transformed(kind: str, form: Any, inputs: Any, seen: list[str]) -> Any:
    """Return a transform of a function of three tensors; `seen` gets the dtype of each result inside."""

    def value(x: torch.Tensor, m: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        result = form(x, m, b)
        seen.append(str(result.dtype))
        return result

    def loss(*given: torch.Tensor) -> torch.Tensor:
        result = value(*given)
        return (result if result.dtype == torch.float64 else result.float()).square().mean()

    many, m, b = inputs
    one = many[0]
    batched = (0, None, None)
    return {
        "grad": lambda: torch.func.grad(loss, argnums=(0, 1, 2))(one, m, b),
        "value": lambda: torch.func.grad_and_value(loss)(one, m, b),
        "vmap": lambda: torch.func.vmap(value, in_dims=batched)(many, m, b),
        "each": lambda: torch.vmap(torch.func.grad(loss), in_dims=batched)(many, m, b),
        "vjp": lambda: torch.func.vjp(loss, one, m, b)[0],
        "rows": lambda: torch.func.jacrev(loss)(one, m, b),
    }[kind]()


def _tested(kind: str, low: torch.dtype | None) -> Any:
    def act(run: Any, *inputs: torch.Tensor) -> Any:
        answers = {}
        for name, form in _FORMS.items():
            seen: list[str] = []

            def answer(form: Any = form, seen: list[str] = seen) -> Any:
                with torch.autocast(run.device.type, dtype=low, enabled=low is not None and not run.precise):
                    found = _transformed(kind, form, inputs, seen)
                return list(found) if isinstance(found, tuple) else [found]

            # Under vmap alone a back end may take a function apart before autocast sees it.
            lowered = low is not None and kind != "vmap" and name not in ("softmax", "norm", "attention")
            answers[name] = attempt(answer), seen[0] if lowered and seen and not run.precise else str(low)
        return answers

    return act


for _kind in ("grad", "vmap"):
    for _low in (torch.float16,):
        cases.add(
            f"autocast-transform-{_kind}-{str(_low or 'torch.plain')[6:]}",
            _tested(_kind, _low),
            make=lambda d: (d.normal(3, 4, 6, 6), d.normal(6, 5, scale=0.5), d.normal(5)),
            terms=64,
            floor=0.25,
            since="2.6",
            states=("fresh",),
            deterministic=False,
            may_be_missing=True,
            autocast=_low,
        )


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
_LAYERS = {
    "linear": lambda x, w: F.linear(x, w),
    "matmul": lambda x, w: x @ w.t(),
    "conv": lambda x, w: F.conv1d(x.t()[None], w[:, :, None]),
    "turned": lambda x, w: torch.mm(w, x.t()),
}


def _tested_in_order(low: torch.dtype) -> Any:
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
            for kind, form in _LAYERS.items()
        }

    return act


for _low in (torch.bfloat16,):
    cases.add(
        f"autocast-modes-{str(_low)[6:]}",
        _tested_in_order(_low),
        make=lambda d: (d.normal(4, 6), d.normal(3, 6)),
        terms=64,
        floor=0.5,
        since="2.6",
        states=("fresh",),
        may_be_missing=True,
        autocast=_low,
    )
