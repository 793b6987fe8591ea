"""References of embeddings that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_embedding_count(indices: Any, count: Any, padding: Any) -> Any:
    """How often each is looked up; the padding is not counted."""
    found = torch.bincount(indices.flatten().to(torch.int64), minlength=count)
    return torch.where(torch.arange(count) == padding, 0, found)


def nn_embedding_backward(grad: Any, indices: Any, count: Any, padding: Any, by_count: Any) -> Any:
    """Gradient of an embedding by its weights, by torch's own CPU operator."""
    return torch.ops.aten.embedding_dense_backward(grad, indices.to(torch.int64), count, padding, by_count)
