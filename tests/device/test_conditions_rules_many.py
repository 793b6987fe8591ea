"""Rule 3: 2**18 elements for one result, in every reduction and dtype; large square matrices times narrow ones.

A mean of 480 x 640 ones: https://github.com/tenstorrent/tt-metal/issues/23876; a batch of (512, 512) times (512, 32):
https://github.com/tracel-ai/burn/issues/4907
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.answers import attempt
from device_suite.limits import ONCE
from device_suite.ops import FLOATS

cases = Cases("conditions")
Form = Callable[..., Any]
_ROWS, _COLUMNS = 513, 512  # 2**18 and a row
_WHOLE = (torch.int32, torch.bool)


def _named(name: str, *more: Any, home: Any = torch) -> Form:
    return lambda x, dim: getattr(home, name)(x, *more, dim=dim)


# Of any dimensions; then of one.
_FORMS: dict[str, Form] = {
    **{name: _named(name) for name in ("sum", "nansum", "mean", "nanmean", "amax", "amin", "count_nonzero")},
    **{name: _named(name) for name in ("any", "all", "logsumexp", "var_mean", "std_mean")},
    **{f"norm-{p}": _named("vector_norm", p, home=torch.linalg) for p in (0, 1, 2, 3, math.inf, -math.inf)},
}
_LINES: dict[str, Form] = {
    **{name: _named(name) for name in ("argmax", "argmin", "max", "min", "aminmax", "median")},
    "prod": lambda x, dim: _powers(x).prod(dim),
    "topk": lambda x, dim: x.topk(3, dim),
    "softmax": lambda x, dim: (x * 64).softmax(dim).amax(dim),
    "scanned": lambda x, dim: [x.cumsum(dim).amax(dim), x.cummax(dim)[0].amax(dim)],
}
# Of all that there is, in float32.
_SUMS: dict[str, Form] = {
    "products": lambda x: [torch.dot(x.reshape(-1), x.flip(0).reshape(-1)), torch.inner(x.reshape(-1), x.reshape(-1))],
    "losses": lambda x: [
        derived(lambda a, loss=loss: loss(a, x.flip(0) / 2), x) for loss in (F.mse_loss, F.l1_loss, F.kl_div)
    ],
    "normalised": lambda x: [F.layer_norm(x, x.shape), F.batch_norm(x.reshape(-1, 1), None, None, training=True)],
}
# What a number without a fraction, or a mask, has.
_COUNTED = ("sum", "amax", "amin", "count_nonzero", "any", "all", "argmax", "argmin", "max", "min")
_IN_FLOAT32 = (
    "logsumexp",
    "norm-3",
    "scanned",
    "prod",
    "topk",
    "argmax",
    "argmin",
    "max",
    "min",
    "aminmax",
    "median",
    "softmax",
)


def _powers(x: torch.Tensor) -> torch.Tensor:
    """Return twos at the sixty largest numbers, halves at the forty least, ones elsewhere: nothing is rounded."""
    step = 0.2 / (_ROWS * _COLUMNS)
    least = torch.where(x < 0.05 + 40 * step, 0.5, 1.0)
    return torch.where(x > 0.25 - 60 * step, 2.0, least).to(x.dtype)


def _reduced(name: str, x: torch.Tensor) -> Any:
    if name in _LINES:
        form = _LINES[name]
        return [form(x.reshape(1, -1), 1), form(x.reshape(-1, 1), 0)]
    if name in _SUMS:
        return _SUMS[name](x)
    form = _FORMS[name]
    return [form(x, (0, 1)), form(x.reshape(-1), 0), form(x[None].expand(2, -1, -1).mT, (1, 2))]


def _values(d: Any, dtype: torch.dtype) -> torch.Tensor:
    if dtype == torch.bool:
        return d.bools(_ROWS, _COLUMNS)
    if not dtype.is_floating_point:
        return d.integers(1, 9, _ROWS, _COLUMNS, dtype=dtype)
    x = d.distinct(_ROWS, _COLUMNS) / (_ROWS * _COLUMNS) * 0.2 + 0.15  # sums that float16 can hold; the ends once
    return x.to(dtype)


def _has(name: str, dtype: torch.dtype) -> bool:
    if dtype in _WHOLE:
        return name in _COUNTED and name not in _IN_FLOAT32
    return dtype == torch.float32 or not (name in _IN_FLOAT32 or name in _SUMS)


for _dtype in (*FLOATS, *_WHOLE):
    for _name in (*_FORMS, *_LINES, *_SUMS):
        if not _has(_name, _dtype):
            continue
        cases.add(
            f"threshold-many-{_name}-{str(_dtype)[6:]}",
            lambda x, name=_name: attempt(lambda: _reduced(name, x)),
            make=lambda d, dtype=_dtype: _values(d, dtype),
            terms=_ROWS * _COLUMNS if _dtype == torch.float32 else 1,
            states=ONCE,
            full=_dtype != torch.float32 and _name not in ("sum", "mean", "amax", "norm-2", "all"),
            may_be_missing=True,
        )

# (batch, square, narrow): beside the sides of a tile, of one column, of fewer than a tile has.
_NARROW = ((2, 512, 32), (3, 512, 8), (4, 512, 1), (2, 513, 33), (2, 511, 31))


def _products(a: torch.Tensor, b: torch.Tensor) -> Any:
    answers = []
    for number, (batch, side, narrow) in enumerate(_NARROW):
        one, two = a[:batch, :side, :side].contiguous(), b[:batch, :side, :narrow].contiguous()
        answers += [one @ two, two.mT @ one] if number < 3 else [torch.baddbmm(two, one, two)]
    return answers


def _products_of_one(a: torch.Tensor, b: torch.Tensor) -> Any:
    """Return products in which one matrix is of a batch, and the gradients of one."""
    one, two = a[:2, :512, :512].contiguous(), b[:2, :512, :8].contiguous()
    return [one @ two[0], one[0] @ two, F.linear(two.mT, one[0], one[1, 0]), derived(torch.bmm, one, two)]


for _name, _act in (("batches", _products), ("of-one", _products_of_one)):
    cases.add(
        f"threshold-narrow-{_name}-float32",
        _act,
        make=lambda d: (d.normal(4, 513, 513) / 16, d.normal(4, 513, 33) / 16),
        terms=513,
        floor=1.0,
        states=ONCE,
        deterministic=False,
    )
for _dtype in FLOATS[1:]:
    cases.add(
        f"threshold-narrow-batches-{str(_dtype)[6:]}",
        lambda a, b: a @ b,
        make=lambda d, dtype=_dtype: (d.normal(2, 512, 512, dtype=dtype) / 16, d.normal(2, 512, 8, dtype=dtype) / 16),
        terms=16,
        floor=1.0,
        states=ONCE,
        deterministic=False,
    )
