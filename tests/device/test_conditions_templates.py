"""Rules 1 and 2: tensors that only say a size, a dtype or a layout; storage that is resized, shared or taken away.

resize_as_ refused a template of another dtype, https://github.com/pytorch/pytorch/issues/11665; isclose of a tensor
of no dimensions beside one that has some raised with equal_nan; index_select of no places from a tensor of no
dimensions was random, https://github.com/pytorch/pytorch/issues/94340
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]
_DTYPES = (torch.float32, *HALVES, torch.int64, torch.int16, torch.uint8, torch.bool, torch.complex64)

# x has 24 numbers; t is the template.
_TEMPLATES: dict[str, Form] = {
    "dense": lambda x: x[:12].view(3, 4),
    "turned": lambda x: x[:12].view(4, 3).t(),
    "spread": lambda x: x[:4].expand(3, 4),
    "stepped": lambda x: x.view(3, 8)[:, ::2],
    "cube": lambda x: x.view(2, 3, 4),
    "images": lambda x: x.view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
    "volumes": lambda x: x.view(1, 2, 2, 3, 2).contiguous(memory_format=torch.channels_last_3d),
    "cell": lambda x: x[5],
    "one": lambda x: x[5:6],
    "none": lambda x: x[:0],
    "none-two": lambda x: x[:0].view(0, 3),
}


def _form_of(y: torch.Tensor) -> str:
    return str((tuple(y.shape), y.stride(), y.is_floating_point()))


def _laid(y: torch.Tensor) -> Any:
    return [y, _form_of(y)]


_USED: dict[str, Form] = {
    "resize_as": lambda x, t: _laid(x.clone().resize_as_(t)),
    "resize_as-format": lambda x, t: _laid(x.clone().resize_as_(t, memory_format=torch.contiguous_format)),
    "resize_as-turned": lambda x, t: _laid(x.view(4, 6).t().clone().t().resize_as_(t)),
    "resized": lambda x, t: _laid(x.clone().resize_(t.shape)),
    "view_as": lambda x, t: _laid(x[: t.numel()].view_as(t)),
    "reshape_as": lambda x, t: _laid(x.view(4, 6).t().reshape(-1)[: t.numel()].reshape_as(t)),
    "expand_as": lambda x, t: _laid(x[3].expand_as(t)),
    "expand_as-one": lambda x, t: _laid(x[3:4].expand_as(t)) if t.dim() else _laid(x[3].expand_as(t)),
    "type_as": lambda x, t: _laid((x[:6].abs() % 2).type_as(t)),
    "to": lambda x, t: _laid((x[:6].abs() % 2).to(t)),
    "to-copy": lambda x, t: _laid((x.view(4, 6).t()[:2].abs() % 2).to(t, copy=True)),
    "ones_like": lambda x, t: _laid(torch.ones_like(t)),
    "zeros_like": lambda x, t: _laid(torch.zeros_like(t, dtype=torch.int32)),
    "full_like": lambda x, t: _laid(torch.full_like(t, 1, memory_format=torch.contiguous_format)),
    "empty_like": lambda x, t: _form_of(torch.empty_like(t)),
    "rand_like": lambda x, t: _form_of(torch.rand_like(t)) if t.is_floating_point() else "",
    "new": lambda x, t: [
        _laid(t.new_zeros(2, 3)),
        _laid(t.new_full((2,), 1)),
        _laid(t.new_tensor([0, 1])),
        _form_of(t.new()),
    ],
    "new_empty": lambda x, t: [_form_of(t.new_empty((2, 2))), _form_of(t.new_empty_strided((2, 2), (1, 2)))],
    "set": lambda x, t: _laid(t.new_ones(3).set_(t)),
    "set-none": lambda x, t: _laid(t.clone().set_()),
    "set-storage": lambda x, t: _laid(t.new_ones(3).set_(t.untyped_storage())[: t.numel()]),
    "set-part": lambda x, t: _laid(t.new_ones(3).set_(t.untyped_storage(), 0, (t.numel() // 2,), (1,))),
    "data": lambda x, t: _laid(_with_data(t.new_ones(2), t)),
    "copied": lambda x, t: _laid((x[3].abs() % 2).expand_as(t).clone().to(t.dtype).copy_(t)),
    "broadcast": lambda x, t: [
        str(torch.broadcast_shapes(x[:1].shape, t.shape)),
        _laid(torch.broadcast_tensors(x[:1], t)[0]),
    ],
    "sum_to_size": lambda x, t: _laid((x[3].expand(2, *t.shape)).sum_to_size(t.shape)),
    "contiguous": lambda x, t: _laid(t.contiguous()),
    "clone": lambda x, t: _laid(t.clone()),
    "clone-dense": lambda x, t: _laid(t.clone(memory_format=torch.contiguous_format)),
    "same": lambda x, t: [t.is_set_to(t), t.is_same_size(t), torch.equal(t, t.clone()), t.is_contiguous()],
}


def _with_data(y: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    y.data = t
    return y


def _numbers(d: Any) -> tuple[torch.Tensor]:
    return (d.distinct(24) / 4 + 0.125,)


for _dtype in (torch.float32, torch.int64):
    add_table(
        cases,
        f"templates-{str(_dtype)[6:]}",
        {
            f"{use}-{template}-{str(dtype)[6:]}": lambda x, act=act, make=make, dtype=dtype: act(
                x, make((x.abs() % 2 >= 1).to(dtype))
            )
            for at, (use, act) in enumerate(_USED.items())
            for place, (template, make) in enumerate(_TEMPLATES.items())
            for spot, dtype in enumerate(_DTYPES)
            if (at + place + 2 * spot) % (9 if _dtype == torch.float32 else 13) == 0
            if use != "set-storage" or template not in ("turned", "stepped")
        },
        (_numbers if _dtype == torch.float32 else lambda d: (d.distinct(24, dtype=torch.int64),)),
    )
# Sizes that a tensor is given, of as many places or of fewer; what it was is what lies in its memory from its start.
_SIZES = ((24,), (4, 6), (2, 3, 4), (5,), (2, 2), (), (0,), (3, 0), (1, 2, 3, 4), (24, 1))
_STARTS: dict[str, Form] = {
    "dense": lambda x: x.clone(),
    "matrix": lambda x: x.view(4, 6).clone(),
    "turned": lambda x: x.view(4, 6).clone().t(),
    "stepped": lambda x: torch.cat([x, x]).view(4, 12)[:, ::2],
    "part": lambda x: torch.cat([x, x, x])[5:29],
    "cube": lambda x: x.view(2, 3, 4).clone().permute(2, 0, 1),
}
add_table(
    cases,
    "templates-resized",
    {
        **{
            f"{start}-{size}": lambda x, make=make, size=size: _laid(make(x).resize_(size))
            for start, make in _STARTS.items()
            for size in _SIZES
        },
        **{
            f"{start}-{name}": lambda x, make=make, act=act: act(make(x))
            for start, make in _STARTS.items()
            for name, act in {
                "images": lambda y: _laid(y.resize_(1, 2, 3, 4, memory_format=torch.channels_last)),
                "filled": lambda y: _laid(y.resize_(3, 3).fill_(2)),
                "added": lambda y: _laid(y.resize_(2, 5).add_(1)),
                "grown": lambda y: _laid(y.resize_(6, 6).zero_()),
                "grown-kept": lambda y: _laid(y.resize_(60)[:20]),
                "twice": lambda y: _laid(y.resize_(2).resize_(20)),
                "set": lambda y: _laid(y.set_(y.untyped_storage(), 2, (3, 2), (2, 1))),
                "set-turned": lambda y: _laid(y.set_(y.untyped_storage(), 1, (2, 3), (1, 4))),
                "set-spread": lambda y: _laid(y.set_(y.untyped_storage(), 3, (2, 3), (0, 1))),
                "squeezed": lambda y: _laid(y.unsqueeze_(0).unsqueeze_(-1).squeeze_(0)),
                "turned": lambda y: _laid(y.unsqueeze_(0).transpose_(0, 1).mul_(2)),
                "swapped": lambda y: _laid(
                    y.unsqueeze_(-1).swapaxes_(0, -1).t_() if y.dim() == 1 else y.swapdims_(0, 1)
                ),
                "strided": lambda y: _laid(y.as_strided_((2, 3), (1, 2), 1).add_(1)),
            }.items()
        },
    },
    _numbers,
)
# Options beside tensors of no dimensions, on either side or on both.
_OPTIONS: dict[str, Form] = {
    **{
        f"isclose-{nan}-{rtol}-{atol}": lambda a, b, o=(rtol, atol, nan): torch.isclose(
            a, b, o[0], o[1], equal_nan=o[2]
        )
        for nan in (True, False)
        for rtol, atol in ((1e-5, 1e-8), (0.0, 0.0), (0.5, 0.0), (0.0, 1.0))
    },
    "allclose": lambda a, b: [torch.allclose(a, b, equal_nan=nan, atol=9.0) for nan in (True, False)],
    "equal": lambda a, b: torch.equal(a, b),
    "isin": lambda a, b: [torch.isin(a, b, invert=i, assume_unique=u) for i in (True, False) for u in (True, False)],
    "search": lambda a, b: [
        torch.bucketize(a, b.reshape(-1).sort()[0], right=right, out_int32=small)
        for right in (True, False)
        for small in (True, False)
    ],
    "searchsorted": lambda a, b: [
        torch.searchsorted(b.reshape(-1).sort()[0], a, side=side, out_int32=True) for side in ("left", "right")
    ],
    "clamp": lambda a, b: [torch.clamp(a, min=b), torch.clamp(a, max=b), torch.clamp(a, b, b)],
    "where": lambda a, b: [torch.where(a > 1, b, a), torch.where(b > 1, 1, a), torch.where(a > 1, a, 2.5)],
    "lerp": lambda a, b: torch.lerp(a, a + 1, b),
    "addcmul": lambda a, b: [torch.addcmul(a, b, b, value=v) for v in (1, 2, -0.5)],
    "alpha": lambda a, b: [torch.add(a, b, alpha=2), torch.sub(a, b, alpha=3), torch.rsub(a, b, alpha=2)],
    "rounded": lambda a, b: [torch.div(a, b + 5, rounding_mode=mode) for mode in (None, "floor", "trunc")],
    "masked": lambda a, b: a.masked_fill(a > 1, b) if not b.dim() else a.masked_fill(a > 1, 2),
    "clipped": lambda a, b: [
        torch.nan_to_num(a, 1.0, 2.0, -2.0),
        a.clip(-1, 1),
        F.hardtanh(a, -1.0, 0.5),
        F.threshold(a, 1, 7),
    ],
    "losses": lambda a, b: [
        f(*torch.broadcast_tensors(a, b), reduction=how)
        for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss)
        for how in ("none", "sum", "mean")
    ],
    "dist": lambda a, b: [torch.dist(a, b, p) for p in (0, 1, 2, float("inf"))],
    "stacked": lambda a, b: [
        torch.hstack([a, b]),
        torch.atleast_1d(a, b),
        torch.cartesian_prod(a.reshape(-1), b.reshape(-1)),
    ],
    "tensordot": lambda a, b: [torch.tensordot(a, b, 0), torch.outer(a.reshape(-1), b.reshape(-1)), torch.kron(a, b)],
    "quantile": lambda a, b: [
        torch.quantile(a, b.sigmoid(), interpolation=how)
        for how in ("linear", "nearest", "lower", "higher", "midpoint")
    ],
    "repeat": lambda a, b: [torch.repeat_interleave(a, 2), a.repeat(2), torch.tile(a, (2,)), a.expand(2, *a.shape)],
    "gathered": lambda a, b: [
        a.index_select(0, torch.zeros(0 if a.dim() else 1, dtype=torch.int64, device=a.device)),
        a.take(torch.zeros((), dtype=torch.int64, device=a.device)),
        a.gather(0, torch.zeros(a.shape, dtype=torch.int64, device=a.device)),
        a.reshape(-1)[torch.zeros((), dtype=torch.int64, device=a.device)],
    ],
    "counted": lambda a, b: [
        torch.histc(a, 3, -2, 2),
        torch.unique(a, return_counts=True),
        a.nonzero(),
        a.count_nonzero(),
    ],
    "meshgrid": lambda a, b: torch.meshgrid(a, b, indexing="ij"),
    "moments": lambda a, b: [torch.std(a, correction=0), *torch.var_mean(a, correction=0), torch.cov(a, correction=0)],
    "logic": lambda a, b: [torch.logical_xor(a, b), torch.heaviside(a, b), torch.copysign(a, b), torch.fmax(a, b)],
}
_NO_SIDES: dict[str, Form] = {
    "first": lambda x: (x[0], x[:3]),
    "second": lambda x: (x[:3], x[0]),
    "both": lambda x: (x[0], x[1]),
    "one": lambda x: (x[:1], x[0]),
    "none": lambda x: (x[0], x[:0]),
}
for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"templates-no-dimensions-{str(_dtype)[6:]}",
        {
            f"{name}-{pair}": lambda x, form=form, cut=cut: form(*cut(x))
            for name, form in _OPTIONS.items()
            for pair, cut in _NO_SIDES.items()
            if pair != "none"
            or name.split("-")[0] in ("isclose", "isin", "equal", "clamp", "where", "alpha", "logic", "meshgrid")
            if _dtype == torch.float32 or name not in ("quantile", "moments", "counted", "tensordot", "dist")
        },
        lambda d, dtype=_dtype: (torch.tensor([1.5, -0.75, 2.25, 0.5]).to(dtype),),
        factor=16.0,
    )
add_table(
    cases,
    "templates-not-a-number",
    {
        f"{name}-{pair}-{at}": lambda x, form=form, cut=cut, at=at: form(*cut(x.roll(at)))
        for name, form in _OPTIONS.items()
        for pair, cut in _NO_SIDES.items()
        for at in (0, 1)
        if name.split("-")[0] in ("isclose", "allclose", "equal")
    },
    lambda d: (torch.tensor([float("nan"), float("inf"), float("nan"), 1.0]),),
)
add_refused(
    cases,
    "templates",
    _numbers,
    {
        "expand_as": lambda x: x[:3].expand_as(x[:4]),
        "expand_as-fewer": lambda x: x.view(4, 6).expand_as(x),
        "view_as": lambda x: x.view_as(x[:5]),
        "view_as-turned": lambda x: x.view(4, 6).t().view_as(x),
        "reshape_as": lambda x: x.reshape_as(x[:7]),
        "set-dtype": lambda x: x.clone().set_(x.long()),
        "copy": lambda x: x.clone().copy_(x[:5]),
        "copy-more": lambda x: x.clone().copy_(x.view(24, 1).expand(24, 2)),
        "resize-negative": lambda x: x.clone().resize_(-1),
        "sum_to_size": lambda x: x.sum_to_size(5),
        "broadcast": lambda x: torch.broadcast_tensors(x[:3], x[:4]),
        "fill-line": lambda x: x.clone().fill_(x),
        "spread-written": lambda x: x[0].expand(4).add_(x[:4]),
        "spread-filled": lambda x: x[0].expand(4).copy_(x[:4]),
        "overlapping-written": lambda x: _overlapping(x.clone()),
        "item": lambda x: x.item(),
        "bool": lambda x: bool(x),
        "squeeze-dim": lambda x: x.squeeze(1),
        "set-step": lambda x: x.clone().set_(x.untyped_storage(), 0, (2,), (-1,)),
        "strided-negative": lambda x: x.as_strided((2,), (-1,)),
    },
)


def _overlapping(x: torch.Tensor) -> torch.Tensor:
    """Write to a part of what is read."""
    return x[1:].add_(x[:-1])
