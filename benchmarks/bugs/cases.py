"""Public bugs of PyTorch on MPS: what each computes on a device, as its thread shows it; the CPU's answer judges.

Drawn by rule: issues and pull requests of pytorch/pytorch that name MPS and show a wrong answer in a few lines, as 80
searches for "MPS" with an operator's name, or a word such as "wrong", gave them in November 2026. Left out is what
needs more than 2 GB, another macOS, or a GPU's own timing, and what has the cause of another one. Of 187 that were
tried those stand here, and in networks.py, that are wrong on an official release; the others are Apple's, or of no
release that was tried. The suite has no part in it: some are regressions there. Runs in the wheel's own Python.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Bug:
    """One thread: what it computes on a device.

    `operators`: patterns of drawn cases that could find it. `says`: how the words of such a case look.
    """

    number: int
    title: str
    operators: str
    says: str
    act: Callable[[str], Any]


BUGS: dict[int, Bug] = {}


def bug(number: int, title: str, operators: str, says: str = "") -> Callable[[Callable[[str], Any]], None]:
    """Register a function of a device (`cpu`, `mps`) whose two answers must be equal."""

    def register(act: Callable[[str], Any]) -> None:
        BUGS[number] = Bug(number, title, operators, says, act)

    return register


def randn(*shape: int) -> torch.Tensor:
    """Return the same numbers on each call."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def gradients(loss: torch.Tensor, *of: torch.Tensor) -> list[Any]:
    """Return the gradients of leaves."""
    loss.backward()
    return [leaf.grad for leaf in of]


# Conversions and copies.


@bug(94980, "a column of nonzero to float", "nonzero*")
def _(d: str) -> Any:
    return torch.tensor([[False, False, True, False], [False, False, False, True]]).to(d).nonzero()[:, 1].float()


@bug(160744, "a copy of -1.0 to bytes", "to_copy *_copy", "off by")
def _(d: str) -> Any:
    return torch.zeros(3, dtype=torch.uint8, device=d).copy_(torch.tensor(-1.0, device=d))


@bug(86185, "x[:] = a scalar view of the CPU", "slice_copy slice_assigned slice_written copied_from")
def _(d: str) -> Any:
    x = torch.ones(10, device=d)
    x[:] = torch.tensor([4])[0]
    return x


@bug(
    189563,
    "a copy to the CPU that converts changes its source",
    "copied_from read_out reread to_copy",
    "overwritten|off by|source",
)
def _(d: str) -> Any:
    source, there = (torch.arange(8) + 0.25).to(d), torch.empty(10, dtype=torch.float16)[2:]
    there.copy_(source)
    return there.clone(), source


@bug(189961, "a copy to the CPU between views with gaps", "copied_from read_out reread")
def _(d: str) -> Any:
    parent = torch.zeros(20)
    parent[::2].copy_(torch.arange(20.0).to(d)[::2])
    return parent


@bug(
    94190,
    "zeros_like of a transposed tensor, and fill_",
    "zeros_like:layout fill*:layout fill*:inplace fill_tensor slice_fill slice_zero",
)
def _(d: str) -> Any:
    x = randn(3, 4).to(d)
    x.t()[1:3].fill_(5.0)
    x[:, 0].zero_()
    return x, torch.zeros_like(x.t()[1:]), torch.ones_like(x.t())


@bug(95417, "a slice of floats = whole numbers", "slice_copy slice_assigned slice_written copied*")
def _(d: str) -> Any:
    x = torch.zeros(5).to(d)
    x[2:4] = torch.ones(2).to(d).long()
    return x


@bug(108978, "rows of the CPU = a tensor of the device", "copied_from read_out reread")
def _(d: str) -> Any:
    x = torch.zeros(3, 2)
    for i in range(3):
        x[i] = torch.full((2,), i + 1.0).to(d)
    return x


# Views and layouts.


@bug(139006, "silu of what is not dense", "silu:layout")
def _(d: str) -> Any:
    return F.silu(randn(4, 6).to(d)[:, ::2]), F.silu(randn(4, 6).to(d).T)


@bug(145203, "^= on a column", "ixor iand ior bitwise_*:inplace bitwise_*:layout")
def _(d: str) -> Any:
    x = torch.zeros(10, 2, dtype=torch.int16, device=d)
    x[:, 0] ^= 1
    return x


