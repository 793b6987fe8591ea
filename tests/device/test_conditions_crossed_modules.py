"""Conditions of modules and copies: one shape with other options, masks, leaves, scalers, sources that are gone."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf
from device_suite.answers import attempt

cases = Cases("conditions")
ONCE = ("fresh",)


# The same shape with other options in one process: what is kept by shape must be kept by options too.
_MODULES: dict[str, tuple[Any, tuple[int, ...], str]] = {
    "Linear": (lambda on: torch.nn.Linear(6, 4, bias=on), (3, 6), "bias"),
    "Conv1d": (lambda on: torch.nn.Conv1d(4, 6, 3, bias=on), (2, 4, 9), "bias"),
    "Conv2d": (lambda on: torch.nn.Conv2d(4, 6, 3, bias=on), (2, 4, 7, 6), "bias"),
    "ConvTranspose2d": (lambda on: torch.nn.ConvTranspose2d(4, 6, 3, bias=on), (2, 4, 5, 4), "bias"),
    "LayerNorm": (lambda on: torch.nn.LayerNorm(6, elementwise_affine=on), (3, 6), "affine"),
    "BatchNorm1d": (lambda on: torch.nn.BatchNorm1d(6, affine=on), (9, 6), "affine"),
    "GroupNorm": (lambda on: torch.nn.GroupNorm(2, 6, affine=on), (3, 6, 5), "affine"),
    "LSTM": (lambda on: torch.nn.LSTM(6, 4, 2, bias=on), (5, 3, 6), "bias"),
    "GRU": (lambda on: torch.nn.GRU(6, 4, 2, bias=on), (5, 3, 6), "bias"),
    "RNN": (lambda on: torch.nn.RNN(6, 4, 2, bias=on), (5, 3, 6), "bias"),
    "LSTM-first": (lambda on: torch.nn.LSTM(6, 4, 2, batch_first=on), (5, 5, 6), "batch_first"),
    "Bilinear": (lambda on: torch.nn.Bilinear(6, 6, 4, bias=on), (3, 6), "bias"),
}


def _switched(build: Any, run: Any, x: Any, weights: Any) -> Any:
    found = []
    for on in (False, True, False, True):
        module = build(on).to(run.device, run.cast(torch.float32))
        with torch.no_grad():
            for number, parameter in enumerate(module.parameters()):
                count = parameter.numel()
                parameter.copy_(weights[number * 7 : number * 7 + count].view(parameter.shape))
        start = leaf(x)
        answer = module(start, start) if isinstance(module, torch.nn.Bilinear) else module(start)
        answer = answer[0] if isinstance(answer, tuple) else answer
        (answer * answer).sum().backward()
        found.append([answer, start.grad, *(parameter.grad for parameter in module.parameters())])
    return found


for _name, (_build, _shape, _option) in _MODULES.items():
    cases.add(
        f"condition-crossed-option-{_name}-{_option}",
        lambda run, x, weights, build=_build: _switched(build, run, x, weights),
        make=lambda d, shape=_shape: (d.normal(*shape), d.normal(600) / 4),
        terms=256,
        floor=1.0,
        states=ONCE,
    )


# Dropout between layers: other masks in each call, the same after the same seed.
def _masks(kind: str) -> Any:
    def check(bench: Any) -> None:
        module = getattr(torch.nn, kind)(8, 8, num_layers=2, dropout=0.5)
        x = bench.draw(f"masks-{kind}").normal(7, 3, 8)
        run = bench.device_run()
        with run:
            module, x = module.to(run.device), x.to(run.device)
            answers = []
            for seed in (5, None, None, 5):
                if seed is not None:
                    run.seed(seed)
                answers.append(module(x)[0].detach().cpu().clone())
        assert not torch.equal(answers[0], answers[1]), f"{kind}: two calls dropped the same elements"
        assert not torch.equal(answers[1], answers[2]), f"{kind}: two calls dropped the same elements"
        if run.device.type != "cuda":  # cuDNN keeps a state of its own for them
            assert torch.equal(answers[0], answers[3]), f"{kind}: the seed does not tell which elements are dropped"

    return check


for _name in ("LSTM", "GRU", "RNN"):
    cases.add(f"condition-crossed-masks-{_name}", _masks(_name), check=True, since="2.0")


# What an in-place operator leaves of a leaf.
def _kept_flags(x: Any, y: Any) -> Any:
    forms = {
        "add": lambda p: p.add_(y, alpha=0),
        "sub": lambda p: p.sub_(y, alpha=0),
        "added": lambda p: p.add_(y),
        "mul": lambda p: p.mul_(0),
        "copy": lambda p: p.copy_(y),
        "zero": lambda p: p.zero_(),
        "fill": lambda p: p.fill_(2.0),
        "addcmul": lambda p: p.addcmul_(y, y, value=0),
        "lerp": lambda p: p.lerp_(y, 0.0),
        "clamp": lambda p: p.clamp_(-1, 1),
        "masked": lambda p: p.masked_fill_(y > 0, 0.0),
        "normal": lambda p: p.normal_().mul_(0),
    }
    found = {}
    for name, form in forms.items():
        parameter = leaf(x.clone())
        with torch.no_grad():
            returned = form(parameter)
        found[name] = [parameter, parameter.requires_grad, parameter.is_leaf, returned is parameter]
    return found


cases.add(
    "condition-crossed-leaf-flags",
    _kept_flags,
    make=lambda d: (d.normal(3, 4 + d.k), d.normal(3, 4 + d.k)),
    states=ONCE,
)


# The last offset ends the last bag, before the indices end too. Only sums, by hand: the CPU (2.13) ignores it in
# float64, in means and in maxima, and its gradient is of memory that was not written.
def _last_offset(bench: Any) -> None:
    draw = bench.draw("last-offset")
    weight, indices, offsets = draw.integers(-9, 10, 9, 4).float(), draw.permutation(9)[:8], torch.tensor([0, 3, 3, 5])
    bags = [indices[:3], indices[:0], indices[3:5]]
    for whole in (torch.int64, torch.int32):
        with bench.device_run() as run:
            rows, *given = (x.to(run.device) for x in (weight.clone(), indices.to(whole), offsets.to(whole)))
            got = F.embedding_bag(given[0], rows, given[1], mode="sum", include_last_offset=True).cpu().clone()
        assert torch.equal(got, torch.stack([weight[bag].sum(0) for bag in bags])), f"{whole}: {got.tolist()}"


cases.add("condition-crossed-last-offset", _last_offset, check=True, since="2.0", may_be_missing=True)


# Copies that need not wait: their sources are gone when the copies are read.
def _short_lived(bench: Any) -> None:
    for dtype in (torch.float32, torch.int64, torch.float16):
        for count in (1, 7, 4099):
            with bench.device_run() as run:
                there = [torch.full((count,), i, dtype=dtype).to(run.device, non_blocking=True) for i in range(12)]
                sums = [x.sum() for x in there]
                back = [(x + 1).to("cpu", non_blocking=True) for x in there]
                bench.synchronise()
                read = [[x.cpu().clone(), y.cpu().clone(), z.clone()] for x, y, z in zip(there, sums, back)]
            for i, (x, y, z) in enumerate(read):
                right = bool((x == i).all()) and float(y) in (i * count, float(torch.tensor(i * count).to(dtype)))
                assert right, f"copy {i} of {count} {dtype} to the device holds {x.flatten()[:3].tolist()}"
                assert bool((z == i + 1).all()), (
                    f"copy {i} of {count} {dtype} to the host holds {z.flatten()[:3].tolist()}"
                )


cases.add("condition-crossed-short-lived-sources", _short_lived, check=True, since="2.0")


# What a gradient scaler tells a fused optimiser.
def _told(run: Any, name: str, inf: float, scale: float, p: Any, g: Any) -> Any:
    parameter = leaf(p)
    optimiser: Any = getattr(torch.optim, name)([parameter], lr=0.125, fused=True)
    for turn in range(2):
        parameter.grad = g * (turn + 1)
        optimiser.found_inf = torch.full((), inf if turn else 0.0, device=run.device)
        optimiser.grad_scale = torch.full((), scale, device=run.device)
        optimiser.step()
    return parameter


for _name in ("SGD", "Adam", "AdamW"):
    for _inf, _scale in ((1.0, 1.0), (0.0, 4.0)):
        cases.add(
            f"condition-crossed-scaler-{_name}-{_inf:g}-{_scale:g}",
            lambda run, p, g, name=_name, inf=_inf, scale=_scale: attempt(lambda: _told(run, name, inf, scale, p, g)),
            make=lambda d: (d.normal(5 + d.k, 7), d.normal(5 + d.k, 7)),
            terms=64,
            since="2.4",
            states=ONCE,
        )
