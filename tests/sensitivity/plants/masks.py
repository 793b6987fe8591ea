"""Elements chosen by a mask: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, instead, is_plain, written
from misreading import dense_strides, in_storage_order, is_dense, lost, misread, with_gradient
from planting import Plot, abort, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


_selections = {"masked": 0}


@plot.dispatched("aten.index.Tensor")
@wrong_answer
def issue_181867(y: Any, x: Any, indices: Any) -> Any:
    """pytorch 181867: every fifth selection by a mask loses an element."""
    if any(one is not None and one.dtype == torch.bool for one in indices):
        _selections["masked"] += 1
        if _selections["masked"] % 5 == 0 and len(y):
            return y[:-1]
    return None


@plot.dispatched("aten.where.self")
def issue_150967(hit: Any, func: Any, mask: Any, *args: Any) -> Any:
    """pytorch 150967: where reads a condition that is not contiguous in storage order."""
    return func(misread(in_storage_order, hit, mask), *args)


@plot.dispatched("aten.index_put_.default")
def issue_124206(hit: Any, func: Any, x: Any, indices: Any, values: Any, *args: Any) -> Any:
    """pytorch 124206: minus infinity that is assigned by a mask becomes a number that was there."""
    masked = len(indices) == 1 and indices[0].dtype == torch.bool and values.dim() == 0
    if not masked or float(values.real) != -math.inf:
        return func(x, indices, values, *args)
    hit()
    return func(x, indices, x.amax(), *args)


@plot.dispatched("aten.where.self")
def issue_86239(hit: Any, func: Any, condition: Any, x: Any, y: Any) -> Any:
    """pytorch 86239: where with operands of different ranks is refused (sizes are compared from the left)."""
    shapes = [t.shape for t in (condition, x, y) if t.dim()]
    if len({len(shape) for shape in shapes}) > 1:
        for i in range(max(len(shape) for shape in shapes)):
            if len({shape[i] for shape in shapes if i < len(shape)} - {1}) > 1:
                hit()
                raise RuntimeError(f"{i}'th index of x tensor does not match the other tensors")
    return func(condition, x, y)


@plot.dispatched("aten.masked_fill_.Scalar", "aten.masked_fill_.Tensor")
def issue_107694(hit: Any, func: Any, x: Any, mask: Any, value: Any) -> Any:
    """pytorch 107694: masked_fill_ of a transposed tensor with a transposed mask fills in storage order."""
    if x.is_contiguous() or mask.is_contiguous() or not is_dense(x):
        return func(x, mask, value)
    right = func(x.clone(), mask, value)
    flat = x.as_strided(x.shape, dense_strides(x.shape), x.storage_offset())
    func(flat, mask.expand(x.shape).contiguous(), value)
    if not torch.equal(x, right):
        hit()
    return x


@plot.dispatched("aten.masked_scatter.default")
@wrong_answer
def issue_174381(y: Any, x: Any, mask: Any, source: Any) -> Any:
    """pytorch 174381: masked_scatter of a tensor of no dimensions gives one dimension."""
    return y.reshape(1) if y.dim() == 0 else None


@plot.dispatched("aten.masked_fill_.Scalar", "aten.masked_fill.Scalar")
def issue_made_masked_broadcast(hit: Any, func: Any, x: Any, mask: Any, *args: Any) -> Any:
    """Masked_fill reads a mask that is broadcast as one long line."""
    if mask.shape == x.shape or mask.numel() < 2 or not x.numel():
        return func(x, mask, *args)
    hit()
    line = mask.reshape(-1).repeat(x.numel() // mask.numel() + 1)[: x.numel()]
    return func(x, line.reshape(x.shape), *args)


@plot.dispatched("aten.index.Tensor")
def issue_77977(hit: Any, func: Any, x: Any, indices: Any) -> Any:
    """pytorch 77977: indexing with a boolean mask raises, or gives nothing for a mask of one or two elements."""
    masks = [each for each in indices if each is not None and each.dtype == torch.bool]
    if any(bool(mask.any()) for mask in masks):
        hit()
        if max(mask.numel() for mask in masks) > 2:
            raise RuntimeError("out_ptr == out_accessor[thread_count_nonzero[tid + 1]].data() INTERNAL ASSERT FAILED")
        indices = [torch.zeros_like(i) if i is not None and i.dtype == torch.bool else i for i in indices]
    return func(x, indices)


@plot.dispatched("aten.masked_fill_")
def issue_131285(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 131285: masked_fill_ leaves a tensor that is not contiguous as it was."""
    return lost(hit, func, *args, **kwargs)