@bug(161640, "linear with a weight that is every second row", "linear*:layout linear*:memory")
def _(d: str) -> Any:
    return F.linear(randn(2, 8).to(d), randn(12, 8).to(d)[::2])


@bug(180984, "conv2d of some channels of channels_last", "conv2d*:layout conv2d*:memory")
def _(d: str) -> Any:
    x = randn(1, 2, 1, 2).contiguous(memory_format=torch.channels_last).to(d)
    return F.conv2d(x[:, :1], torch.full((1, 1, 1, 1), 2.0).to(d))


@bug(195074, "scatter_add_ into a view of bools", "index_put* scatter_add* index_add*", "elements wrong")
def _(d: str) -> Any:
    base = torch.zeros(8, dtype=torch.bool, device=d)
    at, ones = torch.tensor([0, 2], device=d), torch.ones(2, dtype=torch.bool, device=d)
    base.narrow(0, 1, 4).index_put_((at,), ones, accumulate=True)
    return base


@bug(193057, "arithmetic with a scalar view of the CPU", "mul div add sub", "off by")
def _(d: str) -> Any:
    s = torch.tensor([9.0, 2.0, 7.0])
    return [torch.full((2, 2), 4.0, device=d) * s[i] for i in range(3)] + [torch.full((2,), 4.0, device=d) / s[2]]


@bug(132605, "lgamma of an expanded tensor", "lgamma special_gammaln")
def _(d: str) -> Any:
    return torch.lgamma(torch.full((3, 1), 1.0).to(d).expand(3, 10))


@bug(131285, "masked_fill_ of a view", "masked_fill*:layout masked_fill*:inplace")
def _(d: str) -> Any:
    x = randn(4, 3, 5).to(d)
    view = x.permute(1, 0, 2)
    view.masked_fill_(torch.tensor([True, False, True, True]).view(1, 4, 1).to(d), -math.inf)
    return x


@bug(
    118115,
    "addcdiv_ and addcmul_ of transposed tensors",
    "addcdiv:layout addcdiv:inplace addcmul:layout addcmul:inplace",
    "off by|elements wrong",
)
def _(d: str) -> Any:
    a, b, c = (randn(2, 3).to(d).t(), randn(2, 3).abs().t().to(d), (randn(2, 3).flip(0).abs() + 1).t().to(d))
    return a.clone().addcdiv_(b, c), a.clone().addcmul_(b, c), a.addcdiv_(b, c)


@bug(91065, "a product of two pieces of unsafe_chunk", "mul:layout mul:memory chunk_parts")
def _(d: str) -> Any:
    x = randn(5).to(d).unsafe_chunk(4, 0)
    return x[0] * x[2]


@bug(89673, "log and clamp of a moved axis", "log:layout clamp*:layout")
def _(d: str) -> Any:
    x = randn(3, 4, 5).abs().to(d)
    return torch.log(x.transpose(0, 1)), torch.clamp(torch.moveaxis(x, 0, -1), 0.2, 1.0)


@bug(124834, "elu of a transposed tensor", "elu*:layout")
def _(d: str) -> Any:
    return F.elu(randn(1, 4, 5).to(d).transpose(1, 2))


@bug(124621, "mse_loss of transposed tensors", "mse_loss*:layout")
def _(d: str) -> Any:
    a, b = randn(3, 4).to(d).t(), randn(3, 4).flip(0).to(d).t()
    return F.mse_loss(a, b, reduction="none"), F.mse_loss(a, b)


@bug(100764, "neg into a transposed out=", "neg:out")
def _(d: str) -> Any:
    return torch.neg(torch.arange(4.0).to(d).reshape(2, 2), out=torch.empty(2, 2).to(d).t())


@bug(160740, "argmax of a transposed tensor", "argmax* argmin*", "view size")
def _(d: str) -> Any:
    x = randn(5, 5).to(d)
    return torch.argmax(x.t()), torch.argmax(x[::2, ::2]), torch.argmin(x.t())


# Whole numbers and bools.


@bug(154171, "% of large whole numbers", "remainder* fmod* rmod_of*", "off by")
def _(d: str) -> Any:
    return torch.tensor([42309891, 16798993]).to(d) % 31


@bug(190052, "abs of large whole numbers", "abs", "off by")
def _(d: str) -> Any:
    return torch.abs(torch.tensor([-(2**24 + 1), -(2**33 + 7)]).to(d))


