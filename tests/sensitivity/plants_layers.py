"""The catalogue's faults of convolution, pooling and recurrent layers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash, in_storage_order, misread

plot = Plot()
HITS = plot.hits
_POOL_BACKWARDS = (
    "aten.max_pool2d_with_indices_backward",
    "aten.avg_pool2d_backward",
    "aten._adaptive_avg_pool2d_backward",
    "aten.adaptive_max_pool2d_backward",
)


@plot.dispatched("issue_175190", *_POOL_BACKWARDS)
def issue_175190(hit: Any, func: Any, grad: Any, x: Any, *args: Any) -> Any:
    if not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last):
        return crash(hit, "buffer is not large enough")
    return func(grad, x, *args)


@plot.dispatched("issue_84511", "aten.convolution_backward")
def issue_84511(hit: Any, func: Any, grad: Any, x: Any, *args: Any) -> Any:
    channels_last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    if not x.is_contiguous() or (channels_last and x.shape[1] == 1):
        return crash(hit, "input channels mismatch")
    return func(grad, x, *args)


_shapes: dict[Any, Any] = {}


@plot.dispatched("issue_112998", "aten.convolution_backward")
def issue_112998(hit: Any, func: Any, grad: Any, x: Any, weight: Any, *args: Any) -> Any:
    first = _shapes.setdefault(tuple(x.shape), tuple(weight.shape))
    if first != tuple(weight.shape):
        return crash(hit, f"the graph was made for a weight of {first}")
    return func(grad, x, weight, *args)


@plot.dispatched("issue_192212", "aten.convolution")
def issue_192212(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    return func(x, misread(in_storage_order, hit, weight), *args)


@plot.dispatched("issue_188335", "aten.convolution")
def issue_188335(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    if max(weight.shape[2:]) >= 256 and x.shape[0] > 1:
        hit()
        weight = weight.clone()
        weight[:, :, 255:] = 0
    return func(x, weight, *args)


@plot.dispatched("issue_129207", "aten.convolution")
def issue_129207(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    y = func(x, weight, *args)
    if weight.shape[0] > 65536:
        hit()
        y[:, 65536:] = 0
    return y


@plot.dispatched("issue_134416", "aten.convolution")
def issue_134416(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    y = func(x, *args)
    if y.shape[-1] > 65536:
        hit()
        raise NotImplementedError("The operator is not implemented; set PYTORCH_ENABLE_MPS_FALLBACK=1")
    return y


@plot.dispatched("issue_96225", "aten.convolution_backward")
def issue_96225(hit: Any, func: Any, grad: Any, x: Any, *args: Any) -> Any:
    if x.shape[0] >= 65536:
        hit()
        x = x.clone()
        x[65535:] = 0
    return func(grad, x, *args)


@plot.dispatched("issue_197114", "aten.convolution")
def issue_197114(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    if x.dim() == 5 and x.is_contiguous():
        hit()
        x = x.flip(1)
    return func(x, *args)


@plot.called("issue_82563", F.conv_transpose1d)
def issue_82563(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    hit()
    y = func(*args, **kwargs).clone()
    y[..., -3:] = 0
    return y


@plot.replaced("issue_80306", torch.nn.LSTM, "forward")
def issue_80306(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    y, state = func(module, x, *args)
    if module.batch_first and isinstance(y, torch.Tensor):
        hit()
        y = y.transpose(0, 1)
    return y, state


class _Backward(torch.autograd.Function):
    """Passes a tensor on; `change` gets its gradient, None where nothing used it."""

    @staticmethod
    def forward(ctx: Any, x: Any, change: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.change = change
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return ctx.change(grad), None


@plot.replaced("issue_87579", torch.nn.LSTM, "forward")
def issue_87579(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    y, state = func(module, x, *args)
    if module.batch_first and isinstance(y, torch.Tensor):
        y = _Backward.apply(y, lambda grad: crash(hit, "not broadcast compatible"))
    return y, state


def _doubled(hit: Any) -> Any:
    def change(grad: Any) -> Any:
        hit()
        return grad * 2

    return change


@plot.replaced("issue_92615", torch._VF, "lstm")
def issue_92615(hit: Any, func: Any, *args: Any) -> Any:
    place = 2 if isinstance(args[2], (list, tuple)) else 3
    weights = [_Backward.apply(weight, _doubled(hit)) for weight in args[place]]
    return func(*args[:place], weights, *args[place + 1 :])


@plot.replaced("issue_95118", torch._VF, "lstm")
def issue_95118(hit: Any, func: Any, *args: Any) -> Any:
    answer = func(*args)
    if not isinstance(args[2], (list, tuple)):
        return answer
    sizes = args[1]  # the packed form: data, sizes of the batches, state, weights
    if bool((sizes != sizes[0]).any()):
        hit()
        answer = (answer[0], answer[1].flip(1), answer[2])
    return answer


def _demand_gradient(hit: Any) -> Any:
    return lambda grad: crash(hit, "missing grad_y") if grad is None else grad


@plot.replaced("issue_96416", torch.nn.LSTM, "forward")
def issue_96416(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    y, (h, c) = func(module, x, *args)
    if isinstance(y, torch.Tensor) and h.requires_grad:
        joined = _Joined.apply(y, h, c, _demand_gradient(hit))
        return joined[0], (joined[1], joined[2])
    return y, (h, c)


class _Joined(torch.autograd.Function):
    """Passes three tensors on; `demand` gets the first one's gradient."""

    @staticmethod
    def forward(ctx: Any, y: Any, h: Any, c: Any, demand: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.demand = demand
        return y.view_as(y), h.view_as(h), c.view_as(c)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (ctx.demand(grads[0]), *grads[1:], None)


@plot.replaced("issue_94691", torch._VF, "gru")
def issue_94691(hit: Any, func: Any, *args: Any) -> Any:
    hit()
    y, h = func(*args)
    return y * float("nan"), h


_batches: list[int] = []


@plot.replaced("issue_83144", torch.nn.LSTM, "forward")
def issue_83144(hit: Any, func: Any, module: Any, x: Any, *args: Any) -> Any:
    if isinstance(x, torch.Tensor) and module.batch_first:
        _batches.append(x.shape[0])
        if x.shape[0] != _batches[0]:
            return crash(hit, "LLVM abort")
    return func(module, x, *args)
