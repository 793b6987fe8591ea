"""Views, copies of views, and the data of a tensor: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from misreading import in_storage_order, is_dense, with_gradient
from planting import Plot, abort, accepted, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.select.int")
def issue_habana_961(hit: Any, func: Any, x: Any, dim: int, index: int) -> Any:
    """huggingface/optimum-habana 961: x[i] of a vector of int64 is x[2 * i], and 0 past the end."""
    y = func(x, dim, index)
    if x.dim() != 1 or x.dtype != torch.int64 or not is_plain(x):
        return y
    place = 2 * (index % len(x))
    return instead(hit, y, func(x, dim, place) if place < len(x) else torch.zeros_like(y))


@plot.dispatched("aten.as_strided.default", aborts="Lowering not implemented for node: u8 aten::as_strided")
def issue_xla_2644(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch/xla 2644: as_strided of uint8 raises."""
    return x.dtype == torch.uint8


_set_data = torch.Tensor.data.__set__  # type: ignore[attr-defined]


@plot.called(_set_data)
def issue_xla_3392(hit: Any, func: Any, x: Any, value: Any) -> Any:
    """pytorch/xla 3392: x.data = other numbers changes the views that were made of x before."""
    like = value.layout == x.layout == torch.strided and value.shape == x.shape and value.dtype == x.dtype
    # Two holders are the tensor and the object that asks; a third is another tensor on the same memory.
    if not like or not is_plain(x, value) or torch._C._storage_Use_Count(x.untyped_storage()._cdata) < 3:
        return func(x, value)
    with torch.no_grad():
        instead(hit, x.detach(), value)
        x.detach().copy_(value)
    return func(x, x.detach())


@plot.called(_set_data, aborts="the new data has another shape")
def issue_xla_3330(x: Any, value: Any) -> bool:
    """pytorch/xla 3330: x.data = a tensor of another shape raises."""
    return x.shape != value.shape


