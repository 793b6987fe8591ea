"""References that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def indexed(x: Any, small: Any, where: Any, way: Any, i0: Any, i1: Any = None, i2: Any = None) -> Any:
    """x[i0, i1, …], or x after `x[i0, i1, …] = small` (the last one stays) or `+= small`."""
    places = tuple(each.long().reshape(where) for each in (i0, i1, i2) if each is not None)
    if way == "get":
        return x[places]
    flat = torch.zeros(places[0].numel(), dtype=torch.int64)
    for each, size in zip(places, x.shape, strict=False):
        flat = flat * size + each.reshape(-1) % size
    out = x.reshape(-1, *x.shape[len(places) :]).clone()
    rows = small.reshape(len(flat), *out.shape[1:])
    if way == "add":
        if x.dtype == torch.bool:
            return (out.to(torch.int64).index_add(0, flat, rows.to(torch.int64)) != 0).reshape(x.shape)
        return out.index_add(0, flat, rows).reshape(x.shape)
    for place, row in zip(flat.tolist(), rows, strict=True):
        out[place] = row
    return out.reshape(x.shape)
