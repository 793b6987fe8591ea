"""References of grouped products that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_grouped_rows(a: Any, b: Any, offsets: Any) -> Any:
    """Products of groups of rows of `a` with a matrix of `b` each; `offsets` are the groups' ends."""
    ends = [int(each) for each in offsets]
    return torch.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(zip([0, *ends], ends, strict=False))])


def nn_grouped_terms(a: Any, b: Any, offsets: Any) -> Any:
    """Products over groups of the inner dimension; `offsets` are the groups' ends."""
    ends = [int(each) for each in offsets]
    return torch.stack([a[:, i:j] @ b[i:j] for i, j in zip([0, *ends], ends, strict=False)])