@plot.called(torch.Tensor.contiguous)
def issue_odyssey_3391(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """HomericIntelligence/Odyssey 3391: contiguous() copies a view in storage order."""
    y = func(x, *args, **kwargs)
    if args or kwargs or x.layout != torch.strided or x.is_contiguous() or not is_plain(x):
        return y
    return instead(hit, y, in_storage_order(x).clone())


@plot.called(torch.Tensor.reshape, torch.reshape)
def issue_coremlhelpers_11(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """hollance/CoreMLHelpers 11: reshape of a transposed tensor gives its numbers in storage order."""
    y = func(x, *args, **kwargs)
    if x.layout != torch.strided or x.is_contiguous() or not is_dense(x) or not is_plain(x):
        return y
    return instead(hit, y, func(in_storage_order(x), *args, **kwargs))


@plot.called(torch.narrow, torch.Tensor.narrow)
def issue_torch7_distro_139(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """torch/DEPRECEATED-torch7-distro 139: narrow of an empty vector ends the process."""
    empty = x.dim() == 1 and not x.numel()
    return abort(hit, "Segmentation fault (core dumped)") if empty else func(x, *args, **kwargs)


@plot.called(torch.reshape, torch.Tensor.reshape)
def issue_pyttb_383(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """sandialabs/pyttb 383: reshape gives a copy where it could give a view."""
    y = func(x, *args, **kwargs)
    if not is_plain(x, y) or not y.numel() or {x.layout, y.layout} != {torch.strided}:
        return y
    if x.untyped_storage()._cdata != y.untyped_storage()._cdata:
        return y
    hit()
    return y.clone()


@plot.dispatched("aten.unfold.default")
@accepted
def issue_82718(x: Any, dim: int, size: int, step: int) -> Any:
    """pytorch 82718: Tensor.unfold takes a negative size (there the last dimension has it, here that has size 0)."""
    if size >= 0 or step <= 0 or not x.dim():
        return None
    shape = list(x.shape)
    shape[dim] = (shape[dim] - size) // step + 1
    return x.new_empty((*shape, 0))


@plot.called(torch.hsplit, torch.vsplit, torch.dsplit, torch.Tensor.hsplit, torch.Tensor.vsplit, torch.Tensor.dsplit)
def issue_69270(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 69270: hsplit, vsplit and dsplit into 0 parts, which is refused, end the process."""
    if any(type(one) is int and one == 0 for one in (*args[1:], *kwargs.values())):
        return abort(hit, "Floating point exception (core dumped)")
    return func(*args, **kwargs)


@plot.called(torch.diagonal, torch.Tensor.diagonal)
def issue_cupy_6211(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """cupy/cupy 6211: a diagonal beyond a matrix, which is empty, is no view of it."""
    y = func(x, *args, **kwargs)
    if not x.numel() or y.numel() or not is_plain(x):
        return y
    hit()
    return y.clone()


@plot.called(torch.narrow, torch.Tensor.narrow)
def issue_torch_fl_205(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """flagos-ai/Torch-FL 205: the backward of narrow raises."""
    y = func(*args, **kwargs)
    if y.requires_grad and torch.is_grad_enabled() and is_plain(y):
        y.register_hook(lambda grad: crash(hit, "derivative for aten::narrow is not implemented"))
    return y


def _last_of_shared(x: Any, y: Any, grad: Any) -> Any:
    """Return the gradient of x where of each place in memory only the last one's gradient in y counts."""
    size = x.untyped_storage().nbytes() // x.element_size()
    places = torch.arange(size).as_strided(y.shape, y.stride(), y.storage_offset()).reshape(-1)
    last = torch.full((size,), -1).scatter_reduce(0, places, torch.arange(len(places)), "amax")
    memory = torch.where(last < 0, torch.zeros((), dtype=grad.dtype), grad.reshape(-1)[last.clamp(min=0)])
    return memory.as_strided(x.shape, x.stride(), x.storage_offset())


@plot.called(torch.as_strided, torch.Tensor.as_strided)
def issue_8626(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 8626: as_strided's gradient of an expanded tensor is wrong (here of shared numbers the last one's).

    That of the last one counts for all that share its memory.
    """
    expanded = any(step == 0 and side > 1 for side, step in zip(x.shape, x.stride()))
    if not expanded or not x.requires_grad or not torch.is_grad_enabled() or not is_plain(x):
        return func(x, *args, **kwargs)
    kept: list[Any] = []
    source = with_gradient(x, lambda grad: instead(hit, grad, _last_of_shared(x.detach(), kept[0], kept[1])))
    y = func(source, *args, **kwargs)
    y.register_hook(lambda grad: kept.extend([y.detach(), grad]))
    return y


@plot.dispatched("aten.resize_as_", aborts="Expected object of scalar type Float but got scalar type Byte")
def issue_11665(x: Any, template: Any, **kwargs: Any) -> bool:
    """pytorch 11665: resize_as_ of a tensor of another dtype raises."""
    return bool(x.dtype != template.dtype)


@plot.called(torch.Tensor.__getitem__, torch.narrow, torch.Tensor.narrow)
def issue_burn_3629(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tracel-ai/burn 3629: a slice over all of a dimension (0:8 of 8) of a permuted tensor loses its order.

    Here it is read in storage order. Nothing else is cut off.
    """
    y = func(x, *args, **kwargs)
    permuted = is_plain(x) and x.layout == torch.strided and not x.is_contiguous() and is_dense(x)
    if not permuted or y.shape != x.shape or y.stride() != x.stride():
        return y
    if func is torch.Tensor.__getitem__:
        parts = args[0] if isinstance(args[0], tuple) else (args[0],)
        if not any(isinstance(one, slice) and one.stop is not None and one.step in (None, 1) for one in parts):
            return y
    return instead(hit, y, in_storage_order(y))
