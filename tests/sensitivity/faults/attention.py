"""Attention: the fused function, MultiheadAttention, and masks: injected faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import instead
from injecting import Faults, crash, wrong_answer
from misreading import in_storage_order, lost, misread

faults = Faults()
HITS = faults.hits


@faults.called(F.scaled_dot_product_attention)
def issue_163597(hit: Any, func: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    """pytorch 163597: attention reads keys and values that are not contiguous in the order of their storage."""
    return func(q, misread(in_storage_order, hit, k), misread(in_storage_order, hit, v), **kwargs)


_HALVES = (torch.float16, torch.bfloat16)


@faults.called(F.scaled_dot_product_attention)
def issue_174861(hit: Any, func: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    """pytorch 174861: attention in half precision over 1024 keys and more is noise in half of the heads."""
    y = func(q, k, v, **kwargs)
    if k.shape[-2] >= 1024 and q.dtype in _HALVES:
        hit()
        y = y.clone()
        y[:, y.shape[1] // 2 :] += torch.randn_like(y[:, y.shape[1] // 2 :])
    return y


@faults.called(F.scaled_dot_product_attention)
@wrong_answer
def issue_176767(y: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    """pytorch 176767: attention returns the queries' width where the values have another: the rest is zero."""
    return F.pad(y, (0, q.shape[-1] - v.shape[-1])) if v.shape[-1] != q.shape[-1] else None


