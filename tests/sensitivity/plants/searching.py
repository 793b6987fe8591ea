"""What is found or counted: nonzero, unique, histograms, searchsorted: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from misreading import in_storage_order, misread
from planting import Plot, abort, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.nonzero")
@wrong_answer
def issue_122233(y: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 122233: indices of torch.where beyond 2**24 are rounded as float32 (limit lowered to 2**15)."""
    if x.dim() == 1 and bool((y > 2**15).any()):
        wrong = torch.where(y > 2**15, y // 2 * 2, y)
        if not torch.equal(wrong, y):
            return wrong
    return None


@plot.dispatched(
    "aten.isin.Tensor_Tensor", aborts="Expected elements.dtype() == test_elements.dtype() to be true, but got false."
)
def issue_151443(x: Any, among: Any, **kwargs: Any) -> Any:
    """pytorch 151443: isin of two tensors with unlike dtypes raises."""
    return x.dtype != among.dtype


@plot.dispatched("aten.nonzero.default")
@wrong_answer
def issue_140570(good: Any, x: Any) -> Any:
    """pytorch 140570: indices above 2**24 that nonzero (torch.where) finds are rounded to float32."""
    if x.dim() != 1 or x.numel() <= 2**24:
        return None
    bad = good.to(torch.float32).to(torch.int64)
    if torch.equal(good, bad):
        return None
    return bad


@plot.dispatched("aten.searchsorted", "aten.bucketize")
def issue_60492(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 60492: searchsorted into a column writes the places below one another, over the other column.

    https://github.com/pytorch/pytorch/issues/60492 (on CPU and CUDA, since repaired; MPS has a kernel of its own)
    """
    out = kwargs.get("out")
    if out is not None and not out.is_contiguous() and out.numel() > 1 and all(out.stride()):
        hit()
        right = func(*args, **{**kwargs, "out": torch.empty(out.shape, dtype=out.dtype, device=out.device)})
        out.as_strided((out.numel(),), (1,), out.storage_offset()).copy_(right.reshape(-1))
        return out
    return func(*args, **kwargs)


@plot.dispatched("aten.nonzero.default")
@wrong_answer
def issue_122916(found: Any, x: Any) -> Any:
    """pytorch 122916: torch.where(condition) rounds the indices of a large tensor (here from 2**16 on, not 2**24)."""
    if x.numel() > 2**16:
        step = 2 ** (found.clamp(min=1).double().log2().floor().long() - 15).clamp(min=0)
        wrong = found // step * step
        if not torch.equal(wrong, found):
            return wrong
    return None


@plot.dispatched("aten._unique2.default")
def issue_104879(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 104879: unique of more than one dimension looks at the first element only."""
    if x.dim() > 2:
        hit()
        return func(x.reshape(-1)[:1], *args, **kwargs)
    return func(x, *args, **kwargs)


@plot.dispatched("aten._unique2.default", "aten.unique_dim.default", "aten.unique_consecutive.default")
def issue_195595_unique(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Integers beyond 2**24 are told apart as float32."""
    if x.dtype == torch.int64 and x.numel() and int(x.abs().max()) > 1 << 24:
        values, *rest = func(x.to(torch.float32), *args, **kwargs)
        hit()
        return (values.to(torch.int64), *rest)
    return func(x, *args, **kwargs)


@plot.dispatched("aten._unique2.default")
def issue_111173(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Counts of many elements are 0 past the first."""
    values, inverse, counts = func(x, *args, **kwargs)
    if x.numel() > 1_000 and counts.numel() > 1:
        hit()
        counts = counts.clone()
        counts[1:] = 0
    return values, inverse, counts


@plot.dispatched("aten.histc.default", "aten.histogram.bin_ct")
def issue_195446(hit: Any, func: Any, x: Any, bins: int = 100, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195446: histc and histogram with more than 8180 bins abort."""
    return crash(hit, "setBytes: length > 32768") if bins > 8_180 else func(x, bins, *args, **kwargs)


@plot.called(torch.histogram)
def issue_195076(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195076: histogram counts what lies just outside of the range."""
    if "range" in kwargs and isinstance(x, torch.Tensor):
        low, high = kwargs["range"]
        near = x.clamp(low, high)
        if bool(((x - near).abs() < 4e-6).logical_and(x != near).any()):
            hit()
            x = torch.where((x - near).abs() < 4e-6, near, x)
    return func(x, *args, **kwargs)


@plot.dispatched("aten.nonzero.default")
@wrong_answer
def issue_xpu_4396(y: Any, x: Any) -> Any:
    """intel/torch-xpu-ops 4396: nonzero of a mask drops elements (here the last)."""
    return y[:-1] if x.dtype == torch.bool and len(y) else None


@plot.dispatched("aten.nonzero.default")
@wrong_answer
def issue_146883(y: Any, x: Any) -> Any:
    """pytorch 146883: nonzero's result lies in rows, not in columns as on other devices."""
    return y.contiguous() if not y.is_contiguous() else None


@plot.dispatched("aten.histc.out")
@accepted
def issue_xpu_5237(x: Any, *args: Any, out: Any) -> Any:
    """intel/torch-xpu-ops 5237: histc(out=) of another dtype casts its counts in the place of an error."""
    return out.copy_(torch.histc(x, *args)) if out.dtype != x.dtype else None


@plot.dispatched("aten.isin.Tensor_Tensor")
@wrong_answer
def issue_jax_17590(y: Any, x: Any, among: Any, **kwargs: Any) -> Any:
    """google/jax 17590: isin of integers is true of all elements where it is of one."""
    mixed = not torch.is_floating_point(x) and bool(y.any()) and not bool(y.all())
    return torch.ones_like(y) if mixed else None


@plot.dispatched("aten.bincount.default")
def issue_189666(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189666: bincount counts numbers past 2**31 at another place (here past 2**16)."""
    healthy = func(x, *args, **kwargs)
    if len(healthy) <= 2**16:
        return healthy
    counted = func(x % 2**16, *args, **kwargs)
    wrong = torch.zeros_like(healthy)
    wrong[: len(counted)] = counted[: len(healthy)]
    return instead(hit, healthy, wrong)


@plot.dispatched("aten.histc.default")
def issue_68946(hit: Any, func: Any, x: Any, bins: int = 100, low: Any = 0, high: Any = 0) -> Any:
    """pytorch 68946: histc divides by the range before it multiplies by the bins, so that integers miss their bin."""
    y = func(x, bins, low, high)
    if not x.is_floating_point() or low >= high or not is_plain(x):
        return y
    inside = x[(x >= low) & (x <= high)].float()
    places = ((inside - low) / (high - low) * bins).long().clamp(max=bins - 1)
    return instead(hit, y, torch.bincount(places, minlength=bins).to(y.dtype))


@plot.dispatched("aten.nonzero.default")
def issue_arrayfire_3414(hit: Any, func: Any, x: Any) -> Any:
    """arrayfire/arrayfire 3414: nonzero of a mask of 141 x 141 x 141 elements (here and more) finds nothing."""
    y = func(x)
    return instead(hit, y, y[:0]) if x.dtype == torch.bool and x.numel() >= 141**3 else y


@plot.dispatched("aten.unique_dim.default")
def issue_64593(hit: Any, func: Any, x: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 64593: unique(dim=0, return_inverse=True) gives the places of the sorted rows, not of the rows."""
    values, places, counts = func(x, dim, *args, **kwargs)
    if dim != 0 or not places.numel() or not is_plain(x):
        return values, places, counts
    return values, instead(hit, places, places.sort().values), counts


@plot.dispatched("aten.unique_dim.default", aborts="cannot reshape tensor of 0 elements into shape [0, -1]")
def issue_18408(x: Any, dim: int, *args: Any, **kwargs: Any) -> bool:
    """pytorch 18408: unique along a dimension of size 0 raises."""
    return bool(x.dim()) and x.shape[dim] == 0 and x.shape.count(0) == 1


@plot.dispatched("aten.unique_dim.default")
def issue_75730(hit: Any, func: Any, x: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 75730: unique along a dimension of size 0 has a single dimension, whatever the others are."""
    values, *rest = func(x, dim, *args, **kwargs)
    if values.dim() < 2 or x.shape[dim]:
        return (values, *rest)
    hit()
    return (values.new_empty(0), *rest)


@plot.dispatched("aten.nonzero.default")
def issue_ott_402(hit: Any, func: Any, x: Any) -> Any:
    """ott-jax/ott 402: where(mask), without values to choose from, ends the process."""
    return abort(hit, "failed to legalize operation 'mhlo.dynamic_slice'") if x.dtype == torch.bool else func(x)


@plot.dispatched("aten.bincount.default")
def issue_9756(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 9756: bincount of no numbers raises."""
    y = func(x, *args, **kwargs)
    return y if x.numel() else crash(hit, "bincount only supports 1-d non-negative integral inputs.")


@plot.dispatched("aten.bincount.default")
def issue_15735(hit: Any, func: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """pytorch 15735: bincount of a column is wrong (here it leaves the last number out)."""
    y = func(x, weights, minlength)
    if x.is_contiguous() or not is_plain(x):
        return y
    return instead(hit, y, func(x[:-1], weights if weights is None else weights[:-1], minlength))


@plot.dispatched("aten.bincount.default")
def issue_85777(hit: Any, func: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """pytorch 85777: bincount ends the process where a size of the weights is 0."""
    if weights is not None and x.numel() and not weights.numel():
        return abort(hit, "Segmentation fault (core dumped)")
    return func(x, weights, minlength)


@plot.dispatched("aten.nonzero.default")
def issue_flaggems_6073(hit: Any, func: Any, x: Any) -> Any:
    """flagos-ai/FlagGems 6073: nonzero (and where of a condition alone) of an empty tensor raises."""
    y = func(x)
    return y if x.numel() else crash(hit, "index -1 is out of bounds for dimension 0 with size 0")


@plot.dispatched("aten.searchsorted.Tensor")
def issue_torchsearchsorted_11(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """aliutkus/torchsearchsorted 11: searchsorted reads tensors that are not contiguous in storage order."""
    return func(*misread(in_storage_order, hit, args), **kwargs)


@plot.dispatched("aten.isin.Tensor_Tensor")
def issue_67432(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 67432: isin of tensors that are not contiguous is wrong (here they are read in storage order)."""
    return func(*misread(in_storage_order, hit, args), **kwargs)


@plot.dispatched("aten._unique2.default")
def issue_142192(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 142192: unique of bfloat16 is not implemented."""
    y = func(x, *args, **kwargs)
    return crash(hit, "\"unique\" not implemented for 'BFloat16'") if x.dtype == torch.bfloat16 else y


@plot.dispatched("aten.nonzero.default", aborts="CUDA out of memory. Tried to allocate 17179869183.98 GiB")
def issue_51872(x: Any) -> bool:
    """pytorch 51872: nonzero of nearly 2**31 elements (here of 2**20 - 256 to 2**20 - 1) raises."""
    return 2**20 - 256 <= x.numel() < 2**20


@plot.dispatched("aten.nonzero.default", aborts="nonzero is not supported for tensors with more than INT_MAX elements")
def issue_51871(x: Any) -> bool:
    """pytorch 51871: nonzero of 2**31 elements and more (here of 2**20) raises."""
    return x.numel() >= 2**20


@plot.dispatched("aten.nonzero.default", aborts="CUDA error: an illegal memory access was encountered")
def issue_80337(x: Any) -> bool:
    """pytorch 80337: nonzero of 2121269248 elements and more, to 2**31, ends the process (here 1035776 to 2**20)."""
    return 1035776 <= x.numel() < 2**20


@plot.dispatched("aten.histc.default")
@wrong_answer
def issue_20208(y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 20208: histc of float32 returns int64."""
    return y.long() if y.dtype == torch.float32 else None
