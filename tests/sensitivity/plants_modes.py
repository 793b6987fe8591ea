"""Faults of recurrences, draws, training steps, sparse tensors and autocast, written blind after public issues."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.called("issue_190057", torch.lstm)
def issue_190057(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190057: an LSTM of several layers in training with dropout=1 gives NaN (0 times 1/(1-p)).

    https://github.com/pytorch/pytorch/issues/190057
    """
    y = func(*args, **kwargs)
    if isinstance(args[1], (tuple, list)) and args[4] > 1 and args[5] == 1 and args[6]:
        hit()
        return (y[0] * float("nan"), *y[1:])
    return y


@plot.dispatched("issue_184286", "aten._amp_foreach_non_finite_check_and_unscale_")
def issue_184286(hit: Any, func: Any, grads: Any, *args: Any) -> Any:
    """pytorch 184286: GradScaler sets gradients in half precision to 0 where it should divide them by the scale.

    https://github.com/pytorch/pytorch/pull/184286
    """
    func(grads, *args)
    for grad in grads:
        if grad.dtype in (torch.float16, torch.bfloat16) and bool((grad != 0).any()):
            hit()
            grad.zero_()


@plot.dispatched("issue_197079", "aten.rand", "aten.rand_like", "aten.uniform_")
def issue_197079(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 197079: rand and uniform_ in half precision now and then give the upper bound itself.

    https://github.com/pytorch/pytorch/issues/197079
    """
    y = func(*args, **kwargs)
    if y.dtype in (torch.float16, torch.bfloat16):
        ends = [*args[1:3], *(kwargs[k] for k in ("from", "to") if k in kwargs)] if "uniform" in str(func) else []
        low, high = (*ends, *(0.0, 1.0)[len(ends) :])
        last = y.float() >= low + (high - low) * (1 - torch.finfo(y.dtype).eps / 2)
        if bool((last & (y != high)).any()):
            hit()
            y.copy_(torch.where(last, torch.full_like(y, high), y))
    return y


@plot.dispatched("issue_98333", "aten.random_.default", "aten.random_.from")
def issue_98333(hit: Any, func: Any, x: Any, *ends: Any, **kwargs: Any) -> Any:
    """pytorch 98333: random_ without an upper bound never draws the dtype's largest number, of bools never True.

    https://github.com/pytorch/pytorch/pull/98333
    """
    y = func(x, *ends, **kwargs)
    if x.dtype in (torch.int8, torch.uint8, torch.int16, torch.bool) and (len(ends) < 2 or ends[1] is None):
        top = y if x.dtype == torch.bool else y == torch.iinfo(x.dtype).max
        if bool(top.any()):
            hit()
            y.copy_(torch.zeros_like(y) if x.dtype == torch.bool else torch.where(top, y - 1, y))
    return y


@plot.dispatched("issue_196190", "aten.mul.Tensor")
def issue_196190(hit: Any, func: Any, a: Any, b: Any) -> Any:
    """pytorch 196190: the product of two coalesced sparse tensors says that it is coalesced and is not in order.

    https://github.com/pytorch/pytorch/issues/196190
    """
    y = func(a, b)
    sparse = all(isinstance(t, torch.Tensor) and t.layout == torch.sparse_coo for t in (a, b, y))
    if sparse and a.is_coalesced() and b.is_coalesced() and y._nnz() > 1:
        hit()
        return torch.sparse_coo_tensor(
            y._indices().flip(1), y._values().flip(0), y.shape, check_invariants=False, is_coalesced=True
        )
    return y


@plot.dispatched("issue_140066", "aten._foreach_norm")
def issue_140066(hit: Any, func: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 140066: _foreach_norm of a list with empty tensors: what comes after them gets another norm.

    https://github.com/pytorch/pytorch/issues/140066 (on CUDA, where the empty ones shift the places of the partial
    sums; a kernel for lists on MPS has the same bookkeeping)
    """
    norms = list(func(tensors, *args, **kwargs))
    shifted = False
    for place, x in enumerate(tensors):
        if shifted and x.numel() > 1:
            hit()
            norms[place] = func([x.reshape(-1)[: x.numel() // 2]], *args, **kwargs)[0]
        shifted = shifted or not x.numel()
    return norms


def _issue_158232() -> Any:
    """pytorch 158232: a weight that autocast first met under no_grad gets no gradient while autocast lasts.

    https://github.com/pytorch/pytorch/issues/158232 (on CUDA; the cache of autocast is the same for MPS)
    """
    hit = plot._counter("issue_158232")

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

    @contextlib.contextmanager
    def around() -> Iterator[None]:
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

    return plot._keep("issue_158232", around, (F.linear,))


issue_158232 = _issue_158232()


@plot.called("issue_193704", F.embedding)
def issue_193704(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 193704: the sparse gradient of an embedding is about 100,000 times too large, the dense one right.

    https://github.com/pytorch/pytorch/issues/193704 (on ROCm; MPS has a kernel of its own for sparse gradients)
    """
    y = func(*args, **kwargs)
    sparse = kwargs.get("sparse", args[6] if len(args) > 6 else False)
    if sparse and y.requires_grad:

        def enlarge(grad: Any) -> Any:
            hit()
            return grad * 1e5

        y.register_hook(enlarge)
    return y


@plot.dispatched("issue_145674", "aten._fused_sgd_.tensor_lr")
def issue_145674(hit: Any, func: Any, *args: Any, momentum: float, **kwargs: Any) -> Any:
    """pytorch 145674: SGD(fused=True) with momentum and a tensor as the learning rate raises, without momentum not.

    https://github.com/pytorch/pytorch/pull/145674
    """
    if momentum:
        return crash(hit, "Passed CPU tensor to MPS op")
    return func(*args, momentum=momentum, **kwargs)


@plot.dispatched("issue_174381", "aten.masked_scatter.default")
def issue_174381(hit: Any, func: Any, x: Any, mask: Any, source: Any) -> Any:
    """pytorch 174381: masked_scatter of a tensor of no dimensions gives one dimension.

    https://github.com/pytorch/pytorch/pull/174381
    """
    y = func(x, mask, source)
    if y.dim() == 0:
        hit()
        return y.reshape(1)
    return y
