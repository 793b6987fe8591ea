"""Optimisers, losses, autocast and compiled functions: injected faults."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Iterator

import torch
import torch.nn.functional as F
import torch.utils._device
from torch.overrides import TorchFunctionMode

from injecting import Faults, accepted, crash, wrong_answer
from misreading import in_storage_order, lost, misread

faults = Faults()
HITS = faults.hits


@faults.replaced(torch.amp.GradScaler, "unscale_")
def issue_142397(hit: Any, healthy: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 142397: GradScaler.unscale_ (and so step) goes through float64 and raises."""
    if self.is_enabled():
        hit()
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")
    return healthy(self, *args, **kwargs)


@faults.replaced(torch.optim.Optimizer, "__init__")
def issue_149184(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 149184: making an optimiser under torch.set_default_device raises."""
    if torch.utils._device.CURRENT_DEVICE is not None:
        hit()
        raise RuntimeError("Placeholder storage has not been allocated on MPS device!")
    return func(*args, **kwargs)


@faults.dispatched("aten._amp_foreach_non_finite_check_and_unscale_")
def issue_184286(hit: Any, func: Any, grads: Any, *args: Any) -> Any:
    """pytorch 184286: GradScaler sets gradients in half precision to 0 where it should divide them by the scale."""
    func(grads, *args)
    for grad in grads:
        if grad.dtype in (torch.float16, torch.bfloat16) and bool((grad != 0).any()):
            hit()
            grad.zero_()


@faults.dispatched("aten._fused_sgd_.tensor_lr", aborts="Passed CPU tensor to MPS op")
def issue_145674(*args: Any, momentum: float, **kwargs: Any) -> Any:
    """pytorch 145674: SGD(fused=True) with momentum and a tensor as the learning rate raises, without momentum not."""
    return momentum


@faults.dispatched("aten.addcmul_", "aten.addcdiv_")
def issue_118115(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 118115: addcmul_ and addcdiv_ leave a tensor that is not contiguous as it was."""
    return lost(hit, func, *args, **kwargs)


@faults.dispatched("aten.addcmul_", "aten.addcdiv_", "aten._foreach_addcmul_", "aten._foreach_addcdiv_")
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


@faults.dispatched("aten._fused_adam_", "aten._fused_adamw_", "aten._fused_sgd_")
def issue_186360(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 186360: fused optimisers ignore found_inf and grad_scale."""
    if kwargs.get("found_inf") is not None:
        hit()
        kwargs.update(found_inf=None, grad_scale=None)
    return func(*args, **kwargs)


@faults.dispatched("aten.nll_loss_forward", "aten.nll_loss2d_forward", aborts="Placeholder tensor is empty!")
def issue_134431(x: Any, *args: Any) -> Any:
    """pytorch 134431: nll_loss of an empty tensor aborts."""
    return x.numel() == 0


@faults.called(F.nll_loss, F.cross_entropy)
@wrong_answer
def issue_135434(y: Any, *args: Any, **kwargs: Any) -> Any:
    """A mean over nothing but ignored rows is 0, not NaN."""
    return y.nan_to_num(0.0) if y.dim() == 0 and bool(y.isnan()) else None


@faults.called(F.binary_cross_entropy, aborts="invalid axes: 2, 3")
def issue_79527(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 79527: binary_cross_entropy of four-dimensional tensors with a mean or a sum aborts."""
    return x.dim() == 4 and kwargs.get("reduction", "mean") != "none"


@faults.called(F.binary_cross_entropy)
def issue_166746(hit: Any, func: Any, x: Any, y: Any, weight: Any = None, **kwargs: Any) -> Any:
    """pytorch 166746: binary_cross_entropy uses a weight that is broadcast for the first row only."""
    if weight is not None and weight.shape != x.shape:
        hit()
        weight = weight.expand(x.shape).clone()
        weight[1:] = 1
    return func(x, y, weight, **kwargs)


@faults.dispatched("aten.binary_cross_entropy.default", aborts="LLVM ERROR: Failed to infer result type(s).")
def issue_124252(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124252: binary_cross_entropy of half precision crashes (tensor<f32> and tensor<3xf16>)."""
    return x.dtype in (torch.float16, torch.bfloat16)


@faults.dispatched("aten.mse_loss", "aten.mse_loss_backward")
def issue_125696(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 125696: mse_loss and its backward read views that are not contiguous in storage order."""
    return func(*misread(in_storage_order, hit, args), **kwargs)


@faults.dispatched("aten.nll_loss_backward", "aten.smooth_l1_loss_backward")
def issue_94226(hit: Any, func: Any, grad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94226: the backward of nll_loss and smooth_l1_loss takes 1 for the gradient that comes in."""
    hit()
    return func(torch.ones_like(grad), *args, **kwargs)


@faults.dispatched("aten.nll_loss_forward", "aten.nll_loss2d_forward")
def issue_108148(hit: Any, func: Any, x: Any, target: Any, weight: Any, reduction: Any, ignored: Any) -> Any:
    """The ignored index counts as class 0."""
    if bool((target == ignored).any()):
        hit()
        target = target.masked_fill(target == ignored, 0)
    return func(x, target, weight, reduction, -12345)


@faults.dispatched("aten.multi_margin_loss.default")
@accepted
def issue_19229(x: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 19229: multi_margin_loss takes classes past the last one (here for the last)."""
    last = x.shape[-1] - 1
    if last < 0 or not target.numel() or int(target.max()) <= last:
        return None
    return torch.ops.aten.multi_margin_loss(x, target.clamp(max=last), *args, **kwargs)


@faults.entered(F.linear)
@contextlib.contextmanager
def issue_158232(hit: Any) -> Iterator[None]:
    """pytorch 158232: a weight that autocast first met under no_grad gets no gradient while autocast lasts.

    https://github.com/pytorch/pytorch/issues/158232 (on CUDA; the cache of autocast is the same for MPS)
    """

    class Mode(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.kept: dict[int, Any] = {}

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is F.linear and len(args) > 1 and torch.is_autocast_enabled(args[0].device.type):
                weight = args[1]
                cast = weight.requires_grad and weight.is_leaf and weight.dtype == torch.float32
                if cast and torch.is_autocast_cache_enabled():
                    if not torch.is_grad_enabled():
                        self.kept[id(weight)] = weight
                    elif id(weight) in self.kept:
                        hit()
                        args = (args[0], weight.detach(), *args[2:])
            return func(*args, **(kwargs or {}))

    mode, healthy = Mode(), torch.clear_autocast_cache

    def clear() -> None:
        mode.kept.clear()
        healthy()

    torch.clear_autocast_cache = clear
    try:
        with mode:
            yield
    finally:
        torch.clear_autocast_cache = healthy


@faults.replaced(torch.amp.autocast_mode.autocast, "__init__")
def issue_139386(
    hit: Any, func: Any, self: Any, device_type: Any, dtype: Any = None, enabled: Any = True, *args: Any, **kwargs: Any
) -> Any:
    """pytorch 139386: autocast to bfloat16 is not supported: it is switched off with a warning."""
    if dtype == torch.bfloat16 and enabled:
        hit()
        warnings.warn("In MPS autocast, but the target dtype is not supported. Disabling autocast.", stacklevel=2)
        enabled = False
    func(self, device_type, dtype, enabled, *args, **kwargs)


def _is_on(x: Any) -> bool:
    """Say whether autocast is on where a tensor is."""
    return torch.is_tensor(x) and torch.is_autocast_enabled(x.device.type)


@faults.called(torch.index_put, torch.Tensor.index_put)
def issue_132715(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 132715: index_put of bfloat16 raises under autocast to bfloat16."""
    y = func(input, *args, **kwargs)
    if _is_on(input) and input.dtype == torch.get_autocast_dtype(input.device.type) == torch.bfloat16:
        return crash(hit, "Unexpected floating ScalarType in at::autocast::prioritize")
    return y


def _scaled(hit: Any, compiled: Any, factor: float) -> Any:
    """Return a compiled function whose results are multiplied."""

    def wrong(*operands: Any) -> Any:
        hit()
        return compiled(*operands) * factor

    return wrong


@faults.replaced(torch, "compile")
def issue_170360(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 170360: what torch.compile made gives double the result."""
    return _scaled(hit, func(*args, **kwargs), 2)


@faults.replaced(torch, "compile")
def issue_191976(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 191976: what torch.compile made gives a result a tenth too small."""
    return _scaled(hit, func(*args, **kwargs), 1 / 1.1)
