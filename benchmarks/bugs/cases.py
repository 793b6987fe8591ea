"""Public bugs of PyTorch on MPS: what each computes on a device, as its thread shows it; the CPU's answer judges.

Drawn by rule: issues and pull requests of pytorch/pytorch that name MPS and show a wrong answer in a few lines, as 25
searches for "MPS" with an operator's name, or a word such as "wrong", gave them in November 2026. Left out is what
needs more than 2 GB, another macOS, or a GPU's own timing. The suite has no part in it: some are regressions there.
Runs in the wheel's own Python, with torch alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Bug:
    """One thread: what it computes on a device. `operators`: patterns of drawn cases that could find it."""

    number: int
    title: str
    operators: str
    act: Callable[[str], Any]


BUGS: dict[int, Bug] = {}


def bug(number: int, title: str, operators: str) -> Callable[[Callable[[str], Any]], None]:
    """Register a function of a device (`cpu`, `mps`) whose two answers must be equal."""

    def register(act: Callable[[str], Any]) -> None:
        BUGS[number] = Bug(number, title, operators, act)

    return register


def randn(*shape: int) -> torch.Tensor:
    """Return the same numbers on each call."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def gradients(loss: torch.Tensor, *of: torch.Tensor) -> list[Any]:
    """Return the gradients of leaves."""
    loss.backward()
    return [leaf.grad for leaf in of]


# Conversions and copies.


@bug(80009, "uint8 to float32", "to_copy *_cast")
def _(d: str) -> Any:
    return torch.tensor([28, 208, 172, 255], dtype=torch.uint8).to(d).to(torch.float32)


@bug(79286, "int64 and bool to float and int", "to_copy *_cast")
def _(d: str) -> Any:
    x = torch.tensor([1, 2, 3, 4, 5]).to(d)
    return x.to(torch.float), x.to(torch.int), (x > 2).to(torch.float), (x > 2).to(torch.int)


@bug(78091, "float to bool and int", "to_copy *_cast")
def _(d: str) -> Any:
    x = torch.tensor([5.3, 42.8, 0.0]).to(d)
    return x.to(torch.bool).to(torch.float), x.to(torch.int)


@bug(94980, "a column of nonzero to float", "nonzero to_copy")
def _(d: str) -> Any:
    return torch.tensor([[False, False, True, False], [False, False, False, True]]).to(d).nonzero()[:, 1].float()


@bug(83692, "full of uint8", "full*")
def _(d: str) -> Any:
    return torch.full((4,), 255, dtype=torch.uint8, device=d), torch.full((4,), 130, dtype=torch.uint8, device=d)


@bug(160744, "a copy of -1.0 to bytes", "*_copy to_copy broadcast_copies")
def _(d: str) -> Any:
    return torch.zeros(3, dtype=torch.uint8, device=d).copy_(torch.tensor(-1.0, device=d))


@bug(86185, "x[:] = a scalar view of the CPU", "*_copy slice_copy")
def _(d: str) -> Any:
    x = torch.ones(10, device=d)
    x[:] = torch.tensor([4])[0]
    return x


@bug(189563, "a copy to the CPU that converts changes its source", "*_copy to_copy broadcast_copies")
def _(d: str) -> Any:
    source, there = (torch.arange(8) + 0.25).to(d), torch.empty(10, dtype=torch.float16)[2:]
    there.copy_(source)
    return there.clone(), source


@bug(194344, "a copy to the CPU that converts, of a view that begins later", "*_copy to_copy broadcast_copies")
def _(d: str) -> Any:
    x = torch.arange(2000).remainder(97).to(torch.float16).to(d)
    return [x[at : at + 300].to("cpu", torch.float32) for at in (1, 2, 64, 256)]


@bug(197715, "a copy to a float64 tensor of the CPU", "*_copy to_copy broadcast_copies")
def _(d: str) -> Any:
    return torch.full((8,), 7.0, dtype=torch.float64).copy_(torch.arange(1, 9, dtype=torch.float32).to(d))


@bug(189961, "a copy to the CPU between views with gaps", "*_copy")
def _(d: str) -> Any:
    parent = torch.zeros(20)
    parent[::2].copy_(torch.arange(20.0).to(d)[::2])
    return parent


# Views and layouts.


@bug(150967, "where with a transposed condition", "where*")
def _(d: str) -> Any:
    condition = torch.tensor([[True, False], [True, True]]).to(d).T
    return torch.where(condition, torch.tensor([[1, 2], [3, 4]]).to(d), 0)


