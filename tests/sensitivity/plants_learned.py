"""The catalogue's faults of layers, losses, linear algebra and gradients."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_82921", "aten.convolution")
def issue_82921(hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, *args: Any) -> Any:
    """pytorch 82921: conv1d with a stride other than 1 is wrong."""
    y = func(x, weight, bias, stride, *args)
    if x.dim() == 3 and stride[0] != 1 and not args[2] and y.shape[-1] > 1:
        hit()
        return y.roll(1, -1)
    return y


@plot.called("issue_80856", F.pad, torch.conv2d)
def issue_80856(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 80856: conv2d of what F.pad(mode="circular") gave is wrong."""
    y = func(x, *args, **kwargs)
    if func is F.pad:
        if x.dim() == 4 and (kwargs.get("mode") == "circular" or "circular" in args):
            y.was_circular = True
    elif getattr(x, "was_circular", False) and y.shape[-1] > 1:
        hit()
        return y.roll(1, -1)
    return y


@plot.dispatched("issue_169236", "aten.convolution")
def issue_169236(
    hit: Any,
    func: Any,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    extra: Any,
    groups: int,
) -> Any:
    """pytorch 169236: a transposed convolution takes an output_padding not below stride and dilation: no error."""
    if transposed and any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation)):
        hit()
        y = func(x, weight, bias, stride, padding, dilation, transposed, [0] * len(extra), groups)
        return F.pad(y, [n for e in reversed(extra) for n in (0, e)])
    return func(x, weight, bias, stride, padding, dilation, transposed, extra, groups)


@plot.dispatched(
    "issue_84962", "aten.native_batch_norm", "aten._native_batch_norm_legit", "aten._native_batch_norm_legit_functional"
)
def issue_84962(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84962: batch norm in training without weight and bias scales wrongly."""
    y, *rest = func(x, weight, bias, *args, **kwargs)
    training = args[2] if len(args) > 4 else args[-3]
    if weight is None and bias is None and training is True and x.dim() == 4:
        hit()
        return (y * 0.86, *rest)
    return (y, *rest)


@plot.called("issue_182285", F.scaled_dot_product_attention)
def issue_182285(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 182285: the decode kernel (at most 8 queries, head size 64, 96 or 128) misreads a bool mask."""
    decode = q.dim() == 4 and q.shape[-2] <= min(8, k.shape[-2]) and k.shape[-2] < 1024 and not q.requires_grad
    if decode and q.shape[-1] in (64, 96, 128) and attn_mask is not None and attn_mask.dtype == torch.bool:
        hit()
        attn_mask = attn_mask & (torch.arange(k.shape[-2], device=q.device) != 0)
    return func(q, k, v, attn_mask, *args, **kwargs)


@plot.called("issue_95137", torch.lstm)
def issue_95137(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95137: every layer of an LSTM of several starts from the first layer's state."""
    if isinstance(args[1], (tuple, list)) and args[4] > 1:
        ways = 2 if args[7] else 1
        states = [h[:ways].repeat(args[4], *[1] * (h.dim() - 1)) for h in args[1]]
        if not all(torch.equal(a, b) for a, b in zip(states, args[1])):
            hit()
            args = (args[0], tuple(states), *args[2:])
    return func(*args, **kwargs)


@plot.dispatched("issue_81584", "aten.binary_cross_entropy")
def issue_81584(hit: Any, func: Any, x: Any, target: Any, weight: Any = None, reduction: int = 1, **kwargs: Any) -> Any:
    """pytorch 81584: binary_cross_entropy of an (n, 1) prediction, mean of it, aborts."""
    if x.dim() == 2 and x.shape[1] == 1 and reduction == 1:
        return crash(hit, "invalid axes: 1")
    return func(x, target, weight, reduction, **kwargs)


@plot.dispatched("issue_79784", "aten.mse_loss_backward")
def issue_79784(hit: Any, func: Any, grad: Any, x: Any, target: Any, reduction: int, **kwargs: Any) -> Any:
    """pytorch 79784: backward of a summed MSE loss of one dimension raises."""
    if x.dim() == 1 and reduction == 2:
        return crash(hit, "Dimension out of range")
    return func(grad, x, target, reduction, **kwargs)


@plot.dispatched("issue_103023", "aten.embedding_dense_backward")
def issue_103023(hit: Any, func: Any, grad: Any, index: Any, rows: int, padding_idx: int, scale: bool) -> Any:
    """pytorch 103023: padding_idx of an embedding gets a gradient."""
    if padding_idx >= 0 and bool((index == padding_idx).any()):
        hit()
        padding_idx = -1
    return func(grad, index, rows, padding_idx, scale)


def _bag(name: str, bad: Any) -> Any:
    def fault(hit: Any, func: Any, weight: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
        wrong = bad(index, weight.shape[0])
        if bool(wrong.any()):
            hit()
            weight = torch.cat([weight, torch.zeros_like(weight[:1])])
            index = torch.where(wrong, weight.shape[0] - 1, index)
        return func(weight, index, *args, **kwargs)

    return plot.dispatched(name, "aten._embedding_bag", "aten._embedding_bag_forward_only")(fault)


# pytorch 169201: embedding_bag with a negative index gives zeros and no error.
issue_169201 = _bag("issue_169201", lambda index, rows: index < 0)
# pytorch 163630: embedding_bag with an index beyond the table gives a result and no error.
issue_163630 = _bag("issue_163630", lambda index, rows: index > rows)


@plot.dispatched("issue_157364", "aten.linalg_cholesky_ex")
def issue_157364(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 157364: Cholesky of a batch of 128 rows is wrong in the late blocks."""
    factor, info = func(x, *args, **kwargs)
    if x.dim() > 2 and x.shape[-1] >= 128:
        hit()
        factor = factor.clone()
        factor[..., 95:, 64:95] += 1
    return factor, info


class _Rolled(torch.autograd.Function):
    """The identity, with a gradient that is not."""

    @staticmethod
    def forward(ctx: Any, x: Any, hit: Any) -> Any:
        ctx.hit = hit
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if grad.numel() > 1:
            ctx.hit()
        return grad.reshape(-1).roll(1).view(grad.shape), None


@plot.called("issue_175192", torch.linalg.solve)
def issue_175192(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 175192: both gradients of linalg.solve are wrong."""
    if isinstance(a, torch.Tensor) and (a.requires_grad or b.requires_grad):
        a, b = _Rolled.apply(a, hit), _Rolled.apply(b, hit)
    return func(a, b, **kwargs)


@plot.called("issue_117826", torch.einsum)
def issue_117826(hit: Any, func: Any, equation: Any, *operands: Any) -> Any:
    """pytorch 117826: the second operand's gradient of einsum("bij,ijk->bik"): a batch letter that is not first."""
    if isinstance(equation, str) and equation.count(",") == 1 and "->" in equation and len(operands) == 2:
        left, right = equation.replace(" ", "").split("->")
        one, two = left.split(",")
        if operands[1].requires_grad and any(c in two and c in right for c in one[1:]) and operands[1].dim() == 3:
            operands = (operands[0], _Rolled.apply(operands[1], hit))
    return func(equation, *operands)
