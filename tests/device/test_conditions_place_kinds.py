"""Rules 1 and 2: what takes places: of both integer dtypes, from the end, laid in every way, into targets laid so too.

scatter_ read sources and places in the order of storage, https://github.com/pytorch/pytorch/issues/175191; counts
behind a slice's start ended the process, https://github.com/pytorch/pytorch/issues/167924; take_along_dim refused
places from the end, https://github.com/pytorch/pytorch/issues/146211
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]
_SIDES = (4, 3, 5)


def _full(x: torch.Tensor, dim: int, p: torch.Tensor) -> torch.Tensor:
    """Return the places of a line for every line along a dimension, each line begun elsewhere; none twice."""
    side = x.shape[dim]
    others = torch.arange(x.numel() // side, device=x.device)
    grid = (p[:, None] + others) % side
    rest = [one for at, one in enumerate(x.shape) if at != dim]
    return grid.reshape(side, *rest).movedim(0, dim).contiguous()


# x (4, 3, 5), y like it, a dimension, p its places in a line, each once, f the same for every line.
_LINES: dict[str, Form] = {
    "index_select": lambda x, y, dim, p, f: x.index_select(dim, p),
    "index_add": lambda x, y, dim, p, f: x.index_add(dim, p, y, alpha=2),
    "index_copy": lambda x, y, dim, p, f: x.index_copy(dim, p, y),
    "index_fill": lambda x, y, dim, p, f: x.index_fill(dim, p[1:], 3),
    "index_fill-cell": lambda x, y, dim, p, f: x.index_fill(dim, p[1:], y[0, 0, 1]),
    **{
        f"index_reduce-{how}-{own}": lambda x, y, dim, p, f, how=how, own=own: x.index_reduce(
            dim, p[1:], y.narrow(dim, 1, len(p) - 1), how, include_self=own
        )
        for how in ("prod", "mean", "amax", "amin")
        for own in (True, False)
    },
    "repeated": lambda x, y, dim, p, f: torch.repeat_interleave(x, p, dim=dim),
    "repeated-size": lambda x, y, dim, p, f: torch.repeat_interleave(x, p, dim=dim, output_size=sum(range(len(p)))),
    "counts": lambda x, y, dim, p, f: torch.repeat_interleave(p),
    "counted": lambda x, y, dim, p, f: [torch.bincount(p), torch.bincount(p, minlength=9)],
    "embedding": lambda x, y, dim, p, f: F.embedding(p, x.movedim(dim, 0).flatten(1)),
    "embedding-limited": lambda x, y, dim, p, f: F.embedding(p, x.movedim(dim, 0).flatten(1).clone(), max_norm=0.5),
    "bag": lambda x, y, dim, p, f: F.embedding_bag(p[None], x.movedim(dim, 0).flatten(1), mode="sum"),
    "one_hot": lambda x, y, dim, p, f: F.one_hot(p, 6),
    "indexed": lambda x, y, dim, p, f: x[(slice(None),) * dim + (p,)],
    "index_put": lambda x, y, dim, p, f: x.movedim(dim, 0).index_put((p,), y.movedim(dim, 0)),
    "index_put-added": lambda x, y, dim, p, f: x.movedim(dim, 0).index_put((p,), y.movedim(dim, 0), accumulate=True),
    "index_put-cell": lambda x, y, dim, p, f: x.movedim(dim, 0).index_put((p[1:],), y[0, 0, 1]),
    "sorted": lambda x, y, dim, p, f: [p.sort()[1], p.argsort(descending=True), p.unique(), p.flip(0).cumsum(0)],
    "compared": lambda x, y, dim, p, f: [torch.isin(p, p[1:]), p.nonzero(), p.argmax(), p.max(), (p > 1).nonzero()],
    "unravelled": lambda x, y, dim, p, f: torch.unravel_index(p, (2, 3)),
    "searched": lambda x, y, dim, p, f: torch.searchsorted(p.argsort().sort()[0], p),
}
_WHOLE: dict[str, Form] = {
    "gather": lambda x, y, dim, p, f: x.gather(dim, f),
    "gather-column": lambda x, y, dim, p, f: x.gather(dim, f.narrow((dim + 1) % 3, 1, 1)),
    "gather-line": lambda x, y, dim, p, f: x.gather(dim, p.view([-1 if d == dim else 1 for d in range(3)])),
    "scatter-line": lambda x, y, dim, p, f: x.scatter(dim, p.view([-1 if d == dim else 1 for d in range(3)]), y),
    "gather-part": lambda x, y, dim, p, f: x.gather(dim, f[:2, :2, :3]),
    "along": lambda x, y, dim, p, f: torch.take_along_dim(x, f, dim),
    "along-spread": lambda x, y, dim, p, f: torch.take_along_dim(
        x, p.view([-1 if d == dim else 1 for d in range(3)]), dim
    ),
    "take": lambda x, y, dim, p, f: x.take(f),
    "put": lambda x, y, dim, p, f: x.clone().put_(p * 7, y[0, 0, : len(p)]),
    "put-added": lambda x, y, dim, p, f: x.clone().put_(f, y, accumulate=True),
    "scatter": lambda x, y, dim, p, f: x.scatter(dim, f, y),
    "scatter-part": lambda x, y, dim, p, f: x.scatter(dim, f[:2, :2, :3], y),
    "scatter-number": lambda x, y, dim, p, f: x.scatter(dim, f.narrow(dim, 1, 2), 2),
    "scatter-add": lambda x, y, dim, p, f: x.scatter(dim, f, y, reduce="add"),
    "scatter-multiply": lambda x, y, dim, p, f: x.scatter(dim, f, 3, reduce="multiply"),
    "scatter_add": lambda x, y, dim, p, f: x.scatter_add(dim, f, y),
    **{
        f"scatter_reduce-{how}-{own}": lambda x, y, dim, p, f, how=how, own=own: x.scatter_reduce(
            dim, f.narrow(dim, 1, 2), y, how, include_self=own
        )
        for how in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    },
    "three": lambda x, y, dim, p, f: x[f % 4, f % 3, f],
}
# A function that takes places from the end, and what refuses them before it reads any: the rest would read beyond.
_FROM_THE_END = ("along", "along-spread", "take", "put", "put-added", "index_fill", "index_fill-cell")
_FROM_THE_END = (*_FROM_THE_END, "indexed", "index_put", "index_put-added", "index_put-cell", "sorted", "compared")
# How places, and operands, lie.
_LAID: dict[str, Form] = {
    "dense": lambda i: i,
    "turned": lambda i: (
        i.permute(tuple(reversed(range(i.dim())))).contiguous().permute(tuple(reversed(range(i.dim()))))
    ),
    "stepped": lambda i: torch.stack([i, i * 0], -1).flatten(-2)[..., ::2],
    "column": lambda i: torch.stack([i * 0, i, i * 0], -1)[..., 1],
    "offset": lambda i: torch.cat([i[:1] * 0, i, i[:1] * 0])[1:-1],
    "part": lambda i: F.pad(i, (2, 1))[..., 2:-1],
}


def _asked(form: Form, dim: int, laid: Form, kind: str, x: torch.Tensor, y: torch.Tensor, p: torch.Tensor) -> Any:
    p = p[p < x.shape[dim]]
    f = _full(x, dim, p)
    if kind == "end":
        p, f = p - x.shape[dim], f - x.shape[dim]
    elif kind == "operands":
        return form(laid(x), laid(y), dim, p, f)
    elif kind == "all":
        return form(laid(x), laid(y), dim, laid(p), laid(f))
    elif kind == "int32":
        p, f = p.int(), f.int()
    return form(x, y, dim, laid(p), laid(f))


def _operands(d: Any, dtype: torch.dtype) -> Any:
    x, y = d.distinct(*_SIDES), d.distinct(*_SIDES)
    if dtype.is_floating_point:
        x, y = x / 16 + 0.03125, y / 16 - 0.03125
    return (
        (x % 3 > 1, y % 2 > 0, d.permutation(5))
        if dtype == torch.bool
        else (x.to(dtype), y.to(dtype), d.permutation(5))
    )


_EVERY = {**_LINES, **_WHOLE}
_SMALL = ("repeated", "repeated-size", "counts", "counted", "index_select", "index_add", "gather", "gather-part")
_SMALL = (*_SMALL, *(name for name in _EVERY if name.startswith(("scatter", "index_reduce"))))
_SMALL = (*_SMALL, "embedding", "bag", "indexed", "index_put", "sorted", "compared", "searched", "unravelled")
# Products of halves, and what no dtype but these answers.
_NONE_OF_BOOL = ("embedding", "bag", "index_reduce", "limited")


def _forms(dtype: torch.dtype) -> dict[str, Form]:
    whole = dtype == torch.float32
    return {
        f"{name}-{dim}-{kind}-{way}": lambda x, y, p, row=(form, dim, laid, kind): _asked(*row, x, y, p)
        for at, (name, form) in enumerate(_EVERY.items())
        for dim in (0, 1, 2)
        for kind in ("places", "int32", "end", "operands", "all")
        for place, (way, laid) in enumerate(_LAID.items())
        if kind not in ("operands", "all") or way != "dense"
        if kind != "end" or (name in _FROM_THE_END and way in ("dense", "stepped", "offset"))
        if kind != "int32" or (name in _SMALL and way in ("dense", "column", "turned"))
        if (at * 5 + dim * 3 + place + len(kind) * 2) % (17 if whole else 41) == 0
        if dtype.is_floating_point or not any(part in name for part in ("limited", "mean", "embedding", "bag"))
        if dtype != torch.bool
        or not any(part in name for part in ("index_add", "reduce", "multiply", "scatter-add", "scatter-line"))
    }


for _dtype in (torch.float32, *HALVES, torch.int64, torch.int32, torch.uint8, torch.bool):
    add_table(
        cases,
        f"place-kinds-{str(_dtype)[6:]}",
        _forms(_dtype),
        lambda d, dtype=_dtype: (
            _operands(d, torch.float32 if dtype == torch.uint8 else dtype)
            if dtype != torch.uint8
            else (*(one.abs().to(dtype) for one in _operands(d, torch.int64)[:2]), d.permutation(5))
        ),
        deterministic=False,
        since="2.9",  # before it take_along_dim reads what lies before its operand
    )
_WITHOUT = (
    "counts",
    "counted",
    "one_hot",
    "sorted",
    "compared",
    "unravelled",
    "searched",
    "limited",
    "multiply",
    "scatter-add",
    "scatter-line",
)
add_table(
    cases,
    "place-kinds-derived",
    {
        f"{name}-{dim}-{kind}-{way}": lambda x, y, p, row=(form, dim, _LAID[way], kind): derived(
            lambda a, b: _asked(*row, a, b * 1, p) + b.sum() * 0, x, y
        )
        for at, (name, form) in enumerate(_EVERY.items())
        for dim in (0, 1, 2)
        for kind, way in (("all", "turned"), ("places", "stepped"), ("end", "dense"), ("all", "offset"))
        if not any(part in name for part in _WITHOUT) and "part" not in name and not name.startswith("scatter_reduce")
        if kind != "end" or (name in _FROM_THE_END and name != "index_fill-cell")
        if (at + dim + len(way)) % 4 == 0
    },
    lambda d: _operands(d, torch.float32),
    deterministic=False,
    since="2.9",
)
_DTYPES = (torch.int16, torch.int8, torch.uint8, torch.float32, torch.bool)
add_refused(
    cases,
    "place-kinds",
    lambda d: _operands(d, torch.float32),
    {
        f"{name}-{str(dtype)[6:]}": lambda x, y, p, form=form, dtype=dtype: form(
            x, y, 0, p[p < 4].to(dtype), _full(x, 0, p[p < 4]).to(dtype)
        )
        for name, form in _EVERY.items()
        for dtype in _DTYPES
        if name not in ("sorted", "compared", "searched", "unravelled", "counted", "counts", "indexed", "three")
        if not name.startswith(("index_put", "repeated"))
    },
)
