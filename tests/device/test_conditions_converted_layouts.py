"""Rules 1 and 3: sparse tensors from each layout to each, by two steps, of short places, in batches, of nothing.

Conversions one after another lost entries, https://github.com/pytorch/pytorch/issues/95814; places of 32 bits came
out of order, https://github.com/pytorch/pytorch/issues/91007; nothing lost its dense sides,
https://github.com/pytorch/pytorch/issues/97627
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import add_table
from device_suite.sparse import told

cases = Cases("conditions")
Form = Callable[..., Any]

_TO: dict[str, Form] = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
    "dense": lambda x: x.to_dense(),
}


def _members(y: torch.Tensor) -> Any:
    """Return the parts of a sparse tensor in order: those of one layout are the same everywhere."""
    if y.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [y.crow_indices(), y.col_indices(), y.values()]
    if y.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [y.ccol_indices(), y.row_indices(), y.values()]
    if y.layout == torch.sparse_coo:
        return [y.coalesce().indices(), y.coalesce().values(), str((y.is_coalesced(), y.sparse_dim(), y.dense_dim()))]
    return y


def _filled(x: torch.Tensor, kind: str) -> torch.Tensor:
    """Return a matrix of (4, 4) with entries in some places."""
    places = (torch.arange(16, device=x.device) * 5 % 7 < {"few": 2, "some": 4, "none": 0, "all": 9}[kind]).view(4, 4)
    return torch.where(places, x.view(4, 4), torch.zeros_like(x.view(4, 4)))


def _chained(steps: tuple[str, ...], kind: str, x: torch.Tensor) -> Any:
    y = _filled(x, kind)
    for step in steps:
        y = _TO[step](y)
    return _members(y)


def _short(layout: str, dtype: torch.dtype, to: str, x: torch.Tensor) -> Any:
    """Convert a tensor of places of 32 or 64 bits."""
    i, j = (torch.tensor(one, dtype=dtype, device=x.device) for one in ([0, 2, 3, 5, 7], [0, 2, 1, 2, 3, 0, 3]))
    y = (torch.sparse_csr_tensor if layout == "csr" else torch.sparse_csc_tensor)(i, j, x[:7], (4, 4))
    return [told(_TO[to](y)), told(_TO[to](y.t())), told(y.clone()), told(y * 2), _TO[to](y).to_dense().sum(0)]


# A block is not taken apart.
_APART = {(block, line) for block in ("bsr", "bsc") for line in ("csr", "csc")}

_HYBRID: dict[str, Form] = {
    "told": lambda s: [told(s), told(s.coalesce()), s.to_dense()],
    "scaled": lambda s: [told(s * 2), told(s / 2), told(-s), told(s + s), told(s - s), told(s * s)],
    "functions": lambda s: [
        told(getattr(s.coalesce(), f)()) for f in ("abs", "sin", "sqrt", "sign", "floor", "tanh", "neg")
    ],
    "sums": lambda s: [torch.sparse.sum(s), s.sum()] + [told(torch.sparse.sum(s, d)) for d in range(s.dim())],
    "sums-two": lambda s: told(torch.sparse.sum(s, sorted({0, s.dim() - 1}))),
    "turned": lambda s: told(s.transpose(0, 1)) if s.sparse_dim() > 1 else told(s),
    "joined": lambda s: [told(torch.cat([s, s], 0)), told(torch.stack([s, s]))],
    "cut": lambda s: [
        told(s.narrow_copy(0, 0, s.shape[0] // 2)),
        told(s.unsqueeze(0)),
        told(s.index_select(0, _first(s))),
    ],
    "zeroed": lambda s: [told(s.clone().zero_()), told(torch.zeros_like(s)), told(torch.empty_like(s).zero_())],
    "kinds": lambda s: [told(s), told(s.half()), told(s.int())],
    "flags": lambda s: str(
        (s.coalesce().is_coalesced(), s.sparse_dim(), s.dense_dim(), tuple(s.shape), s.coalesce()._nnz())
    ),
    "flags-uncoalesced": lambda s: str(
        (s._nnz(), s.is_sparse, s.layout, tuple(s._indices().shape), tuple(s._values().shape))
    ),
    "softmax": lambda s: [told(torch.sparse.softmax(s, d)) for d in range(s.dim())],
    "log_softmax": lambda s: [told(torch.sparse.log_softmax(s, d)) for d in range(s.dim())],
    "dense-added": lambda s: [torch.zeros(s.shape, device=s.device) + s, told(s.to_dense().to_sparse(s.sparse_dim()))],
    "masked": lambda s: told(torch.ones(s.shape, device=s.device).sparse_mask(s.coalesce())),
    "multiplied": lambda s: told(s.coalesce() * torch.full(s.shape, 2.0, device=s.device)),
    "compared": lambda s: [s.coalesce().values() > 0, s.coalesce().indices()],
}


def _first(s: torch.Tensor) -> torch.Tensor:
    return torch.zeros(min(2, s.shape[0]), dtype=torch.int64, device=s.device)


# Sides, how many of them are sparse, and how many entries there are.
_KINDS = (
    *(((3, 4), count, entries) for count, entries in ((2, 5), (2, 0), (1, 4), (1, 0))),
    *(((2, 3, 2), count, entries) for count, entries in ((2, 4), (3, 6), (1, 3))),
    *((shape, 1, 0) for shape in ((0, 3), (5,))),
    *((shape, 2, 0) for shape in ((2, 0, 2), (0, 3))),
    ((3, 0), 1, 2),
    ((5,), 1, 3),
    ((1, 1), 2, 2),
)


def _sparse(sides: tuple[int, ...], count: int, entries: int, x: torch.Tensor) -> torch.Tensor:
    places = [[(7 * e + 3 * d + e * d) % side for e in range(entries)] for d, side in enumerate(sides[:count])]
    rest = sides[count:]
    values = x[: entries * int(torch.Size(rest).numel())].reshape(entries, *rest)
    lines = torch.tensor(places, dtype=torch.int64, device=x.device).view(count, entries)
    return torch.sparse_coo_tensor(lines, values, sides)


def _batched(to: str, back: str, x: torch.Tensor) -> Any:
    y = _TO[to](torch.stack([_filled(x, "some"), _filled(x * 2, "some")]))
    return [told(y), _TO[back](y).to_dense()]


for _dtype in (torch.float32, torch.int64):
    add_table(
        cases,
        f"converted-layouts-{str(_dtype)[6:]}",
        {
            **{
                f"{'-'.join(steps)}-{kind}": lambda x, steps=steps, kind=kind: _chained(steps, kind, x)
                for count in (1, 2, 3)
                for place, steps in enumerate(itertools.product(_TO, repeat=count))
                for turn, kind in enumerate(("few", "some", "none", "all"))
                if not _APART & set(zip(steps, steps[1:]))
                and (place + turn) % (1, 2, 17)[count - 1] == 0
                and (_dtype == torch.float32 or (place + turn) % 3 == 0)
            },
            **{
                f"short-{layout}-{str(dtype)[6:]}-{to}": lambda x, row=(layout, dtype, to): _short(*row, x)
                for layout in ("csr", "csc")
                for dtype in (torch.int32, torch.int64)
                for to in _TO
            },
            **{
                f"batch-{to}-{back}": lambda x, to=to, back=back: _batched(to, back, x)
                for to in ("coo", "csr", "csc", "bsr")
                for back in ("dense", "coo")
            },
        },
        lambda d, dtype=_dtype: (d.distinct(16).abs().add(1).to(dtype),),
        since="2.1",
    )
add_table(
    cases,
    "converted-hybrids",
    {
        f"{name}-{kind}": lambda x, form=form, kind=kind: form(_sparse(*kind, x))
        for name, form in _HYBRID.items()
        for kind in _KINDS
    },
    lambda d: (d.distinct(24).abs() / 4 + 0.5,),
    terms=16,
    deterministic=False,
    since="2.1",
)
