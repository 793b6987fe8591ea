"""Functions of two tensors of every pair of dtypes, beyond arithmetic: sets, searches, joins, copies."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.answers import attempt

cases = Cases("promotion")
_DTYPES = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    torch.bool,
)
_FORMS: dict[str, Any] = {
    "isin": torch.isin,
    "isin-inverted": lambda x, y: torch.isin(y, x[0], invert=True),
    "equal": lambda x, y: torch.equal(x, y),
    "where": lambda x, y: torch.where(x > 2, x, y),
    "cat": lambda x, y: torch.cat([x, y, x[:1]]),
    "stack": lambda x, y: torch.stack([y, x], 1),
    "hstack": lambda x, y: torch.hstack((x, y)),
    "kron": torch.kron,
    "outer": lambda x, y: torch.outer(x[0], y[1]),
    "cross": lambda x, y: torch.linalg.cross(x[:, :3], y[:, :3]),
    "dist": lambda x, y: torch.dist(x, y),
    "searchsorted": lambda x, y: torch.searchsorted(x[0].sort().values, y),
    "bucketize": lambda x, y: torch.bucketize(y, x[0].sort().values, right=True),
    "copy": lambda x, y: torch.zeros_like(x).copy_(y),
    "assign": lambda x, y: (copy := x.clone(), copy.__setitem__((slice(1, 3), slice(None, 2)), y[:2, 2:4]))[0],
    "index_fill": lambda x, y: x.index_fill(0, torch.tensor([1], device=x.device), y[0, 0]),
    "masked_fill": lambda x, y: x.masked_fill(x > 2, y[0, 1]),
    "out": lambda x, y: torch.add(x, 1, out=torch.empty_like(y)),
    "sum-dtype": lambda x, y: [x.sum(dtype=y.dtype), x.cumsum(0, dtype=y.dtype), x.prod(1, dtype=y.dtype)],
    "in-place": lambda x, y: [x.clone().add_(y), x.clone().mul_(y[0, 0]), x.clone().add_(y, alpha=2)],
    "full_like": lambda x, y: torch.full_like(x, 3, dtype=y.dtype),
    "type_as": lambda x, y: x.type_as(y),
    "bincount": lambda x, y: torch.bincount(x.flatten(), y.flatten()),
    "repeat": lambda x, y: torch.repeat_interleave(x[0], y[0]),
    "result": lambda x, y: str(torch.result_type(x, y)),
}


def _asked(form: Any) -> Any:
    def act(p: torch.Tensor, q: torch.Tensor) -> Any:
        return {
            f"{str(first)[6:]}-{str(second)[6:]}": attempt(
                lambda first=first, second=second: form(p.to(first), q.to(second))
            )
            for first in _DTYPES
            for second in _DTYPES
        }

    return act


for _name, _form in _FORMS.items():
    cases.add(
        f"promotion-function-{_name}",
        _asked(_form),
        make=lambda d: (d.integers(0, 6, 4, 4), d.integers(0, 6, 4, 4)),
        factor=16,
        floor=1.0,
        states=("fresh",),
        may_be_missing=True,
        since="2.0",
    )
