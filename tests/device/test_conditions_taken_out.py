"""Rules 1 and 3: a tensor beside a view of itself, one number taken out of many, dimensions named twice.

A vector times itself as a column was wrong, https://github.com/xtensor-stack/xtensor/issues/1345; the sum of one int32
that is taken out of a vector, https://github.com/arrayfire/arrayfire/issues/981
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
        f"{name}-{dims}-{rank}": lambda x, name=name, dims=dims, rank=rank: getattr(torch, name)(
            x if rank == 3 else x[0], dim=dims
        )
        for name, dims in itertools.product(_OVER, ((0, 0), (1, -1, 1), (-2, 0, -2), (0, 1, -1, 0)))
        for rank in (2, 3)
    },
)