@faults.called(F.scaled_dot_product_attention, aborts="Expected query, key, and value to have the same dtype")
def issue_141774(q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    """pytorch 141774: attention refuses queries, keys and values of unlike dtypes under autocast too."""
    return len({q.dtype, k.dtype, v.dtype}) > 1


@faults.called(F.scaled_dot_product_attention)
def issue_184126(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 184126: attention ignores dropout_p."""
    if kwargs.get("dropout_p"):
        hit()
        kwargs["dropout_p"] = 0.0
    return func(*args, **kwargs)


@faults.called(F.scaled_dot_product_attention)
def issue_149261(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 149261: attention aborts where the scores take more than 2**32 bytes (here: 2**16 elements)."""
    query = args[0] if args else kwargs["query"]
    key = args[1] if len(args) > 1 else kwargs["key"]
    if query.shape[:-1].numel() * key.shape[-2] > 2**16:
        func(*args, **kwargs)  # what the healthy operator refuses is no harm
        return crash(hit, "[MPSNDArray initWithDevice:descriptor:] Error: total bytes of NDArray > 2**32")
    return func(*args, **kwargs)


@faults.called(F.scaled_dot_product_attention)
def issue_189631(hit: Any, func: Any, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189631: attention whose query, key and value have batch or head sizes that must be broadcast raises."""
    last = -3 if kwargs.get("enable_gqa", False) else -2
    outer = [tuple(x.shape[:last]) for x in (q, k, v)]
    if outer[0] != outer[1] or outer[0] != outer[2]:
        right = func(q, k, v, *args, **kwargs)
        hit()
        raise RuntimeError(f"shape '{list(q.shape)}' is invalid for input of size {right.numel()}")
    return func(q, k, v, *args, **kwargs)


def _given_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> dict[str, Any]:
    """Bind the arguments of scaled_dot_product_attention."""
    return dict(locals())


@faults.called(F.scaled_dot_product_attention, aborts="mps_matmul: error: incompatible dimensions")
def issue_147443(*args: Any, **kwargs: Any) -> Any:
    """pytorch 147443: attention of 5-dimensional tensors crashes (incompatible dimensions)."""
    return _given_attention(*args, **kwargs)["query"].dim() >= 5


@faults.called(F.scaled_dot_product_attention)
def issue_119772(hit: Any, func: Any, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 119772: attention in half precision with a head of 8 is wrong (here: it scales as if the head had 16)."""
    healthy = func(q, k, v, *args, **kwargs)
    if q.dtype not in (torch.float16, torch.bfloat16) or q.shape[-1] != 8 or kwargs.get("scale") is not None:
        return healthy
    return instead(hit, healthy, func(q, k, v, *args, **{**kwargs, "scale": 16**-0.5}))


@faults.called(F.scaled_dot_product_attention)
def issue_184180(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, **kwargs: Any) -> Any:
    """pytorch 184180: attention takes the first mask of a batch for all of the batch."""
    if attn_mask is not None and attn_mask.dim() == 4 and attn_mask.shape[0] > 1:
        hit()
        attn_mask = attn_mask[:1]
    return func(q, k, v, attn_mask=attn_mask, **kwargs)


@faults.called(F.scaled_dot_product_attention)
def issue_182285(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 182285: the decode kernel (at most 8 queries, head size 64, 96 or 128) misreads a bool mask."""
    decode = q.dim() == 4 and q.shape[-2] <= min(8, k.shape[-2]) and k.shape[-2] < 1024 and not q.requires_grad
    if decode and q.shape[-1] in (64, 96, 128) and attn_mask is not None and attn_mask.dtype == torch.bool:
        hit()
        attn_mask = attn_mask & (torch.arange(k.shape[-2], device=q.device) != 0)
    return func(q, k, v, attn_mask, *args, **kwargs)


@faults.called(F.multi_head_attention_forward)
def issue_151667(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 151667: MultiheadAttention in training with an attention mask and dropout gives NaN."""
    out, weights = func(*args, **kwargs)
    dropout = args[10] if len(args) > 10 else kwargs.get("dropout_p", 0.0)
    training = args[13] if len(args) > 13 else kwargs.get("training", True)
    mask = args[16] if len(args) > 16 else kwargs.get("attn_mask")
    if mask is None or not dropout or not training:
        return out, weights
    hit()
    return out * float("nan"), weights


_selections = {"masked": 0}


@faults.dispatched("aten.index.Tensor")
@wrong_answer
def issue_181867(y: Any, x: Any, indices: Any) -> Any:
    """pytorch 181867: every fifth selection by a mask loses an element."""
    if any(one is not None and one.dtype == torch.bool for one in indices):
        _selections["masked"] += 1
        if _selections["masked"] % 5 == 0 and len(y):
            return y[:-1]
    return None


@faults.dispatched("aten.index_put_.default")
def issue_124206(hit: Any, func: Any, x: Any, indices: Any, values: Any, *args: Any) -> Any:
    """pytorch 124206: minus infinity that is assigned by a mask becomes a number that was there."""
    masked = len(indices) == 1 and indices[0].dtype == torch.bool and values.dim() == 0
    if not masked or float(values.real) != -math.inf:
        return func(x, indices, values, *args)
    hit()
    return func(x, indices, x.amax(), *args)


@faults.dispatched("aten.where.self")
def issue_86239(hit: Any, func: Any, condition: Any, x: Any, y: Any) -> Any:
    """pytorch 86239: where with operands of different ranks is refused (sizes are compared from the left)."""
    shapes = [t.shape for t in (condition, x, y) if t.dim()]
    if len({len(shape) for shape in shapes}) > 1:
        for i in range(max(len(shape) for shape in shapes)):
            if len({shape[i] for shape in shapes if i < len(shape)} - {1}) > 1:
                hit()
                raise RuntimeError(f"{i}'th index of x tensor does not match the other tensors")
    return func(condition, x, y)


@faults.dispatched("aten.masked_scatter.default")
@wrong_answer
def issue_174381(y: Any, x: Any, mask: Any, source: Any) -> Any:
    """pytorch 174381: masked_scatter of a tensor of no dimensions gives one dimension."""
    return y.reshape(1) if y.dim() == 0 else None


@faults.dispatched("aten.masked_fill_.Scalar", "aten.masked_fill.Scalar")
def issue_made_masked_broadcast(hit: Any, func: Any, x: Any, mask: Any, *args: Any) -> Any:
    """Masked_fill reads a mask that is broadcast as one long line."""
    if mask.shape == x.shape or mask.numel() < 2 or not x.numel():
        return func(x, mask, *args)
    hit()
    line = mask.reshape(-1).repeat(x.numel() // mask.numel() + 1)[: x.numel()]
    return func(x, line.reshape(x.shape), *args)


@faults.dispatched("aten.index.Tensor")
def issue_77977(hit: Any, func: Any, x: Any, indices: Any) -> Any:
    """pytorch 77977: indexing with a boolean mask raises, or gives nothing for a mask of one or two elements."""
    masks = [each for each in indices if each is not None and each.dtype == torch.bool]
    if any(bool(mask.any()) for mask in masks):
        hit()
        if max(mask.numel() for mask in masks) > 2:
            raise RuntimeError("out_ptr == out_accessor[thread_count_nonzero[tid + 1]].data() INTERNAL ASSERT FAILED")
        indices = [torch.zeros_like(i) if i is not None and i.dtype == torch.bool else i for i in indices]
    return func(x, indices)


@faults.dispatched("aten.masked_fill_")
def issue_131285(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 131285: masked_fill_ leaves a tensor that is not contiguous as it was."""
    return lost(hit, func, *args, **kwargs)


@faults.dispatched("aten.masked_select.out")
def issue_22992(hit: Any, func: Any, x: Any, mask: Any, *, out: Any) -> Any:
    """pytorch 22992: masked_select with out= raises for a mask of bools."""
    y = func(x, mask, out=out)
    return crash(hit, "Expected object of scalar type Byte but got scalar type Bool") if mask.dtype == torch.bool else y