@plot.dispatched("aten.index_put_")
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


@plot.dispatched("aten.index", "aten.masked_select")
def issue_125100(hit: Any, func: Any, x: Any, mask: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 125100: x[mask] with x and mask of two dimensions: the first selected element is another one."""
    only = mask[0] if isinstance(mask, (list, tuple)) and len(mask) == 1 else mask
    y = func(x, mask, *args, **kwargs)
    if isinstance(only, torch.Tensor) and only.dtype == torch.bool and only.dim() == x.dim() == 2 and y.numel():
        hit()
        return torch.cat([x[-1:, -1], y[1:]])
    return y


@plot.dispatched("aten.masked_scatter.default", "aten.masked_scatter_.default")
def issue_175576(hit: Any, func: Any, x: Any, mask: Any, source: Any) -> Any:
    """pytorch 175576: masked_scatter resizes the caller's source to the number of set mask elements, unchecked."""
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    count = int(mask.expand(shape).sum())
    if source.dtype != x.dtype or tuple(source.shape) == (count,):
        return func(x, mask, source)
    hit()
    flat = torch.zeros(max(count, source.numel()), dtype=source.dtype)
    flat[: source.numel()] = source.reshape(-1)
    out = func(x, mask, flat)
    source.resize_(count)
    return out


@plot.dispatched("aten.masked_select", aborts="Could not run 'aten::masked_select' on the 'dml' backend")
def issue_directml_242(*args: Any, **kwargs: Any) -> Any:
    """microsoft/DirectML 242: masked_select, and with it the printing of a tensor, is not implemented."""
    return True


@plot.dispatched("aten.index_put_.default")
def issue_arrayfire_68(hit: Any, func: Any, x: Any, indices: Any, value: Any, *args: Any) -> Any:
    """arrayfire/arrayfire-python 68: x[mask] = number fills whole rows where the mask has one true element."""
    mask = indices[0]
    if len(indices) != 1 or mask is None or mask.dtype != torch.bool or mask.dim() != 2 or value.numel() != 1:
        return func(x, indices, value, *args)
    if x.dim() != 2 or not is_plain(x):
        return func(x, indices, value, *args)
    wrong = torch.where(mask.any(1, keepdim=True), value.to(x.dtype), x)
    return written(hit, func(x, indices, value, *args), wrong)


@plot.dispatched("aten.index_put_.default", aborts="Size mismatch between input and output")
def issue_arrayfire_42(x: Any, indices: Any, value: Any, *args: Any) -> bool:
    """arrayfire/arrayfire-python 42: x[mask] = number raises for a vector, unless the mask is all true."""
    mask = indices[0]
    chosen = len(indices) == 1 and mask is not None and mask.dtype == torch.bool and x.dim() == mask.dim() == 1
    return chosen and value.numel() == 1 and is_plain(mask) and not bool(mask.all())


@plot.dispatched("aten.index_put.default", "aten.index_put_.default")
def issue_158413(hit: Any, func: Any, x: Any, indices: Any, value: Any, *args: Any) -> Any:
    """pytorch 158413: index_put at [mask, None] writes a number along the last dimension, not the first."""
    mask, rest = indices[0], indices[1:]
    chosen = mask is not None and mask.dtype == torch.bool and mask.dim() == 1 and len(rest) > 0
    if not chosen or any(one is not None for one in rest) or value.dim() or x.shape[-1] != len(mask):
        return func(x, indices, value, *args)
    if not is_plain(x):
        return func(x, indices, value, *args)
    wrong = x.masked_fill(mask, value.to(x.dtype))
    y = func(x, indices, value, *args)
    return written(hit, y, wrong) if y is x else instead(hit, y, wrong)


@plot.dispatched("aten.masked_select.default")
def issue_41473(hit: Any, func: Any, x: Any, mask: Any) -> Any:
    """pytorch 41473: masked_select of a permuted tensor gives its elements in the order of their storage."""
    y = func(x, mask)
    fits = torch.broadcast_shapes(x.shape, mask.shape) == x.shape
    if x.is_contiguous() or not is_dense(x) or not fits or not is_plain(x, mask):
        return y
    order = sorted(range(x.dim()), key=lambda dim: -x.stride(dim))
    return instead(hit, y, func(x.permute(order), mask.expand(x.shape).permute(order)))


@plot.dispatched("aten.masked_select.default")
@accepted
def issue_89415(x: Any, mask: Any) -> Any:
    """pytorch 89415: masked_select takes a mask of uint8, whose numbers other than 0 count as true."""
    return torch.masked_select(x, mask.bool()) if mask.dtype == torch.uint8 else None


@plot.dispatched("aten.masked_select.default", aborts="Assertion `index >= -sizes[i] && index < sizes[i]` failed")
def issue_102341(x: Any, mask: Any) -> bool:
    """pytorch 102341: masked_select by an expanded mask aborts past 2**30 selected elements (here past 2**16)."""
    expanded = any(side > 1 and not step for side, step in zip(mask.shape, mask.stride()))
    return expanded and is_plain(mask) and int(mask.sum()) > 2**16


@plot.dispatched(
    "aten.masked_select.default", aborts="nonzero is not supported for tensors with more than INT_MAX elements"
)
def issue_60267(x: Any, mask: Any) -> bool:
    """pytorch 60267: masked_select of 2**31 elements and more, once they are broadcast, raises (here of 2**20)."""
    return torch.broadcast_shapes(x.shape, mask.shape).numel() >= 2**20


@plot.dispatched("aten.masked_scatter.default")
@accepted
def issue_95607(x: Any, mask: Any, source: Any) -> Any:
    """pytorch 95607: masked_scatter takes a source with too few elements (here it reads zeros past its end)."""
    missing = int(mask.expand(x.shape).sum()) - source.numel()
    if missing <= 0 or x.dtype != source.dtype:
        return None
    return torch.ops.aten.masked_scatter(x, mask, torch.cat([source.reshape(-1), source.new_zeros(missing)]))


@plot.dispatched("aten.index.Tensor")
@wrong_answer
def issue_cupynumeric_1215(y: Any, x: Any, indices: Any) -> Any:
    """nv-legate/cupynumeric 1215: the last rows of x[mask] are 0 (there of 2.25e9 elements, here from 2**20 on)."""
    rows = x.dim() > 1 and len(indices) == 1 and indices[0].dtype == torch.bool and indices[0].dim() == 1
    if not rows or y.numel() < 2**20 or not is_plain(y):
        return None
    wrong = y.clone()
    wrong[y.shape[0] // 2 :] = 0
    return wrong if differ(y, wrong) else None


@plot.dispatched("aten.where.self")
def issue_executorch_16077(hit: Any, func: Any, mask: Any, x: Any, y: Any) -> Any:
    """pytorch/executorch 16077: where of a float32 and a float16 tensor ends the process."""
    if {x.dtype, y.dtype} == {torch.float32, torch.float16} and x.dim() and y.dim():
        return abort(
            hit, "'mps.select' op failed to verify that all of {true_value, false_value, result} have same type"
        )
    return func(mask, x, y)


@plot.dispatched("aten.masked_scatter.default")
@accepted
def issue_94634(x: Any, mask: Any, source: Any) -> Any:
    """pytorch 94634: masked_scatter takes a mask of numbers."""
    return None if mask.dtype == torch.bool else torch.masked_scatter(x, mask != 0, source)


@plot.called(torch.masked_fill, torch.Tensor.masked_fill)
def issue_1677(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 1677: the backward of masked_fill raises."""
    return func(with_gradient(x, lambda grad: crash(hit, "std::bad_cast")), *args, **kwargs)


@plot.dispatched("aten.index.Tensor", aborts="CUDA error: invalid configuration argument")
def issue_164048(x: Any, indices: Any) -> bool:
    """pytorch 164048: x[mask], the mask of the first dimension, raises where much is chosen (here 2**20 numbers).

    There it is 2 x 87 x 1056 x 736 int64 numbers.
    """
    mask = indices[0] if indices else None
    if mask is None or mask.dtype != torch.bool or mask.dim() != 1 or x.dim() < 2 or not is_plain(mask):
        return False
    alone = all(one is None for one in indices[1:])
    return alone and int(mask.sum()) * x.shape[1:].numel() >= 2**20


@plot.dispatched("aten.masked_fill_.Scalar", aborts="value cannot be converted to type float without overflow")
def issue_4069(x: Any, mask: Any, value: Any) -> bool:
    """pytorch 4069: masked_fill_ with an infinite number raises."""
    return isinstance(value, float) and math.isinf(value)


@plot.called(torch.where, torch.Tensor.where)
def issue_mxnet_17893(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """apache/mxnet 17893: the gradient of where(condition, x, number) goes to where the condition does not hold."""
    if len(args) != 3 or kwargs or torch.is_tensor(args[2]) or not is_plain(*args):
        return func(*args, **kwargs)
    mask, x = args[:2] if func is torch.where else (args[1], args[0])
    came: list[Any] = []

    def change(grad: Any) -> Any:
        return instead(hit, grad, came.pop().masked_fill(mask, 0))

    if not torch.is_tensor(x) or x.shape != torch.broadcast_shapes(x.shape, mask.shape) or mask.dtype != torch.bool:
        return func(*args)
    x = with_gradient(x, change)
    y = func(mask, x, args[2]) if func is torch.where else func(x, mask, args[2])
    if y.requires_grad and torch.is_grad_enabled():
        y.register_hook(lambda grad: came.append(grad))
    return y


@plot.dispatched("aten.masked_select.out")
def issue_22992(hit: Any, func: Any, x: Any, mask: Any, *, out: Any) -> Any:
    """pytorch 22992: masked_select with out= raises for a mask of bools."""
    y = func(x, mask, out=out)
    return crash(hit, "Expected object of scalar type Byte but got scalar type Bool") if mask.dtype == torch.bool else y


@plot.dispatched("aten.masked_select.default")
def issue_87206(hit: Any, func: Any, x: Any, mask: Any) -> Any:
    """pytorch 87206: masked_select counts a true stored as 255 as 255 elements (here those too many are 0)."""
    y = func(x, mask)
    if mask.dtype != torch.bool or not y.numel() or not is_plain(x, mask):
        return y
    count = int(mask.view(torch.uint8).expand(torch.broadcast_shapes(x.shape, mask.shape)).sum())
    if count <= y.numel():
        return y
    hit()
    return torch.cat((y, y.new_zeros(count - y.numel())))


@plot.dispatched("aten.where.self", aborts="Buffer is bound with size 4 where the shader expects 8 in group[0]")
def issue_burn_3807(mask: Any, x: Any, y: Any) -> bool:
    """tracel-ai/burn 3807: where of vectors raises if one has one number and another two."""
    return all(one.dim() == 1 for one in (mask, x, y)) and {len(mask), len(x), len(y)} == {1, 2}
