"""Tensors of no dimensions where a function takes a dimension: 0 and -1 are theirs, any other is refused."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[[torch.Tensor, Any], Any]


def _index(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros((), dtype=torch.int64, device=x.device)


def _named(names: str, *more: Any, **options: Any) -> dict[str, Form]:
    return {name: lambda x, dim, name=name: getattr(x, name)(*more, dim, **options) for name in names.split()}


# What answers with values that have a gradient, and what does not.
_VALUES: dict[str, Form] = {
    **_named("cumsum cumprod logcumsumexp softmax log_softmax sum nansum mean prod amax amin logsumexp squeeze"),
    **{name: lambda x, dim, name=name: getattr(x, name)(dim)[0] for name in ("cummax", "cummin", "max", "min", "sort")},
    **{name: lambda x, dim, name=name: getattr(x, name)(dim)[0] for name in ("median", "nanmedian", "mode")},
    **{
        f"{name}-kept": lambda x, dim, name=name: getattr(x, name)(dim, keepdim=True)
        for name in ("sum", "amax", "mean")
    },
    "sort-stable": lambda x, dim: x.sort(dim=dim, stable=True, descending=True)[0],
    "topk": lambda x, dim: x.topk(1, dim)[0],
    "topk-none": lambda x, dim: x.topk(1, dim, largest=False, sorted=False)[0],
    "kthvalue": lambda x, dim: x.kthvalue(1, dim)[0],
    "aminmax": lambda x, dim: torch.stack([*torch.aminmax(x, dim=dim)]),
    "softmin": lambda x, dim: F.softmin(x, dim),
    "special": lambda x, dim: torch.special.log_softmax(x, dim),
    "std": lambda x, dim: torch.std(x, dim, correction=0),
    "var": lambda x, dim: torch.var(x, dim, correction=0),
    "norm": lambda x, dim: torch.norm(x, 2, dim),
    **{
        f"vector_norm-{order}": lambda x, dim, order=order: torch.linalg.vector_norm(x, order, dim)
        for order in (0, 1, 2, 3.5, float("inf"))
    },
    "quantile": lambda x, dim: torch.quantile(x.float() if x.dtype != torch.float64 else x, 0.3, dim),
    "normalize": lambda x, dim: F.normalize(x, dim=dim),
    "cosine": lambda x, dim: F.cosine_similarity(x, x + 1, dim=dim),
    "gather": lambda x, dim: x.gather(dim, _index(x)),
    "index_select": lambda x, dim: x.index_select(dim, _index(x)),
    "index_add": lambda x, dim: x.index_add(dim, _index(x), x * 2, alpha=3),
    "index_copy": lambda x, dim: x.index_copy(dim, _index(x), x * 2),
    "index_fill": lambda x, dim: x.index_fill(dim, _index(x), 3.0) + x,
    "scatter": lambda x, dim: x.scatter(dim, _index(x), x * 2),
    "scatter-number": lambda x, dim: x.scatter(dim, _index(x), 4.0) + x,
    "scatter_add": lambda x, dim: x.scatter_add(dim, _index(x), x * 2),
    "scatter_reduce": lambda x, dim: x.scatter_reduce(dim, _index(x), x * 2, "amax"),
    "index_reduce": lambda x, dim: x.index_reduce(dim, _index(x), x * 2, "mean"),
    "flip": lambda x, dim: x.flip(dim),
    "transpose": lambda x, dim: x.transpose(dim, 0),
    "movedim": lambda x, dim: x.movedim(dim, 0),
    "unsqueeze": lambda x, dim: x.unsqueeze(dim),
    "flatten": lambda x, dim: x.flatten(dim, -1),
    "stack": lambda x, dim: torch.stack([x, x * 2], dim),
}
_OTHERS: dict[str, Form] = {
    **_named("argmax argmin any all count_nonzero argsort"),
    **{name: lambda x, dim, name=name: getattr(x, name)(dim)[1] for name in ("cummax", "cummin", "max", "min", "sort")},
    **{name: lambda x, dim, name=name: getattr(x, name)(dim)[1] for name in ("median", "mode")},
    "argmax-kept": lambda x, dim: x.argmax(dim, keepdim=True),
    "topk": lambda x, dim: [x.topk(1, dim)[1], x.kthvalue(1, dim)[1]],
    "unique": lambda x, dim: torch.unique_consecutive(x.reshape(1), return_inverse=True, dim=dim),
    "written": lambda x, dim: [x.clone().cumsum_(dim), x.clone().index_fill_(dim, _index(x), 3), x.squeeze(dim).shape],
    "outs": lambda x, dim: [
        torch.cumsum(x, dim, out=torch.empty_like(x)),
        torch.sum(x, dim, out=torch.empty_like(x)),
        torch.logcumsumexp(x, dim, out=torch.empty_like(x)),
    ],
}
# Of what there is not, there are no parts.
_PARTS: dict[str, Form] = {
    "take": lambda x, dim: torch.take_along_dim(x, _index(x), dim),
    "roll": lambda x, dim: x.roll(3, dim),
    "repeat_interleave": lambda x, dim: x.repeat_interleave(3, dim),
    "select": lambda x, dim: x.select(dim, 0),
    "narrow": lambda x, dim: x.narrow(dim, 0, 1),
    "unbind": lambda x, dim: x.unbind(dim),
    "split": lambda x, dim: x.split(1, dim),
    "chunk": lambda x, dim: x.chunk(2, dim),
    "cat": lambda x, dim: torch.cat([x, x], dim),
    "diff": lambda x, dim: x.diff(dim=dim),
    "glu": lambda x, dim: F.glu(x, dim),
    "renorm": lambda x, dim: x.renorm(2, dim, 1.0),
    "unfold": lambda x, dim: x.unfold(dim, 2, 1),
    "trapezoid": lambda x, dim: torch.trapezoid(x, dim=dim),
}
_DIMS = (0, -1)
_OF_FRACTIONS = ("softmax", "log_softmax", "softmin", "special")
for _dtype in (torch.float32, torch.float16, torch.int64, torch.bool):
    add_table(
        cases,
        f"no-dimensions-{str(_dtype)[6:]}",
        {
            f"{name}{part}{dim}": lambda x, form=form, dim=dim: form(x, dim)
            for part, forms in (("", _VALUES), ("-places", _OTHERS))
            for name, form in forms.items()
            for dim in _DIMS
            if _dtype.is_floating_point or name not in _OF_FRACTIONS  # what refuses too late leaves no answer to others
        },
        lambda d, dtype=_dtype: (d.of(dtype, 1)[0] if dtype == torch.bool else torch.tensor(2.75).to(dtype),),
    )
add_table(
    cases,
    "no-dimensions-derived",
    {
        f"{name}{dim}": lambda x, form=form, dim=dim: derived(lambda y: form(y, dim), x)
        for name, form in _VALUES.items()
        for dim in _DIMS
        if name != "aminmax"  # its gradient compares what was rounded
    },
    lambda d: (torch.tensor(2.75),),
)
add_refused(
    cases,
    "no-dimensions",
    lambda d: (torch.tensor(2.75),),
    {
        f"{name}{part}{dim}": lambda x, form=form, dim=dim: form(x, dim)
        for part, forms in (("", {**_VALUES, **_PARTS}), ("-places", _OTHERS))
        for name, form in forms.items()
        for dim in ((0, -1, 1, -2) if name in _PARTS else (1, -2, 2, 7))
    },
)
