"""References that are more than an expression."""

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


def bag_values(weight: Any, index: Any, offsets: Any, mode: Any, padding: Any, each: Any, which: Any) -> Any:
    """Output, owner of each index, size of each bag, or where the largest came from."""
    index = index.long()
    ends = [*offsets[1:], len(index)]
    owner = torch.tensor([bag for bag, (a, b) in enumerate(zip(offsets, ends, strict=True)) for _ in range(a, b)])
    kept = index != padding
    if which == 1:
        return owner
    if which == 2:
        return torch.tensor([int(kept[a:b].sum()) for a, b in zip(offsets, ends, strict=True)])
    rows = []
    for a, b in zip(offsets, ends, strict=True):
        chosen = index[a:b][kept[a:b]]
        part = weight[chosen]
        if isinstance(each, torch.Tensor):
            part = part * each[a:b][kept[a:b]].unsqueeze(1)
        if not len(chosen):
            rows.append(torch.zeros(weight.shape[1], dtype=torch.int64 if which == 3 else weight.dtype))
        elif which == 3:
            rows.append(chosen[part.argmax(0)])
        else:
            rows.append({"sum": part.sum(0), "mean": part.mean(0), "max": part.amax(0)}[mode])
    return torch.stack(rows)


def bag_gradient(
    dy: Any, index: Any, owner: Any, size: Any, where: Any, each: Any, mode: Any, padding: Any, many: Any
) -> Any:
    """Gradient of embedding_bag by its weights, for the modes sum, mean and max."""
    index, owner, size = index.long(), owner.long(), size.long()
    out = torch.zeros((many, dy.shape[1]), dtype=dy.dtype)
    if mode == "max":
        return out.scatter_add(0, where.long(), torch.where((size > 0).unsqueeze(1), dy, torch.zeros_like(dy)))
    rows = dy[owner] / (size[owner].unsqueeze(1) if mode == "mean" else 1)
    if isinstance(each, torch.Tensor):
        rows = rows * each.unsqueeze(1)
    kept = index != padding
    return out.index_add(0, index[kept], rows[kept])


def bag_weights_gradient(dy: Any, weight: Any, index: Any, owner: Any, padding: Any) -> Any:
    """Gradient of embedding_bag by the weights of its samples; padding gets 0."""
    product = (weight[index.long()] * dy[owner.long()]).sum(1)
    return torch.where(index == padding, torch.zeros_like(product), product)
