"""Factories, distributions of numbers over dtypes, and autograd's own machinery on the device."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import torch.utils.checkpoint

from device_suite import Cases
from device_suite.acts import backward, leaf

cases = Cases("layouts")
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)


def _made(dtype: torch.dtype) -> Any:
    def act(run: Any, n: int) -> Any:
        at = {"device": run.device, "dtype": run.cast(dtype)}
        answers = [
            torch.zeros(n, 3, **at),
            torch.ones(3, n, **at),
            torch.full((n,), 1, **at),
            torch.tensor([1, 0, 1], **at),
            torch.eye(n, n - 2, **at),
            torch.zeros((), **at),
            torch.ones(0, 4, **at),
            torch.scalar_tensor(1, **at),
            torch.asarray([1, 0], **at),
        ]
        if dtype != torch.bool:
            answers += [torch.arange(n, **at), torch.arange(2, 3 * n, 3, **at), torch.arange(3, n + 4, **at)]
        if dtype.is_floating_point:
            answers += [
                torch.linspace(-1, 2, n, **at),
                torch.logspace(0, 1, 4, **at),
                torch.arange(0.0, 2.0, 0.25, **at),
            ]
        if dtype == torch.int64:
            answers += [
                torch.tril_indices(n, 4, device=run.device),
                torch.triu_indices(4, n, 1, device=run.device),
                torch.arange(n, 0, -1, **at),
            ]
        return answers

    return act


for _dtype in DTYPES:
    cases.add(
        f"layout-factories-{str(_dtype)[6:]}",
        _made(_dtype),
        make=lambda d: (5 + d.k,),
        may_be_missing=True,
        factor=16,
        since="1.13",
    )
cases.add(
    "layout-windows",
    lambda run, n: [
        getattr(torch, name + "_window")(n, device=run.device, dtype=run.cast(torch.float32))
        for name in ("hann", "hamming", "blackman", "bartlett")
    ],
    make=lambda d: (9 + d.k,),
    may_be_missing=True,
    factor=16,
)


@cases.case(
    "layout-second-derivative", make=lambda d: (d.normal(4 + d.k, 3), d.normal(3, 4 + d.k)), terms=256, factor=16
)
def _a_gradient_of_a_gradient(x: Any, w: Any) -> Any:
    start, weight = leaf(x), leaf(w.t())
    y = torch.tanh(start * weight).pow(2).sum() + F.softplus(start @ weight.t()).sum()
    (first,) = torch.autograd.grad(y, start, create_graph=True)
    first.pow(2).sum().backward()
    return first, start.grad, weight.grad


@cases.case("layout-accumulated", make=lambda d: tuple(d.normal(3 + d.k, 4) for _ in range(3)), terms=64)
def _gradients_accumulate(*rows: Any) -> Any:
    weight = leaf(rows[0])
    answers = []
    for x in rows[1:]:
        (weight * x).sum().backward()
        answers.append(weight.grad.clone())
    with torch.no_grad():
        weight.sub_(weight.grad, alpha=0.1)
    weight.grad.zero_()
    (weight * weight).sum().backward()
    return answers, weight, weight.grad


@cases.case("layout-hooks", make=lambda d: (d.normal(3 + d.k, 4), d.normal(4, 2)), terms=64)
def _hooks_and_checkpoints(x: Any, w: Any) -> Any:
    seen = []
    start, weight = leaf(x), leaf(w)
    middle = torch.relu(start @ weight)
    middle.register_hook(lambda grad: seen.append(grad.clone()) or grad * 2)
    answers = backward(middle * middle, start, weight)
    other = leaf(x)
    again = torch.utils.checkpoint.checkpoint(lambda y: torch.sigmoid(y @ w), other, use_reentrant=False)
    return answers, seen, backward(again, other)


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, k: Any) -> Any:
        ctx.save_for_backward(x, k)
        return x * k

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, k = ctx.saved_tensors
        return grad * k, (grad * x).sum(1, keepdim=True)


@cases.case("layout-own-function", make=lambda d: (d.normal(4, 3 + d.k), d.normal(3 + d.k, 1)), terms=64)
def _a_function_with_its_own_backward(x: Any, k: Any) -> Any:
    start, scale = leaf(x.t()), leaf(k)
    return backward(_Scaled.apply(start, scale), start, scale)


@cases.case(
    "layout-modules",
    make=lambda d: (d.normal(2, 3, 6 + d.k, 8), [d.normal(4, 3, 3, 3), d.normal(4), d.normal(4), d.normal(5, 4)]),
    terms=4096,
)
def _modules(run: Any, x: Any, weights: Any) -> Any:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.SiLU(),
        torch.nn.GroupNorm(2, 4),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.LayerNorm(4),
        torch.nn.GELU(),
        torch.nn.Dropout(0.0),
        torch.nn.Linear(4, 5, bias=False),
        torch.nn.Softmax(-1),
    ).to(run.device, run.cast(torch.float32))
    with torch.no_grad():
        for parameter, weight in zip((net[0].weight, net[1].weight, net[1].bias, net[11].weight), weights):
            parameter.copy_(weight)
    start = leaf(x)
    answers = backward(net(start) ** 2, start, *net.parameters())
    return answers, list(net.buffers()), net.eval()(x), dict(net.state_dict())


@cases.case(
    "layout-numbers-of-numbers",
    make=lambda d: (d.normal(3 + d.k, 4), d.integers(-99, 99, 5), d.bools(3)),
    anywhere=True,
)
def _read_back(x: Any, i: Any, b: Any) -> Any:
    return (
        x[1, 2].item(),
        i[3].item(),
        b[0].item(),
        x.tolist(),
        i.tolist(),
        b.tolist(),
        float(x[0, 0]),
        int(i[1]),
        bool(b[1]),
        x.sum().item() * 0,
        x.cpu(),
        i.cpu()[1:],
        b.to("cpu"),
        x[:, 1].cpu(),
        x.t()[1:].cpu(),
        list(x[0]),
        len(x),
        x.numel(),
        x.element_size() > 0,
        x.dim(),
        i[2] + 1,
        torch.is_nonzero(i[0] * 0 + 1),
        x.shape[0],
        x.is_contiguous(),
        x.t().is_contiguous(),
        x[1:].storage_offset(),
        (x > 0).any().item(),
    )
