"""Small matrices cut out of a long one, past its row or column 2**15 and 2**16: products, sums, order, moves, writes.

A library is told where a matrix begins and how far its rows lie apart, and may count both in few bits, or take the
whole for the part: https://github.com/ml-explore/mlx/issues/4539, https://github.com/pytorch/pytorch/issues/27824
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import add_table

cases = Cases("conditions")
_LONG, _SMALL, _LARGE = 70_000, 1 << 15, 1 << 16
Form = Callable[[torch.Tensor, torch.Tensor], Any]

# x of (70000, 4), w of (4, 70000).
_CUTS: dict[str, Form] = {
    "rows-small": lambda x, w: x[_SMALL + 1 : _SMALL + 8],
    "columns-small": lambda x, w: w[:, _SMALL + 1 : _SMALL + 8],
    "rows-large": lambda x, w: x[_LARGE + 1 : _LARGE + 8],
    "columns-large": lambda x, w: w[:, _LARGE + 1 : _LARGE + 8],
    "rows-across": lambda x, w: x[_LARGE - 6 : _LARGE + 1],
    "columns-across": lambda x, w: w[:, _LARGE - 6 : _LARGE + 1],
    "rows-stepped": lambda x, w: x[_LARGE + 9 : _LARGE + 30 : 3],
    "columns-part": lambda x, w: w[1:4, _LARGE + 40 : _LARGE + 47],
    "rows-part": lambda x, w: x[_LARGE + 40 : _LARGE + 47, 1:4],
    "columns-turned": lambda x, w: w[:, _LARGE + 50 : _LARGE + 57].t(),
}
# c of m times n, y of (8, 8).
_PRODUCTS: dict[str, Form] = {
    "mm-first": lambda c, y: c @ y[: c.shape[1], :5],
    "mm-second": lambda c, y: y[:5, : c.shape[0]] @ c,
    "mm-both": lambda c, y: [c @ c.t(), c.t() @ c],
    "mv-matrix": lambda c, y: torch.mv(c, y[0, : c.shape[1]]),
    "mv-column": lambda c, y: torch.mv(y[:5, : c.shape[0]], c[:, 1]),
    "mv-row": lambda c, y: torch.mv(y[:5, : c.shape[1]], c[1]),
    "vector-first": lambda c, y: torch.matmul(y[0, : c.shape[0]], c),
    "vectors": lambda c, y: [torch.dot(c[:, 0], c[:, 2]), torch.dot(c[0], c[2]), torch.outer(c[:, 1], c[1])],
    "bmm-first": lambda c, y: torch.bmm(c.expand(2, *c.shape), y[: c.shape[1], :5].expand(2, -1, -1)),
    "bmm-second": lambda c, y: torch.bmm(y[None, :5, : c.shape[0]], c[None]),
    "baddbmm": lambda c, y: torch.baddbmm(c[None], y[None, : c.shape[0], :3], y[None, :3, : c.shape[1]]),
    "addmm-first": lambda c, y: torch.addmm(y[: c.shape[0], :5], c, y[: c.shape[1], :5], beta=0.5),
    "addmm-added": lambda c, y: torch.addmm(c, y[: c.shape[0], :3], y[:3, : c.shape[1]]),
    "linear-input": lambda c, y: F.linear(c, y[:5, : c.shape[1]], y[0, :5]),
    "linear-weight": lambda c, y: F.linear(y[:5, : c.shape[1]], c, c[:, 0]),
    "einsum": lambda c, y: [
        torch.einsum("ij,jk->ik", c, y[: c.shape[1]]),
        torch.einsum("ij,ik->jk", c, c),
        torch.einsum("ij->ji", c),
        torch.einsum("ij->j", c),
    ],
    "conv1d-input": lambda c, y: F.conv1d(c[None], y[:5, : c.shape[0], None]),
    "conv1d-weight": lambda c, y: F.conv1d(y[None, : c.shape[1]], c[..., None], c[:, 0]),
    "multiplied": lambda c, y: [c * c[:1], c * c[:, :1], c + y[: c.shape[0], : c.shape[1]]],
}
_REDUCED: dict[str, Form] = {
    **{
        name: lambda c, y, name=name: [getattr(c, name)(0), getattr(c, name)(1)]
        for name in "sum mean amax prod cumsum softmax log_softmax logsumexp".split()
    },
    "all": lambda c, y: [c.sum(), c.amin(), c.std(0), c.norm(), c.count_nonzero(1), (c > 0).any(0)],
    "layer_norm": lambda c, y: F.layer_norm(c, c.shape[1:]),
    "sort": lambda c, y: [c.sort(0)[0], c.sort(1, descending=True)[0], c.topk(2, 0)[0], c.topk(2, 1)[0]],
    "sort-places": lambda c, y: [c.sort(dim=dim, stable=True)[1] for dim in (0, 1)],
}
_MOVED: dict[str, Form] = {
    "index_select": lambda c, y: [c.index_select(dim, torch.tensor([2, 0, 1], device=c.device)) for dim in (0, 1)],
    "gather": lambda c, y: [c.gather(dim, torch.tensor([[2, 0], [1, 2]], device=c.device)) for dim in (0, 1)],
    "places": lambda c, y: [c[[2, 0]], c[:, [1, 2]], c[[0, 2], [1, 0]], c[c > 0], (c > 0).nonzero()],
    "cat": lambda c, y: [torch.cat([c, c]), torch.cat([c, c[:, 1:], c], 1), torch.stack([c, c], 1)],
    "turned": lambda c, y: [c.flip(0), c.roll(1, 1), c.t().contiguous(), c.rot90(), c.repeat(2, 2), c.tril()],
    "copied": lambda c, y: [
        c.clone(),
        c.contiguous(),
        c.to(torch.float16),
        c.reshape(-1),
        torch.zeros_like(c).copy_(c),
    ],
    "chosen": lambda c, y: [torch.where(c > 0, c, -c), c.masked_fill(c > 0, 1), c.clamp(0, 1), c.abs(), c + 1],
    "windows": lambda c, y: [
        c.unfold(0, 2, 1) + 0,
        c.diagonal() + 0,
        F.pad(c, (1, 2, 0, 1)),
        *c.unbind(1),
        *c.split(2),
    ],
}
_WRITTEN: dict[str, Form] = {
    "added": lambda c, y: c.add_(y[: c.shape[0], : c.shape[1]]),
    "added-row": lambda c, y: c.add_(y[0, : c.shape[1]], alpha=2),
    "added-column": lambda c, y: c.sub_(y[: c.shape[0], :1]),
    "copied": lambda c, y: c.copy_(y[: c.shape[0], : c.shape[1]]),
    "copied-turned": lambda c, y: c.t().copy_(y[: c.shape[1], : c.shape[0]]),
    "numbers": lambda c, y: c[1:3].fill_(2) * c[:, 1].mul_(2).sum(),
    "made": lambda c, y: torch.mm(y[: c.shape[0], :3], y[:3, : c.shape[1]], out=c),
    "picked": lambda c, y: c.index_add_(0, torch.tensor([2, 0], device=c.device), y[:2, : c.shape[1]]),
    "masked": lambda c, y: c.masked_fill_(c > 1, 1),
}


def _written_to(form: Form, cut: str, x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> Any:
    """Write into a cut of copies; what lies beside it is compared too."""
    rows, columns = x.clone(), w.clone()
    form(_CUTS[cut](rows, columns), y)
    near = (slice(_SMALL - 2, _SMALL + 12), slice(_LARGE - 9, _LARGE + 60))
    return [one for part in near for one in (rows[part], columns[:, part])]


def _cut_operands(d: Any, dtype: torch.dtype) -> Any:
    sizes = ((_LONG, 4), (4, _LONG), (8, 8))
    return tuple((d.integers(-4, 5, *size) / 2).to(dtype) for size in sizes)


for _name, _forms in {"products": _PRODUCTS, "reduced": _REDUCED, "moved": _MOVED, "written": _WRITTEN}.items():
    for _dtype in (torch.float32, torch.float16, torch.int32):
        if _dtype != torch.int32 or _name in ("moved", "written"):
            add_table(
                cases,
                f"cut-out-{_name}-{str(_dtype)[6:]}",
                {
                    f"{cut}-{name}": lambda *given, form=form, cut=cut: (
                        _written_to(form, cut, *given)
                        if form in _WRITTEN.values()
                        else form(_CUTS[cut](*given[:2]), given[2])
                    )
                    for name, form in _forms.items()
                    for cut in [*_CUTS][:: 1 if _dtype == torch.float32 else 3]
                },
                lambda d, dtype=_dtype: _cut_operands(d, dtype),
            )

# Shares of zeros in percent.
_SHARES = (0, 50, 90, 99, 100)
_PARTS = {
    "whole": (slice(None), slice(None)),
    "within": (slice(3, 15), slice(5, 25)),
    "narrow": (slice(1, None, 2), slice(7, 9)),
    "row": (4, slice(2, 29)),
}
# A part, numbers of the same size, and which of them are not zero.
_ADDS: dict[str, Callable[..., Any]] = {
    "added": lambda part, y, kept: part.add_(y),
    "taken": lambda part, y, kept: part.sub_(y, alpha=2),
    "between": lambda part, y, kept: part.__iadd__(y * 2),
    "masked": lambda part, y, kept: part.mul_(kept),
}


def _added(z: torch.Tensor, y: torch.Tensor, draws: torch.Tensor, share: int, add: Any, part: Any) -> torch.Tensor:
    whole, kept = z.clone(), draws >= share
    add(whole[part], (y * kept)[part], kept[part])
    return whole


for _dtype in (torch.float32, torch.float16, torch.int32, torch.int64):
    add_table(
        cases,
        f"cut-out-zeros-{str(_dtype)[6:]}",
        {
            f"{name}-{place}-{share}": lambda z, y, draws, share=share, add=add, part=part: _added(
                z, y, draws, share, add, part
            )
            for name, add in _ADDS.items()
            for place, part in _PARTS.items()
            for share in _SHARES
        },
        lambda d, dtype=_dtype: (
            *((d.integers(-8, 9, 20, 30) / 2).to(dtype) for _ in range(2)),
            d.integers(0, 100, 20, 30),
        ),
    )
