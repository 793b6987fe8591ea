"""Rules 1 and 5: what is written to is an operand, a row of itself, or of another dtype than what is written.

x -= x[:1]: https://github.com/pytorch/pytorch/issues/115521; index_add_ of a tensor to itself: 3176 there; integers
scattered into float32: 39565 there.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]
_ARITHMETIC = ("add", "sub", "mul", "div", "remainder", "fmod", "pow", "floor_divide", "copysign", "atan2", "hypot")
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
_OUTS = (*_ARITHMETIC, *_COMPARED, "maximum", "minimum", "fmax", "fmin", "nextafter", "xlogy", "logaddexp")
_IN_PLACE = (*_ARITHMETIC, *_COMPARED, "nextafter", "xlogy", "copy")


def _operands(d: Any) -> Any:
    return d.uniform(1, 2, 4, 3, 5), d.uniform(1, 2, 2, 4, 3, 5), torch.tensor([3, 1, 0, 2])


def _in_place(name: str, x: torch.Tensor, y: Any) -> Any:
    return getattr(x, f"{name}_")(y)


_WRITES: dict[str, Form] = {
    **{name: lambda x, part, name=name: _in_place(name, x, part) for name in _IN_PLACE},
    "addcmul": lambda x, part: x.addcmul_(part, x),
    "lerp": lambda x, part: x.lerp_(part, 0.5),
    "clamp": lambda x, part: x.clamp_(min=part),
    "where": lambda x, part: torch.where(x > 0, x, part, out=x),
}
# A row, a number and a shifted part of what is written to, in one to three dimensions.
_PARTS: dict[str, Form] = {
    "row": lambda x: (x, x[:1]),
    "row-2d": lambda x: (x[0], x[0, :1]),
    "row-1d": lambda x: (x[0, 0], x[0, 0, :1]),
    "number": lambda x: (x, x[0, 0, 0]),
    "shifted": lambda x: (x[1:], x[:-1]),
}
for _part, _cut in _PARTS.items():
    add_refused(
        cases,
        f"own-{_part}",
        _operands,
        {name: lambda x, y, i, write=write, cut=_cut: write(*cut(x)) for name, write in _WRITES.items()},
    )
# An operand, or a row of one, as `out=` of an answer with more elements.
add_refused(
    cases,
    "own-out-grown",
    _operands,
    {f"{name}-first": lambda x, y, i, name=name: getattr(torch, name)(x, y, out=x) for name in _OUTS}
    | {f"{name}-second": lambda x, y, i, name=name: getattr(torch, name)(y, x, out=x) for name in _OUTS}
    | {f"{name}-row": lambda x, y, i, name=name: getattr(torch, name)(x[:1], x, out=x[:1]) for name in _OUTS},
)
_WIDE: dict[str, Form] = {  # what writes by places: into t, from s, at i
    "index_add": lambda t, s, i: t.index_add_(0, i, s),
    "index_copy": lambda t, s, i: t.index_copy_(0, i, s),
    "index_reduce": lambda t, s, i: t.index_reduce_(0, i, s, "amax"),
    "scatter": lambda t, s, i: t.scatter_(0, _spread(i, s), s),
    "scatter_add": lambda t, s, i: t.scatter_add_(0, _spread(i, s), s),
    "scatter_reduce": lambda t, s, i: t.scatter_reduce_(0, _spread(i, s), s, "amax"),
    "put": lambda t, s, i: t.put_(i, s.reshape(-1)[:4]),
    "index_put": lambda t, s, i: t.index_put_((i,), s),
    "index_put-added": lambda t, s, i: t.index_put_((i,), s, accumulate=True),
    "masked_scatter": lambda t, s, i: t.masked_scatter_(t > 1.5, s),
    "take": lambda t, s, i: torch.take(s, i, out=t.view(-1)[:4]),
    "gather": lambda t, s, i: torch.gather(s, 0, _spread(i, s), out=t),
    "index_select": lambda t, s, i: torch.index_select(s, 0, i, out=t),
    "cat": lambda t, s, i: torch.cat([s[:2], s[2:]], out=t),
    "stack": lambda t, s, i: torch.stack([s[0], s[1], s[2], s[3]], out=t),
    "where": lambda t, s, i: torch.where(s > 1.5, s, s, out=t),
    "sort": lambda t, s, i: torch.sort(s, 0, out=(t, torch.empty_like(t, dtype=torch.int64))),
    "cumsum": lambda t, s, i: torch.cumsum(s, 0, out=t),
    "mm": lambda t, s, i: torch.mm(s[0, :, :3], s[1, :, :3], out=t[0, :, :3]),
}
_CONVERTED = ("masked_scatter", "cumsum")  # these convert what they are given
_ANSWERED = (*_CONVERTED, "where", "sort", "mm")  # of themselves: read whole before anything is written


def _spread(i: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return i.view(-1, *(1,) * (like.dim() - 1)).expand(len(i), *like.shape[1:])


_BY_PLACES = {name: form for name, form in _WIDE.items() if name not in _ANSWERED}
add_refused(cases, "own-places", _operands, {n: lambda x, y, i, f=f: f(x, x, i) for n, f in _BY_PLACES.items()})
add_refused(cases, "own-indices", _operands, {n: lambda x, y, i, f=f: f(i, i, i) for n, f in _BY_PLACES.items()})
# Sources of another dtype than what they are written to: each pair that the CPU refuses.
_PAIRS = tuple(
    (one, other)
    for one in (torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8)
    for other in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)
    if one != other
)
for _name, _form in _WIDE.items():
    if _name in _CONVERTED:
        continue
    add_refused(
        cases,
        f"source-dtype-{_name}",
        _operands,
        {
            f"{str(one)[6:]}-{str(other)[6:]}": lambda x, y, i, form=_form, one=one, other=other: form(
                x.to(one), y[0].to(other), i
            )
            for one, other in _PAIRS
        },
    )

# An operand as the `out=` of an answer of its own shape: it is read before it is written.
_ALONG: dict[str, Form] = {
    **{
        name: lambda x, name=name: getattr(torch, name)(x, out=x)
        for name in "exp neg abs sqrt sigmoid tanh floor sign erf log1p reciprocal triu tril".split()
    },
    **{
        f"{name}-{dim}": lambda x, name=name, dim=dim: getattr(torch, name)(x, dim, out=x)
        for name in ("softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp")
        for dim in (0, 1, 2)
    },
    "sort": lambda x: torch.sort(x, 1, out=(x, torch.empty(0, dtype=torch.int64, device=x.device))),
    "clamp": lambda x: torch.clamp(x, 1.2, 1.7, out=x),
    "add-itself": lambda x: torch.add(x, x, out=x),
    "mul-turned": lambda x: torch.mul(x, x.flip(0), out=x),
    "lerp": lambda x: torch.lerp(x, x * 2, 0.25, out=x),
    "addcmul": lambda x: torch.addcmul(x, x, x, out=x),
    "where": lambda x: torch.where(x > 1.5, x, x * 2, out=x),
    "renorm": lambda x: torch.renorm(x, 2, 0, 1.0, out=x),
    "inverse": lambda x: torch.linalg.inv(y := x[:3, :, :3] + 4 * torch.eye(3, device=x.device), out=y),
}
for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"own-out-{str(_dtype)[6:]}",
        {name: lambda x, form=form: form(x.clone()) for name, form in _ALONG.items()},
        lambda d, dtype=_dtype: (d.uniform(1, 2, 4, 3, 5, dtype=dtype),),
        terms=16 if _dtype == torch.float32 else 4,
    )
