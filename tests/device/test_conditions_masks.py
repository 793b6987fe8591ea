"""Masks of each kind: bytes, dimensions that repeat, fewer dimensions than the tensor, a million places."""

from __future__ import annotations

import warnings
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table, assigned
from device_suite.refusals import add_refused

cases = Cases("conditions")


# How a mask of (4, 3, 5) lies, and what it leaves out: each is for x of the same size.
_MASKS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "whole": lambda m: m,
    "turned": lambda m: m.permute(2, 1, 0).contiguous().permute(2, 1, 0),
    "stepped": lambda m: torch.stack([m, ~m], 3)[..., 0],
    **{f"repeated-{dim}": lambda m, dim=dim: m.narrow(dim, 1, 1).expand(m.shape) for dim in (0, 1, 2)},
    "repeated-both": lambda m: m[:1, :, :1].expand(m.shape),
    "number": lambda m: m[0, 0, 0].expand(m.shape),
    "row": lambda m: m[0],
    "last": lambda m: m[1, 2],
    "column": lambda m: m[:, :, :1],
    "middle": lambda m: m[:1, :, :1],
    "none": lambda m: m[0, 0, 1],
    "flat": lambda m: m[2, :, :1],
}
# x of (4, 3, 5), y like it, and a mask as above.
_USES: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]] = {
    "selected": lambda x, y, m: [torch.masked_select(x, m), x[1].masked_select(m), y.mT.mT.masked_select(m)],
    "filled": lambda x, y, m: [x.masked_fill(m, 2), torch.masked_fill(x, m, y[0, 0, 0]), x.clone().masked_fill_(m, 3)],
    "chosen": lambda x, y, m: [
        torch.where(m, x, y),
        x.where(m, 1),
        torch.where(m, 2, y),
        torch.where(m, x[0], y[:, :1]),
    ],
    "counted": lambda x, y, m: [
        m.sum(),
        m.sum(0),
        m.any(-1),
        m.all(-1),
        m.nonzero(),
        m.count_nonzero(),
        m.long().cumsum(-1),
    ],
    "converted": lambda x, y, m: [m.to(x.dtype), x * m, m * 2, m.logical_not(), m == 0, x + m],
}
# Asked behind all others: a back end that gives y another size would leave them that.
_LAST: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]] = {
    "scattered": lambda x, y, m: [x.masked_scatter(m, y), x.clone().masked_scatter_(m, y.flatten())],
}
# Where the mask has the first dimensions of x.
_PLACED: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]] = {
    "read": lambda x, y, m: [x[m], y[~m if m.dtype == torch.bool else m], x.mT.contiguous().mT[m]],
    "written-number": lambda x, y, m: [assigned(x, m, 2), assigned(x, m, y[0, 0, 0])],
    "written": lambda x, y, m: assigned(x, m, y[m]),
    "put": lambda x, y, m: [x.index_put((m,), y[m].flip(0)), x.index_put((m,), y[m], accumulate=True)],
    "beside": lambda x, y, m: [x[..., None][m], x[None][0, m], x[m, ..., None]],
}
_LEADING: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    **{name: form for name, form in _MASKS.items() if "repeated" in name or name in ("whole", "turned", "number")},
    "first": lambda m: m[:, 0, 0],
    "first-repeated": lambda m: m[:1, 0, 0].expand(4),
    "two": lambda m: m[:, :, 1],
    "two-repeated": lambda m: m[:, :1, 1].expand(4, 3),
    "two-stepped": lambda m: torch.cat([m, m], 2)[:, :, 3],
}


# What takes bytes for a mask: the rest refuses them.
_OF_BYTES = ("chosen", "counted", "converted", "read", "written", "put", "beside")


def _bytes(m: torch.Tensor) -> torch.Tensor:
    """Return a mask as bytes: 1, 2, 128 and 255 are all true."""
    numbers = torch.tensor([1, 2, 128, 255], dtype=torch.uint8, device=m.device)
    return numbers[torch.arange(m.numel(), device=m.device) % 4].reshape(m.shape) * m


