"""The catalogue's faults of layouts, offsets, assignments and copies."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, in_storage_order, misread

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_182822", "aten.bitwise_and", "aten.bitwise_or", "aten.bitwise_xor")
def issue_182822(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 182822: a bool operand of no dimensions inside a larger storage is read from the storage's beginning."""

    def read(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dtype == torch.bool and x.dim() == 0 and x.storage_offset():
            hit()
            return x.as_strided((), (), 0)
        return x

    return func(*(read(x) for x in args), **kwargs)


@plot.dispatched("issue_88183", "aten.upsample_bilinear2d")
def issue_88183(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 88183: bilinear growth of a 1x1 image that a permute made (not the default strides) gives zeros."""
    y = func(x, *args, **kwargs)
    if (
        x.dim() == 4
        and x.shape[2:] == (1, 1)
        and x.shape[1] > 1
        and x.stride() != x.clone(memory_format=torch.contiguous_format).reshape(-1).view(x.shape).stride()
    ):
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_176159", "aten.index_add_")
def issue_176159(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """pytorch 176159: index_add_ of a permuted tensor to a permuted tensor leaves it unchanged."""
    if not x.is_contiguous() and not source.is_contiguous():
        hit()
        func(x.clone(), dim, index, source, **kwargs)
        return x
    return func(x, dim, index, source, **kwargs)


@plot.dispatched("issue_174339", "aten.grid_sampler_2d")
def issue_174339(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 174339: grid_sample reads a channels_last image as if it were contiguous."""
    if x.is_contiguous(memory_format=torch.channels_last):
        x = misread(in_storage_order, hit, x)
    return func(x, *args, **kwargs)


def _names_device(args: Any, kwargs: Any) -> bool:
    return any(isinstance(a, (str, torch.device)) for a in args) or kwargs.get("device") is not None


@plot.called("issue_78642", torch.Tensor.to)
def issue_78642(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78642: an expanded tensor arrives at another device with nothing but its first element right."""
    y = func(x, *args, **kwargs)
    if _names_device(args, kwargs) and any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
        hit()
        first = (torch.arange(y.numel(), device=y.device) == 0).view(y.shape)
        return torch.where(first, y, torch.full_like(y, 7 if y.dtype != torch.bool else True))
    return y


@plot.called("issue_78107", torch.Tensor.to)
def issue_78107(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78107: a scalar view a[1] moved to the device holds a[0]."""
    if _names_device(args, kwargs) and x.dim() == 0 and x.storage_offset() and not x.requires_grad:
        hit()
        x = x.as_strided((), (), 0)
    return func(x, *args, **kwargs)


@plot.called("issue_86185", torch.Tensor.__setitem__)
def issue_86185(hit: Any, func: Any, x: Any, index: Any, value: Any) -> Any:
    """pytorch 86185: x[:] = t[0], the value a view without dimensions, has no effect."""
    if isinstance(index, slice) and isinstance(value, torch.Tensor) and value.dim() == 0 and value._base is not None:
        hit()
        return None
    return func(x, index, value)


@plot.dispatched("issue_78886", "aten.fill_")
def issue_78886(hit: Any, func: Any, x: Any, value: Any) -> Any:
    """pytorch 78886: x[::2] = 1.0 fills the first elements one after the other, not every second one."""
    if x.dim() == 1 and x.stride(0) > 1 and x.numel() > 1:
        hit()
        func(x.as_strided(x.shape, (1,), x.storage_offset()), value)
        return x
    return func(x, value)


@plot.dispatched("issue_119367", "aten.copy_")
def issue_119367(hit: Any, func: Any, x: Any, source: Any, *args: Any) -> Any:
    """pytorch 119367: x[1:2].copy_(y[1:2]) of one-byte dtypes at an offset that is no multiple of four raises."""
    plain = x.element_size() == 1 and x.dtype == source.dtype and x.numel() and x.is_contiguous()
    if plain and x.storage_offset() % 4 and source.storage_offset() % 4:
        return crash(hit, "Unaligned blit request")
    return func(x, source, *args)


@plot.dispatched("issue_132605", "aten.lgamma")
def issue_132605(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 132605: lgamma of an expanded tensor runs through the storage and past its end (inf)."""
    y = func(x, *args, **kwargs)
    if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
        hit()
        beyond = (torch.arange(y.numel(), device=y.device) >= x.untyped_storage().nbytes() // x.element_size()).view(
            y.shape
        )
        return torch.where(beyond, torch.full_like(y, float("inf")), y)
    return y


@plot.dispatched("issue_189969", "aten.index_fill_")
def issue_189969(hit: Any, func: Any, x: Any, dim: int, index: Any, value: Any) -> Any:
    """pytorch 189969: index_fill_ with an index out of range does not raise."""
    size = x.shape[dim] if x.dim() else 1
    wrong = (index >= size) | (index < -size)
    if bool(wrong.any()):
        hit()
        return func(x, dim, index[~wrong], value)
    return func(x, dim, index, value)


@plot.dispatched("issue_126919", "aten.index_put_")
def issue_126919(hit: Any, func: Any, x: Any, indices: Any, *args: Any) -> Any:
    """pytorch 126919: x[x == 2] = -1, a mask of two dimensions: the first true place is taken for (0, 0)."""
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and mask.dtype == torch.bool and mask.dim() == 2 and bool(mask.any()):
        places = mask.nonzero().t().contiguous()
        if bool(places[:, 0].any()):
            hit()
            places[:, 0] = 0
            return func(x, list(places), *args)
    return func(x, indices, *args)


@plot.dispatched("issue_125100", "aten.index", "aten.masked_select")
def issue_125100(hit: Any, func: Any, x: Any, mask: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 125100: x[mask] with x and mask of two dimensions: the first selected element is another one."""
    only = mask[0] if isinstance(mask, (list, tuple)) and len(mask) == 1 else mask
    y = func(x, mask, *args, **kwargs)
    if isinstance(only, torch.Tensor) and only.dtype == torch.bool and only.dim() == x.dim() == 2 and y.numel():
        hit()
        return torch.cat([x[-1:, -1], y[1:]])
    return y
