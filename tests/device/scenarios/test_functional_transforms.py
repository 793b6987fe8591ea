"""torch.func's transforms of many functions, at the usual operands and where one has no elements."""

from __future__ import annotations

from typing import Any, Callable

import torch

from engine import Cases
from engine.answers import ONCE, each

cases = Cases("scenarios")


# Of one example x of (3, 4) and weights w of (4, 5): to a tensor.
_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, w: (x @ w).tanh(),
    "joined": lambda x, w: torch.cat([x.mT, w * 2], 1).sin(),
    "chosen": lambda x, w: torch.where(x > 0, x, x * 0.25) @ w,
    "in_place": lambda x, w: (x * 1).mul_(2).add_(w[:, 0]),
    "scattered": lambda x, w: x.scatter_add(1, torch.zeros(3, 4, dtype=torch.int64, device=x.device), x * w[0, :4]),
}


def _loss(form: Any) -> Any:
    return lambda x, w: form(x, w).square().sum()


def _transforms(form: Any) -> dict[str, Callable[[Any, Any], Any]]:
    return {
        "grad": lambda x, w: torch.func.grad(_loss(form), argnums=(0, 1))(x, w),
        "rows": lambda x, w: torch.func.jacrev(form, argnums=1)(x, w),
        "columns": lambda x, w: torch.func.jacfwd(form)(x, w),
        "backward": lambda x, w: torch.func.vjp(form, x, w)[1](torch.ones_like(form(x, w))),
        "batch": lambda x, w: torch.func.vmap(form, (0, None))(torch.stack([x, x.flip(0)]), w),
        "each": lambda x, w: torch.func.vmap(torch.func.grad(_loss(form), argnums=1), (0, None))(
            torch.stack([x, -x]), w
        ),
    }


# What derives by an operand without elements, or maps over none.
_NOTHING: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda x, w: torch.func.grad(lambda x: (x[:0] * 2).sum())(x),
    "grad_of_none": lambda x, w: torch.func.grad(lambda x: x.exp().sum())(x[:0]),
    "rows": lambda x, w: torch.func.jacrev(lambda x: x * 2)(x[:0]),
    "rows_of_none": lambda x, w: torch.func.jacrev(lambda x: x[:0] * 2)(x),
    "columns": lambda x, w: torch.func.jacfwd(lambda x: x[:0] * 2)(x),
    "forward": lambda x, w: torch.func.jvp(lambda x: x.sin(), (x[:0],), (x[:0],)),
    "backward": lambda x, w: torch.func.vjp(lambda x: x @ w, x[:0])[1](x[:0] @ w),
    "batch": lambda x, w: torch.func.vmap(lambda x: x @ w)(x[None, :0]),
    "joined": lambda x, w: torch.func.grad(lambda x: torch.cat([x, x[:0]]).square().sum())(x),
    "sums": lambda x, w: torch.func.vjp(lambda x: x.sum(0), x[:0])[1](w[:, 0]),
}


def _read(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that turns a tensor inside a transform into Python's numbers, and goes on with both."""
    return lambda x: (x * x.new_tensor(read(x)).sum()).sin()


_READS: dict[str, Callable[[Any], Any]] = {
    "list": _read(lambda x: x.tolist()),
    "number": _read(lambda x: [x.sum().item()]),
    "rows": _read(lambda x: [float(row.max()) for row in x]),
}
# What reads a number inside a transform; vmap refuses it by design.
_INSIDE: dict[str, Callable[[Any, Any], Any]] = {
    f"{name}-{kind}": lambda x, w, form=form, derive=derive: derive(form, x)
    for name, form in _READS.items()
    for kind, derive in {
        "grad": lambda form, x: torch.func.grad(lambda x: form(x).sum())(x),
        "forward": lambda form, x: torch.func.jvp(form, (x,), (x * 0.5,)),
        "columns": lambda form, x: torch.func.jacfwd(form)(x),
        "rows": lambda form, x: torch.func.jacrev(form)(x),
    }.items()
}


def _make(d: Any) -> Any:
    return d.normal(3, 4), d.normal(4, 5, scale=0.5)


_TABLES = {name: _transforms(form) for name, form in _FUNCTIONS.items()}
for _name, _forms in {**_TABLES, "nothing": _NOTHING, "inside": _INSIDE}.items():
    cases.add(
        f"neural-transforms-{_name}",
        lambda x, w, forms=_forms: each(forms, x, w),
        make=_make,
        terms=256,
        factor=16.0,
        floor=1.0,
        states=ONCE,
        since="2.0",
        may_be_missing=True,
    )
