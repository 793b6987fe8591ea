"""Derivatives of functions: torch.autograd.functional and torch.func, by rows, forwards, backwards and both."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

from device_suite import Cases
from device_suite.acts import uneven
from device_suite.limits import add_table

cases = Cases("conditions")


def _net(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return what has products, a bend and a norm: each has a second derivative."""
    return F.softmax(torch.tanh(x @ w) * x.sum(-1, keepdim=True), -1).square() + (x @ w).sigmoid()


# x of (2, 6), w of (6, 6); v a number for each of x.
_FUNCTIONAL: dict[str, Callable[..., Any]] = {
    "jacobian": lambda x, w, v: jacobian(lambda y: _net(y, w)[:, 0], x),
    "jacobian-rows": lambda x, w, v: jacobian(lambda y: (y @ w)[0], x, vectorize=True),
    "jacobian-forward": lambda x, w, v: jacobian(lambda y: y @ w, x, strategy="forward-mode", vectorize=True),
    "jacobian-two": lambda x, w, v: jacobian(lambda y, z: (y @ z).sum(0), (x, w)),
    "hessian": lambda x, w, v: hessian(lambda y: _net(y, w).square().sum(), x[:1]),
    "hessian-rows": lambda x, w, v: hessian(lambda y: (y @ w).sin().sum(), x[0], vectorize=True),
    "vjp": lambda x, w, v: vjp(lambda y: _net(y, w), x, v),
    "vjp-two": lambda x, w, v: vjp(lambda y, z: y @ z, (x, w), v),
    "jvp": lambda x, w, v: jvp(lambda y: _net(y, w), x, v),
    "vhp": lambda x, w, v: vhp(lambda y: _net(y, w).square().sum(), x, v),
    "hvp": lambda x, w, v: hvp(lambda y: _net(y, w).square().sum(), x, v),
}
_TRANSFORMED: dict[str, Callable[..., Any]] = {
    "vmap": lambda x, w, v: torch.func.vmap(lambda row: torch.tanh(row @ w) + row.sum())(x),
    "vmap-one": lambda x, w, v: torch.func.vmap(torch.dot, in_dims=(0, None))(x, x[0]),
    "vmap-columns": lambda x, w, v: torch.func.vmap(torch.dot, in_dims=(1, 1))(x, v),
    "vmap-out": lambda x, w, v: torch.func.vmap(lambda row: row.cumsum(0).flip(0), out_dims=1)(x),
    "vmap-twice": lambda x, w, v: torch.func.vmap(torch.func.vmap(torch.atan2))(x, v),
    "vmap-parts": lambda x, w, v: torch.func.vmap(lambda row: row.sort()[0].softmax(0), chunk_size=1)(x),
    "vmap-indices": lambda x, w, v: torch.func.vmap(
        lambda row: torch.where(row > 0, row, w[0]).gather(0, row.argsort())
    )(x),
    "grad-rows": lambda x, w, v: torch.func.vmap(torch.func.grad(lambda y, z: _net(y, z).sum()), (0, None))(x, w),
    "grad-value": lambda x, w, v: torch.func.grad_and_value(lambda y: _net(y, w).prod())(x),
    "grad-twice": lambda x, w, v: torch.func.grad(torch.func.grad(lambda y: y.sin() * y))(x[0, 0]),
    "vjp": lambda x, w, v: torch.func.vjp(lambda y: _net(y, w), x)[1](v)[0],
    "jvp": lambda x, w, v: torch.func.jvp(lambda y: _net(y, w), (x,), (v,)),
    "jacrev": lambda x, w, v: torch.func.jacrev(lambda y: y @ w)(x[0]),
    "jacfwd": lambda x, w, v: torch.func.jacfwd(lambda y: (y @ w).sin())(x[0].clone()),
    "hessian": lambda x, w, v: torch.func.hessian(lambda y: (y @ w).sin().sum())(x[0].clone()),
    "linearize": lambda x, w, v: torch.func.linearize(lambda y: _net(y, w), x)[1](v),
    "called": lambda x, w, v: torch.func.functional_call(torch.nn.Linear(6, 6, bias=False), {"weight": w.mT}, (x,)),
    "convolved": lambda x, w, v: torch.func.vmap(lambda row: F.conv1d(row[None, None], w[:1, None, :3]))(x),
    "normed": lambda x, w, v: torch.func.vmap(lambda row: F.layer_norm(row, (6,), w[0]))(x),
}
for _name, _forms in (("functional", _FUNCTIONAL), ("transformed", _TRANSFORMED)):
    add_table(
        cases,
        f"tape-{_name}",
        {
            f"{name}{way}": lambda x, w, form=form, turn=turn: form(turn(x), w, uneven(x))
            for name, form in _forms.items()
            for way, turn in (("", lambda x: x), ("-turned", lambda x: x.mT.contiguous().mT))
        },
        lambda d: (d.normal(2, 6), d.normal(6, 6) / 2),
        terms=256,
        factor=16.0,
    )