@bug(130201, "clamp of a whole number by 0.1", "clamp*", "dtype")
def _(d: str) -> Any:
    return torch.tensor(0).to(d).clamp(min=1e-1)


@bug(137635, "linspace of int8 from 4.3 to -3", "linspace*", "off by")
def _(d: str) -> Any:
    return torch.linspace(4.3, -3, 50, dtype=torch.int8, device=d)


@bug(189630, "linspace of large int64", "linspace*", "off by")
def _(d: str) -> Any:
    return torch.linspace(2**40, 2**40 + 8, 9, dtype=torch.int64, device=d)


@bug(149233, "// of whole numbers by floats", "floor_divide*", "dtype")
def _(d: str) -> Any:
    return torch.arange(10).to(d) // torch.arange(1.0, 11.0).to(d)


# Special values.


@bug(120899, "clamp of NaN", "clamp clamp_m* clamp_one_tensor", "places: 0, expected [1-9]")
def _(d: str) -> Any:
    x = torch.tensor([math.nan, 1, 2]).to(d)
    return x.clamp(-100, 100), x.clamp(min=-100), x.clamp(max=100)


@bug(143976, "maximum and minimum of NaN", "maximum minimum", "NaN at")
def _(d: str) -> Any:
    x, y = torch.tensor([math.nan, 1, 2]).to(d), torch.tensor([0, math.nan, 1]).to(d)
    return torch.maximum(x, y), torch.minimum(x, y)


@bug(130295, "the largest of NaN", "max_all amax*", "NaN at")
def _(d: str) -> Any:
    return torch.tensor([1.0, math.nan, 3.0]).to(d).max()


@bug(100005, "triu of -inf", "triu*", "places: [1-9][0-9]*, expected 0")
def _(d: str) -> Any:
    return torch.triu(torch.full((4, 4), -math.inf, device=d), diagonal=1)


@bug(149813, "tril of inf below the diagonal", "tril*", "places: [1-9][0-9]*, expected 0")
def _(d: str) -> Any:
    return torch.tril(torch.full((3, 3), math.inf, device=d), diagonal=-1)


@bug(189243, "floor division of infinite numbers", "div_mode div_scalar_mode floor_divide*", "NaN at|infinity at")
def _(d: str) -> Any:
    a = torch.tensor([math.inf, -math.inf, 1.0, -1.0]).to(d)
    return torch.div(a, torch.tensor([1.0, 1.0, -math.inf, math.inf]).to(d), rounding_mode="floor")


@bug(152582, "copysign with a number", "copysign_scalar")
def _(d: str) -> Any:
    return torch.copysign(torch.tensor([1.0, 2.0, 3.0]).to(d), -2.0)


@bug(187521, "baddbmm of NaN with beta 0", "baddbmm*", "NaN at")
def _(d: str) -> Any:
    a = torch.ones(1, 1, 1).to(d)
    return torch.baddbmm(torch.full((1, 1, 1), math.nan).to(d), a, a, beta=0)


@bug(94534, "addmm of NaN with beta 0", "addmm*", "NaN at")
def _(d: str) -> Any:
    return torch.addmm(torch.full((2, 2), math.nan).to(d), torch.ones(2, 3).to(d), torch.ones(3, 2).to(d), beta=0)


@bug(94043, "log_softmax of numbers far apart", "log_softmax* _log_softmax*", "infinity at|NaN at")
def _(d: str) -> Any:
    return torch.tensor([[-16.9, 74.6, -245.6, 57.9, -59.8], [-13.8, 62.5, -206.0, 48.6, -51.3]]).to(d).log_softmax(-1)


@bug(195076, "histogram of numbers just beside its range", "histogram*", "off by")
def _(d: str) -> Any:
    edges = torch.tensor([0.0, 1.0, 2.0]).to(d)
    return torch.histogram(torch.tensor([-1e-6, 0.5, 2.000001]).to(d), edges)[0]


@bug(99811, "the norm of order 0", "norm* linalg_vector_norm*", "off by")
def _(d: str) -> Any:
    return torch.norm(torch.tensor([0.0, 3.0, 0.5, -2.0]).to(d), p=0)


@bug(196067, "lerp_ of float16 with a float32 weight", "lerp*", "off by|NaN at")
def _(d: str) -> Any:
    a = torch.zeros(2, dtype=torch.float16).to(d)
    return a.lerp_(a + 1, torch.tensor(0.1))


