"""Several tensors as one index: their shapes broadcast; slices, numbers, masks, None and an ellipsis between them."""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table, assigned

cases = Cases("conditions")
ALL = slice(None)
# Of i (2, 3), j (3), k (2, 1), a number n without dimensions, b (1, 3) in int32, m a mask of 4 and p one of (4, 5).
_INDICES: dict[str, Callable[..., Any]] = {
    "two": lambda i, j, k, n, b, m, p: (i, j),
    "three": lambda i, j, k, n, b, m, p: (i, j, k),
    "four": lambda i, j, k, n, b, m, p: (i, j, k, i),
    "column-row": lambda i, j, k, n, b, m, p: (k, j),
    "row-column-row": lambda i, j, k, n, b, m, p: (j, k, b),
    "deep": lambda i, j, k, n, b, m, p: (i[:, None], j, k),
    "wider": lambda i, j, k, n, b, m, p: (k, i[None], n),
    "none-dimensions": lambda i, j, k, n, b, m, p: (n, j),
    "all-none-dimensions": lambda i, j, k, n, b, m, p: (n, n, n),
    "small-dtype": lambda i, j, k, n, b, m, p: (b, k.to(torch.int32)),
    "mixed-dtype": lambda i, j, k, n, b, m, p: (b, k, j),
    "negative": lambda i, j, k, n, b, m, p: (i - 4, j, k - 2),
    "apart": lambda i, j, k, n, b, m, p: (i, ALL, j),
    "apart-three": lambda i, j, k, n, b, m, p: (k, ALL, j, n),
    "ends": lambda i, j, k, n, b, m, p: (i, ..., j),
    "last": lambda i, j, k, n, b, m, p: (..., j, k),
    "last-three": lambda i, j, k, n, b, m, p: (..., k, b, j),
    "middle": lambda i, j, k, n, b, m, p: (ALL, i, j),
    "middle-stepped": lambda i, j, k, n, b, m, p: (slice(1, None, 2), k, j),
    "after-slice": lambda i, j, k, n, b, m, p: (slice(1, 3), i, ALL, j),
    "new-first": lambda i, j, k, n, b, m, p: (None, i, j),
    "new-between": lambda i, j, k, n, b, m, p: (i, None, j),
    "new-last": lambda i, j, k, n, b, m, p: (i, j, None),
    "new-apart": lambda i, j, k, n, b, m, p: (ALL, None, k, ALL, j),
    "number-first": lambda i, j, k, n, b, m, p: (2, i, j),
    "number-between": lambda i, j, k, n, b, m, p: (i, 1, j),
    "number-last": lambda i, j, k, n, b, m, p: (k, j, -1),
    "number-apart": lambda i, j, k, n, b, m, p: (i, ALL, -2),
    "number-ellipsis": lambda i, j, k, n, b, m, p: (0, ..., k),
    "mask": lambda i, j, k, n, b, m, p: (m, j[: m.sum()]),
    "mask-column": lambda i, j, k, n, b, m, p: (m, i[:, :1, None][:, :, :1]),
    "mask-apart": lambda i, j, k, n, b, m, p: (m, ALL, n),
    "mask-grid": lambda i, j, k, n, b, m, p: (p, n),
    "mask-second": lambda i, j, k, n, b, m, p: (k[:, 0, None], torch.cat([m, m[:1]])),
    "mask-number": lambda i, j, k, n, b, m, p: (m, 3),
    "mask-new": lambda i, j, k, n, b, m, p: (m, None, ALL, n),
    "mask-last": lambda i, j, k, n, b, m, p: (..., m),
    "lists": lambda i, j, k, n, b, m, p: ([0, 2], [[1], [3]]),
    "list-tensor": lambda i, j, k, n, b, m, p: ([0, 2], k, j[:2]),
    "empty": lambda i, j, k, n, b, m, p: (i[:0], j),
    "empty-column": lambda i, j, k, n, b, m, p: (k[:, :0], ALL, n),
    "repeated": lambda i, j, k, n, b, m, p: (i[:1].expand(2, 3), j[:1].expand(3)),
    "turned": lambda i, j, k, n, b, m, p: (i.mT, k.mT, j[:, None]),
}


def _operands(d: Any, dtype: torch.dtype) -> Any:
    """Draw x of (4, 5, 3, 4), and what its places are told with: all below 3, the first four unlike each other."""
    mask = torch.tensor([True, False, True, True])
    return (
        d.of(dtype, 4, 5, 3, 4),
        torch.tensor([[2, 0, 1], [1, 2, 0]]),
        torch.tensor([0, 2, 1]),
        torch.tensor([[1], [2]]),
        torch.tensor(1),
        torch.tensor([[2, 1, 0]], dtype=torch.int32),
        mask,
        mask[:, None] & (torch.arange(5) % 2 == 0),
    )


def _summed(x: torch.Tensor, index: Any) -> Any:
    """Return x with numbers added at the places: which of equal places comes last does not matter."""
    tensors = tuple(torch.tensor(one, device=x.device) if isinstance(one, list) else one for one in index)
    if not all(isinstance(one, torch.Tensor) for one in tensors):
        return x[index].sum()
    value = x[tensors].flip(0) if x[tensors].dim() else x[tensors]
    return [x.index_put(tensors, value, accumulate=True), x.clone().index_put_(tensors, x[0, 0, 0, 0], accumulate=True)]


_USES: dict[str, Callable[[torch.Tensor, Any], Any]] = {
    "read": lambda x, at: x[at],
    "views": lambda x, at: [x.transpose(2, 3).contiguous().transpose(2, 3)[at], torch.stack([x, x], 4)[..., 1][at]],
    "written": lambda x, at: assigned(x, at, 3),
    "filled": lambda x, at: assigned(x.transpose(0, 3).contiguous().transpose(0, 3), at, x[1, 1, 1, 1]),
    "moved": lambda x, at: assigned(x, at, (x * 0 + 2)[at]),
    "summed": _summed,
}
for _dtype in (torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64):
    add_table(
        cases,
        f"joint-{str(_dtype)[6:]}",
        {
            f"{use}-{name}": lambda x, *given, form=form, index=index: form(x, index(*given))
            for use, form in _USES.items()
            for name, index in _INDICES.items()
        },
        lambda d, dtype=_dtype: _operands(d, dtype),
        deterministic=False,
    )
add_table(
    cases,
    "joint-derived",
    {
        f"{use}-{name}": lambda x, *given, form=form, index=index: derived(lambda y: form(y, index(*given)), x)
        for use, form in {
            "read": lambda y, at: y[at] * 2,
            "view": lambda y, at: y.transpose(0, 1).transpose(0, 1)[at],
            "written": lambda y, at: assigned(y * 2, at, 3.0),
            "between": lambda y, at: assigned(y * 1, at, (y.flip(0) * 0 + y.mean())[at]),
        }.items()
        for name, index in _INDICES.items()
    },
    lambda d: _operands(d, torch.float32),
    deterministic=False,
)