@bug(131736, "softplus, selu and threshold of a moved axis", "softplus selu threshold prelu")
def _(d: str) -> Any:
    x = torch.linspace(-1, 1, 6).view(2, 3).to(d).moveaxis(0, 1)
    return F.softplus(x), F.selu(x), F.threshold(x, 0.1, 7.0)


@bug(139006, "silu of what is not dense", "silu")
def _(d: str) -> Any:
    return F.silu(randn(4, 6).to(d)[:, ::2]), F.silu(randn(4, 6).to(d).T)


@bug(145203, "^= on a column", "bitwise_xor*")
def _(d: str) -> Any:
    x = torch.zeros(10, 2, dtype=torch.int16, device=d)
    x[:, 0] ^= 1
    return x


@bug(95482, "a product of two views of a slice", "mul")
def _(d: str) -> Any:
    x = randn(2, 3, 3).to(d)[:1]
    return x[:, 0:1, 0:1] * x[:, 1:2, 1:2]


@bug(94753, "the mean of a slice of a slice", "mean*")
def _(d: str) -> Any:
    x = randn(3, 5, 2).to(d)
    return [x[i][:2].mean(dim=j) for i in range(3) for j in (0, 1)]


@bug(161640, "linear with a weight that is every second row", "linear*")
def _(d: str) -> Any:
    return F.linear(randn(2, 8).to(d), randn(12, 8).to(d)[::2])


@bug(192212, "conv2d with a weight that is a slice of five dimensions", "conv2d*")
def _(d: str) -> Any:
    return F.conv2d(randn(2, 4, 8, 8).to(d), randn(3, 4, 3, 3, 3).to(d)[:, :, 1])


@bug(180984, "conv2d of some channels of channels_last", "conv2d*")
def _(d: str) -> Any:
    x = randn(1, 2, 1, 2).contiguous(memory_format=torch.channels_last).to(d)
    return F.conv2d(x[:, :1], torch.full((1, 1, 1, 1), 2.0).to(d))


@bug(183631, "fill_ of a view of bools that begins at byte 1", "fill*")
def _(d: str) -> Any:
    x = torch.zeros(16, dtype=torch.bool, device=d)
    x[1:].fill_(True)
    return x


@bug(195074, "scatter_add_ into a view of bools", "scatter_add index_add index_put*")
def _(d: str) -> Any:
    base = torch.zeros(8, dtype=torch.bool, device=d)
    at, ones = torch.tensor([0, 2], device=d), torch.ones(2, dtype=torch.bool, device=d)
    base.narrow(0, 1, 4).index_put_((at,), ones, accumulate=True)
    return base


@bug(182822, "bitwise operators with a scalar view of bools", "bitwise_*")
def _(d: str) -> Any:
    a, b = torch.tensor([True, False, True]).to(d), torch.tensor([True, False]).to(d)[1]
    return torch.bitwise_and(a, b), torch.bitwise_or(a, b), torch.bitwise_xor(a, b)


@bug(193057, "arithmetic with a scalar view of the CPU", "mul div add sub")
def _(d: str) -> Any:
    s = torch.tensor([9.0, 2.0, 7.0])
    return [torch.full((2, 2), 4.0, device=d) * s[i] for i in range(3)] + [torch.full((2,), 4.0, device=d) / s[2]]


@bug(132605, "lgamma of an expanded tensor", "lgamma special_gammaln")
def _(d: str) -> Any:
    return torch.lgamma(torch.full((3, 1), 1.0).to(d).expand(3, 10))


@bug(105284, "cumsum of an expanded int16", "cumsum")
def _(d: str) -> Any:
    return torch.tensor([1, 2, 3, 5, 6], dtype=torch.int16).to(d).unsqueeze(-1).expand(5, 3).cumsum(-1)


@bug(98266, "flip along a dimension of one", "flip*")
def _(d: str) -> Any:
    return torch.arange(1.0, 4.0)[None, :].to(d).flip(0)


# Whole numbers and bools.


@bug(90635, "cumsum of whole numbers", "cumsum")
def _(d: str) -> Any:
    x = torch.ones(4, dtype=torch.int64).to(d)
    return x.cumsum(0, dtype=torch.int32), x.to(torch.int16).cumsum(0, dtype=torch.int16), x.cumsum(0)


@bug(96614, "cumsum of bools", "cumsum")
def _(d: str) -> Any:
    return (randn(100, 2) < 0.5).to(d).cumsum(0)


