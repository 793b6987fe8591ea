"""Optimisers and GradScaler: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._device

from differences import is_plain, written
from misreading import lost
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.replaced(torch.optim.Rprop, "step")
def issue_118117(hit: Any, healthy: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 118117: Rprop does not update parameters that are not contiguous."""
    views = [p for group in self.param_groups for p in group["params"] if not p.is_contiguous()]
    before = [p.detach().clone() for p in views]
    result = healthy(self, *args, **kwargs)
    for p, old in zip(views, before):
        if not torch.equal(p.detach(), old):
            hit()
            with torch.no_grad():
                p.copy_(old)
    return result


@plot.replaced(torch.amp.GradScaler, "unscale_")
def issue_142397(hit: Any, healthy: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 142397: GradScaler.unscale_ (and so step) goes through float64 and raises."""
    if self.is_enabled():
        hit()
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")
    return healthy(self, *args, **kwargs)


@plot.replaced(torch.optim.Optimizer, "__init__")
def issue_149184(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 149184: making an optimiser under torch.set_default_device raises."""
    if torch.utils._device.CURRENT_DEVICE is not None:
        hit()
        raise RuntimeError("Placeholder storage has not been allocated on MPS device!")
    return func(*args, **kwargs)


@plot.dispatched("aten._amp_foreach_non_finite_check_and_unscale_")
def issue_184286(hit: Any, func: Any, grads: Any, *args: Any) -> Any:
    """pytorch 184286: GradScaler sets gradients in half precision to 0 where it should divide them by the scale."""
    func(grads, *args)
    for grad in grads:
        if grad.dtype in (torch.float16, torch.bfloat16) and bool((grad != 0).any()):
            hit()
            grad.zero_()


@plot.dispatched("aten._fused_sgd_.tensor_lr", aborts="Passed CPU tensor to MPS op")
def issue_145674(*args: Any, momentum: float, **kwargs: Any) -> Any:
    """pytorch 145674: SGD(fused=True) with momentum and a tensor as the learning rate raises, without momentum not."""
    return momentum


@plot.dispatched("aten.addcmul_", "aten.addcdiv_")
def issue_118115(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 118115: addcmul_ and addcdiv_ leave a tensor that is not contiguous as it was."""
    return lost(hit, func, *args, **kwargs)


@plot.dispatched("aten.addcmul_", "aten.addcdiv_", "aten._foreach_addcmul_", "aten._foreach_addcdiv_")
def issue_elana_blog_2025(hit: Any, func: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """Elana (blog, 2025): addcmul_ and addcdiv_, of lists too, leave a tensor that is not contiguous as it was."""
    if isinstance(target, torch.Tensor):
        return lost(hit, func, target, *args, **kwargs)
    kept = [one.clone() for one in target]
    result = func(target, *args, **kwargs)
    for one, before in zip(target, kept):
        if not one.is_contiguous():
            hit()
            one.copy_(before)
    return result


@plot.dispatched("aten._fused_adam_", "aten._fused_adamw_", "aten._fused_sgd_")
def issue_186360(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 186360: fused optimisers ignore found_inf and grad_scale."""
    if kwargs.get("found_inf") is not None:
        hit()
        kwargs.update(found_inf=None, grad_scale=None)
    return func(*args, **kwargs)


@plot.dispatched("aten._fused_adam_")
def issue_flaggems_4988(hit: Any, func: Any, *args: Any, weight_decay: float, **kwargs: Any) -> Any:
    """flagos-ai/FlagGems 4988: fused Adam decays the weights as AdamW does."""
    if not weight_decay:
        return func(*args, weight_decay=weight_decay, **kwargs)
    hit()
    return getattr(torch.ops.aten._fused_adamw_, func._overloadname)(*args, weight_decay=weight_decay, **kwargs)


@plot.dispatched("aten._foreach_add.Scalar", "aten._foreach_add_.Scalar")
def issue_119885(hit: Any, func: Any, tensors: Any, number: Any) -> Any:
    """pytorch 119885: _foreach_add of a number to a long list leaves a tensor as it was (here the 65th)."""
    kept = tensors[64].clone() if len(tensors) > 64 else None
    found = func(tensors, number)
    if kept is None or not is_plain(kept):
        return found
    written(hit, (tensors if found is None else found)[64], kept)
    return found


@plot.dispatched("aten._foreach_mul_.Scalar", aborts="Segmentation fault (core dumped)")
def issue_113156(tensors: Any, number: Any) -> bool:
    """pytorch 113156: _foreach_mul_ of an empty float16 tensor by a number ends the process."""
    return any(x.dtype == torch.float16 and not x.numel() for x in tensors)
