"""Host data for the cases: the same on every machine, wide enough that a fault shows."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import torch


class Draw:
    """Draws bases on the host. `k` is 0 for the case's own shape, 1 for "another shape": use it in the sizes."""

    def __init__(self, case_id: str, *, k: int = 0, data: int = 0, seed: int = 0) -> None:
        self.k = k
        self._generator = torch.Generator().manual_seed(zlib.crc32(f"{case_id}/{k}/{data}/{seed}".encode()))

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
        """Return values of a normal distribution, drawn in float32 and rounded to `dtype`."""
        return (torch.randn(shape, generator=self._generator) * scale).to(dtype)

    def uniform(self, low: float, high: float, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return values between `low` and `high`."""
        return (torch.rand(shape, generator=self._generator) * (high - low) + low).to(dtype)

    def integers(self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Return integers from `low` up to, not including, `high`."""
        return torch.randint(low, high, shape, generator=self._generator).to(dtype)

    def bools(self, *shape: int) -> torch.Tensor:
        """Return true and false, one as likely as the other."""
        return torch.randint(0, 2, shape, generator=self._generator).bool()

    def distinct(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Return every integer of a range around zero once, shuffled: no ties for sort, topk and argmax."""
        count = 1
        for side in shape:
            count *= side
        return (torch.randperm(count, generator=self._generator) - count // 2).reshape(shape).to(dtype)

    def permutation(self, count: int) -> torch.Tensor:
        """Return 0..count-1 shuffled, as indices."""
        return torch.randperm(count, generator=self._generator)

    def of(self, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        """Return fitting values of any `dtype`: normal, small integers, or bools."""
        if dtype == torch.bool:
            return self.bools(*shape)
        if dtype.is_complex:
            return torch.complex(self.normal(*shape), self.normal(*shape)).to(dtype)
        if dtype.is_floating_point:
            return self.normal(*shape, dtype=dtype)
        return self.integers(0 if dtype == torch.uint8 else -9, 10, *shape, dtype=dtype)


def map_tensors(value: Any, change: Any) -> Any:
    """Return `value` with every tensor in its tuples, lists and dicts changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)([map_tensors(item, change) for item in value])
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    return value


def leaves_of(value: Any) -> Iterator[Any]:
    """Give what lies in `value`'s tuples, lists and dicts, in their order."""
    if isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves_of(item)
    else:
        yield value
