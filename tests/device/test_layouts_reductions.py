"""Layouts of reductions, scans, sorting and softmax."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.layout_cases import add_layout_cases
from device_suite.ops import FLOATS, INTEGERS, Arg, Op

cases = Cases("layouts")
WHOLE = (*FLOATS, *INTEGERS)


def _over_dims(name: str, **options: Any) -> Any:
    """A function of the whole tensor and of each dimension, kept and not, with every spelling in turn."""

    def act(x: Any, form: int = 0) -> Any:
        homes = [home for home in (torch, torch.Tensor, torch.nn.functional) if hasattr(home, name)]
        answers = []
        for turn, dim in enumerate((0, 1, -1, (0, 2), None)):
            function = getattr(homes[(turn + form) % len(homes)], name)
            if dim is None:
                answers.append(function(x, **options))
            elif isinstance(dim, int) or name in _MANY_DIMS:
                answers.append(function(x, dim, keepdim=turn % 2 == 1, **options))
        return [tuple(answer) if isinstance(answer, tuple) else answer for answer in answers]

    return act


_MANY_DIMS = ("sum", "mean", "amax", "amin", "nansum", "std", "var", "logsumexp", "nanmean")


def _reduce(name: str, domain: str = "any", whole: bool = True, **fields: Any) -> None:
    if not hasattr(torch, name):
        return
    options = fields.pop("options", {})
    act = _over_dims(name, **options)
    forms = (act, lambda x: act(x, 1)) if whole else (lambda x: _along(name, x, options),)
    op = Op(name=name, args=(Arg("b r n", domain),), forms=forms, **{"terms": 64, **fields})
    add_layout_cases(cases, op)


def _along(name: str, x: Any, options: Any) -> Any:
    answers = [getattr(torch, name)(x, dim, **options) for dim in (0, 1, -1)] + [getattr(x, name)(1, **options)]
    return [tuple(answer) if isinstance(answer, tuple) else answer for answer in answers]


for _name in ("sum", "prod", "nansum"):
    _reduce(_name, "inner" if _name == "prod" else "any", dtypes=WHOLE)
for _name in ("mean", "std", "var"):
    # Differences from a mean that is itself rounded: std divides them by a root besides.
    _reduce(_name, factor={"mean": 4, "var": 16, "std": 64}[_name])
_reduce("logsumexp", whole=False, factor=32)
for _name in ("amax", "amin"):
    _reduce(_name, "distinct", dtypes=(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32))
for _name in ("max", "min", "argmax", "argmin"):
    _reduce(
        _name,
        "distinct",
        dtypes=(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32),
        grads=() if _name.startswith("arg") else None,
    )
for _name in ("all", "any"):
    _reduce(_name, "bool", dtypes=(torch.bool, torch.float32, torch.uint8), grads=())
_reduce("count_nonzero", whole=False, dtypes=WHOLE, grads=())
_reduce("median", "distinct", dtypes=(torch.float32, torch.int64))
_reduce("nanmedian", "distinct", dtypes=(torch.float32,))
_reduce("mode", "distinct", dtypes=(torch.float32,), whole=False)
for _name in ("cumsum", "cumprod"):
    _reduce(_name, "inner" if _name == "cumprod" else "any", whole=False, dtypes=WHOLE)
for _name in ("cummax", "cummin"):
    _reduce(_name, "distinct", whole=False, dtypes=(torch.float32, torch.int64))
_reduce("logcumsumexp", whole=False, factor=32, dtypes=(torch.float32,))
for _name in ("softmax", "log_softmax"):
    _reduce(_name, whole=False, factor=32)


def _many(name: str, *acts: Any, domain: str = "any", shape: str = "r n", **fields: Any) -> None:
    """An operator whose spellings are given; the ones that this torch lacks raise and are skipped with the reason."""
    add_layout_cases(cases, Op(name=name, args=(Arg(shape, domain),), forms=acts, **{"terms": 64, **fields}))


# out= of reductions, by dimension.
for _name in (
    "sum",
    "mean",
    "amax",
    "amin",
    "logsumexp",
    "cumsum",
    "cumprod",
    "argmax",
    "argmin",
    "nansum",
    "sort",
    "max",
    "min",
    "var",
    "std",
):
    _many(
        f"{_name}_dim1",
        lambda x, name=_name: tuple(y) if isinstance(y := getattr(torch, name)(x, dim=1), tuple) else y,
        domain="distinct" if _name in ("sort", "max", "min", "argmax", "argmin", "amax", "amin") else "unit",
        out=lambda x, out, name=_name: getattr(torch, name)(x, dim=1, out=out),
        dtypes=(torch.float32,),
        tall=_name not in ("cumprod",),
        empty="" if _name in ("std", "var") else "r",
        grads=(),
        factor=32,
    )
for _p in (1, 2, 3, float("inf"), 0, -1):
    _many(
        f"norm_{_p}",
        lambda x, p=_p: [
            torch.norm(x, p),
            x.norm(p, 1),
            torch.norm(x, p=p, dim=0, keepdim=True),
            torch.linalg.vector_norm(x, p, dim=-1),
        ],
        domain="inner",
        grads=() if _p == 0 else None,
        factor=64,
    )
_many(
    "norms",
    lambda x: [
        torch.linalg.norm(x),
        torch.linalg.matrix_norm(x),
        torch.linalg.matrix_norm(x, 1),
        torch.renorm(x, 2, 0, 1.0),
    ],
    factor=16,
)
_many(
    "normalize", lambda x: [torch.nn.functional.normalize(x), torch.nn.functional.normalize(x, p=1, dim=0)], factor=32
)
_many(
    "aminmax",
    lambda x: [*torch.aminmax(x), *torch.aminmax(x, dim=1), *x.aminmax(dim=0)],
    domain="distinct",
    dtypes=(torch.float32, torch.int64),
    grads=(),
)
_many(
    "sort",
    lambda x: [*torch.sort(x, 0), *x.sort(1, descending=True), *torch.sort(x, stable=True)],
    domain="distinct",
    tall=True,
    dtypes=(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16),
)
_many(
    "argsort",
    lambda x: [torch.argsort(x, 0), x.argsort(1, descending=True), torch.argsort(x)],
    domain="distinct",
    tall=True,
    grads=(),
    dtypes=(torch.float32, torch.int64, torch.int32),
)
_many("msort", lambda x: [torch.msort(x), x.msort()], domain="distinct", dtypes=(torch.float32, torch.int64))
_many(
    "topk",
    lambda x: [*torch.topk(x, 3), *x.topk(2, 0), *torch.topk(x, 2, 1, largest=False), *x.topk(1)],
    domain="distinct",
    dtypes=(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32),
)
_many(
    "kthvalue",
    lambda x: [*torch.kthvalue(x, 3), *x.kthvalue(2, 0)],
    domain="distinct",
    dtypes=(torch.float32, torch.int64),
)
_many(
    "quantile",
    lambda x: [
        torch.quantile(x, 0.3),
        torch.quantile(x, torch.tensor([0.1, 0.5], device=x.device, dtype=x.dtype), dim=1),
    ],
    dtypes=(torch.float32,),
    factor=16,
    expanded=False,
)
_many(
    "softmin",
    lambda x: [torch.nn.functional.softmin(x, 1), torch.nn.functional.softmax(x, 0), x.softmax(1)],
    factor=32,
    tall=True,
    empty="r",
)
_many("trace", lambda x: [torch.trace(x), x.trace(), torch.diagonal(x).sum()], dtypes=(torch.float32, torch.int64))
_many(
    "unique",
    lambda x: [*torch.unique(x, return_inverse=True, return_counts=True), torch.unique_consecutive(x.sort()[0])],
    domain="quarters",
    dtypes=(torch.float32, torch.int64, torch.int32),
    grads=(),
)
_many(
    "bincount",
    lambda x: [torch.bincount(x), x.bincount(minlength=9)],
    domain="positive",
    shape="s",
    dtypes=(torch.int64,),
    grads=(),
)
_many("histc", lambda x: [torch.histc(x, 5, -2, 2), x.histc(3, -1, 1)], dtypes=(torch.float32,), grads=())
_many("cov", lambda x: [torch.cov(x), torch.corrcoef(x)], dtypes=(torch.float32,), factor=64)
_many(
    "moments",
    lambda x: [
        torch.var(x, 0, unbiased=False),
        x.std(unbiased=False),
        *torch.var_mean(x, 1),
        *torch.std_mean(x),
        torch.std(x, (0, 1)),
        x.var(),
        x.mean(),
        torch.mean(x, (0, 1), True),
        x.sum(dtype=x.dtype),
        torch.sum(x, dim=(0, 1)),
        x.prod() * 0 + x.abs().prod(1),
    ],
    factor=16,
)
_many(
    "differences",
    lambda x: [
        torch.diff(x),
        torch.diff(x, dim=0),
        torch.gradient(x)[0],
        torch.trapz(x),
        torch.cumulative_trapezoid(x),
    ],
    dtypes=(torch.float32,),
)
_many(
    "equality",
    lambda x: [torch.equal(x, x), torch.allclose(x, x), bool((x == x).all()), x.max().item() >= x.min().item()],
    grads=(),
)
