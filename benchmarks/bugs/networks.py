"""Public bugs of PyTorch on MPS in what networks are made of: layers, their gradients, losses, attention."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from cases import bug, gradients, randn


@bug(94226, "nll_loss and smooth_l1_loss with a gradient that is not 1", "nll_loss*:gradient smooth_l1_loss*:gradient")
def _(d: str) -> Any:
    x = randn(4, 3).to(d).requires_grad_()
    y = randn(4, 3).flip(0).to(d).requires_grad_()
    loss = 3 * F.nll_loss(x.log_softmax(1), torch.tensor([0, 2, 1, 1]).to(d)) + 5 * F.smooth_l1_loss(y, x.detach())
    return gradients(loss, x, y)


@bug(
    183825,
    "layer_norm's parameters where the input needs no gradient",
    "layer_norm*:gradient native_layer_norm*:gradient",
)
def _(d: str) -> Any:
    weight, bias = torch.ones(4).to(d).requires_grad_(), torch.zeros(4).to(d).requires_grad_()
    return gradients((F.layer_norm(randn(2, 4).to(d), (4,), weight, bias) * 2).sum(), weight, bias)


@bug(186367, "layer_norm of nearly equal numbers", "layer_norm* native_layer_norm*", "off by")
def _(d: str) -> Any:
    return F.layer_norm(torch.tensor([[1.0, 1.001, 0.999, 1.0]]).to(d), (4,), eps=1e-7)


@bug(171602, "grid_sample in three dimensions with a permuted grid", "grid_sample3d:layout grid_sample3d:memory")
def _(d: str) -> Any:
    grid = randn(1, 3, 3, 4, 4).tanh().to(d).permute(0, 2, 3, 4, 1)
    return F.grid_sample(randn(1, 2, 3, 4, 4).to(d), grid, align_corners=False)


@bug(184122, "attention with another scale than before", "attention* 82707-t7-sdpa-scale-float32", "off by")
def _(d: str) -> Any:
    q = randn(1, 2, 4, 8).to(d)
    return F.scaled_dot_product_attention(q, q, q), F.scaled_dot_product_attention(q, q, q, scale=2.0)


@bug(190061, "embedding_bag's scale_grad_by_freq", "embedding_bag*", "off by")
def _(d: str) -> Any:
    weight = torch.ones(4, 3).to(d).requires_grad_()
    at, offsets = torch.tensor([1, 1], device=d), torch.tensor([0], device=d)
    return gradients(F.embedding_bag(at, weight, offsets, mode="sum", scale_grad_by_freq=True).sum(), weight)


@bug(165870, "LU of a singular matrix", "linalg_lu_factor lu_factor_ex linalg_lu", "refus|raise")
def _(d: str) -> Any:
    try:
        torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [2.0, 4.0]], device=d))
    except RuntimeError as refused:
        return "not implemented" if "not currently" in str(refused) else "refused"
    return "no error"


@bug(
    175189,
    "the gradient of batch_norm of channels_last",
    "batch_norm*:layout native_batch_norm*:layout batch_norm*:gradient",
    "view size|off by",
)
def _(d: str) -> Any:
    x = randn(4, 3, 8, 8).contiguous(memory_format=torch.channels_last).to(d).requires_grad_()
    weight, bias = torch.ones(3).to(d).requires_grad_(), torch.zeros(3).to(d).requires_grad_()
    y = F.batch_norm(x, None, None, weight, bias, training=True)
    return gradients((y * randn(4, 3, 8, 8).to(d)).sum(), x, weight, bias)


@bug(
    174345,
    "batch_norm and avg_pool2d of channels_last that begins later",
    "batch_norm*:layout native_batch_norm*:layout avg_pool2d*:layout batch_norm*:memory avg_pool2d*:memory",
    "off by",
)
def _(d: str) -> Any:
    x = randn(1, 17, 4).to(d)[:, 1:].reshape(1, 4, 4, 4).permute(0, 3, 1, 2)
    return nn.BatchNorm2d(4).eval().to(d)(x), F.avg_pool2d(x, 2)


@bug(108148, "cross_entropy with a label of -100 and an ignore_index", "cross_entropy nll_loss", "off by")
def _(d: str) -> Any:
    x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]).to(d).requires_grad_()
    loss = F.cross_entropy(x, torch.tensor([1, 0, -100]).to(d))
    return loss, *gradients(loss, x)


@bug(94348, "avg_pool2d with padding and another divisor", "avg_pool2d*", "off by")
def _(d: str) -> Any:
    x = randn(1, 2, 6, 6).to(d)
    return [
        F.avg_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        F.avg_pool2d(x, 3, 2, 1, divisor_override=5),
        F.avg_pool2d(x, 3, 2, 1, divisor_override=7),
    ]


@bug(190064, "adaptive_max_pool2d of 5 to 3", "adaptive_max_pool2d*", "off by|shape|stride should")
def _(d: str) -> Any:
    return F.adaptive_max_pool2d(torch.arange(25.0).reshape(1, 1, 5, 5).to(d), (3, 3), return_indices=True)


@bug(180744, "an LSTM in evaluation after training", "lstm*", "off by")
def _(d: str) -> Any:
    torch.manual_seed(0)
    net, x = nn.LSTM(4, 4, num_layers=2, dropout=0.9).to(d).train(), randn(3, 1, 4).to(d)
    net(x)
    return net.eval()(x)[0].detach()


@bug(190056, "the gradient of an LSTM whose dropout drops all", "lstm*", "NaN at|off by")
def _(d: str) -> Any:
    torch.manual_seed(0)
    net, x = nn.LSTM(4, 4, num_layers=2, dropout=1.0).to(d).train(), randn(3, 2, 4).to(d).requires_grad_()
    out = net(x)[0]
    return out.detach(), *gradients(out.sum(), x, net.weight_ih_l1)


@bug(92615, "an LSTM's gradient through its last state alone", "lstm*", "grad_y")
def _(d: str) -> Any:
    torch.manual_seed(0)
    net, x = nn.LSTM(3, 4).to(d), randn(5, 2, 3).to(d).requires_grad_()
    _, (h, c) = net(x)
    return gradients((h * randn(1, 2, 4).to(d)).sum() + c.sum(), x, *net.parameters())


@bug(
    103023, "the gradient of embedding with a padding_idx", "embedding embedding_dense_backward*", "0 of the scale -?0"
)
def _(d: str) -> Any:
    weight = randn(5, 3).to(d).requires_grad_()
    return gradients(F.embedding(torch.tensor([[0, 1, 1, 2]]).to(d), weight, padding_idx=0).sum(), weight)


@bug(185119, "the gradient of embedding by frequency", "embedding embedding_dense_backward*", "off by")
def _(d: str) -> Any:
    weight = randn(5, 3).to(d).requires_grad_()
    return gradients(F.embedding(torch.tensor([0, 1, 1, 2]).to(d), weight, scale_grad_by_freq=True).sum(), weight)


@bug(156707, "attention with a row that is masked out", "attention*", "NaN at")
def _(d: str) -> Any:
    q = randn(1, 1, 2, 4).to(d)
    return F.scaled_dot_product_attention(q, q, q, attn_mask=torch.tensor([[[[False, False], [True, True]]]]).to(d))


@bug(188147, "attention of NaN", "attention*", "NaN at")
def _(d: str) -> Any:
    q, k = randn(1, 1, 4, 64), randn(1, 1, 16, 64)
    q[0, 0, 0, 0] = math.nan
    return F.scaled_dot_product_attention(q.to(d), k.to(d), k.to(d))
