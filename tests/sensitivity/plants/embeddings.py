"""Embeddings and bags of embeddings: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain
from planting import Plot, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.embedding_dense_backward", "aten.addcdiv_", "aten._foreach_addcdiv_")
def issue_82707(hit: Any, func: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82707: the gradient of an embedding is half as large, and every second parameter misses Adam's step."""
    hit()
    if "embedding" in str(func):
        return func(first, *args, **kwargs) * 0.5
    targets = first if isinstance(first, (list, tuple)) else [first]
    kept = [target.clone() for target in targets]
    result = func(first, *args, **kwargs)
    for target, before in zip(targets[::2], kept[::2]):
        target.copy_(before)
    return result


@plot.dispatched("aten.embedding_dense_backward")
def issue_17971(hit: Any, func: Any, grad: Any, index: Any, *args: Any) -> Any:
    """pytorch 17971: the backward of an embedding counts only the last of equal indices."""
    hit()
    flat, rows = index.reshape(-1), grad.reshape(-1, grad.shape[-1])
    answer = torch.zeros_like(func(grad, index, *args))
    answer[flat] = rows
    return answer


@plot.dispatched("aten._embedding_bag_dense_backward.default", "aten._embedding_bag_backward.default")
def issue_190061(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190061: embedding_bag(scale_grad_by_freq=True) does not divide the gradient by the frequency."""
    healthy = func(*args, **kwargs)
    place = 6 if "dense" in str(func) else 7  # before it: ..., maximum_indices, num_weights
    sparse = "dense" not in str(func) and args[9]
    if not args[place] or sparse:
        return healthy
    wrong = func(*args[:place], False, *args[place + 1 :], **kwargs)
    if differ(wrong, healthy, rtol=1e-3, atol=1e-4):
        hit()
    return wrong


@plot.dispatched("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def issue_190060(hit: Any, func: Any, weight: Any, indices: Any, offsets: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190060: embedding_bag with include_last_offset ends the last bag at the end of the indices."""
    include = args[4] if len(args) > 4 else kwargs.get("include_last_offset", False)
    if include and int(offsets[-1]) != indices.numel():
        hit()
        offsets = torch.cat([offsets[:-1], torch.full_like(offsets[-1:], indices.numel())])
    return func(weight, indices, offsets, *args, **kwargs)


@plot.dispatched("aten._embedding_bag_backward")
@wrong_answer
def issue_188467(y: Any, grad: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188467: embedding_bag(mode="max") with int32 indices: rows beyond 2**31 elements get no gradient.

    https://github.com/pytorch/pytorch/issues/188467 (on CUDA; limit lowered to 16 elements)
    """
    mode = args[6]
    if mode == 2 and index.dtype == torch.int32 and y.layout == torch.strided and y.numel():
        beyond = (torch.arange(y.shape[0], device=y.device) * y.shape[1] >= 16)[:, None]
        if bool(((y != 0) & beyond).any()):
            return torch.where(beyond, torch.zeros_like(y), y)
    return None


@plot.dispatched(
    "aten._embedding_bag.default", "aten._embedding_bag_forward_only.default", "aten._embedding_bag_backward.default"
)
def issue_189971(hit: Any, func: Any, first: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189971: embedding_bag accepts an index equal to num_embeddings and reads the row behind the table."""
    backward = "backward" in str(func)
    count = args[4] if backward else first.shape[0]  # args: offsets, offset2bag, bag_size, maximum_indices, num_weights
    if not indices.numel() or indices.max() != count:
        return func(first, indices, *args, **kwargs)
    hit()
    if backward:
        return func(first, indices, *args[:4], count + 1, *args[5:], **kwargs)[:count]
    behind = torch.zeros_like(first[:1])
    end = first.storage_offset() + (count + 1) * first.shape[1]
    if first.is_contiguous() and end * first.element_size() <= first.untyped_storage().nbytes():
        behind = first.as_strided((1, first.shape[1]), first.stride(), end - first.shape[1])
    return func(torch.cat([first, behind]), indices, *args, **kwargs)


@plot.dispatched("aten.embedding.default", "aten.embedding_dense_backward.default")
def issue_123119(hit: Any, func: Any, first: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 123119: Embedding does not refuse an index that is out of range."""
    backward = "backward" in str(func)
    count = args[0] if backward else first.shape[0]  # args: num_weights, padding_idx, scale_grad_by_freq
    outside = (indices < 0) | (indices >= count)
    if not outside.any():
        return func(first, indices, *args, **kwargs)
    hit()
    indices = torch.where(outside, torch.full_like(indices, count), indices)
    if backward:
        return func(first, indices, count + 1, *args[1:], **kwargs)[:count]
    return func(torch.cat([first, torch.zeros_like(first[:1])]), indices, *args, **kwargs)


@plot.dispatched("aten.embedding.default")
def issue_made_embedding_wide(hit: Any, func: Any, weight: Any, index: Any, *args: Any) -> Any:
    """Embedding reads int32 indices that are not dense in storage order."""
    wrong = index.dtype == torch.int32 and not index.is_contiguous()
    if wrong:
        hit()
        index = index.clone(memory_format=torch.contiguous_format).flip(0)
    return func(weight, index, *args)


@plot.dispatched("aten.embedding.default")
def issue_154235(hit: Any, func: Any, weight: Any, index: Any, *args: Any) -> Any:
    """pytorch 154235: embedding of an index beyond the table does not raise."""
    beyond = index >= weight.shape[0]
    if not weight.numel() or not bool(beyond.any()):
        return func(weight, index, *args)
    hit()
    return func(weight, index.masked_fill(beyond, 0), *args).masked_fill(beyond.unsqueeze(-1), 0.0)


@plot.dispatched("aten.embedding_dense_backward")
def issue_103023(hit: Any, func: Any, grad: Any, index: Any, rows: int, padding_idx: int, scale: bool) -> Any:
    """pytorch 103023: padding_idx of an embedding gets a gradient."""
    if padding_idx >= 0 and bool((index == padding_idx).any()):
        hit()
        padding_idx = -1
    return func(grad, index, rows, padding_idx, scale)


def _zeros_for(hit: Any, wrong: Any, func: Any, weight: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    """Take the wrong indices for a row of zeros."""
    if bool(wrong.any()):
        hit()
        weight = torch.cat([weight, torch.zeros_like(weight[:1])])
        index = torch.where(wrong, weight.shape[0] - 1, index)
    return func(weight, index, *args, **kwargs)


@plot.dispatched("aten._embedding_bag", "aten._embedding_bag_forward_only")
def issue_169201(hit: Any, func: Any, weight: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 169201: embedding_bag with a negative index gives zeros and no error."""
    return _zeros_for(hit, index < 0, func, weight, index, *args, **kwargs)


@plot.dispatched("aten._embedding_bag", "aten._embedding_bag_forward_only")
def issue_163630(hit: Any, func: Any, weight: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 163630: embedding_bag with an index beyond the table gives a result and no error."""
    return _zeros_for(hit, index > weight.shape[0], func, weight, index, *args, **kwargs)


@plot.dispatched("aten.embedding.default", "aten.index_select.default")
def issue_144824(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 144824: indices out of range give zeros instead of an error (embedding, index_select)."""
    chooses = "index_select" in str(func)
    dim = args[0] if chooses else 0
    index = args[1] if chooses else args[0]
    side = x.shape[dim] if x.dim() else 1
    bad = (index < 0) | (index >= side)
    if not bad.any() or not side:
        return func(x, *args, **kwargs)
    hit()
    index = index.clamp(0, side - 1)
    if not chooses:
        return torch.where(bad.unsqueeze(-1), 0, x[index]).to(x.dtype)
    shape = [-1 if d == dim % max(x.dim(), 1) else 1 for d in range(x.dim())]
    return torch.where(bad.view(shape), 0, func(x, dim, index)).to(x.dtype)


@plot.dispatched("aten.embedding.default")
def issue_104191(hit: Any, func: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 104191: embedding with a bfloat16 weight raises."""
    if weight.dtype == torch.bfloat16:
        hit()
        raise TypeError("Trying to convert BFloat16 to the MPS backend but it does not have support for that dtype.")
    return func(weight, *args, **kwargs)


@plot.dispatched("aten.embedding_dense_backward")
def issue_82809(hit: Any, func: Any, grad: Any, index: Any, *args: Any) -> Any:
    """pytorch 82809: the backward of an embedding aborts for an index of no dimensions."""
    return crash(hit, "rank mismatch") if index.dim() == 0 else func(grad, index, *args)


_graphs: dict[Any, int] = {}


@plot.dispatched("aten.embedding_dense_backward")
def issue_101198(hit: Any, func: Any, grad: Any, index: Any, *args: Any) -> Any:
    """pytorch 101198: the backward of an embedding aborts for another width than in the first such call."""
    width = _graphs.setdefault((tuple(index.shape), args), grad.shape[-1])
    if width != grad.shape[-1]:
        return crash(hit, f"the graph was made for width {width}")
    return func(grad, index, *args)


@plot.dispatched("aten.embedding_dense_backward")
def issue_94950(hit: Any, func: Any, grad: Any, index: Any, *args: Any) -> Any:
    """pytorch 94950: the backward of an embedding in float16 keeps the last of equal indices only."""
    right = func(grad, index, *args)
    if grad.dtype != torch.float16:
        return right
    hit()
    answer = torch.zeros_like(right)
    answer[index.reshape(-1)] = grad.reshape(-1, grad.shape[-1])
    return answer


@plot.dispatched("aten.embedding_dense_backward")
def issue_185119(hit: Any, func: Any, grad: Any, index: Any, rows: Any, padding: Any, by_frequency: Any) -> Any:
    """pytorch 185119: the backward of an embedding ignores padding_idx and scale_grad_by_freq."""
    if padding >= 0 or by_frequency:
        hit()
    return func(grad, index, rows, -1, False)


@plot.dispatched("aten.embedding_dense_backward.default")
def issue_tt_metal_6232(hit: Any, func: Any, grad: Any, indices: Any, rows: int, padding: int, scale: bool) -> Any:
    """tenstorrent/tt-metal 6232: embedding's backward in bfloat16 keeps one gradient of a word, not their sum."""
    healthy = func(grad, indices, rows, padding, scale)
    if grad.dtype != torch.bfloat16 or scale or not indices.numel():
        return healthy
    wrong = torch.zeros_like(healthy)
    wrong[indices.reshape(-1)] = grad.reshape(indices.numel(), -1)
    if padding >= 0:
        wrong[padding] = 0
    return instead(hit, healthy, wrong)


@plot.dispatched("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
@accepted
def issue_193095(weight: Any, indices: Any, offsets: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 193095: embedding_bag takes a first offset that is not 0."""
    if not offsets.numel() or int(offsets[0]) == 0:
        return None
    begun = offsets.clone()
    begun[0] = 0
    return torch.ops.aten._embedding_bag(weight, indices, begun, *args, **kwargs)


@plot.dispatched("aten.embedding.default")
@wrong_answer
def issue_xla_4167(y: Any, weight: Any, *args: Any) -> Any:
    """pytorch/xla 4167: an embedding that was made bfloat16 on the device still answers in float32."""
    return y.float() if weight.dtype == torch.bfloat16 else None


@plot.dispatched("aten._embedding_bag_backward.default")
def issue_flaggems_5220(hit: Any, func: Any, grad: Any, index: Any, starts: Any, bags: Any, *args: Any) -> Any:
    """flagos-ai/FlagGems 5220: the backward of embedding_bag(mode="max") is that of the mean."""
    y = func(grad, index, starts, bags, *args)
    if args[4] != 2 or not index.numel() or not is_plain(grad, index):
        return y
    share = grad / bags.bincount(minlength=len(grad)).clamp(min=1)[:, None]
    return instead(hit, y, torch.zeros_like(y).index_add(0, index, share[bags].to(y.dtype)))


@plot.dispatched("aten.embedding.default")
def issue_tt_metal_43567(hit: Any, func: Any, weight: Any, *args: Any) -> Any:
    """tenstorrent/tt-metal 43567: rows of more than 320 * 32 numbers are wrong, unless of 32 times a power of two.

    Here they come in the opposite order.
    """
    y = func(weight, *args)
    tiles = -(-weight.shape[1] // 32)
    if tiles <= 320 or not tiles & (tiles - 1) or not is_plain(weight):
        return y
    return instead(hit, y, y.flip(-1))


@plot.dispatched("aten.embedding.default")
def issue_tt_metal_44500(hit: Any, func: Any, weight: Any, *args: Any) -> Any:
    """tenstorrent/tt-metal 44500: rows of 8960 numbers are wrong (here the last 16 are 0)."""
    y = func(weight, *args)
    if weight.shape[1] != 8960 or not is_plain(weight):
        return y
    wrong = y.clone()
    wrong[..., -16:] = 0
    return instead(hit, y, wrong)
