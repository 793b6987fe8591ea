"""Regressions in optimisers: writes to parameters of any layout, in every implementation."""

from __future__ import annotations

from typing import Any

import torch

from engine import Cases
from engine.acts import leaf, parameters_and_state

cases = Cases("regressions")


def _three(d: Any) -> Any:
    return (
        d.normal(4 + d.k, 3),
        d.normal(3, 4 + d.k),
        d.uniform(0.5, 2, 3, 4 + d.k),
        d.normal(4 + d.k, 6),
        d.uniform(0.5, 2, 6, 4 + d.k),
    )


def _update(name: str, dtype: torch.dtype) -> Any:
    def act(base: Any, y: Any, z: Any, wide: Any, tall: Any) -> Any:
        view = base.t()
        getattr(view, name)(y, z, value=0.5)
        columns = wide[:, 1:4]
        getattr(columns, name)(y.t(), z.t(), value=-0.25)
        getattr(wide[:, 4], name)(y[0], tall[::2, :][0])
        return view, columns, getattr(torch, name.rstrip("_"))(view, y, z, value=2)

    return act


# https://github.com/pytorch/pytorch/issues/118115: addcdiv_/addcmul_ on a non-contiguous destination give wrong
# values or are lost
for _name in ("addcdiv_", "addcmul_"):
    for _dtype in (torch.float32, torch.float16):
        cases.add(
            f"issue-118115-{_name.strip('_')}-{str(_dtype)[6:]}",
            _update(_name, _dtype),
            issue="118115",
            terms=4,
            make=lambda d, dtype=_dtype: tuple(base.to(dtype) for base in _three(d)),
        )


def _layouts(d: Any) -> Any:
    return (
        (d.normal(8 + d.k, 6), d.normal(8 + d.k, 6), d.normal(6, 10), d.normal(5 + d.k)),
        [[d.normal(6, 8 + d.k), d.normal(8 + d.k, 6), d.normal(6, 4), d.normal(5 + d.k)] for _ in range(2)],
    )


def _train(make: Any, dense_only: bool) -> Any:
    def act(bases: Any, gradients: Any) -> Any:
        transposed, dense, wide, vector = bases
        parameters = [leaf(transposed.t()), leaf(dense), leaf(wide[:, 1:5]), leaf(vector)]
        if dense_only:  # fused kernels refuse gaps, and gradients in another layout than the parameter's
            parameters = [parameters[0], parameters[1], parameters[3]]
            gradients = [
                [torch.empty_like(p).copy_(g) for p, g in zip(parameters, (s[0], s[1], s[3]))] for s in gradients
            ]
        optimiser = make(parameters)
        for step in gradients:
            optimiser.zero_grad()
            for parameter, gradient in zip(parameters, step):
                parameter.grad = gradient if dense_only else gradient.clone()
            optimiser.step()
        return parameters_and_state(optimiser)

    return act


def _maker(name: str, **arguments: Any) -> Any:
    # Looked up at the call: a fault may replace the class or its step.
    return lambda parameters: getattr(torch.optim, name)(parameters, **arguments)


_KINDS = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def _add(issue: str, name: str, kind: str, terms: int = 16, **arguments: Any) -> None:
    cases.add(
        f"issue-{issue}-{name}-{kind}",
        _train(_maker(name, **arguments, **_KINDS[kind]), kind == "fused"),
        issue=issue,
        make=_layouts,
        terms=terms,
        since="2.4" if kind == "fused" else None,
    )


for _kind in ("loop", "foreach", "fused"):
    _add("elana-blog-2025", "AdamW", _kind, lr=0.05, weight_decay=0.1, betas=(0.75, 0.875))
# https://github.com/pytorch/pytorch/issues/77988: x.add_(-lr*grad) wrong on mps
for _kind in ("loop", "foreach"):
    _add("77988", "SGD", _kind, lr=0.1, momentum=0.9)
_add("77988", "SGD", "fused", lr=0.1, momentum=0.9, weight_decay=0.01)


@cases.case(
    "issue-elana-blog-2025-moves",
    issue="elana-blog-2025",
    make=lambda d: (d.normal(16 + d.k, 8), d.normal(4, 16 + d.k)),
    terms=64,
)
def _weights_of_a_transposed_layer_move(w: Any, x: Any) -> Any:
    parameter = torch.nn.Parameter(w.t())
    optimiser = torch.optim.AdamW([parameter], lr=0.1)
    before = parameter.detach().clone()
    for _ in range(3):
        optimiser.zero_grad()
        (torch.matmul(x, parameter.t()) ** 2).mean().backward()
        optimiser.step()
    return parameter, bool((parameter.detach() != before).all()), parameters_and_state(optimiser)