def _quiet(form: Any, *operands: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bytes as a mask are deprecated
        return form(*operands)


for _dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
    for _kind in ("bool", "bytes"):
        if _kind == "bool" or _dtype in (torch.float32, torch.int64):
            _cast = (lambda m: m) if _kind == "bool" else _bytes
            add_table(
                cases,
                f"masks-{_kind}-{str(_dtype)[6:]}",
                {
                    f"{use}-{lay}": lambda x, y, m, form=form, cut=cut, cast=_cast: _quiet(form, x, y, cut(cast(m)))
                    for uses, lays in ((_USES, _MASKS), (_PLACED, _LEADING), (_LAST, _MASKS))
                    for use, form in uses.items()
                    for lay, cut in lays.items()
                    if _kind == "bool" or (use in _OF_BYTES and lay != "stepped")
                },
                lambda d, dtype=_dtype: (d.of(dtype, 4, 3, 5), d.of(dtype, 4, 3, 5), d.bools(4, 3, 5)),
                deterministic=False,
            )
add_table(
    cases,
    "masks-derived",
    {
        f"{use}-{lay}": lambda x, y, m, form=form, cut=cut: derived(lambda x, y: form(x, y, cut(m)), x, y)
        for use, form in {
            "selected": lambda x, y, m: torch.masked_select(x, m) * 2 + 0 * y.sum(),
            "broadcast": lambda x, y, m: torch.masked_select(x[:1, :1], m.expand(4, 3, 5)) * y[0, 0, 0],
            "filled": lambda x, y, m: x.masked_fill(m, 2) * y,
            "filled-tensor": lambda x, y, m: x.masked_fill(m, y[0, 1, 2]) * y,
            "chosen": lambda x, y, m: torch.where(m, x, y) + torch.where(m, x[0, 0], 2),
            "read": lambda x, y, m: x[m.expand(4, 3, 5)] + 0 * y.sum(),
            "put": lambda x, y, m: (x * 1).index_put((m.expand(4, 3, 5),), y[m.expand(4, 3, 5)], accumulate=True),
            "scattered": lambda x, y, m: x.masked_scatter(m, y),
        }.items()
        for lay, cut in _MASKS.items()
    },
    lambda d: (d.normal(4, 3, 5), d.normal(4, 3, 5), d.bools(4, 3, 5)),
    deterministic=False,
)
# More than 2**20 results from one row, from many, and of what is broadcast.
_LONG = (1 << 20) + 77
_MANY: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "selected": lambda x, m: torch.masked_select(x, m),
    "broadcast": lambda x, m: torch.masked_select(x[:1200, None], m[None, :1200]),
    "expanded": lambda x, m: torch.masked_select(x[:1200].expand(1200, 1200), m[:1200, None].expand(1200, 1200)),
    "mask-expanded": lambda x, m: x[None, :1100].expand(1100, 1100)[m[1:2].expand(1100, 1100)],
    "read": lambda x, m: x[m],
    "rows": lambda x, m: x.expand(2, -1)[:, m][1],
    "places": lambda x, m: m.nonzero()[:, 0],
    "places-apart": lambda x, m: m.reshape(1, -1).nonzero(as_tuple=True)[1],
    "counted": lambda x, m: [m.count_nonzero(), m.sum(), m[None].sum(1)],
    "written": lambda x, m: assigned(x, m, x[m] + 1),
    "scattered": lambda x, m: x.masked_scatter(m, x.flip(0)),
}
add_table(
    cases,
    "masks-million",
    _MANY,
    lambda d: (
        (torch.arange(_LONG + 9) * 7919 % 65551).to(torch.int32),
        torch.arange(_LONG + 9) % 131071 != 5,
    ),
    deterministic=False,
)
# Numbers are no mask, but where bytes are.
add_refused(
    cases,
    "mask-kinds",
    lambda d: (d.normal(4, 5), d.integers(0, 3, 4, 5)),
    {
        f"{use}-{str(dtype)[6:]}": lambda x, m, form=form, dtype=dtype: _quiet(form, x, m.to(dtype))
        for use, form in {
            "masked_select": lambda x, m: x.masked_select(m),
            "masked_select-row": lambda x, m: torch.masked_select(x, m[0]),
            "masked_fill": lambda x, m: x.masked_fill(m, 2.0),
            "masked_fill-tensor": lambda x, m: x.masked_fill(m, x[0, 0]),
            "masked_fill_": lambda x, m: x.clone().masked_fill_(m, 2.0),
            "masked_scatter": lambda x, m: x.masked_scatter(m, x),
            "masked_scatter_": lambda x, m: x.clone().masked_scatter_(m, x),
            "where": lambda x, m: torch.where(m, x, x + 1),
            "where-number": lambda x, m: torch.where(m, x, 1.0),
        }.items()
        for dtype in (torch.uint8, torch.int8, torch.int32, torch.int64, torch.float32)
    },
)
