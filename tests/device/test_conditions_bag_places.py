"""Rule 4: bags whose offsets or places do not fit are refused; and those that do, in each kind and with each option.

Offsets that do not begin with 0, https://github.com/pytorch/pytorch/issues/170370, that fall, or that do not end with
the number of places, https://github.com/pytorch/pytorch/issues/52851; weights of samples in bfloat16,
https://github.com/pytorch/pytorch/issues/185808
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")

# Offsets of seven places: the last one is an end, or it is not.
_OFFSETS: dict[str, tuple[int, ...]] = {
    "one": (0,),
    "two": (0, 3),
    "none-first": (0, 0, 4),
    "none-last": (0, 3, 7),
    "none-between": (0, 2, 2, 2, 5),
    "each": (0, 1, 2, 3, 4, 5, 6),
}


def _bags(row: Any, w: torch.Tensor, i: torch.Tensor) -> Any:
    offsets, mode, last, padding, weighted, kind = row
    table = leaf(w.clone())
    starts = i.new_tensor([*_OFFSETS[offsets], 7] if last else _OFFSETS[offsets]).to(kind)
    weights = leaf(w.flatten()[2:9].clone()) if weighted else None
    y = F.embedding_bag(
        i.to(kind), table, starts, mode=mode, include_last_offset=last, padding_idx=padding, per_sample_weights=weights
    )
    y.backward(uneven(y))
    return [y.detach(), table.grad, *([weights.grad] if weights is not None else [])]


_ROWS = {
    "-".join(map(str, row)): lambda w, i, row=row: _bags(row, w, i)
    for place, row in enumerate(
        itertools.product(
            _OFFSETS,
            ("sum", "mean", "max"),
            (False, True),
            (None, 2, -1),
            (False, True),
            (torch.int64, torch.int32),
        )
    )
    if (not row[4] or row[1] == "sum") and place % 3 != 1
}
for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"bag-places-{str(_dtype)[6:]}",
        dict(list(_ROWS.items())[:: 1 if _dtype == torch.float32 else 5]),
        lambda d, dtype=_dtype: ((d.distinct(5, 3) / 4 + 0.125).to(dtype), torch.tensor([2, 0, 3, 1, 2, 4, 0])),
        terms=16,
        deterministic=False,
    )

_WRONG: dict[str, Any] = {
    "first": lambda w, i, **o: F.embedding_bag(i, w, i.new_tensor([1, 3]), **o),
    "far": lambda w, i, **o: F.embedding_bag(i, w, i.new_tensor([0, 9]), **o),
    "below": lambda w, i, **o: F.embedding_bag(i, w, i.new_tensor([-1, 3]), **o),
    "square": lambda w, i, **o: F.embedding_bag(i, w, i.new_tensor([[0, 3]]), **o),
    "rows": lambda w, i, **o: F.embedding_bag(i[:6].view(2, 3), w, i.new_tensor([0, 3]), **o),
    "missing": lambda w, i, **o: F.embedding_bag(i, w, **o),
    "volume": lambda w, i, **o: F.embedding_bag(i[:6].view(1, 2, 3), w, **o),
    "broken": lambda w, i, **o: F.embedding_bag(i, w, w.new_tensor([0.0, 3.0]), **o),
    "floats": lambda w, i, **o: F.embedding_bag(i.to(w.dtype), w, i.new_tensor([0, 3]), **o),
    "none-last": lambda w, i, **o: F.embedding_bag(i, w, i[:0], include_last_offset=True, **o),
    "padding": lambda w, i, **o: F.embedding_bag(i, w, i.new_tensor([0, 3]), padding_idx=5, **o),
    "padding-below": lambda w, i, **o: F.embedding_bag(i, w, i.new_tensor([0, 3]), padding_idx=-6, **o),
    "weights": lambda w, i, **o: F.embedding_bag(i, w, i.new_tensor([0, 3]), per_sample_weights=w[0], **o),
    "weights-kind": lambda w, i, **o: F.embedding_bag(
        i, w, i.new_tensor([0, 3]), per_sample_weights=w.flatten()[:7].half(), **o
    ),
    "table": lambda w, i, **o: F.embedding_bag(i, w[0], i.new_tensor([0, 3]), **o),
    "looked-padding": lambda w, i, **o: F.embedding(i, w, padding_idx=5),
    "looked-padding-below": lambda w, i, **o: F.embedding(i, w, padding_idx=-6),
    "looked-floats": lambda w, i, **o: F.embedding(i.to(w.dtype), w),
    "looked-line": lambda w, i, **o: F.embedding(i, w[0]),
}
add_refused(
    cases,
    "bag-places",
    lambda d: (d.normal(5, 3), torch.tensor([2, 0, 3, 1, 2, 4, 0])),
    {
        f"{name}-{mode}": lambda w, i, form=form, mode=mode: form(w, i, mode=mode)
        for name, form in _WRONG.items()
        for mode in ("sum", "mean", "max")
    },
    since="2.13",
    devices=("mps", "cpu"),
)