@cases.case("issue-77988", issue="77988", make=lambda d: (d.normal(100 + d.k, 100), d.normal(100 + d.k, 100)), terms=64)
def _a_step_by_hand(w: Any, x: Any) -> Any:
    weight = leaf(w)
    (weight * x).sum().backward()
    with torch.no_grad():
        weight.add_(-0.1 * weight.grad)
        weight.add_(weight.grad, alpha=-0.5)
        weight.sub_(weight.grad * 0.25)
        weight -= 0.125 * weight.grad
    return weight, weight.grad


@cases.case("issue-77988-numpy", issue="77988", make=lambda d: d.normal(10 + d.k, 10))
def _a_leaf_from_numpy(run: Any, w: Any) -> Any:
    try:
        weight = leaf(torch.from_numpy(w.cpu().numpy().copy()).to(run.device))
    except (RuntimeError, ImportError):  # torch without numpy
        weight = leaf(w.clone())
    with torch.no_grad():
        weight.add_(-0.1 * w)
    return weight


def _scaled(name: str) -> Any:
    def act(run: Any, w: Any, gradient: Any) -> Any:
        answers = []
        for found, scale in ((1.0, 1.0), (0.0, 4.0)):
            parameter = leaf(w.clone())
            optimiser = getattr(torch.optim, name)([parameter], lr=0.1, fused=True)
            parameter.grad = gradient.clone()
            optimiser.found_inf = torch.tensor(found, device=run.device)
            optimiser.grad_scale = torch.tensor(scale, device=run.device)
            optimiser.step()
            answers.append(parameter)
        return answers

    return act


# https://github.com/pytorch/pytorch/issues/186360: fused Adam ignores grad_scale and found_inf (GradScaler)
for _name in ("Adam", "AdamW", "SGD"):
    cases.add(
        f"issue-186360-{_name}",
        _scaled(_name),
        issue="186360",
        make=lambda d: (d.normal(3 + d.k, 4), d.normal(3 + d.k, 4)),
        terms=16,
        since="2.4",
    )


@cases.check("issue-186360-scaler", issue="186360", since="2.4")
def _a_scaler_skips_an_infinite_gradient(bench: Any) -> None:
    host = bench.draw("issue-186360-scaler").normal(4, 3)
    with bench.device_run() as run:
        parameter = leaf(run.bring(host.clone()))
        optimiser = torch.optim.AdamW([parameter], lr=0.1)
        scaler = torch.amp.GradScaler(run.device.type, init_scale=8.0)
        scaler.scale((parameter * float("inf")).sum()).backward()
        scaler.step(optimiser)
        scaler.update()
        backed_off = scaler.get_scale()
        kept = parameter.detach().cpu().clone()
        optimiser.zero_grad()
        scaler.scale((parameter * 2).sum()).backward()
        scaler.unscale_(optimiser)
        unscaled = parameter.grad.cpu().clone()
        scaler.step(optimiser)
        scaler.update()
        moved = parameter.detach().cpu().clone()
    assert torch.equal(kept, host), "a step with an infinite gradient was not skipped"
    assert backed_off == 4.0, f"the scale after an infinite gradient is {backed_off}, expected 4"
    assert bool((unscaled == 2).all()), "the unscaled gradients are wrong"
    assert scaler.get_scale() == 4.0, "the scale moved without need"
    want = host * (1 - 0.1 * 0.01) - 0.1  # AdamW's first step is the sign of the gradient
    assert float((moved - want).abs().max()) < 1e-4, "the step after a skipped one is wrong"


# https://github.com/pytorch/pytorch/issues/149184: Making an optimiser under torch.set_default_device raises
@cases.check("issue-149184", issue="149184", since="2.1")
def _an_optimiser_is_made_under_a_default_device(bench: Any) -> None:
    host = bench.draw("issue-149184").normal(4, 3)
    with bench.device_run() as run:
        parameter = leaf(run.bring(host.clone()))
        torch.set_default_device(run.device)
        try:
            optimiser = torch.optim.Adam([parameter], lr=0.1)
            parameter.square().sum().backward()
            optimiser.step()
        finally:
            torch.set_default_device(None)  # with "cpu", what comes after would get it
        moved = parameter.detach().cpu()
    assert float((moved - (host - 0.1 * host.sign())).abs().max()) < 1e-4, "Adam's first step is the gradient's sign"