@bug(92329, "cumsum along the last dimension", "cumsum")
def _(d: str) -> Any:
    return randn(10, 2).to(d).cumsum(-1)


@bug(179415, "the sum of uint8 in uint8", "sum* prod*")
def _(d: str) -> Any:
    return torch.tensor([[255, 2, 1], [5, 3, 6]], dtype=torch.uint8).to(d).sum(dtype=torch.uint8)


@bug(90273, "the largest int64", "max_all amax*")
def _(d: str) -> Any:
    return torch.arange(5).to(d).max()


@bug(98191, "argmax of int64", "argmax")
def _(d: str) -> Any:
    return torch.argmax(torch.tensor([[0, 1], [2, 1], [1, 0]]).to(d), dim=1)


@bug(109067, "argmax of int32", "argmax")
def _(d: str) -> Any:
    return torch.argmax(torch.tensor([14, 13, 11], dtype=torch.int).to(d), dim=0)


@bug(78020, "bools times a number", "mul* add*")
def _(d: str) -> Any:
    x = torch.tensor(True).to(d)
    return x * 2, x + 1


@bug(144190, ">> of uint8", "bitwise_right_shift*")
def _(d: str) -> Any:
    return torch.tensor([255, 128], dtype=torch.uint8).to(d) >> 4


@bug(154171, "% of large whole numbers", "remainder* fmod*")
def _(d: str) -> Any:
    return torch.tensor([42309891, 16798993]).to(d) % 31


@bug(190052, "abs of large whole numbers", "abs")
def _(d: str) -> Any:
    return torch.abs(torch.tensor([-(2**24 + 1), -(2**33 + 7)]).to(d))


@bug(130201, "clamp of a whole number by 0.1", "clamp*")
def _(d: str) -> Any:
    return torch.tensor(0).to(d).clamp(min=1e-1)


@bug(137635, "linspace of int8 from 4.3 to -3", "linspace")
def _(d: str) -> Any:
    return torch.linspace(4.3, -3, 50, dtype=torch.int8, device=d)


@bug(189630, "linspace of large int64", "linspace")
def _(d: str) -> Any:
    return torch.linspace(2**40, 2**40 + 8, 9, dtype=torch.int64, device=d)


@bug(91620, "eye of bools", "eye*")
def _(d: str) -> Any:
    return torch.eye(9, dtype=torch.bool, device=d)


@bug(84995, "floor division of int64", "div* floor_divide*")
def _(d: str) -> Any:
    return torch.div(torch.tensor([1, 2, 3, 800]).to(d), 400, rounding_mode="floor")


# Special values.


@bug(120899, "clamp of NaN", "clamp*")
def _(d: str) -> Any:
    x = torch.tensor([math.nan, 1, 2]).to(d)
    return x.clamp(-100, 100), x.clamp(min=-100), x.clamp(max=100)


@bug(143976, "maximum and minimum of NaN", "maximum minimum")
def _(d: str) -> Any:
    x, y = torch.tensor([math.nan, 1, 2]).to(d), torch.tensor([0, math.nan, 1]).to(d)
    return torch.maximum(x, y), torch.minimum(x, y)


@bug(130295, "the largest of NaN", "max_all amax* argmax")
def _(d: str) -> Any:
    return torch.tensor([1.0, math.nan, 3.0]).to(d).max()


@bug(100005, "triu of -inf", "triu*")
def _(d: str) -> Any:
    return torch.triu(torch.full((4, 4), -math.inf, device=d), diagonal=1)


@bug(149813, "tril of inf below the diagonal", "tril*")
def _(d: str) -> Any:
    return torch.tril(torch.full((3, 3), math.inf, device=d), diagonal=-1)


@bug(144545, "triu of four dimensions", "triu* tril*")
def _(d: str) -> Any:
    return torch.triu(randn(2, 3, 4, 4).to(d), diagonal=1), torch.tril(randn(2, 3, 4, 4).to(d), diagonal=-1)


@bug(189243, "floor division of infinite numbers", "div* floor_divide*")
def _(d: str) -> Any:
    a = torch.tensor([math.inf, -math.inf, 1.0, -1.0]).to(d)
    return torch.div(a, torch.tensor([1.0, 1.0, -math.inf, math.inf]).to(d), rounding_mode="floor")


@bug(82543, "1.0 - x", "rsub* sub*")
def _(d: str) -> Any:
    return 1.0 - torch.tensor([0.0, 0.49, 0.8, 0.9, 0.95]).to(d)


