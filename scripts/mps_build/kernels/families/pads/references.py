"""References of pads that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def _sources(small: Any, left: Any, mode: Any) -> Any:
    """Return for each element of the padded dimension which element of the small one it is."""

    def at(i: Any) -> Any:
        j = i - left
        if mode == "replication":
            return min(max(j, 0), small - 1)
        return -j if j < 0 else 2 * (small - 1) - j if j >= small else j

    return at


def nn_pad_forward(x: Any, left: Any, small: Any, large: Any, mode: Any) -> Any:
    """Pad the dimensions from the third on: each element comes from the source that the mode names."""
    for number, (n, before, total) in enumerate(zip(small, left, large, strict=False)):
        at = _sources(n, before, mode)
        x = x.index_select(2 + number, torch.tensor([at(i) for i in range(total)]))
    return x


def nn_pad_backward(x: Any, left: Any, small: Any, large: Any, mode: Any) -> Any:
    """Add each padded element's gradient to the source that it came from."""
    for number, (n, before, total) in enumerate(zip(small, left, large, strict=False)):
        at = _sources(n, before, mode)
        shape = list(x.shape)
        shape[2 + number] = n
        index = torch.tensor([at(i) for i in range(total)])
        x = torch.zeros(shape, dtype=x.dtype).index_add(2 + number, index, x)
    return x


def nn_constant_pad(x: Any, fill: Any, left: Any, large: Any) -> Any:
    """Padded, or cut where a pad is negative."""
    out = torch.full(large, 0, dtype=x.dtype) + fill.reshape(()).to(x.dtype)
    where, source = [], []
    for n, before, total in zip(x.shape, left, large, strict=False):
        begin, end = max(before, 0), min(before + n, total)
        where.append(slice(begin, end))
        source.append(slice(begin - before, end - before))
    out[tuple(where)] = x[tuple(source)]
    return out
