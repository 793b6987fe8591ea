"""Optimisers: options by twos; each implementation, layouts, what they keep."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from engine import Cases
from engine.acts import covering, label, leaf, parameters_and_state
from engine.layouts import LAYOUTS

cases = Cases("scenarios")
SHAPES = ((5, 7), (9,))

# Options and their values; the first is not given. eps is large: near zero a step would depend on rounding.
_EPS = {"eps": 1e-3}
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "SGD": ({"lr": 0.1}, {"momentum": (None, 0.9), "dampening": (None, 0.5), "nesterov": (False, True)}),
    "Adam": ({"lr": 0.05, **_EPS}, {"betas": (None, (0.75, 0.875)), "amsgrad": (False, True)}),
    "Adagrad": ({"lr": 0.05, **_EPS}, {"lr_decay": (None, 0.5), "initial_accumulator_value": (None, 0.25)}),
    "RMSprop": ({"lr": 0.01, **_EPS}, {"momentum": (None, 0.5), "centered": (False, True), "alpha": (None, 0.75)}),
}
COMMON: dict[str, tuple[Any, ...]] = {
    "weight_decay": (None, 0.125),
    "maximize": (False, True),
    "way": ("loop", "foreach", "fused", "capturable"),
    "tensor_lr": (False, True),
    "layout": ("contiguous", "transposed"),
    "gradients": ("strided", "one_missing"),
    "dtype": (torch.float32,),
}
_FUSED = ("SGD", "Adam", "AdamW", "Adagrad")


def _has(name: str, option: str) -> bool:
    return option in inspect.signature(getattr(torch.optim, name)).parameters


def _allowed(name: str) -> Any:
    def judge(row: Any) -> bool:
        way = row["way"]
        if row.get("nesterov") and (row.get("momentum") is None or row.get("dampening") is not None):
            return False
        if way in ("fused", "capturable", "differentiable") and not _has(name, way):
            return False
        if way == "fused" and (
            name not in _FUSED or row["layout"] == "step2" or row["gradients"] not in ("plain", "one_missing")
        ):
            return False
        if row["weight_decay"] is not None and not _has(name, "weight_decay"):
            return False
        if row["tensor_lr"] and (way in ("foreach", "default", "capturable") or name not in ("SGD", "Adam", "AdamW")):
            return False
        if way == "differentiable" and row["gradients"] == "expanded":
            return False
        return row["dtype"] == torch.float32 or name in ("SGD", "Adam", "AdamW")

    return judge


def _options(name: str, row: Any, run: Any) -> dict[str, Any]:
    fixed, own = OPTIONS[name]
    found = {**fixed, **{key: row[key] for key in (*own, "weight_decay", "maximize") if row[key] not in (None, False)}}
    if row["tensor_lr"]:
        found["lr"] = torch.tensor(fixed["lr"], dtype=run.cast(torch.float32))
    way = row["way"]
    if way == "capturable" and run.device.type == "cpu":
        return found  # the CPU refuses it, and takes the same steps without
    if way in ("loop", "foreach"):
        found["foreach"] = way == "foreach"
    elif way != "default":
        found[way] = True
    return found


def _gradient(kind: str, gradient: torch.Tensor, parameter: torch.Tensor, row: Any) -> torch.Tensor:
    if row["way"] == "fused":  # fused kernels take gradients in the parameter's own layout only
        return torch.empty_like(parameter).copy_(gradient)
    if kind == "strided" and gradient.dim() > 1:
        return gradient.transpose(0, -1).contiguous().transpose(0, -1)
    if kind == "expanded" and gradient.dim() > 1:
        return gradient[:1].expand(gradient.shape)
    return gradient


def _stepped(name: str, row: Any) -> Any:
    cut = LAYOUTS[row["layout"]].cut

    def act(run: Any, bases: Any, steps: Any) -> Any:
        pairs = [(base, shape) for base, shape in zip(bases, SHAPES)]
        if row["way"] == "fused" and row["layout"] == "transposed":
            pairs = [pair for pair in pairs if len(pair[1]) != 1]  # a column of a table is not dense
        parameters = [leaf(cut(base, shape)) for base, shape in pairs]
        if row["way"] == "differentiable":  # it takes what is no leaf, and its steps are part of the graph
            parameters = [parameter.clone() for parameter in parameters]
        optimiser = getattr(torch.optim, name)(parameters, **_options(name, row, run))
        kept = [place for place, shape in enumerate(SHAPES) if any(shape is pair[1] for pair in pairs)]
        for turn, gradients in enumerate(steps):
            optimiser.zero_grad(set_to_none=turn != 1)
            for place, parameter in zip(kept, parameters):
                if row["gradients"] == "one_missing" and place == 1 and turn == 1:
                    continue
                parameter.grad = _gradient(row["gradients"], gradients[place].clone(), parameter, row)
            optimiser.step()
        return parameters_and_state(optimiser)

    return act


def _make(row: Any) -> Any:
    base = LAYOUTS[row["layout"]].base

    def make(d: Any) -> Any:
        dtype = row["dtype"]
        return (
            [d.normal(*base(shape), dtype=dtype) for shape in SHAPES],
            [[d.normal(*shape, dtype=dtype) for shape in SHAPES] for _ in range(2)],
        )

    return make


def _devices(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    """Return the devices that a row is asked of; none for all."""
    if not row["way"].startswith("fused"):
        return ()
    if name == "SGD" and row["momentum"] and row["dtype"] != torch.float32:
        return ("mps", "cuda")  # the CPU of torch 2.13 begins with a momentum that nobody wrote, from 16 elements on
    return ("cpu",) if name == "Adagrad" and row["way"] == "fused" else ()


for _name in OPTIONS:
    if not hasattr(torch.optim, _name):
        continue
    _factors = {**OPTIONS[_name][1], **COMMON}
    for _row in covering(_factors, _allowed(_name)):
        cases.add(
            f"neural-{_name}-" + label(_row),
            _stepped(_name, _row),
            make=_make(_row),
            factor=16 if _row["way"] == "differentiable" else 4,
            terms=256 if _row["dtype"] == torch.float32 else 16,
            floor=0.25,
            since="2.5",
            states=("fresh",),
            devices=_devices(_name, _row),
            may_be_missing=True,
        )
