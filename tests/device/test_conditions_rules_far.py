"""Rule 3: what is written, and read, past 2**16 elements of a storage, in each dtype by each function that writes.

A place that is counted in bytes or in 16 bits is another one there. The whole storage is compared: what was written
elsewhere shows. In complex64 past 2**32 bytes: https://github.com/ml-explore/mlx/issues/1144
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.answers import attempt
from device_suite.limits import ONCE
from engine.description import DTYPES

cases = Cases("conditions")
_FAR, _ROWS, _COLUMNS = (1 << 16) + 4, 5, 8
_SLOT = 2 * _ROWS * _COLUMNS  # a view of every second number has room


def _place(x: torch.Tensor, *, where: Any, to: Any) -> None:
    x[where] = to


# t of (5, 8) lies far in its storage, v like it in another one; i are two rows of it, m a mask.
_WRITES: dict[str, Callable[..., Any]] = {
    "copied": lambda t, v, i, m: t.copy_(v),
    "copied-columns": lambda t, v, i, m: t[:, 1::3].copy_(v[:, :3]),
    "copied-turned": lambda t, v, i, m: t[:, :5].t().copy_(v[:, :5]),
    "copied-spread": lambda t, v, i, m: t.copy_(v[:1]),
    "copied-number": lambda t, v, i, m: t[2:4].copy_(v[1, 1]),
    "converted": lambda t, v, i, m: t.copy_(m),
    "listed": lambda t, v, i, m: torch._foreach_copy_([t[:2], t[3:]], [v[:2], v[3:]]),
    "assigned-rows": lambda t, v, i, m: _place(t, where=slice(1, 4, 2), to=v[:2]),
    "assigned-column": lambda t, v, i, m: _place(t, where=(slice(None), 3), to=v[:, 0]),
    "assigned-number": lambda t, v, i, m: _place(t, where=(2, 5), to=1),
    "assigned-places": lambda t, v, i, m: _place(t, where=i, to=v[:2]),
    "assigned-pairs": lambda t, v, i, m: _place(t, where=(i, i), to=v[0, :2]),
    "assigned-mask": lambda t, v, i, m: _place(t, where=m, to=1),
    "filled": lambda t, v, i, m: t.fill_(1),
    "filled-columns": lambda t, v, i, m: t[:, ::2].fill_(1),
    "zeroed": lambda t, v, i, m: t[1:, 1:].zero_(),
    "filled-diagonal": lambda t, v, i, m: t.fill_diagonal_(1),
    "filled-places": lambda t, v, i, m: t.index_fill_(1, i, 1),
    "filled-mask": lambda t, v, i, m: t.masked_fill_(m, 1),
    "put": lambda t, v, i, m: t.index_put_((i,), v[:2]),
    "put-added": lambda t, v, i, m: t.index_put_((i,), v[:2], accumulate=True),
    "put-flat": lambda t, v, i, m: t.put_(i, v[0, :2]),
    "scattered": lambda t, v, i, m: t.scatter_(0, i[:, None].expand(2, 8), v[:2]),
    "scattered-number": lambda t, v, i, m: t.scatter_(1, i.expand(5, 2), 1),
    "scattered-added": lambda t, v, i, m: t.scatter_add_(0, i[:, None].expand(2, 8), v[:2]),
    "scattered-mask": lambda t, v, i, m: t.masked_scatter_(m, v),
    "index-copied": lambda t, v, i, m: t.index_copy_(0, i, v[:2]),
    "index-added": lambda t, v, i, m: t.index_add_(1, i, v[:, :2]),
    "added": lambda t, v, i, m: t.add_(v),
    "multiplied": lambda t, v, i, m: t[:, :3].mul_(v[:, :3]),
    "made": lambda t, v, i, m: torch.add(v, v, out=t),
    "joined": lambda t, v, i, m: torch.cat([v[:2], v[2:]], out=t),
    "picked": lambda t, v, i, m: torch.index_select(v, 0, i, out=t[:2]),
    "gathered": lambda t, v, i, m: torch.gather(v, 1, i.expand(5, 2).contiguous(), out=t[:, :2]),
    "chosen": lambda t, v, i, m: torch.where(m, v, t, out=t),
    "clamped": lambda t, v, i, m: t.clamp_(0, 1),
    "turned": lambda t, v, i, m: t.copy_(t.flip(0)),
    "cut": lambda t, v, i, m: t.tril_(1),
    "stepped": lambda t, v, i, m: t.as_strided((5, 8), (16, 2), t.storage_offset()).copy_(v),
}


def _written(target: torch.Tensor, source: torch.Tensor, i: torch.Tensor, m: torch.Tensor) -> Any:
    answers = {}
    for number, (name, write) in enumerate(_WRITES.items()):
        begin = _FAR + number * _SLOT
        t, v = (one[begin : begin + _ROWS * _COLUMNS].view(_ROWS, _COLUMNS) for one in (target, source))
        answers[name] = attempt(lambda write=write, t=t, v=v: (write(t, v, i, m), t)[1])
    return answers


def _bases(d: Any, dtype: torch.dtype) -> Any:
    length = _FAR + len(_WRITES) * _SLOT
    return d.of(dtype, length), d.of(dtype, length), torch.tensor([3, 1]), d.bools(_ROWS, _COLUMNS)


for _dtype in (*DTYPES, torch.complex64):
    cases.add(
        f"threshold-far-{str(_dtype)[6:]}",
        _written,
        make=lambda d, dtype=_dtype: _bases(d, dtype),
        states=ONCE,
        may_be_missing=True,
    )