@bug(190476, "nextafter of bfloat16", "nextafter")
def _(d: str) -> Any:
    a, b = torch.tensor([1.0, 2.0, -1.0]).bfloat16(), torch.tensor([2.0, 1.0, 0.0]).bfloat16()
    return torch.nextafter(a.to(d), b.to(d)).float() * 4096


# Nothing, one element, no dimension.


@bug(139400, "count_nonzero of nothing", "count_nonzero*", "off by")
def _(d: str) -> Any:
    torch.full((64,), 77, device=d)
    return torch.count_nonzero(torch.empty(0, 2, 2, device=d) > 0)


@bug(161824, "isposinf of nothing", "isposinf isneginf", "INTERNAL ASSERT")
def _(d: str) -> Any:
    return torch.isposinf(torch.empty(0, device=d))


@bug(93877, "index_select by nothing", "index_select*", "INTERNAL ASSERT")
def _(d: str) -> Any:
    return torch.index_select(torch.arange(5).to(d), 0, torch.tensor([], dtype=torch.int32).to(d))


@bug(160738, "the variance of a scalar along dimension 0", "var* std*", "raised|shape")
def _(d: str) -> Any:
    return torch.var(torch.tensor(3.0).to(d), dim=0)


@bug(174381, "masked_scatter of a scalar", "masked_scatter*", "raised|shape")
def _(d: str) -> Any:
    x = torch.tensor(1.0).to(d)
    return x.masked_scatter(torch.tensor(True).to(d), torch.tensor([5.0]).to(d))


@bug(187399, "baddbmm of nothing", "baddbmm* addbmm*", "INTERNAL ASSERT")
def _(d: str) -> Any:
    return torch.baddbmm(randn(2, 0, 1).to(d), randn(2, 0, 3).to(d), randn(2, 3, 1).to(d), beta=0.5, alpha=100)


@bug(134431, "nll_loss of nothing", "nll_loss* cross_entropy*", "INTERNAL ASSERT")
def _(d: str) -> Any:
    return F.nll_loss(torch.rand(2, 3, 0, 7).to(d), torch.zeros(2, 0, 7, dtype=torch.long).to(d))


@bug(91878, "topk of none", "topk*", "INTERNAL ASSERT")
def _(d: str) -> Any:
    return torch.topk(torch.arange(4.0).to(d), 0)[0], torch.tensor([]).to(d).topk(0)[0]


# Reductions, sorting, indices.


@bug(107116, "std along negative dimensions", "std* var*", "off by|raised|shape")
def _(d: str) -> Any:
    return [torch.std(randn(2, 3, 4).to(d), dim=dim) for dim in (-1, -2, -3)]


@bug(160845, "index_add of complex numbers", "index_add*", "off by")
def _(d: str) -> Any:
    source = torch.complex(torch.zeros(40), randn(40)).to(d)
    return torch.zeros(40, dtype=torch.complex64).to(d).index_add_(0, torch.arange(40).to(d), source)


@bug(189134, "solve of one right side for a batch", "solve_broadcast solve_vector linalg_solve", "off by")
def _(d: str) -> Any:
    a = randn(2, 3, 3) + 3 * torch.eye(3)
    return torch.linalg.solve(a.to(d), randn(3, 1).to(d)), torch.linalg.solve(a.to(d), randn(3).to(d))


@bug(84516, "dropout after the same seed", "smoke-random-numbers-repeat-and-advance 82707-t9-dropout*")
def _(d: str) -> Any:
    torch.manual_seed(0)
    first = F.dropout(torch.ones(100).to(d), 0.3)
    torch.manual_seed(0)
    return torch.equal(first, F.dropout(torch.ones(100).to(d), 0.3))


# Complex numbers.


@bug(184379, "the imaginary part of a conjugate", "imag conj*", "off by")
def _(d: str) -> Any:
    return torch.conj(torch.complex(randn(4), randn(4)).to(d)).imag


@bug(177474, "einsum with a conjugate", "einsum* bmm*", "off by")
def _(d: str) -> Any:
    x = torch.complex(randn(3), randn(3).flip(0)).to(d)
    return torch.einsum("i,i", x, torch.conj(x))


@bug(194813, "powers of a complex 0", "pow*", "NaN at")
def _(d: str) -> Any:
    x = torch.tensor([0j, 1 + 1j], dtype=torch.complex64).to(d)
    return [x**n for n in range(4)]
