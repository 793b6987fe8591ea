"""Optimisers: two steps of one parameter, with each option, by each implementation."""

from __future__ import annotations

import inspect

import torch

from engine.description import ABSENT, ANY_LAYOUT, Table

t = Table()
STEPS = {
    "dtypes": "s",
    "values": ("plain", "zero"),
    "forms": ("call",),
    "terms": 64,
    "floor": 1.0,
    "layouts": tuple(one for one in ANY_LAYOUT if one != "expanded"),
    "sizes": {
        "main": (5, 7),
        "line": (17,),
        "none": (),
        "one": (1,),
        "four": (2, 3, 4, 6),
        "long": (3, 1031),
        "tiles": (32, 64),
        "tall": (65543,),
        "empty": (0, 7),
    },
}
# Near zero a step would depend on rounding.
EPS = {"eps": 1e-3}
# What is always given, and what may be.
OPTIONS = {
    "SGD": ({"lr": 0.1}, {"momentum": (ABSENT, 0.9), "dampening": (ABSENT, 0.5), "nesterov": (False, True)}),
    "Adam": ({"lr": 0.05, **EPS}, {"betas": (ABSENT, (0.75, 0.875)), "amsgrad": (False, True)}),
    "AdamW": ({"lr": 0.05, **EPS}, {"betas": (ABSENT, (0.75, 0.875)), "amsgrad": (False, True)}),
    "Adagrad": ({"lr": 0.05, **EPS}, {"lr_decay": (ABSENT, 0.5), "initial_accumulator_value": (ABSENT, 0.25)}),
    "RMSprop": ({"lr": 0.01, **EPS}, {"momentum": (ABSENT, 0.5), "centered": (False, True), "alpha": (ABSENT, 0.75)}),
    "Adamax": ({"lr": 0.05, **EPS}, {"betas": (ABSENT, (0.75, 0.875))}),
    "Adadelta": ({"lr": 0.5, **EPS}, {"rho": (ABSENT, 0.5)}),
    "NAdam": ({"lr": 0.05, **EPS}, {"momentum_decay": (ABSENT, 0.5)}),
    "RAdam": ({"lr": 0.05, **EPS}, {"betas": (ABSENT, (0.75, 0.875))}),
}


def _stepped(name, fixed):
    """A parameter after each of two steps, and what the optimiser keeps of it."""

    def act(x, first, second, way, tensor_lr, **options):
        start = x.detach().clone().requires_grad_()
        given = {**fixed, **options}
        if tensor_lr:
            given["lr"] = torch.tensor(given["lr"], dtype=x.dtype)
        if way in ("loop", "foreach"):
            given["foreach"] = way == "foreach"
        elif way != "capturable" or x.device.type != "cpu":  # the CPU refuses it, and steps alike without
            given[way] = True
        optimiser = getattr(torch.optim, name)([start], **given)
        found = []
        for gradient in (first, second):
            # Fused kernels take gradients in the parameter's own layout alone.
            start.grad = torch.empty_like(start).copy_(gradient) if way == "fused" else gradient.detach()
            optimiser.step()
            found.append(start.detach().clone())
        state = optimiser.state[start]
        kept = [one for key, one in sorted(state.items()) if isinstance(one, torch.Tensor) and one.shape == x.shape]
        return [*found, *(kept if x.dim() else [])]  # of no dimension they may be counters, which lie on the host

    return act


for _name, (_fixed, _own) in OPTIONS.items():
    _known = inspect.signature(getattr(torch.optim, _name)).parameters
    t.add(
        f"{_name.lower()}_step",
        "any",
        "any",
        "any",
        act=_stepped(_name, _fixed),
        _way=tuple(one for one in ("loop", "foreach", "fused", "capturable") if one in _known or one == "loop"),
        _tensor_lr=(False, True) if _name in ("SGD", "Adam", "AdamW") else (False,),
        weight_decay=(ABSENT, 0.125),
        maximize=(False, True) if "maximize" in _known else (ABSENT,),
        without=("alias",),
        **_own,
        **STEPS,
    )
