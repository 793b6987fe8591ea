"""Rules 1 and 3: a tensor beside a view of itself, one number taken out of many, dimensions named twice, counts.

A vector times itself as a column was wrong, https://github.com/xtensor-stack/xtensor/issues/1345; the sum of one int32
that is taken out of a vector, https://github.com/arrayfire/arrayfire/issues/981; arange of float32 had a number too
many, https://github.com/pytorch/pytorch/issues/18363; what is called under autocast with operands of its own dtype,
https://github.com/pytorch/pytorch/issues/132715
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]

_BINARY = (
    "add sub mul div maximum minimum eq lt ge fmax fmin remainder fmod logical_and bitwise_and hypot atan2 pow".split()
)
_WHOLE = ("bitwise_and",)
_FRACTIONS = ("div", "hypot", "atan2", "pow", "fmod", "remainder")
# A vector beside itself as a column, as one number, turned round, and in part; it is read twice.
_OWN: dict[str, Form] = {
    "column": lambda f, x: [f(x, x[:, None]), f(x[:, None], x)],
    "number": lambda f, x: [f(x, x[1]), f(x[2], x)],
    "one": lambda f, x: [f(x, x[1:2]), f(x[-1:], x)],
    "turned": lambda f, x: f(x, x.flip(0)),
    "square": lambda f, x: [f(y := x.expand(len(x), len(x)), y.t()), f(y.t(), y)],
    "steps": lambda f, x: f(x[::2], x[1::2][:1]),
    "itself": lambda f, x: f(x, x),
    "halves": lambda f, x: f(*x[: len(x) // 2 * 2].chunk(2)),
    "parts": lambda f, x: f(*x[: len(x) // 2 * 2].view(2, -1).unbind()),
    "unfolded": lambda f, x: f(x.unfold(0, 2, 1), x[:2]),
}
for _dtype in (torch.float32, *HALVES, torch.int64, torch.int32, torch.uint8):
    _floating = _dtype.is_floating_point
    add_table(
        cases,
        f"own-views-{str(_dtype)[6:]}",
        {
            f"{name}-{way}-{count}": lambda x, name=name, form=form, count=count: form(getattr(torch, name), x[:count])
            for name, (way, form), count in itertools.product(_BINARY, _OWN.items(), (3, 4, 17))
            if not (name in _WHOLE and _floating) and not (name in _FRACTIONS and not _floating)
        },
        lambda d, dtype=_dtype: (d.integers(1, 9, 17).to(dtype),),
        factor=16.0,
    )

# One number, one row or none of many, taken out by a cut, an index, a step; then reduced or reckoned with.
_CUTS: dict[str, Form] = {
    "cut": lambda x: x[2:3],
    "last": lambda x: x[-1:],
    "row": lambda x: x.view(6, 4)[3:4, 1:2],
    "cell": lambda x: x.view(6, 4)[3, 1],
    "step": lambda x: x[5::30],
    "column": lambda x: x.view(6, 4)[:, 2:3],
    "index": lambda x: x[torch.tensor([7], device=x.device)],
    "mask": lambda x: x[torch.arange(24, device=x.device) == 9],
    "none": lambda x: x[4:4],
    "deep": lambda x: x.view(2, 3, 2, 2)[1:, 1:2, :, 1],
}
_SAID: dict[str, Form] = {
    "sums": lambda y: [y.sum(), y.sum(0), y.prod(), y.cumsum(0), y.any(), y.all()],
    "ends": lambda y: [y.amax(), y.max(), y.argmin(), y.sort()[0], y.unique()] if y.numel() else y.sum(),
    "reckoned": lambda y: [y + 1, y * y, -y, y == y, y.clone(), y.to(torch.float32) / 2],
    "joined": lambda y: [
        torch.cat([y.reshape(-1), y.reshape(-1)]),
        torch.stack([y, y]),
        y.reshape(-1).repeat(3),
        y.flip(0),
    ],
    "told": lambda y: [y.tolist(), y.shape, y.storage_offset(), y.count_nonzero(), y.nonzero()],
    "numbers": lambda y: [y.item(), int(y), bool(y)] if y.numel() == 1 else y.shape,
}
for _dtype in (torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool):
    add_table(
        cases,
        f"taken-out-{str(_dtype)[6:]}",
        {
            f"{cut}-{name}": lambda x, cut=cut, form=form: form(_CUTS[cut](x))
            for cut, (name, form) in itertools.product(_CUTS, _SAID.items())
            if _dtype != torch.bool or name in ("sums", "joined", "told", "numbers")
        },
        lambda d, dtype=_dtype: (d.integers(1, 90, 24).to(dtype),),
    )

# Reductions and contractions over all dimensions of what has gaps; a dimension that is named twice is refused.
_GAPS: dict[str, Form] = {
    "gaps": lambda x: x[:, ::2, 1:3],
    "turned": lambda x: x.permute(2, 0, 1),
    "flat": lambda x: x[:1],
    "whole": lambda x: x,
}
_OVER = ("sum", "mean", "amax", "amin", "logsumexp", "std", "var", "nansum", "count_nonzero", "norm")
_FOLDED: dict[str, Form] = {
    f"{name}-{way}": lambda x, form=form, cut=cut: form(cut(x))
    for way, cut in _GAPS.items()
    for name, form in {
        "all": lambda y: [torch.tensordot(y, y, y.dim()), torch.einsum("abc,abc->", y, y), (y * y).sum()],
        "two": lambda y: [torch.tensordot(y, y, ([0, 1], [0, 1])), torch.einsum("abc,abd->cd", y, y)],
        "one": lambda y: [torch.tensordot(y, y, ([2], [2])), torch.einsum("abc,dec->abde", y, y)],
        "outer": lambda y: torch.tensordot(y[0], y[0], 0),
        "sums": lambda y: [y.sum(d) for d in (0, (0, 1), (2, 0), (0, 1, 2), (-1, -3))],
        "derived": lambda y: derived(lambda z: torch.tensordot(z, z * 2, 3), y),
        "row-bias": lambda y: F.linear(y[:, :1], y[0], y[-1, :, :1].mT.expand(1, y.shape[1])),
    }.items()
}
_MAKE = lambda d: (d.integers(-4, 5, 4, 6, 5).float(),)  # noqa: E731
add_table(cases, "folded", _FOLDED, _MAKE)
add_refused(
    cases,
    "named-twice",
    _MAKE,
    {
        **{
            f"{name}-{dims}-{rank}": lambda x, name=name, dims=dims, rank=rank: getattr(torch, name)(
                x if rank == 3 else x[0], dim=dims
            )
            for name, dims in itertools.product(_OVER, ((0, 0), (1, -1, 1), (-2, 0, -2), (0, 1, -1, 0)))
            for rank in (2, 3)
        },
        # An end before the start, by less than float32 has.
        **{
            f"arange-{start}": lambda x, start=start, gap=gap: torch.arange(start, start - gap, device=x.device)
            for start, gap in ((1.0, 1e-9), (100.0, 1e-7), (-5.0, 1e-8), (1e6, 1e-3))
        },
    },
)

# How many numbers a count has: its ends and steps are reckoned wider than float32.
_COUNTS = (
    *((-4, 4, 0.01), (0, 1, 0.1), (0, 1, 1 / 3), (1, 2, 0.05), (0, 0.3, 0.1), (10, -10, -0.1), (0, 100, 0.7)),
    *((-1, 1, 0.002), (0, 5, 0.625), (3, 4, 0.001), (1e3, 1e3 + 1, 0.125), (0, 1e-3, 1e-4), (2, 3, 0.3), (0, 6, 1.2)),
)
add_table(
    cases,
    "counted-by-steps",
    {
        f"{ends}-{str(dtype)[6:]}": lambda x, ends=ends, dtype=dtype: [
            (y := torch.arange(*ends, dtype=dtype, device=x.device)).shape,
            y[:1],
            y[-1:],
            torch.arange(*ends, dtype=torch.float32, device=x.device)[::7],
        ]
        for ends in _COUNTS
        for dtype in (torch.float32, *HALVES, torch.int64)
        if dtype != torch.int64 or abs(ends[2]) >= 1
    },
    lambda d: (torch.zeros(1),),
    factor=16.0,
)

# Under autocast, by functions that have no rule of their own: operands of its dtype, of float32, and of both.
_CALLED: dict[str, Form] = {
    "index_put": lambda x, y, i: x.clone().index_put_((i,), y[:3].to(x.dtype)),
    "index_put-added": lambda x, y, i: x.index_put((i,), y[:3].to(x.dtype), accumulate=True),
    "assigned": lambda x, y, i: [z := x.clone(), z.__setitem__(i, y[:3].to(x.dtype))][0],
    "index_add": lambda x, y, i: x.index_add(0, i, y[:3].to(x.dtype)),
    "index_copy": lambda x, y, i: x.index_copy(0, i, y[:3].to(x.dtype)),
    "scatter": lambda x, y, i: x.scatter(0, i[:, None].expand(3, 4), y[:3].to(x.dtype)),
    "scatter_add": lambda x, y, i: x.scatter_add(0, i[:, None].expand(3, 4), y[:3].to(x.dtype)),
    "gather": lambda x, y, i: x.gather(0, i[:, None].expand(3, 4)),
    "where": lambda x, y, i: torch.where(y > 0, x, y),
    "cat": lambda x, y, i: torch.cat([x, y]),
    "stack": lambda x, y, i: torch.stack([x, y]),
    "vector_norm": lambda x, y, i: [torch.linalg.vector_norm(x[:1, :1]), torch.linalg.vector_norm(x), x[0, :1].norm()],
    "matrix_norm": lambda x, y, i: [torch.linalg.matrix_norm(x), torch.norm(x, dim=1), x.norm(1)],
    "normalize": lambda x, y, i: [F.normalize(x, dim=1), F.cosine_similarity(x, y), F.pairwise_distance(x, y)],
    "sums": lambda x, y, i: [x.sum(), x.mean(0), x.cumsum(0), x.prod(), x.logsumexp(0), x.softmax(0), x.var(0)],
    "pointwise": lambda x, y, i: [x + y, x * y, x.exp(), x.pow(2), torch.lerp(x, x * 2, 0.5), x.clamp(-1, 1)],
    "addmm": lambda x, y, i: [
        torch.addmm(x, x, y),
        torch.baddbmm(x[None], x[None], y[None]),
    ],
    "products": lambda x, y, i: [
        x @ y,
        torch.einsum("ab,cb->ac", x, y),
        torch.bmm(x[None], y[None]),
        F.linear(x, y, x[0]),
    ],
    "bilinear": lambda x, y, i: F.bilinear(x, x, x[None], x[0, :1]),
    "layer_norm": lambda x, y, i: [F.layer_norm(x, (4,)), F.group_norm(x[None], 2), F.rms_norm(x, (4,))],
    "losses": lambda x, y, i: [
        F.mse_loss(x, y),
        F.l1_loss(x, y),
        F.cross_entropy(x, i[[0, 1, 2, 0]] % 4),
        F.kl_div(x, y),
    ],
    "pooled": lambda x, y, i: [F.avg_pool1d(x[None], 2), F.interpolate(x[None], scale_factor=2.0), F.pad(x, (1, 1))],
    "dropped": lambda x, y, i: [F.dropout(x, 0.0), F.embedding(i, x), F.embedding_bag(i[None], x, mode="sum")],
    "attended": lambda x, y, i: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], y > 0),
    "glued": lambda x, y, i: [F.glu(x), F.silu(x), F.gelu(x), F.leaky_relu(x), F.prelu(x, x[0, :1].abs())],
}


def _cast(form: Form, to: torch.dtype, given: torch.dtype, x: torch.Tensor, y: torch.Tensor, i: torch.Tensor) -> Any:
    with torch.autocast(x.device.type, to):
        return form(x.to(given), y, i)


for _to in (torch.bfloat16, torch.float16):
    add_table(
        cases,
        f"autocast-others-{str(_to)[6:]}",
        {
            f"{name}-{str(given)[6:]}": lambda x, y, i, form=form, to=_to, given=given: _cast(form, to, given, x, y, i)
            for name, form in _CALLED.items()
            for given in (torch.float32, _to)
        },
        lambda d: (d.integers(-4, 5, 4, 4).float() / 4, d.integers(1, 5, 4, 4).float() / 4, torch.tensor([2, 0, 3])),
        terms=16,
        factor=16.0,
        floor=4.0,
        since="2.6",
    )
