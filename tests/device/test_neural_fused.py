"""Fused optimisers: every option that a kernel is given differs from every other, so that no two can change places.

A learning rate is a number, a tensor on the host, or one on the device: a kernel has a way of its own for the last two.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

from device_suite import Cases
from device_suite.acts import leaf, parameters_and_state

cases = Cases("neural")
SHAPES = ((5, 7), (3, 4, 2), (9,))
# No two alike, and each far from what rounding does: a swap moves a parameter by a hundredth or more.
_RATE = 0.125
_OWN: dict[str, dict[str, Any]] = {
    "Adam": {"betas": (0.5, 0.75), "eps": 0.0625, "weight_decay": 0.375},
    "AdamW": {"betas": (0.5, 0.75), "eps": 0.0625, "weight_decay": 0.875},
    "SGD": {"momentum": 0.75, "weight_decay": 0.375},
}
_FLAGS: dict[str, tuple[dict[str, Any], ...]] = {
    "Adam": ({}, {"amsgrad": True}),
    "AdamW": ({}, {"amsgrad": True}),
    "SGD": ({"dampening": 0.25}, {"nesterov": True}),
}
_RATES = ("number", "host", "device")


def _rate(kind: str, run: Any) -> Any:
    if kind == "number":
        return _RATE
    return torch.tensor(_RATE, dtype=run.cast(torch.float32), device=run.device if kind == "device" else "cpu")


def _stepped(name: str, options: dict[str, Any], kind: str) -> Any:
    def act(run: Any, bases: Any, steps: Any) -> Any:
        parameters = [leaf(base) for base in bases]
        optimiser = getattr(torch.optim, name)(parameters, lr=_rate(kind, run), fused=True, **options)
        for gradients in steps:
            for parameter, gradient in zip(parameters, gradients):
                parameter.grad = gradient.clone()
            optimiser.step()
        return parameters_and_state(optimiser)

    return act


def _make(d: Any) -> Any:
    return [d.normal(*shape) for shape in SHAPES], [[d.normal(*shape) for shape in SHAPES] for _ in range(3)]


for _name, _own in _OWN.items():
    for _flags, _maximize, _kind in itertools.product(_FLAGS[_name], (False, True), _RATES):
        _words = [*_flags, *(["maximize"] if _maximize else []), f"rate={_kind}"]
        cases.add(
            f"neural-fused-{_name}-" + "-".join(_words),
            _stepped(_name, {**_own, **_flags, "maximize": _maximize}, _kind),
            make=_make,
            factor=4,
            terms=64,
            floor=0.25,
            since="2.5",
            states=("fresh",),
            may_be_missing=True,
        )
