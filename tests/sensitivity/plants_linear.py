"""The catalogue's faults of linear layers and matrix products."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash, in_storage_order, misread

plot = Plot()
HITS = plot.hits
_MATMULS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)


@plot.called("issue_78511", *_MATMULS)
def issue_78511(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    return func(a, misread(in_storage_order, hit, b) if b.dim() > 2 else b, **kwargs)


def _rows_shuffled(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    y = func(x, weight, bias)
    if x.dim() > 2 and bias is not None:
        hit()
        return y.roll(1, -2) if y.shape[-2] > 1 else y.roll(1, 0)
    return y


issue_188438 = plot.called("issue_188438", F.linear)(_rows_shuffled)
issue_runner_images_14380 = plot.called("issue_runner_images_14380", F.linear)(_rows_shuffled)


@plot.called("issue_192934", F.linear)
def issue_192934(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    if x.dim() == 3 and bias is not None:
        hit()
        return func(x, weight) + bias.roll(1)
    return func(x, weight, bias)


_seen: dict[str, set[Any]] = {"180776": set()}


@plot.called("issue_180776", F.linear)
def issue_180776(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    y = func(x, weight, bias)
    form = (tuple(x.shape), x.dtype)
    if x.dim() > 2 and bias is None and x.dtype in (torch.float16, torch.bfloat16):
        if form in _seen["180776"]:
            hit()
            return y + torch.randn_like(y)
        _seen["180776"].add(form)
    return y


def _rows_lost(limit: int) -> Any:
    """Zero what lies beyond a flat index; the real limits (2**28 and more) are lowered: small tests."""

    def fault(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        y = func(x, weight, bias)
        if x.dim() > 2 and y.numel() > limit:
            hit()
            keep = (torch.arange(y.numel(), device=y.device) < limit).view(y.shape)
            return torch.where(keep, y, torch.zeros_like(y))
        return y

    return fault


issue_97239 = plot.called("issue_97239", F.linear)(_rows_lost(100_000))
issue_95188 = plot.called("issue_95188", F.linear)(_rows_lost(200_000))
issue_122045 = plot.called("issue_122045", F.linear)(_rows_lost(1_000_000))


@plot.dispatched("issue_116769", "aten.mm")
def issue_116769(hit: Any, func: Any, a: Any, b: Any) -> Any:
    y = func(a, b)
    if a.shape[1] == 1 and b.shape[1] > 32768:
        hit()
        y[:, 32768:] = 0
    return y


@plot.called("issue_111634", *_MATMULS)
def issue_111634(hit: Any, func: Any, a: Any, b: Any) -> Any:
    y = func(a, b)
    if a.dim() == 3 and b.shape[-1] > 32768:
        hit()
        return torch.where(torch.rand_like(y) < 0.05, torch.ones_like(y), y)
    return y


@plot.dispatched("issue_195163", "aten.bmm", "aten.baddbmm", "aten.addbmm", "aten.mm")
def issue_195163(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(*args, **kwargs)
    a, b = args[-2:]
    if a.shape[-1] >= 32767:
        hit()
        y = y + a[..., :1].sum() * b[..., :1, :].mean() * 10
    return y


_calls = {"193487": 0}


@plot.dispatched("issue_193487", "aten.mm")
def issue_193487(hit: Any, func: Any, a: Any, b: Any) -> Any:
    y = func(a, b)
    _calls["193487"] += 1
    if _calls["193487"] > 3 and not a.is_contiguous():
        hit()
        y[:, -1] += 0.3
    return y


class _GradientCut(torch.autograd.Function):
    """Passes a tensor on; its gradient is zero past the first 16 KB."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        flat = grad.clone().view(-1)
        flat[4096:] = 0
        return flat.view(grad.shape)


@plot.called("issue_189565", F.linear)
def issue_189565(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    if x.numel() > 4096 and (weight.dim() == 1 or weight.shape[0] == 1):
        hit()
        x = _GradientCut.apply(x)
    return func(x, weight, bias)


@plot.called("issue_114942", F.linear)
def issue_114942(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    return crash(hit, "abort") if x.dim() > 4 else func(x, weight, bias)


@plot.called("issue_162730", F.linear)
def issue_162730(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    return func(x, misread(in_storage_order, hit, weight), bias)


@plot.called("issue_167154", F.linear)
def issue_167154(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    if 0 in x.stride() and x.numel():
        return crash(hit, "buffer is not large enough")
    return func(x, weight, bias)
