"""Rule 3: rows far from zero, in all of the softmax family and in each loss over it, along each dimension and width.

log_softmax near 10**7 was whole, for the largest number and the logarithm were added first,
https://github.com/pytorch/pytorch/issues/38839; -inf of rows far apart, https://github.com/pytorch/pytorch/issues/94043
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[[torch.Tensor, int], Any]


def _classes(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Return a class for each row along a dimension."""
    rows = x.movedim(dim, 1)[:, 0]
    return (torch.arange(rows.numel(), device=x.device) % x.shape[dim]).view(rows.shape)


def _shares(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Return shares that are exact in each dtype: eighths of the first and the last class."""
    y = torch.zeros_like(x).movedim(dim, 0)
    y[0], y[-1] = 0.375, 0.625
    return y.movedim(0, dim)


def _scored(x: torch.Tensor, dim: int) -> Any:
    """Losses take the classes as the second dimension."""
    y, c, s = x.movedim(dim, 1), _classes(x, dim), _shares(x, dim).movedim(dim, 1)
    w = torch.arange(1, 1 + y.shape[1], device=x.device).to(x.dtype) / 4
    some = torch.where(c == 0, -100, c)
    losses: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
        lambda z: F.cross_entropy(z, c, reduction="none"),
        lambda z: F.cross_entropy(z, some, w[: z.shape[1]] % 3 + 0.5, reduction="sum"),
        lambda z: F.cross_entropy(z, s, reduction="none"),
        lambda z: F.nll_loss(F.log_softmax(z, 1), c, reduction="none"),
        lambda z: F.kl_div(F.log_softmax(z, 1), s, reduction="none"),
        lambda z: F.mse_loss(F.softmax(z, 1), s, reduction="none"),
        lambda z: F.cross_entropy(z, c, label_smoothing=0.25, reduction="none"),
        lambda z: F.cross_entropy(z, s, w % 3 + 0.5, label_smoothing=0.5, reduction="none"),
    )
    return [derived(loss, y) for loss in losses]


def _attended(x: torch.Tensor, dim: int) -> Any:
    """Scores far from zero come in by a mask that is added."""
    y = x.movedim(dim, -1).flatten(0, -2)
    v = torch.arange(y.shape[-1] * 2, device=x.device).to(x.dtype).view(1, 1, -1, 2) % 5 - 2
    return F.scaled_dot_product_attention(v.new_zeros(1, 1, len(y), 2), v * 0, v, y[None, None])


_FAMILY: dict[str, Form] = {
    "softmax": lambda x, dim: derived(lambda y: y.softmax(dim), x),
    "log_softmax": lambda x, dim: derived(lambda y: y.log_softmax(dim), x),
    "softmin": lambda x, dim: derived(lambda y: F.softmin(-y, dim), x),
    "special": lambda x, dim: [torch.special.log_softmax(x, dim), torch.special.softmax(x, dim)],
    "modules": lambda x, dim: [torch.nn.LogSoftmax(dim)(x), torch.nn.Softmax(dim)(x), torch.nn.Softmin(dim)(-x)],
    "wider": lambda x, dim: [x.log_softmax(dim, torch.float32), x.softmax(dim, torch.float32)],
    "out": lambda x, dim: torch.log_softmax(x, dim, out=torch.empty_like(x)),
    # Beside the largest number: else its own size hides the rest.
    "logsumexp": lambda x, dim: x.logsumexp(dim) - x.amax(dim),
    # Of few: each sum is rounded to what the dtype holds there.
    "running": lambda x, dim: x.logcumsumexp(dim) - x.cummax(dim)[0],
    "scored": _scored,
    "attended": _attended,
    "sparse": lambda x, dim: torch.sparse.log_softmax(x.to_sparse(), dim).to_dense(),
}


def _wholly(x: torch.Tensor) -> Any:
    """Ask what takes pairs, and one number by itself."""
    y = x.flatten()[:40]
    ones = torch.ones_like(y)
    return [
        torch.logaddexp(y, y.flip(0)) - torch.maximum(y, y.flip(0)),
        torch.logaddexp2(y, y.flip(0)) - torch.maximum(y, y.flip(0)),
        derived(F.logsigmoid, y),
        derived(torch.sigmoid, y),
        derived(torch.tanh, y),
        derived(F.softplus, y),
        derived(lambda z: F.binary_cross_entropy_with_logits(z, ones * 0.25, reduction="none"), y),
        derived(lambda z: F.binary_cross_entropy_with_logits(z, ones, ones * 0.5, reduction="sum"), y),
        derived(lambda z: F.multilabel_soft_margin_loss(z.view(4, 10), ones.view(4, 10), reduction="none"), y),
    ]


# Width: narrow; more than a group of threads; more than a block.
_SIDES = {3: (4, 3, 5), 33: (2, 33, 3), 1030: (2, 1030, 1), 2053: (1, 2053, 2)}


@functools.lru_cache(None)
def _turned(kind: str) -> Callable[[torch.Tensor], tuple[torch.Tensor, int]]:
    """Return what lays the classes of (rows, classes, columns) first, within or last."""
    return {
        "first": lambda x: (x.transpose(0, 1).contiguous(), 0),
        "within": lambda x: (x, 1),
        "last": lambda x: (x.transpose(1, 2).contiguous(), 2),
        "strided": lambda x: (x.transpose(1, 2), 2),
    }[kind]


def _forms(width: int) -> dict[str, Any]:
    names = (
        [*_FAMILY]
        if width < 100
        else [name for name in _FAMILY if name not in ("sparse", "modules", "special", "running")]
    )
    return {
        f"{name}-{width}-{kind}": lambda x, form=_FAMILY[name], width=width, kind=kind: form(
            *_turned(kind)(x[: torch.Size(_SIDES[width]).numel()].view(_SIDES[width]))
        )
        for name in names
        for kind in (("first", "within", "last", "strided") if width < 100 and name != "scored" else ("within", "last"))
    }


_SHIFTS = {
    torch.float32: (1e7, -1e7, -(2.0**60)),
    torch.float16: (-60_000.0,),
    torch.bfloat16: (-1e7,),
}


def _steps(dtype: torch.dtype, shift: float) -> Callable[[Any], tuple[torch.Tensor, ...]]:
    """Draw whole steps of what the dtype holds at the shift, but never less than one in four."""
    step = 2.0 ** torch.tensor(max(0.25, abs(shift) * torch.finfo(dtype).eps)).log2().ceil().item()
    return lambda d: (((d.integers(-4, 5, 5000).float() * step + shift).to(dtype)),)


for _dtype, _all in _SHIFTS.items():
    for _number, _shift in enumerate(_all):
        _widths = (3, 33, 1030, 2053) if _dtype == torch.float32 and not _number else (3, 33) if not _number else (3,)
        _table = {
            key: form
            for width in _widths
            for key, form in _forms(width).items()
            if _dtype == torch.float32 or not key.startswith("sparse")
        }
        add_table(
            cases,
            f"far-rows-{str(_dtype)[6:]}-{_shift:g}",
            {**({} if _dtype in HALVES else {"wholly": _wholly}), **_table},
            _steps(_dtype, _shift),
            terms=64 if _dtype == torch.float32 else 8,
            factor=16.0,
            deterministic=False,
        )
