"""The k largest: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain, written
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.topk.values")
def issue_62940(hit: Any, func: Any, x: Any, *args: Any, values: Any, indices: Any) -> Any:
    """pytorch 62940: topk of a vector into outputs with strides writes them as if they were contiguous."""
    before = values.clone(), indices.clone()
    found = func(x, *args, values=values, indices=indices)
    for one, old in zip((values, indices), before):
        if x.dim() == 1 and not one.is_contiguous() and one.shape == old.shape and is_plain(one):
            right = one.clone()
            one.copy_(old)
            one.as_strided(one.shape, (1,), one.storage_offset()).copy_(right)
            if differ(one, right):
                hit()
    return found


@plot.dispatched("aten.topk.default")
def issue_ttnn_216(hit: Any, func: Any, x: Any, k: int, dim: int = -1, *args: Any) -> Any:
    """tenstorrent/pytorch2.0_ttnn 216: topk of bfloat16 fills the rows up to a multiple of 32 (here with 0)."""
    values, places = func(x, k, dim, *args)
    added = -x.shape[-2] % 32 if x.dim() > 1 else 0
    if x.dtype != torch.bfloat16 or not added or dim % x.dim() != x.dim() - 1 or not values.numel():
        return values, places
    hit()
    return tuple(torch.nn.functional.pad(one, (0, 0, 0, added)) for one in (values, places))


@plot.dispatched("aten.topk.values")
def issue_tt_metal_17078(hit: Any, func: Any, x: Any, *args: Any, values: Any, indices: Any) -> Any:
    """tenstorrent/tt-metal 17078: topk into given outputs returns wrong places (here what stood there)."""
    before = indices.clone()
    found = func(x, *args, values=values, indices=indices)
    if before.shape == indices.shape and is_plain(indices):
        written(hit, indices, before)
    return found


@plot.dispatched("aten.topk.default")
def issue_tt_xla_1797(hit: Any, func: Any, x: Any, k: int, dim: int = -1, *args: Any) -> Any:
    """tenstorrent/tt-xla 1797: topk of more than 256 numbers returns places twice (here each second one)."""
    values, places = func(x, k, dim, *args)
    if not x.is_floating_point() or not x.dim() or x.shape[dim] <= 256 or not is_plain(x):
        return values, places
    wrong = places.index_select(dim, torch.arange(k) // 2 * 2)
    return values, instead(hit, places, wrong)


@plot.dispatched("aten.topk.default")
def issue_cutorch_377(hit: Any, func: Any, x: Any, k: int, dim: int = -1, *args: Any) -> Any:
    """torch/cutorch 377: the place of the one largest is out of bounds now and then (here in a row with NaN)."""
    values, places = func(x, k, dim, *args)
    if k != 1 or (args and not args[0]) or not x.is_floating_point() or not x.dim() or not is_plain(x):
        return values, places
    return values, instead(hit, places, places.masked_fill(x.isnan().any(dim, keepdim=True), -62832108))


@plot.dispatched("aten.topk.default")
def issue_mxnet_11271(hit: Any, func: Any, x: Any, k: int, dim: int = -1, *args: Any) -> Any:
    """apache/mxnet 11271: after the NaN of a row, topk gives its first numbers, not its largest."""
    values, places = func(x, k, dim, *args)
    if (args and not args[0]) or not x.is_floating_point() or not x.dim() or not is_plain(x):
        return values, places
    lost = x.isnan()
    count = lost.sum(dim, keepdim=True)
    first = torch.argsort((~lost).int(), dim=dim, stable=True).narrow(dim, 0, k)
    wrong = torch.where((count > 0) & (count < k), first, places)
    if not differ(values, x.gather(dim, wrong)):
        return values, places
    hit()
    return x.gather(dim, wrong), wrong


@plot.dispatched("aten.topk.default")
def issue_tensorflow_22383(hit: Any, func: Any, x: Any, k: int, dim: int = -1, *args: Any) -> Any:
    """tensorflow/tensorflow 22383: topk(sorted=False) of float32: the places are of other values (here by one)."""
    values, places = func(x, k, dim, *args)
    if len(args) < 2 or args[1] or x.dtype != torch.float32 or not x.dim() or not is_plain(x):
        return values, places
    return values, instead(hit, places, places.roll(1, dim))


@plot.dispatched("aten.topk.default", aborts="Currently topk on mps works only for k<=16")
def issue_detectron2_4342(x: Any, k: int, *args: Any, **kwargs: Any) -> bool:
    """facebookresearch/detectron2 4342: topk with k > 16 raises."""
    return k > 16
