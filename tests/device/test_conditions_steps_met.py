"""Rules 1 and 2: optimisers whose parameters differ in kind and size, at the ends of their options; clipping; scaling.

The infinity norm of gradients of which one is empty, https://github.com/pytorch/pytorch/issues/12159 and
https://github.com/pytorch/pytorch/issues/46849; a rate of shape (1,), https://github.com/pytorch/pytorch/issues/145461;
half gradients that were unscaled to zero, https://github.com/pytorch/pytorch/pull/184286
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import leaf, parameters_and_state
from device_suite.limits import add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]
_INF, _NAN = float("inf"), float("nan")
_EPS = {"eps": 2.0**-10}

# Options at their ends. eps is large, or near zero a step would depend on rounding.
_OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "SGD": (
        {"lr": 0},
        {"lr": 1},
        {"lr": 0.5, "momentum": 1},
        {"lr": 0.5, "momentum": 0.5, "dampening": 1},
        {"lr": 0.5, "momentum": 0.5, "nesterov": True, "weight_decay": 1},
        {"lr": 0.5, "weight_decay": 2, "maximize": True},
    ),
    "Adam": (
        {"lr": 0, **_EPS},
        {"lr": 0.5, "betas": (0.0, 0.0), **_EPS},
        {"lr": 0.5, "betas": (0.0, 0.5), "amsgrad": True, "weight_decay": 1, **_EPS},
        {"lr": 1, "betas": (0.5, 0.0), "maximize": True, **_EPS},
        {"lr": 1, "eps": 1},
    ),
    "AdamW": (
        {"lr": 0.5, "betas": (0.0, 0.0), "weight_decay": 0, **_EPS},
        {"lr": 0.5, "betas": (0.5, 0.5), "weight_decay": 2, "amsgrad": True, **_EPS},
    ),
    "Adamax": ({"lr": 0.5, "betas": (0.0, 0.0), **_EPS}, {"lr": 1, "weight_decay": 1, **_EPS}),
    "NAdam": ({"lr": 0.5, "betas": (0.5, 0.5), "momentum_decay": 0, **_EPS}, {"lr": 0.5, "weight_decay": 1, **_EPS}),
    "RAdam": ({"lr": 0.5, "betas": (0.0, 0.5), **_EPS}, {"lr": 0.5, "betas": (0.5, 0.0), "weight_decay": 1, **_EPS}),
    "Adagrad": ({"lr": 0.5, "lr_decay": 1, **_EPS}, {"lr": 1, "initial_accumulator_value": 4, **_EPS}),
    "Adadelta": ({"lr": 1, "rho": 0.0, **_EPS}, {"lr": 0.5, "rho": 1.0, "weight_decay": 1, **_EPS}),
    "RMSprop": (
        {"lr": 0.5, "alpha": 0, **_EPS},
        {"lr": 0.5, "alpha": 0.5, "centered": True, "momentum": 0.5, "eps": 1},
    ),
    "ASGD": ({"lr": 0.5, "lambd": 0, "alpha": 0, "t0": 0}, {"lr": 0.5, "lambd": 0.5, "t0": 1, "weight_decay": 1}),
    "Rprop": ({"lr": 0.5, "etas": (0.5, 1.5)}, {"lr": 1, "step_sizes": (0.25, 0.5)}),
}


def _parameters(x: torch.Tensor, kinds: str) -> list[torch.Tensor]:
    """Return parameters of many sizes: none, one, a point, rows, a column; of one dtype, or of three."""
    shapes = ((2, 3), (), (0,), (1,), (3, 1, 2), (2, 0, 3), (5,), (1, 1))
    found = [x[: torch.Size(shape).numel()].view(shape).clone() for shape in shapes]
    if kinds == "mixed":
        found = [one.to((one.dtype, torch.bfloat16, torch.float16)[n % 3]) for n, one in enumerate(found)]
    return [leaf(one) for one in found]


def _gradient(one: torch.Tensor, turn: int, kind: str) -> torch.Tensor | None:
    parts = (torch.arange(one.numel(), device=one.device) + turn) % 5 - 1.75
    found = (parts * (0.5 if turn else 1)).view(one.shape).to(one.dtype)
    if kind == "zero":
        return found * 0
    if kind == "some":
        return None if (one.dim() + turn) % 2 else found
    return found


def _stepped(name: str, options: dict[str, Any], way: str, kinds: str, gradients: str, x: torch.Tensor) -> Any:
    parameters = _parameters(x, kinds)
    given = {"foreach": way == "foreach"} if way != "fused" else {"fused": True}
    optimiser = getattr(torch.optim, name)(parameters, **options, **given)
    for turn in range(2):
        for one in parameters:
            one.grad = _gradient(one, turn, gradients)
        optimiser.step()
    kept = [one for entry in parameters_and_state(optimiser) for one in entry if isinstance(one, torch.Tensor)]
    # As one row of each kind: hundreds of small answers take long to compare.
    dtypes = sorted({one.dtype for one in kept}, key=str)
    return [torch.cat([one.detach().flatten() for one in kept if one.dtype == dtype]) for dtype in dtypes]


_STEPS: dict[str, Form] = {}
for _name, _all in _OPTIONS.items():
    for _number, _options in enumerate(_all):
        for _place, _way in enumerate(("loop", "foreach", *(("fused",) if _name in ("SGD", "Adam", "AdamW") else ()))):
            if _place == (_number + len(_name)) % 2:
                continue
            _turn = _number + _place + len(_name)
            _row = (_name, _options, _way, ("alike", "mixed")[_turn % 2], ("plain", "zero", "some", "plain")[_turn % 4])
            if _way == "fused" and _row[3] == "mixed":
                _row = (*_row[:3], "alike", _row[4])
            _STEPS[f"{_name}-{_number}-{_way}"] = lambda x, row=_row: _stepped(*row, x)
_STEPS |= {
    f"{name}-{kind}-{shape}": lambda x, name=name, kind=kind, shape=shape: _stepped(
        name,
        {
            "lr": torch.full(shape, 0.5, dtype=torch.float32),
            **({"betas": (torch.full(shape, 0.5), torch.full(shape, 0.75))} if kind == "betas" else {}),
            **_EPS,
        },
        "loop",
        "alike",
        "plain",
        x,
    )
    for name, kind in (("Adam", "betas"), ("AdamW", "rate"))
    for shape in ((), (1,))
}
_LISTS: dict[str, Callable[[torch.Tensor], list[torch.Tensor]]] = {
    "plain": lambda x: [x[:3], x[3:4], x[4:10].view(2, 3)],
    "empty": lambda x: [x[:3], x[:0], x[4:10].view(2, 3)],
    "points": lambda x: [x[0], x[1:2], x[2].clone()],
    "one": lambda x: [x[5:9].view(2, 2).t()],
    "zeros": lambda x: [x[:3] * 0, x[:1] * 0],
    "mixed": lambda x: [x[:3], x[3:7].half(), x[7:9].bfloat16()],
    "infinite": lambda x: [x[:3], x[3:5] * _INF, x[5:6]],
    "nan": lambda x: [x[:3], x[3:5] * _NAN],
    "vast": lambda x: [x[:3] * 2.0**20, x[3:5]],
}


def _clipped(gradients: list[torch.Tensor], most: float, norm: float, way: bool) -> Any:
    parameters = [leaf(one.detach().clone()) for one in gradients]
    for one, gradient in zip(parameters, gradients):
        one.grad = gradient.clone()
    total = torch.nn.utils.clip_grad_norm_(parameters, most, norm, foreach=way)
    return [total, [one.grad for one in parameters]]


_CLIPPED: dict[str, Form] = {
    f"{key}-{norm}-{way}": lambda x, make=make, norm=norm, most=most, way=way: _clipped(make(x), most, norm, way)
    for place, (key, make) in enumerate(_LISTS.items())
    for number, norm in enumerate((1, 2, 2.0, 3, 0.5, _INF, -_INF, 0, "inf"))
    for most, way in (((0.5, False), (100, True)) if (place + number) % 2 else ((0, True), (2.0, False)))
    if not (key == "empty" and float(norm) in (_INF, -_INF))
    and not (key == "zeros" and float(norm) < 1)
    and not (key == "mixed" and float(norm) not in (_INF, -_INF, 0))  # a norm in half precision is rounded
}
_CLIPPED |= {
    "total": lambda x: [
        torch.nn.utils.get_total_norm(make(x), norm)
        for key, make in _LISTS.items()
        if key != "mixed"
        for norm in (1, 2, 3)
    ],
    "values": lambda x: [
        _by_value(make(x), most, way) for make in _LISTS.values() for most, way in ((0.5, True), (0, False))
    ],
    "norms": lambda x: [torch._foreach_norm(make(x), p) for make in list(_LISTS.values())[:5] for p in (0, 1, 2, 3)],
}


def _by_value(gradients: list[torch.Tensor], most: float, way: bool) -> Any:
    parameters = [leaf(one.detach().clone()) for one in gradients]
    for one, gradient in zip(parameters, gradients):
        one.grad = gradient.clone()
    torch.nn.utils.clip_grad_value_(parameters, most, foreach=way)
    return [one.grad for one in parameters]


def _unscaled(gradients: list[torch.Tensor], factor: float) -> Any:
    """Unscale lists of each kind, of rows and of columns; and say whether all was finite."""
    by_kind = {one.dtype: [each.clone() for each in gradients if each.dtype == one.dtype] for one in gradients}
    found = torch.zeros(1, device=gradients[0].device)
    inverse = torch.full((1,), factor, device=gradients[0].device)
    for each in by_kind.values():
        torch._amp_foreach_non_finite_check_and_unscale_(each, found, inverse)
    return [found, list(by_kind.values())]


_SCALED: dict[str, Form] = {
    f"{key}-{factor}-{kind}": lambda x, make=make, factor=factor, kind=kind: _unscaled(
        [one.to(getattr(torch, kind)) if kind else one for one in make(x)], factor
    )
    for key, make in _LISTS.items()
    for factor, kind in ((1.0, ""), (0.25, ""), (2.0, "float16"), (0.5, "bfloat16"), (0.0, ""))
}
_SCALED |= {
    f"update-{tracked}-{found}-{every}": lambda x, row=(tracked, found, every): _updated(x, *row)
    for tracked in (0, 1, 3)
    for found in (0.0, 1.0, 2.0)
    for every in (1, 2, 4)
}


def _updated(x: torch.Tensor, tracked: int, found: float, every: int) -> Any:
    scale = torch.full((1,), 1024.0, device=x.device)
    steps = torch.full((1,), tracked, dtype=torch.int32, device=x.device)
    for _ in range(2):
        torch._amp_update_scale_(scale, steps, torch.full((1,), found, device=x.device), 2.0, 0.25, every)
    return [scale, steps]


for _kind, _table, _fields in (
    ("steps", _STEPS, {"factor": 64.0}),
    ("clipped", _CLIPPED, {"factor": 16.0}),
    ("scaled", _SCALED, {}),
):
    add_table(
        cases,
        f"steps-met-{_kind}",
        _table,
        lambda d: (d.distinct(12) / 4 + 0.0625,),
        deterministic=False,
        since="2.8",
        **_fields,
    )


def _made(name: str, **options: Any) -> Form:
    return lambda x: getattr(torch.optim, name)([leaf(x)], **options)


add_refused(
    cases,
    "steps-met",
    lambda d: (d.normal(12),),
    {
        **{
            f"{name}-{key}-{value}": _made(name, **{key: value})
            for name in _OPTIONS
            for key, value in (("lr", -1.0), ("weight_decay", -1.0), ("eps", -1.0), ("betas", (1.0, 0.5)), ("rho", 2.0))
        },
        "nesterov": _made("SGD", lr=0.5, nesterov=True),
        "ways": _made("Adam", foreach=True, fused=True),
        "rate-many": _made("Adam", lr=torch.ones(2)),
        "betas-kinds": _made("Adam", betas=(0.5, torch.tensor(0.5))),
        "inside": lambda x: torch.optim.SGD([leaf(x) * 2], lr=1),
        "nothing": lambda x: torch.optim.SGD([], lr=1),
        **{
            f"clip-{key}-{norm}": lambda x, key=key, norm=norm: torch.nn.utils.get_total_norm(
                _LISTS[key](x), norm, error_if_nonfinite=True
            )
            for key in ("infinite", "nan")
            for norm in (1, 2, 3, _INF)
        },
        "clip-empty": lambda x: torch.nn.utils.get_total_norm(_LISTS["empty"](x), _INF),
        "unscale-whole": lambda x: torch._amp_foreach_non_finite_check_and_unscale_([x.int()], x[:1] * 0, x[:1]),
        "unscale-two": lambda x: torch._amp_foreach_non_finite_check_and_unscale_([x], x[:2], x[:1]),
        "unscale-factors": lambda x: torch._amp_foreach_non_finite_check_and_unscale_([x], x[:1], x[:2]),
    },
    since="2.8",
)
