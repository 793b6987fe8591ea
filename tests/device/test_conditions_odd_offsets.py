"""Rules 1 and 5: what is written behind an odd start, and what is read there: all that lies around it is compared.

fill_ of bools behind the first one wrote the first and left another, https://github.com/pytorch/pytorch/issues/183631;
a number of the host that is a part of a line was read as the first of it,
https://github.com/pytorch/pytorch/issues/187117; two parts of one tensor were read as one,
https://github.com/pytorch/pytorch/issues/91065 and https://github.com/pytorch/pytorch/issues/87856
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table, assigned

cases = Cases("conditions")
Form = Callable[..., Any]

# Begin, length and step of what is written, each in a row of its own of 53.
_PARTS = (
    *((begin, length, 1) for begin, length in zip((1, 2, 3, 5, 7, 1, 3, 9, 1, 6), (15, 1, 2, 3, 4, 7, 8, 17, 33, 16))),
    *((1, 9, 2), (3, 5, 3), (2, 4, 5), (0, 13, 1), (1, 52, 1), (4, 0, 1)),
)
# t: what is written to; s: numbers like it, from another odd place.
_WRITERS: dict[str, Form] = {
    "fill": lambda t, s: t.fill_(1),
    "fill-cell": lambda t, s: t.fill_(s.new_ones(3)[1]),
    "zero": lambda t, s: t.zero_(),
    "copy": lambda t, s: t.copy_(s),
    "copy-cell": lambda t, s: t.copy_(s.new_ones(())),
    "copy-one": lambda t, s: t.copy_(s.new_ones(5)[3:4]),
    "copy-whole": lambda t, s: t.copy_((s != 0).long()),
    "copy-bools": lambda t, s: t.copy_(s != 0),
    "assigned": lambda t, s: t.__setitem__(slice(None), s),
    "assigned-number": lambda t, s: t.__setitem__(slice(None, None, 2), 1),
    "assigned-mask": lambda t, s: t.__setitem__(s != 0, 1),
    "assigned-places": lambda t, s: t.__setitem__(torch.arange(len(t), device=t.device).flip(0), s),
    "masked_fill": lambda t, s: t.masked_fill_(s == 0, 1),
    "masked_scatter": lambda t, s: t.masked_scatter_(s != 0, s),
    "index_fill": lambda t, s: t.index_fill_(0, torch.arange(len(t), device=t.device)[::2], 1),
    "index_copy": lambda t, s: t.index_copy_(0, torch.arange(len(t), device=t.device).flip(0), s),
    "scatter": lambda t, s: t.scatter_(0, torch.arange(len(t), device=t.device).flip(0), s),
    "eq": lambda t, s: t.eq_(s),
    "logical_not": lambda t, s: t.logical_not_(),
    "logical_and": lambda t, s: t.logical_and_(s),
    "mul": lambda t, s: t.mul_(s),
    "maximum": lambda t, s: torch.maximum(t, s, out=t),
    "where": lambda t, s: torch.where(s != 0, s, t, out=t),
    "flip": lambda t, s: t.copy_(s.flip(0)),
    "cat": lambda t, s: torch.cat([s[1:], s[:1]], out=t),
    "gather": lambda t, s: torch.gather(s, 0, torch.arange(len(t), device=t.device).flip(0), out=t),
    "take": lambda t, s: torch.take(s, torch.arange(len(t), device=t.device).flip(0), out=t),
    "sort": lambda t, s: torch.sort(s, out=(t, torch.zeros_like(t, dtype=torch.int64))),
}
_NUMBERED: dict[str, Form] = {
    "add": lambda t, s: t.add_(s),
    "add-number": lambda t, s: t.add_(2),
    "sub": lambda t, s: t.sub_(s),
    "clamp": lambda t, s: t.clamp_(1, 2),
    "square": lambda t, s: t.square_(),
    "remainder": lambda t, s: t.remainder_(2),
    "index_add": lambda t, s: t.index_add_(0, torch.arange(len(t), device=t.device), s),
    "scatter_add": lambda t, s: t.scatter_add_(0, torch.arange(len(t), device=t.device).flip(0), s),
    "put": lambda t, s: t.put_(torch.arange(len(t), device=t.device), s, accumulate=True),
    "cumsum": lambda t, s: t.cumsum_(0),
    "diff": lambda t, s: t[1:].copy_(s.diff()) if len(t) else t,
    "arange": lambda t, s: torch.arange(len(t), out=t),
    "full": lambda t, s: torch.full((len(t),), 3, out=t),
    "sum": lambda t, s: torch.sum(torch.stack([s, s]), 0, out=t),
    "topk": lambda t, s: torch.topk(s, len(t), out=(t, torch.zeros_like(t, dtype=torch.int64))),
    "addcmul": lambda t, s: t.addcmul_(s, s),
    "abs": lambda t, s: t.copy_(-s).abs_(),
}
_COMPLEX = ("sort", "maximum", "clamp", "remainder", "topk", "abs", "arange")
_BELOW = ("sub", "abs", "diff")  # what no byte holds


def _written(form: Form, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    base = x.clone()
    for row, (begin, length, step) in enumerate(_PARTS):
        end = begin + (length - 1) * step + 1 if length else begin
        form(
            base[row, begin:end:step],
            y[row, (start := 3 + row % 4) : start + length] if length < 50 else y[row, :length],
        )
    return base


for _dtype in (torch.float32, *HALVES, torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
    _forms = {**_WRITERS, **({} if _dtype == torch.bool else _NUMBERED)}
    add_table(
        cases,
        f"odd-offsets-{str(_dtype)[6:]}",
        {
            name: lambda x, y, form=form: _written(form, x, y)
            for at, (name, form) in enumerate(_forms.items())
            if at % 3 == 0 or _dtype in (torch.float32, torch.bool, torch.uint8, torch.int64)
            if _dtype != torch.uint8 or name not in _BELOW
        },
        lambda d, dtype=_dtype: (d.integers(0, 3, 16, 53).to(dtype), d.integers(0, 3, 16, 53).to(dtype)),
    )
add_table(
    cases,
    "odd-offsets-complex64",
    {
        name: lambda x, y, form=form: _written(form, x, y)
        for name, form in {**_WRITERS, **_NUMBERED}.items()
        if name not in _COMPLEX
    },
    lambda d: (d.integers(0, 3, 16, 53).to(torch.complex64), d.integers(0, 3, 16, 53).to(torch.complex64)),
)

# A number without dimensions that stays on the host, and is a part of a line there.
_HOSTED: dict[str, Form] = {
    **{
        name: lambda x, h, name=name: [getattr(torch, name)(x, h), getattr(torch, name)(h, x)]
        for name in "add sub mul maximum minimum eq lt ge remainder fmod floor_divide".split()
    },
    "div": lambda x, h: [x / h, h / (x + 1)],
    "pow": lambda x, h: [x**h, h**x],
    "where": lambda x, h: [torch.where(x > 1, x, h), torch.where(x > 1, h, x)],
    "in-place": lambda x, h: [x.clone().add_(h), x.clone().mul_(h), x.clone().sub_(h, alpha=2), x.clone().eq_(h)],
    "filled": lambda x, h: [x.clone().fill_(h), x.masked_fill(x > 1, h)],
    "assigned": lambda x, h: [assigned(x, slice(2, 5), h), assigned(x, 3, h), assigned(x, x > 1, h)],
    "places": lambda x, h: assigned(x, torch.tensor([1, 3], device=x.device), h),
    "put": lambda x, h: x.index_put((torch.tensor([1, 3], device=x.device),), h),
    "copied": lambda x, h: [x.clone().copy_(h), h.to(x.device) + x, x.new_tensor(h) + x],
    "made": lambda x, h: [torch.full_like(x, h), x.new_full((2,), h.item()), x[int(h) :], x * float(h)],
    "out": lambda x, h: torch.add(x, h, out=torch.empty_like(x)),
}


_LINES: dict[str, Callable[[torch.dtype], torch.Tensor]] = {
    "place": lambda dtype: torch.arange(1, 9).to(dtype)[3],
    "last": lambda dtype: torch.arange(8).to(dtype)[-4],
    "cell": lambda dtype: torch.arange(12).to(dtype).view(3, 4)[1, 0],
    "spread": lambda dtype: torch.arange(4, 6).to(dtype)[:1].expand(3)[2],
    "squeezed": lambda dtype: torch.arange(9).to(dtype)[4:5].squeeze(),
}
for _dtype in (torch.float32, torch.float16, torch.int64, torch.int32):
    add_table(
        cases,
        f"odd-offsets-host-{str(_dtype)[6:]}",
        {
            f"{name}-{line}-{str(kind)[6:]}": lambda x, form=form, line=line, kind=kind, own=kind == _dtype: form(
                x, _LINES[line](x.dtype if own else kind)
            )
            for name, form in _HOSTED.items()
            for line, kind in itertools.product(_LINES, (torch.float32, torch.float16, torch.int64, torch.int32))
            if kind == _dtype or (line == "place" and (_dtype.is_floating_point or not kind.is_floating_point))
            if kind == _dtype or name not in ("places", "put")
        },
        lambda d, dtype=_dtype: (torch.tensor([1, 4, 2, 3, 4, 1, 2]).to(dtype),),
        factor=16.0,
    )

# Two parts of one tensor of (4, 6), which do not overlap.
_HALVES: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]] = {
    "rows": lambda x: (x[:2], x[2:]),
    "rows-other": lambda x: (x[2:], x[:2]),
    "every-other": lambda x: (x[::2], x[1::2]),
    "columns": lambda x: (x[:, :3], x[:, 3:]),
    "columns-ends": lambda x: (x[:, :1], x[:, -1:]),
    "columns-every-other": lambda x: (x[:, 1::2], x[:, ::2]),
    "chunks": lambda x: x.chunk(2, 1),
    "chunks-unsafe": lambda x: torch.unsafe_chunk(x, 2, 1),
    "split": lambda x: x.split([3, 3], 1),
    "split-unsafe": lambda x: torch.unsafe_split(x, 2, 0),
    "tensor_split": lambda x: x.tensor_split(2, 1),
    "unbound": lambda x: x.unbind(0)[1:3],
    "selected": lambda x: (x[0], x[3]),
    "selected-columns": lambda x: (x[:, 4], x[:, 1]),
    "cells": lambda x: (x[0, 1], x[2, 3]),
    "cell-row": lambda x: (x[1], x[0, 5]),
    "turned": lambda x: (x[:, :2].t(), x[:, 4:].t()),
    "mixed": lambda x: (x[:2, :2], x[2:, 4:].t()),
    "windows": lambda x: (x[0].unfold(0, 2, 2), x[3].unfold(0, 2, 2)),
    "squares": lambda x: x.view(2, 2, 6).unbind(1),
    "diagonals": lambda x: (x[:, :4].diagonal(), x[:, 2:].flip(1).diagonal()),
}
_PAIRED: dict[str, Form] = {
    "mul": lambda a, b: a * b,
    "sub": lambda a, b: a - b,
    "eq": lambda a, b: a == b,
    "maximum": lambda a, b: torch.maximum(a, b),
    "where": lambda a, b: torch.where(a > b, a, b),
    "stack": lambda a, b: torch.stack(torch.broadcast_tensors(a, b), -1),
    "cat": lambda a, b: torch.cat([a, b.reshape(-1)[: a.numel()].view_as(a), a]) if a.dim() == b.dim() > 0 else a + b,
    "addcmul": lambda a, b: torch.addcmul(a, a, b),
    "lerp": lambda a, b: torch.lerp(a, a * b, 0.5) if a.is_floating_point() else a + b,
    "sums": lambda a, b: a.sum() + b.cumsum(0).sum() if b.dim() else a.sum() - b,
    "shares": lambda a, b: a.float().softmax(0) + b,
}
_INSIDE: dict[str, Form] = {
    "add": lambda a, b: a.add_(b),
    "mul": lambda a, b: a.mul_(b),
    "copy": lambda a, b: a.copy_(b),
    "swapped": lambda a, b: [saved := a.clone(), a.copy_(b), b.copy_(saved)] if a.shape == b.shape else a.sub_(b),
    "eq": lambda a, b: a.eq_(b),
    "out": lambda a, b: torch.mul(b, 2, out=a) if a.shape == b.shape else a.fill_(b),
    "masked": lambda a, b: a.masked_fill_(b > 0, 3),
    "both": lambda a, b: [a.mul_(2), b.add_(a) if a.shape == b.shape else b.zero_()],
}
for _dtype in (torch.float32, torch.float16, torch.int64, torch.int16):
    add_table(
        cases,
        f"parts-of-one-{str(_dtype)[6:]}",
        {
            **{
                f"{name}-{parts}": lambda x, form=form, cut=cut: form(*cut(x))
                for place, (name, form) in enumerate(_PAIRED.items())
                for at, (parts, cut) in enumerate(_HALVES.items())
                if _dtype == torch.float32 or (place + at) % 11 == 0
            },
            **{
                f"inside-{name}-{parts}": lambda x, form=form, cut=cut: [form(*cut(base := x.clone())), base][1]
                for place, (name, form) in enumerate(_INSIDE.items())
                for at, (parts, cut) in enumerate(_HALVES.items())
                if (_dtype == torch.float32 or (place + at) % 11 == 0) and parts != "diagonals"
            },
        },
        lambda d, dtype=_dtype: ((d.permutation(24).view(4, 6) % 11 + 1).to(dtype),),
    )
add_table(
    cases,
    "parts-of-one-derived",
    {
        f"{name}-{parts}": lambda x, name=name, cut=cut: derived(lambda y: _PAIRED[name](*cut(y * 1)), x)
        for name in ("mul", "where", "stack", "addcmul")
        for parts, cut in _HALVES.items()
        if "unsafe" not in parts
    },
    lambda d: (d.distinct(4, 6) / 8 + 0.0625,),
)

# What a function answers, or a column of it, and what is made of that.
_ANSWERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nonzero": lambda x: x.nonzero(),
    "argwhere": lambda x: torch.argwhere(x > 1),
    "where": lambda x: torch.where(x > 1)[1],
    "nonzero-tuple": lambda x: torch.nonzero(x, as_tuple=True)[0],
    "topk": lambda x: x.topk(3, 0)[1],
    "sort": lambda x: x.sort(0, descending=True)[1],
    "argsort": lambda x: x.argsort(1),
    "max": lambda x: x.max(1)[1],
    "unique": lambda x: torch.unique(x % 7, return_inverse=True)[1],
    "counts": lambda x: torch.unique(x % 7, return_counts=True)[1],
    "triangle": lambda x: torch.triu_indices(3, 4, device=x.device),
    "pairs": lambda x: torch.combinations(x[0]),
    "grid": lambda x: torch.meshgrid(x[0], x[1], indexing="xy")[0],
    "products": lambda x: torch.cartesian_prod(x[0], x[1]),
    "scan": lambda x: x.cummax(0)[1],
    "bounds": lambda x: torch.aminmax(x, dim=0)[1],
}
_MADE: dict[str, Form] = {
    "column": lambda y: y[..., -1].float(),
    "column-half": lambda y: y[..., 1:2].half() + 1,
    "column-whole": lambda y: y[..., -1].int() * 2,
    "row": lambda y: y[1].float(),
    "rows": lambda y: y[1::2].to(torch.int16) + 1,
    "turned": lambda y: y.t().float().contiguous() if y.dim() < 3 else y,
    "turned-row": lambda y: y.t()[-1].float() if y.dim() == 2 else y.float(),
    "bool": lambda y: y[1:].bool(),
    "sum": lambda y: y[..., 1:].float().sum(0),
    "compared": lambda y: y[..., -1:] == y[..., :1],
    "place": lambda y: y.flatten()[y.flatten()[1:3].long() % 4].float(),
}
add_table(
    cases,
    "columns-of-answers",
    {
        f"{name}-{made}": lambda x, answer=answer, act=act: act(answer(x))
        for name, answer in _ANSWERS.items()
        for made, act in _MADE.items()
    },
    lambda d: (d.permutation(20).view(4, 5).float(),),
)