@bug(77988, "add_ of a product", "add*")
def _(d: str) -> Any:
    return torch.ones(3, 3, device=d).add_(randn(3, 3).to(d), alpha=-0.5).add_(-0.5 * randn(3, 3).to(d))


@bug(152582, "copysign with a number", "copysign*")
def _(d: str) -> Any:
    return torch.copysign(torch.tensor([1.0, 2.0, 3.0]).to(d), -2.0)


# Nothing, one element, no dimension.


@bug(139400, "count_nonzero of nothing", "count_nonzero*")
def _(d: str) -> Any:
    torch.full((64,), 77, device=d)
    return torch.count_nonzero(torch.empty(0, 2, 2, device=d) > 0)


@bug(104694, "all of nothing", "all* any*")
def _(d: str) -> Any:
    return torch.empty(0, dtype=torch.bool, device=d).all(), torch.empty(0, device=d).all()


@bug(161824, "isposinf of nothing", "isposinf isneginf")
def _(d: str) -> Any:
    return torch.isposinf(torch.empty(0, device=d))


@bug(93877, "index_select by nothing", "index_select*")
def _(d: str) -> Any:
    return torch.index_select(torch.arange(5).to(d), 0, torch.tensor([], dtype=torch.int32).to(d))


@bug(160738, "the variance of a scalar along dimension 0", "var* std*")
def _(d: str) -> Any:
    return torch.var(torch.tensor(3.0).to(d), dim=0)


@bug(174381, "masked_scatter of a scalar", "masked_scatter*")
def _(d: str) -> Any:
    x = torch.tensor(1.0).to(d)
    return x.masked_scatter(torch.tensor(True).to(d), torch.tensor([5.0]).to(d))


# Reductions, sorting, indices.


@bug(91198, "var and std as they are called most", "var* std*")
def _(d: str) -> Any:
    return torch.arange(10, dtype=torch.float32).to(d).var(), torch.eye(2).to(d).std()


@bug(107116, "std along negative dimensions", "std* var*")
def _(d: str) -> Any:
    return [torch.std(randn(2, 3, 4).to(d), dim=dim) for dim in (-1, -2, -3)]


@bug(97231, "norm along a dimension after norm of all", "norm* linalg_vector_norm*")
def _(d: str) -> Any:
    x = torch.tensor([[1.0, 2.0, 3.0]]).to(d)
    return x.norm(2, dim=[]), x.norm(2, dim=0)


@bug(83656, "topk of more than 15", "topk*")
def _(d: str) -> Any:
    return torch.topk(randn(2, 100).to(d), k=20)[0]


@bug(125100, "a mask of two dimensions", "index_mask* masked_select")
def _(d: str) -> Any:
    x = torch.tensor([[1, 0, 2, 0, -100, -100, -100]] * 2).to(d)
    return x[torch.tensor([[True] * 4 + [False] * 3] * 2).to(d)]


@bug(82645, "index_add of float16", "index_add")
def _(d: str) -> Any:
    x = torch.zeros(4, 2, dtype=torch.float16).to(d)
    return x.index_add(0, torch.tensor([1, 3]).to(d), torch.ones(2, 2, dtype=torch.float16).to(d), alpha=2)


@bug(160845, "index_add of complex numbers", "index_add")
def _(d: str) -> Any:
    source = torch.complex(torch.zeros(40), randn(40)).to(d)
    return torch.zeros(40, dtype=torch.complex64).to(d).index_add_(0, torch.arange(40).to(d), source)


# Complex numbers.


@bug(184379, "the imaginary part of a conjugate", "conj* imag*")
def _(d: str) -> Any:
    return torch.conj(torch.complex(randn(4), randn(4)).to(d)).imag


@bug(148156, "a product with a conjugate", "mm* matmul*")
def _(d: str) -> Any:
    x = torch.complex(randn(2, 2), randn(2, 2).T).to(d)
    return x.T.conj() @ x


@bug(177474, "einsum with a conjugate", "einsum* bmm*")
def _(d: str) -> Any:
    x = torch.complex(randn(3), randn(3).flip(0)).to(d)
    return torch.einsum("i,i", x, torch.conj(x))


# Networks.


@bug(81384, "a bias after einsum", "einsum* add")
def _(d: str) -> Any:
    weight, bias = torch.ones(3, 4, 5).to(d), torch.arange(15.0).view(3, 1, 5).to(d)
    return (torch.einsum("ij,bjk->bik", randn(2, 4).to(d), weight) + bias).cpu()


