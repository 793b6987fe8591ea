"""Layouts of parameters under every optimiser, in each implementation, with what they keep compared too."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.acts import leaf, parameters_and_state
from device_suite.layouts import LAYOUTS

cases = Cases("layouts")
SHAPES = ((5, 7), (7,), (2, 3, 4, 5), ())


def _make(layout: str) -> Any:
    def make(d: Any) -> Any:
        shapes = [tuple(side + d.k for side in shape) for shape in SHAPES]
        bases = [d.normal(*LAYOUTS[layout].base(shape)) for shape in shapes]
        # Plain and strided gradients: autograd gives the parameter's layout, hooks and clipping may not.
        steps = [
            [d.normal(*(base.shape if turn == 1 else shape)) for base, shape in zip(bases, shapes)] for turn in range(3)
        ]
        return bases, steps, [list(shape) for shape in shapes]

    return make


def _steps(name: str, layout: str, options: dict[str, Any]) -> Any:
    cut = LAYOUTS[layout].cut

    def act(bases: Any, steps: Any, shapes: Any) -> Any:
        if options.get("fused"):  # a column of a table is not dense: fused kernels refuse it
            kept = [
                place for place, shape in enumerate(shapes) if layout in ("contiguous", "offset") or len(shape) != 1
            ]
            bases, shapes = [bases[place] for place in kept], [shapes[place] for place in kept]
            steps = [[gradients[place] for place in kept] for gradients in steps]
        parameters = [leaf(cut(base, tuple(shape))) for base, shape in zip(bases, shapes)]
        optimiser = getattr(torch.optim, name)(parameters, **options)
        for turn, gradients in enumerate(steps):
            optimiser.zero_grad()
            for parameter, gradient, shape in zip(parameters, gradients, shapes):
                given = cut(gradient, tuple(shape)) if turn == 1 else gradient
                # Fused kernels take gradients in the parameter's own layout only.
                parameter.grad = torch.empty_like(parameter).copy_(given) if options.get("fused") else given
            optimiser.step()
        return parameters_and_state(optimiser)

    return act


# Betas are exact in binary: kernels that compute 1 - beta in float32 are not wrong.
# eps is large: with the usual 1e-8 a gradient near zero makes the step depend on its rounding.
_OPTIMISERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01},
    "Adam": {"lr": 0.05, "betas": (0.75, 0.875), "eps": 1e-3, "amsgrad": True},
    "AdamW": {"lr": 0.05, "betas": (0.75, 0.875), "eps": 1e-3, "weight_decay": 0.1},
    "NAdam": {"lr": 0.05, "eps": 1e-3},
    "RAdam": {"lr": 0.05, "eps": 1e-3},
    "Adamax": {"lr": 0.05, "eps": 1e-3},
    "Adagrad": {"lr": 0.05, "eps": 1e-3},
    "Adadelta": {"lr": 0.5, "eps": 1e-3},
    "RMSprop": {"lr": 0.01, "eps": 1e-3, "momentum": 0.5, "centered": True},
    "ASGD": {"lr": 0.05},
    "Rprop": {"lr": 0.05},
}
_FUSED = ("SGD", "Adam", "AdamW", "Adagrad")

for _name, _options in _OPTIMISERS.items():
    for _layout in ("contiguous", "transposed", "offset", "step2", "channels_last"):
        for _kind, _more in (("loop", {"foreach": False}), ("foreach", {"foreach": True}), ("fused", {"fused": True})):
            if _kind == "fused" and (_name not in _FUSED or _layout == "step2"):  # not dense: refused
                continue
            if _kind != "fused" and _layout in ("offset", "channels_last") and _name not in ("SGD", "Adam", "AdamW"):
                continue
            cases.add(
                f"layout-{_name}-{_kind}-{_layout}",
                _steps(_name, _layout, {**_options, **_more}),
                make=_make(_layout),
                terms=64,
                since="2.4" if _kind == "fused" else "1.12",
                states=("fresh", "polluted"),
                devices=("cpu",) if _kind == "fused" and _name == "Adagrad" else (),
            )


@cases.case(
    "layout-clipping",
    make=lambda d: ([d.normal(5 + d.k, 7), d.normal(9)], [d.normal(7, 5 + d.k), d.normal(9)]),
    terms=256,
)
def _gradients_are_clipped(bases: Any, gradients: Any) -> Any:
    answers = []
    for limit, kind in ((1.0, 2.0), (0.5, float("inf")), (100.0, 2.0)):
        parameters = [leaf(base.clone()) for base in bases]
        parameters[0].grad = gradients[0].t().clone()
        parameters[1].grad = gradients[1].clone()
        total = torch.nn.utils.clip_grad_norm_(parameters, limit, norm_type=kind)
        answers.append((total, [parameter.grad for parameter in parameters]))
    parameters[0].grad = gradients[0].t()
    torch.nn.utils.clip_grad_value_(parameters, 0.3)
    return answers, [parameter.grad for parameter in parameters], torch.nn.utils.parameters_to_vector(parameters)


@cases.case(
    "layout-lbfgs",
    make=lambda d: (d.normal(7, 5 + d.k), d.normal(7, 5 + d.k)),
    terms=10_000,
    states=("fresh", "polluted"),
)
def _second_order(base: Any, target: Any) -> Any:
    parameter = leaf(base)
    optimiser = torch.optim.LBFGS([parameter], lr=0.1, max_iter=3)

    def closure() -> Any:
        optimiser.zero_grad()
        loss = ((parameter - target) ** 2).sum()
        loss.backward()
        return loss

    return optimiser.step(closure), parameter


def _groups(name: str, options: dict[str, Any]) -> Any:
    """Two groups, a rate that changes, a parameter without a gradient, a state that is saved and loaded."""

    def act(bases: Any, steps: Any) -> Any:
        parameters = [leaf(bases[0].t()), leaf(bases[1]), leaf(bases[2]), leaf(bases[3])]
        groups = [{"params": parameters[:2]}, {"params": parameters[2:], "lr": 0.2, "weight_decay": 0.3}]
        optimiser = getattr(torch.optim, name)(groups, lr=0.05, weight_decay=0.01, **options)
        scheduler = torch.optim.lr_scheduler.StepLR(optimiser, 1, gamma=0.5)
        for turn, gradients in enumerate(steps):
            optimiser.zero_grad(set_to_none=turn != 1)
            for parameter, gradient in zip(parameters[:3], gradients):
                parameter.grad = torch.empty_like(parameter).copy_(gradient)
            optimiser.step()
            scheduler.step()
            if turn == 1:
                other = getattr(torch.optim, name)(groups, lr=9.0, **options)
                other.load_state_dict(optimiser.state_dict())
                optimiser, scheduler = other, torch.optim.lr_scheduler.StepLR(other, 1, gamma=0.25)
        return parameters_and_state(optimiser), [group["lr"] for group in optimiser.param_groups]

    return act


for _name, _options in {
    "SGD": {"momentum": 0.5},
    "Adam": {"betas": (0.75, 0.875)},
    "AdamW": {"betas": (0.75, 0.875)},
}.items():
    for _kind, _more in (("loop", {"foreach": False}), ("foreach", {"foreach": True}), ("fused", {"fused": True})):
        cases.add(
            f"layout-groups-{_name}-{_kind}",
            _groups(_name, {**_options, **_more}),
            make=lambda d: (
                [d.normal(7, 5 + d.k), d.normal(5, 3), d.normal(9), d.normal(2)],
                [[d.normal(5 + d.k, 7), d.normal(5, 3), d.normal(9)] for _ in range(4)],
            ),
            terms=256,
            since="2.4" if _kind == "fused" else None,
        )
