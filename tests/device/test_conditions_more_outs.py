"""Rule 5: results of what moves, picks, compares, counts and reduces, written where asked: turned, in steps, none.

searchsorted wrote in a row what belongs in steps, https://github.com/pytorch/pytorch/issues/60492; sums lost the
strides of their result, https://github.com/pytorch/pytorch/pull/4995; neg wrote in the order of storage,
https://github.com/pytorch/pytorch/issues/100764
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]


def _full(y: torch.Tensor, *shape: int) -> torch.Tensor:
    return torch.full(shape, 7, dtype=y.dtype, device=y.device) if y.dtype != torch.bool else _true(y, *shape)


def _true(y: torch.Tensor, *shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.bool, device=y.device)


# What holds the result, and the result in it.
_PLACES: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]] = {
    "turned": lambda y: ((base := _full(y, *y.shape[::-1])), base.permute(tuple(reversed(range(y.dim()))))),
    "stepped": lambda y: ((base := _full(y, *y.shape, 2)), base[..., 1]),
    "part": lambda y: ((base := _full(y, *(n + 3 for n in y.shape))), base[tuple(slice(1, n + 1) for n in y.shape)]),
    "gaps": lambda y: ((base := _full(y, *(n * 2 for n in y.shape))), base[tuple(slice(1, None, 2) for _ in y.shape)]),
    "none": lambda y: ((base := _full(y, 0)), base),
    "own": lambda y: ((base := _full(y, *y.shape)), base),
}


def _called(name: str, *more: Any, **options: Any) -> Form:
    return lambda m, i, p, **k: getattr(torch, name)(m, *more, **options, **k)


# m (4, 6), all unlike each other; i (4, 6), places below 4; p, 0 to 3 in some order.
_INTO: dict[str, Form] = {
    **{
        name: _called(name)
        for name in "neg abs sign floor square isposinf signbit tril triu mean argmax argmin any all amax amin".split()
    },
    **{name: _called(name) for name in "msort sigmoid exp erf tanh sin logical_not".split()},
    **{
        f"{name}-{dim}": _called(name, dim)
        for dim in (0, 1)
        for name in "sum mean prod amax amin argmax argmin any all nansum logsumexp cumsum cumprod logcumsumexp".split()
    },
    **{
        f"{name}-kept": _called(name, 1, keepdim=True)
        for name in "sum mean prod amax argmax any all median max".split()
    },
    **{f"{name}-1": _called(name, 1) for name in "median nanmedian cummax cummin sort max min var std softmax".split()},
    "var-kept": _called("var", 0, correction=0, keepdim=True),
    "stable": _called("sort", dim=0, stable=True, descending=True),
    "kthvalue": _called("kthvalue", 2, 0),
    "topk": _called("topk", 2, 1, False),
    "count": lambda m, i, p, **k: torch.sum(m > 0, 0, **k),
    "norm": lambda m, i, p, **k: torch.linalg.vector_norm(m, 1, 0, **k),
    "histc": _called("histc", 4, -9, 9),
    "diff": _called("diff", dim=1),
    "quantile": lambda m, i, p, **k: torch.quantile(m, 0.5, 1, **k),
    "take": lambda m, i, p, **k: torch.take(m, i, **k),
    "along": lambda m, i, p, **k: torch.take_along_dim(m, i, 0, **k),
    "gather": lambda m, i, p, **k: torch.gather(m, 0, i, **k),
    "index_select": lambda m, i, p, **k: torch.index_select(m, 0, p, **k),
    "index_select-1": lambda m, i, p, **k: torch.index_select(m, 1, p, **k),
    "masked_select": lambda m, i, p, **k: torch.masked_select(m, i > 1, **k),
    "nonzero": lambda m, i, p, **k: torch.nonzero(i, **k),
    "nonzero-cube": lambda m, i, p, **k: torch.nonzero(i.view(2, 2, 6) > 1, **k),
    "scatter": lambda m, i, p, **k: torch.scatter(m, 1, p[:, None], m[:, :1] * 2, **k),
    "scatter-number": lambda m, i, p, **k: torch.scatter(m, 1, p[:, None], 3, **k),
    "scatter_add": lambda m, i, p, **k: torch.scatter_add(m, 0, i, m, **k),
    "scatter_reduce": lambda m, i, p, **k: torch.scatter_reduce(m, 0, i, m, "amax", **k),
    "index_add": lambda m, i, p, **k: torch.index_add(m, 0, p, m, alpha=2, **k),
    "index_copy": lambda m, i, p, **k: torch.index_copy(m, 0, p, m, **k),
    "index_reduce": lambda m, i, p, **k: torch.index_reduce(m, 0, p, m, "amin", **k),
    "index": lambda m, i, p, **k: (torch.ops.aten.index.Tensor_out if k else torch.ops.aten.index)(m, [p], **k),
    "index-two": lambda m, i, p, **k: (torch.ops.aten.index.Tensor_out if k else torch.ops.aten.index)(
        m, [p, i[0, :4]], **k
    ),
    "where": lambda m, i, p, **k: torch.where(i > 1, m, m * 2, **k),
    "isin": lambda m, i, p, **k: torch.isin(i, p[:2], **k),
    "searchsorted": lambda m, i, p, **k: torch.searchsorted(p.sort()[0], i, **k),
    "searchsorted-rows": lambda m, i, p, **k: torch.searchsorted(m.sort(1)[0], m * 2, right=True, **k),
    "bucketize": lambda m, i, p, **k: torch.bucketize(i, p.sort()[0], out_int32=True, **k),
    **{
        name: lambda m, i, p, name=name, **k: getattr(torch, name)(m, i, **k)
        for name in "add sub mul maximum fmin eq lt ge logical_and atan2 copysign hypot".split()
    },
    **{
        name: lambda m, i, p, name=name, **k: getattr(torch, name)(i, i + 2, **k)
        for name in "bitwise_and bitwise_or bitwise_xor gcd floor_divide remainder bitwise_left_shift".split()
    },
    "add-column": lambda m, i, p, **k: torch.add(m, p[:, None], alpha=2, **k),
    "sub-number": lambda m, i, p, **k: torch.sub(m, 3, **k),
    "clamp": _called("clamp", -3, 4),
    "clamp-tensors": lambda m, i, p, **k: torch.clamp(m, -i, i + 1, **k),
    "addcmul": lambda m, i, p, **k: torch.addcmul(m, m, m[:1], value=2, **k),
    "lerp": lambda m, i, p, **k: torch.lerp(m, m + 4, 0.25, **k),
    "cat": lambda m, i, p, **k: torch.cat([m, m[:1]], **k),
    "cat-1": lambda m, i, p, **k: torch.cat([m, m[:, :0], m[:, 1:3]], 1, **k),
    "cat-turned": lambda m, i, p, **k: torch.cat([m.t(), m.t()[:2]], 0, **k),
    "stack": lambda m, i, p, **k: torch.stack([m, m * 2], 1, **k),
    "stack-last": lambda m, i, p, **k: torch.stack([m, m.flip(0)], -1, **k),
    "hstack": lambda m, i, p, **k: torch.hstack([m, m], **k),
    "vstack": lambda m, i, p, **k: torch.vstack([m, m[0]], **k),
    "dstack": lambda m, i, p, **k: torch.dstack([m, m], **k),
    "column_stack": lambda m, i, p, **k: torch.column_stack([m, m[:, 0]], **k),
    "diag": lambda m, i, p, **k: torch.diag(m[0], 1, **k),
    "diag-of": _called("diag", 1),
    "arange": lambda m, i, p, **k: torch.arange(2, 14, 3, device=m.device, **k),
    "linspace": lambda m, i, p, **k: torch.linspace(0, 8, 5, device=m.device, **k),
    "eye": lambda m, i, p, **k: torch.eye(3, 4, device=m.device, **k),
    "full": lambda m, i, p, **k: torch.full((2, 3), 4.0, device=m.device, **k),
    "zeros": lambda m, i, p, **k: torch.zeros(2, 3, device=m.device, **k),
    "complex": lambda m, i, p, **k: torch.complex(m, m * 2, **k),
    "frexp": _called("frexp"),
    "aminmax": lambda m, i, p, **k: torch.aminmax(m, dim=0, keepdim=True, **k),
    "renorm": lambda m, i, p, **k: torch.renorm(m, 1, 0, 4.0, **k),
    "cross": lambda m, i, p, **k: torch.linalg.cross(m[:, :3], m[:, 3:], **k),
    "ravel-copies": lambda m, i, p, **k: torch.permute_copy(m, (1, 0), **k),
    "transposed": lambda m, i, p, **k: torch.transpose_copy(m, 0, 1, **k),
    "expanded": lambda m, i, p, **k: torch.expand_copy(m, (2, 4, 6), **k),
    "sliced": lambda m, i, p, **k: torch.slice_copy(m, 1, 1, 6, 2, **k),
    "selected": lambda m, i, p, **k: torch.select_copy(m, 1, -1, **k),
    "unfolded": lambda m, i, p, **k: torch.unfold_copy(m, 1, 3, 2, **k),
    "diagonals": lambda m, i, p, **k: torch.diagonal_copy(m, 1, **k),
    "strided": lambda m, i, p, **k: torch.as_strided_copy(m, (3, 4), (6, 1), 2, **k),
    "viewed": lambda m, i, p, **k: torch.view_copy(m, (3, 8), **k),
    "unsqueezed": lambda m, i, p, **k: torch.unsqueeze_copy(m, 1, **k),
    "narrowed": lambda m, i, p, **k: torch.narrow_copy(m, 1, 2, 3, **k),
    "squeezed": lambda m, i, p, **k: torch.squeeze_copy(m[:1], **k),
    "sided": lambda m, i, p, **k: torch.ops.aten.flip.out(m, [1], **k) if k else m.flip(1),
    "rolled": lambda m, i, p, **k: torch.ops.aten.roll.out(m, [2], [1], **k) if k else m.roll(2, 1),
    "repeated": lambda m, i, p, **k: torch.ops.aten.repeat.out(m, [2, 1], **k) if k else m.repeat(2, 1),
    "masked": lambda m, i, p, **k: (
        torch.ops.aten.masked_fill.Scalar_out(m, i > 1, 3, **k) if k else m.masked_fill(i > 1, 3)
    ),
    "copied": lambda m, i, p, **k: torch.ops.aten.clone.out(m, **k) if k else m.clone(),
}


def _into(form: Form, place: Any, m: torch.Tensor, i: torch.Tensor, p: torch.Tensor) -> Any:
    """Return what was written into results that lie as asked, with all that is around them."""
    plain = form(m, i, p)
    several = isinstance(plain, tuple)
    pairs = [place(one) for one in (plain if several else (plain,))]
    views = tuple(view for _, view in pairs)
    again = form(m, i, p, out=views if several else views[0])
    last = again if several else (again,)
    return [[base for base, _ in pairs], [one is view for one, view in zip(last, views)], plain]


def _table(ways: tuple[str, ...], each: int) -> dict[str, Form]:
    return {
        f"{name}-{way}": lambda m, i, p, form=form, place=_PLACES[way]: _into(form, place, m, i, p)
        for at, (name, form) in enumerate(_INTO.items())
        for place, way in enumerate(ways)
        if (at + place) % each == 0
    }


def _operands(d: Any, dtype: torch.dtype = torch.float32) -> Any:
    m = d.distinct(4, 6)
    m = (m / 2 + 0.25 if dtype.is_floating_point else m + 20).to(dtype)
    return m, torch.stack([d.permutation(4) for _ in range(6)], 1), d.permutation(4)


_HALF = ("cumprod", "logcumsumexp", "logsumexp", "prod", "var", "std", "hypot", "norm", "complex", "quantile", "histc")
add_table(
    cases,
    "more-outs-float32",
    _table(tuple(_PLACES), 3),
    _operands,
    terms=24,
    factor=16.0,
    deterministic=False,
)
add_table(
    cases,
    "more-outs-float16",
    {name: form for name, form in _table(("turned", "gaps"), 2).items() if name.split("-")[0] not in _HALF},
    lambda d: _operands(d, torch.float16),
    terms=24,
    factor=16.0,
    deterministic=False,
)
_WHOLE = (
    "any",
    "all",
    "sum",
    "amax",
    "argmax",
    "max",
    "min",
    "cumsum",
    "sort",
    "stable",
    "topk",
    "kthvalue",
    "median",
    "take",
)
_WHOLE = (
    *_WHOLE,
    "gather",
    "along",
    "index_select",
    "masked_select",
    "where",
    "isin",
    "cat",
    "stack",
    "hstack",
    "tril",
    "triu",
)
_WHOLE = (
    *_WHOLE,
    "eq",
    "lt",
    "add",
    "mul",
    "maximum",
    "clamp",
    "diag",
    "scatter",
    "index_add",
    "index_copy",
    "index",
    "neg",
)
_WHOLE = (
    *_WHOLE,
    "transposed",
    "sliced",
    "unfolded",
    "diagonals",
    "sided",
    "rolled",
    "repeated",
    "masked",
    "copied",
    "square",
)
for _dtype in (torch.int64, torch.int32, torch.uint8):
    add_table(
        cases,
        f"more-outs-{str(_dtype)[6:]}",
        {
            name: form
            for name, form in _table(("stepped", "part", "turned"), 3).items()
            if name.split("-")[0] in _WHOLE
            and (_dtype != torch.uint8 or name.split("-")[0] not in ("neg", "mul", "square"))
        },
        lambda d, dtype=_dtype: _operands(d, dtype),
        deterministic=False,
    )


def _over(form: Form, base: torch.Tensor, i: torch.Tensor, p: torch.Tensor) -> Any:
    return form(base[:4], i, p, out=base[1:5])


# A result that lies over itself, or over what is read, is refused.
add_refused(
    cases,
    "more-outs",
    _operands,
    {
        **{
            f"{name}-spread": lambda m, i, p, form=form: form(
                m, i, p, out=(plain := form(m, i, p)).new_zeros(1).expand(plain.shape)
            )
            for name, form in _INTO.items()
            if name
            in ("neg", "exp", "add", "mul", "eq", "where", "clamp", "gather", "cat", "sub-number", "take", "lerp")
        },
        **{
            f"{name}-over": lambda m, i, p, form=form: _over(form, torch.cat([m, m]), i, p)
            for name, form in _INTO.items()
            if name in ("neg", "exp", "add", "mul", "clamp", "sub-number", "lerp", "addcmul")
        },
    },
)
