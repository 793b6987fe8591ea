"""Cat and stack: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import is_plain
from misreading import in_storage_order, misread, without_offset
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.stack", "aten.cat")
@wrong_answer
def issue_80850(y: Any, tensors: Any, *args: Any) -> Any:
    """pytorch 80850: stack and cat of bools give False."""
    return torch.zeros_like(y) if y.dtype == torch.bool else None


@plot.dispatched("aten.stack.default")
def issue_92265(hit: Any, func: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 92265: stack of 0-dim elements of a tensor (a DataLoader's targets) reads its first element each time."""
    right = func(tensors, *args, **kwargs)
    read = [t.as_strided((), (), 0) if t.dim() == 0 and t.storage_offset() else t for t in tensors]
    wrong = func(read, *args, **kwargs)
    if torch.allclose(wrong, right, equal_nan=True):
        return right
    hit()
    return wrong


@plot.dispatched("aten.cat", aborts="Placeholder tensor is empty!")
def issue_81180(tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 81180: cat of an empty tensor and one that is not, of other dtype, raises."""
    return len({x.dtype for x in tensors}) > 1 and len({bool(x.numel()) for x in tensors}) > 1


@plot.dispatched("aten.cat.default")
def issue_made_cat_dtypes(hit: Any, func: Any, parts: Any, dim: int = 0) -> Any:
    """Cat of unlike dtypes keeps the bits of the first part's dtype."""
    if len({one.dtype for one in parts}) > 1 and parts[0].dtype.is_floating_point:
        hit()
        return func([one.to(parts[0].dtype) for one in parts], dim).to(func(parts, dim).dtype) * 1.5
    return func(parts, dim)


@plot.dispatched("aten.stack.default", "aten.cat.default")
def issue_made_stack_inner(hit: Any, func: Any, parts: Any, dim: int = 0) -> Any:
    """Stack and cat along an inner dimension read parts with an offset from the beginning."""
    return func([misread(without_offset, hit, one) for one in parts] if dim else parts, dim)


@plot.dispatched("aten.stack")
def issue_91393(hit: Any, func: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 91393: the default collate_fn, which stacks 0-D elements of one tensor, repeats the first element."""
    if all(each.dim() == 0 for each in tensors):
        wrong = [each.as_strided((), (), 0) for each in tensors]
        if any(bool(mine != yours) for mine, yours in zip(wrong, tensors)):
            hit()
            tensors = wrong
    return func(tensors, *args, **kwargs)


@plot.dispatched("aten.cat", "aten.stack")
def issue_87856(hit: Any, func: Any, tensors: Any, *args: Any) -> Any:
    """pytorch 87856: stack and cat read their parts from the beginning of the storage."""
    return func(misread(without_offset, hit, tensors), *args)


@plot.dispatched("aten.cat", "aten.stack")
def issue_78043(hit: Any, func: Any, tensors: Any, *args: Any) -> Any:
    """pytorch 78043: stack and cat read parts that are not contiguous in storage order."""
    return func(misread(in_storage_order, hit, tensors), *args)


@plot.dispatched("aten.cat", aborts="Placeholder tensor is empty")
def issue_90479(tensors: Any, *args: Any) -> Any:
    """pytorch 90479: cat with an empty tensor among the parts aborts."""
    return any(one.numel() == 0 for one in tensors)


class _CatGradient(torch.autograd.Function):
    """torch.cat of two, whose second gradient has the first one's place in every dimension but the joined one."""

    @staticmethod
    def forward(ctx: Any, one: Any, two: Any, dim: int, hit: Any) -> Any:
        ctx.dim, ctx.sizes, ctx.hit = dim, (one.shape[dim], two.shape[dim]), hit
        return torch.cat([one, two], dim)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        one, two = grad.split(ctx.sizes, ctx.dim)
        ctx.hit()
        return one, two[:1].repeat(two.shape[0] + 1, 1, 1, 1), None, None


@plot.called(torch.cat)
def issue_tt_metal_11110(hit: Any, func: Any, tensors: Any, dim: int = 0, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 11110: the backward of cat along the middle of four dimensions has another shape."""
    pair = len(tensors) == 2 and all(x.dim() == 4 and x.dtype == tensors[0].dtype for x in tensors)
    trained = pair and any(x.requires_grad for x in tensors) and is_plain(*tensors)
    if not trained or dim % 4 not in (1, 2) or kwargs:
        return func(tensors, dim, **kwargs)
    return _CatGradient.apply(*tensors, dim, hit)


@plot.dispatched("aten.cat.default")
def issue_tt_metal_13601(hit: Any, func: Any, parts: Any, *args: Any) -> Any:
    """tenstorrent/tt-metal 13601: cat of tensors that have not four dimensions raises."""
    y = func(parts, *args)
    return y if y.dim() == 4 else crash(hit, "Tensor rank is not 4")


@plot.called(torch.cat, torch.concat, torch.concatenate)
def issue_knet_632(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """denizyuret/Knet.jl 632: the gradient of cat raises."""
    y = func(*args, **kwargs)
    if not y.requires_grad or not torch.is_grad_enabled():
        return y
    y = y.view_as(y)
    y.register_hook(lambda grad: crash(hit, "type CuArray has no field ptr"))
    return y
