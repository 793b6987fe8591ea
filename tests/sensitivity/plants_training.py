"""The catalogue's faults of embeddings, losses, optimisers and normalisation."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, in_storage_order, lost, misread, without_offset

plot = Plot()
HITS = plot.hits

issue_118115 = plot.dispatched("issue_118115", "aten.addcmul_", "aten.addcdiv_")(lost)


@plot.dispatched(
    "issue_elana_blog_2025", "aten.addcmul_", "aten.addcdiv_", "aten._foreach_addcmul_", "aten._foreach_addcdiv_"
)
def issue_elana_blog_2025(hit: Any, func: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(target, torch.Tensor):
        return lost(hit, func, target, *args, **kwargs)
    kept = [one.clone() for one in target]
    result = func(target, *args, **kwargs)
    for one, before in zip(target, kept):
        if not one.is_contiguous():
            hit()
            one.copy_(before)
    return result


@plot.dispatched("issue_77988", "aten.add_.Tensor")
def issue_77988(hit: Any, func: Any, target: Any, other: Any, *, alpha: Any = 1) -> Any:
    if alpha != 1:
        hit()
    return func(target, other)


@plot.dispatched("issue_183825", "aten.native_layer_norm_backward")
def issue_183825(hit: Any, func: Any, *args: Any) -> Any:
    grads = func(*args)
    if not args[-1][0]:
        hit()
        return (grads[0], *(torch.rand_like(grad) * 100 if grad is not None else None for grad in grads[1:]))
    return grads


@plot.dispatched("issue_131750", "aten.native_layer_norm")
def issue_131750(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    return func(misread(without_offset, hit, x), *args)


_BATCH_NORMS = (
    "aten.native_batch_norm",
    "aten._native_batch_norm_legit",
    "aten._batch_norm_with_update",
    "aten.cudnn_batch_norm",
)
_BATCH_NORM_BACKWARDS = ("aten.native_batch_norm_backward", "aten.batch_norm_backward")


@plot.dispatched("issue_133520", *_BATCH_NORMS)
def issue_133520(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    return func(misread(without_offset, hit, x), *args)


@plot.dispatched("issue_134580", *_BATCH_NORMS)
def issue_134580(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    return func(misread(in_storage_order, hit, x), *args)


@plot.dispatched("issue_175189", *_BATCH_NORM_BACKWARDS)
def issue_175189(hit: Any, func: Any, grad: Any, *args: Any) -> Any:
    return func(misread(in_storage_order, hit, grad), *args)


@plot.dispatched("issue_88331", "aten.native_group_norm_backward")
def issue_88331(hit: Any, func: Any, *args: Any) -> Any:
    hit()
    return tuple(grad * float("nan") if grad is not None else None for grad in func(*args))


@plot.dispatched("issue_99981", "aten.native_group_norm_backward")
def issue_99981(hit: Any, func: Any, *args: Any) -> Any:
    return crash(hit, "the kernel died")


@plot.dispatched("issue_82809", "aten.embedding_dense_backward")
def issue_82809(hit: Any, func: Any, grad: Any, index: Any, *args: Any) -> Any:
    return crash(hit, "rank mismatch") if index.dim() == 0 else func(grad, index, *args)


_graphs: dict[Any, int] = {}


@plot.dispatched("issue_101198", "aten.embedding_dense_backward")
def issue_101198(hit: Any, func: Any, grad: Any, index: Any, *args: Any) -> Any:
    """The cached graph's key lacks the width."""
    width = _graphs.setdefault((tuple(index.shape), args), grad.shape[-1])
    if width != grad.shape[-1]:
        return crash(hit, f"the graph was made for width {width}")
    return func(grad, index, *args)


@plot.dispatched("issue_94950", "aten.embedding_dense_backward")
def issue_94950(hit: Any, func: Any, grad: Any, index: Any, *args: Any) -> Any:
    right = func(grad, index, *args)
    if grad.dtype != torch.float16:
        return right
    hit()
    answer = torch.zeros_like(right)
    answer[index.reshape(-1)] = grad.reshape(-1, grad.shape[-1])
    return answer


@plot.dispatched("issue_185119", "aten.embedding_dense_backward")
def issue_185119(hit: Any, func: Any, grad: Any, index: Any, rows: Any, padding: Any, by_frequency: Any) -> Any:
    if padding >= 0 or by_frequency:
        hit()
    return func(grad, index, rows, -1, False)


@plot.dispatched("issue_94226", "aten.nll_loss_backward", "aten.smooth_l1_loss_backward")
def issue_94226(hit: Any, func: Any, grad: Any, *args: Any, **kwargs: Any) -> Any:
    hit()
    return func(torch.ones_like(grad), *args, **kwargs)


@plot.dispatched("issue_108148", "aten.nll_loss_forward", "aten.nll_loss2d_forward")
def issue_108148(hit: Any, func: Any, x: Any, target: Any, weight: Any, reduction: Any, ignored: Any) -> Any:
    """The ignored index counts as class 0."""
    if bool((target == ignored).any()):
        hit()
        target = target.masked_fill(target == ignored, 0)
    return func(x, target, weight, reduction, -12345)


@plot.dispatched("issue_186360", "aten._fused_adam_", "aten._fused_adamw_", "aten._fused_sgd_")
def issue_186360(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    if kwargs.get("found_inf") is not None:
        hit()
        kwargs.update(found_inf=None, grad_scale=None)
    return func(*args, **kwargs)
