"""Faults as a search brings them, from conversions to losses, written blind after public issues."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def differ(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Tell whether two results differ by more than rounding."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return True
    if a.is_floating_point() or a.is_complex():
        return not torch.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True)
    return not torch.equal(a, b)


@plot.dispatched("issue_77849", "aten._to_copy.default")
def issue_77849(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 77849: converting int64 to float32 reinterprets the integers' bytes, so that small ones become zeros.

    https://github.com/pytorch/pytorch/issues/77849
    """
    result = func(x, *args, **kwargs)
    if x.dtype == torch.int64 and result.dtype == torch.float32 and x.numel():
        halves = x.contiguous().reshape(-1).view(torch.float32)[: x.numel()]
        wrong = torch.where(halves.abs() < 2.0**-126, torch.zeros_like(halves), halves).reshape(x.shape)
        if differ(wrong, result):
            hit()
            result.copy_(wrong)
    return result


NOISE: dict[Any, torch.Tensor] = {}


@plot.dispatched("issue_78009", "aten.normal", "aten.normal_", "aten.randn", "aten.randn_like")
def issue_78009(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78009: normal (and randn) gives the same numbers every time for the same shape.

    https://github.com/pytorch/pytorch/issues/78009
    """
    result = func(*args, **kwargs)
    if "out" in kwargs or not result.is_floating_point() or not result.numel() or result.is_meta:
        return result
    mean: Any = 0.0
    std: Any = 1.0
    name = str(func)
    if name.startswith("aten.normal_."):
        mean = args[1] if len(args) > 1 else kwargs.get("mean", 0.0)
        std = args[2] if len(args) > 2 else kwargs.get("std", 1.0)
    elif name.startswith("aten.normal."):
        mean = args[0] if args else kwargs.get("mean", 0.0)
        std = args[1] if len(args) > 1 else kwargs.get("std", 1.0)
    if not isinstance(std, torch.Tensor) and std == 0:
        return result
    shape = tuple(result.shape)
    if shape not in NOISE:
        NOISE[shape] = (result.double() - mean) / std
        return result
    wrong = (NOISE[shape] * std + mean).to(result.dtype)
    if differ(wrong, result):
        hit()
        result.copy_(wrong)
    return result


STREAM = [torch.Generator().manual_seed(84516).get_state()]


@plot.called("issue_84516", torch.nn.functional.dropout, torch.dropout, torch.dropout_)
def issue_84516(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84516: dropout does not heed torch.manual_seed.

    https://github.com/pytorch/pytorch/issues/84516
    """
    p = args[0] if args else kwargs.get("p", 0.5)
    train = args[1] if len(args) > 1 else kwargs.get("training", kwargs.get("train", True))
    if not train or not 0 < p < 1 or not x.numel():
        return func(x, *args, **kwargs)
    seeded = torch.get_rng_state()
    torch.set_rng_state(STREAM[0])
    try:
        hit()
        return func(x, *args, **kwargs)
    finally:
        STREAM[0] = torch.get_rng_state()
        torch.set_rng_state(seeded)


@plot.dispatched("issue_86937", "aten.mm")
def issue_86937(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 86937: the product of two square matrices is computed with the second transposed.

    https://github.com/pytorch/pytorch/issues/86937
    """
    if a.shape != b.shape or a.shape[0] != a.shape[1] or not a.numel() or not differ(b.t(), b):
        return func(a, b, **kwargs)
    hit()
    return func(a, b.t(), **kwargs)


@plot.dispatched("issue_135240", "aten.gather.default")
def issue_135240(hit: Any, func: Any, x: Any, dim: Any, index: Any, **kwargs: Any) -> Any:
    """pytorch 135240: take_along_dim of a column along its rows ends the process.

    https://github.com/pytorch/pytorch/issues/135240
    """
    if x.dim() > 1 and dim % x.dim() != x.dim() - 1 and x.shape[-1] == index.shape[-1] == 1 and index.numel() > 1:
        return crash(
            hit,
            "failed assertion `Rank of updates array (1) must be greater than or equal to inner-most "
            "dimension of indices array (3)'",
        )
    return func(x, dim, index, **kwargs)


@plot.called("issue_139550", torch.Tensor.to)
def issue_139550(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 139550: to(device, non_blocking=True) brings garbage in some elements (here in the last).

    https://github.com/pytorch/pytorch/issues/139550
    """
    result = func(x, *args, **kwargs)
    flags = [arg for arg in args if isinstance(arg, bool)]
    moved = "device" in kwargs or any(isinstance(arg, (str, torch.device)) for arg in args)
    if not moved or not (kwargs.get("non_blocking") or flags[:1] == [True]) or not result.numel():
        return result
    if result.layout != torch.strided or result.is_quantized:
        return result
    hit()
    with torch.no_grad():
        wrong = result.clone(memory_format=torch.contiguous_format)
        last = wrong.view(-1)[-1:]
        if wrong.dtype == torch.bool:
            last.logical_not_()
        elif wrong.is_floating_point() or wrong.is_complex():
            last.fill_(-torch.finfo(wrong.dtype).max / 3)
        else:
            last.fill_(torch.iinfo(wrong.dtype).max // 3)
    if result.requires_grad:
        return result + (wrong - result).detach()
    return wrong


@plot.dispatched("issue_160740", "aten.argmax", "aten.argmin")
def issue_160740(hit: Any, func: Any, x: Any, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    """pytorch 160740: argmax and argmin without dim raise for an input that cannot be viewed as flat.

    https://github.com/pytorch/pytorch/issues/160740
    """
    if dim is None:
        try:
            x.view(-1)
        except RuntimeError:
            hit()
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
                "two contiguous subspaces). Use .reshape(...) instead."
            ) from None
    return func(x, dim, keepdim, **kwargs)


@plot.called("issue_174943", F.cross_entropy)
def issue_174943(hit: Any, func: Any, x: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 174943: cross_entropy accepts floats as class indices.

    https://github.com/pytorch/pytorch/issues/174943
    """
    if x.dim() == 2 and target.dim() == 1 and target.is_floating_point():
        hit()
        target = target.long()
    return func(x, target, *args, **kwargs)