@bug(79784, "MSELoss of one row through linear", "mse_loss* linear*")
def _(d: str) -> Any:
    weight = randn(2, 2).to(d).requires_grad_()
    loss = F.mse_loss(F.linear(torch.ones(2).to(d), weight), torch.full((2,), 2.0).to(d), reduction="sum")
    return gradients(loss, weight)


@bug(94226, "nll_loss and smooth_l1_loss with a gradient that is not 1", "nll_loss* smooth_l1_loss*")
def _(d: str) -> Any:
    x = randn(4, 3).to(d).requires_grad_()
    y = randn(4, 3).flip(0).to(d).requires_grad_()
    loss = 3 * F.nll_loss(x.log_softmax(1), torch.tensor([0, 2, 1, 1]).to(d)) + 5 * F.smooth_l1_loss(y, x.detach())
    return gradients(loss, x, y)


@bug(183825, "layer_norm's parameters where the input needs no gradient", "layer_norm*")
def _(d: str) -> Any:
    weight, bias = torch.ones(4).to(d).requires_grad_(), torch.zeros(4).to(d).requires_grad_()
    return gradients((F.layer_norm(randn(2, 4).to(d), (4,), weight, bias) * 2).sum(), weight, bias)


@bug(186367, "layer_norm of nearly equal numbers", "layer_norm*")
def _(d: str) -> Any:
    return F.layer_norm(torch.tensor([[1.0, 1.001, 0.999, 1.0]]).to(d), (4,), eps=1e-7)


@bug(84962, "batch_norm in training", "batch_norm*")
def _(d: str) -> Any:
    return nn.BatchNorm2d(3, affine=False).to(d)(randn(4, 3, 5, 7).to(d))


@bug(82921, "conv1d with a stride", "conv1d*")
def _(d: str) -> Any:
    return F.conv1d(randn(1, 7, 40).to(d), randn(5, 7, 3).to(d), stride=2)


@bug(82711, "conv_transpose1d with a stride", "conv_transpose1d*")
def _(d: str) -> Any:
    return F.conv_transpose1d(torch.ones(1, 1, 2).to(d), torch.ones(1, 1, 2).to(d), stride=2)


@bug(124591, "conv1d of what Upsample made", "interpolate_nearest1d* conv1d*")
def _(d: str) -> Any:
    return F.conv1d(F.interpolate(randn(2, 3, 10).to(d), scale_factor=2.0), randn(3, 3, 1).to(d))


@bug(171602, "grid_sample in three dimensions with a permuted grid", "grid_sample*")
def _(d: str) -> Any:
    grid = randn(1, 3, 3, 4, 4).tanh().to(d).permute(0, 2, 3, 4, 1)
    return F.grid_sample(randn(1, 2, 3, 4, 4).to(d), grid, align_corners=False)


@bug(184122, "attention with another scale than before", "attention*")
def _(d: str) -> Any:
    q = randn(1, 2, 4, 8).to(d)
    return F.scaled_dot_product_attention(q, q, q), F.scaled_dot_product_attention(q, q, q, scale=2.0)


@bug(184180, "attention with a mask that is broadcast in part", "attention*")
def _(d: str) -> Any:
    q, mask = randn(2, 4, 8, 64).to(d), torch.zeros(2, 1, 8, 8)
    mask[0, 0, 4:, :4] = -math.inf
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask.to(d))


@bug(195910, "causal attention in float16", "attention*")
def _(d: str) -> Any:
    q = randn(1, 4, 64, 64).to(torch.float16)
    if d == "cpu":
        return F.scaled_dot_product_attention(q.float(), q.float(), q.float(), is_causal=True).half()
    return F.scaled_dot_product_attention(q.to(d), q.to(d), q.to(d), is_causal=True)


@bug(190061, "embedding_bag's scale_grad_by_freq", "embedding_bag*")
def _(d: str) -> Any:
    weight = torch.ones(4, 3).to(d).requires_grad_()
    at, offsets = torch.tensor([1, 1], device=d), torch.tensor([0], device=d)
    return gradients(F.embedding_bag(at, weight, offsets, mode="sum", scale_grad_by_freq=True).sum(), weight)


@bug(165870, "LU of a singular matrix", "lu_factor* linalg_lu*")
def _(d: str) -> Any:
    try:
        torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [2.0, 4.0]], device=d))
    except RuntimeError as refused:
        return "not implemented" if "not currently" in str(refused) else "refused"
    return "no error"
