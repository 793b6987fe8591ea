"""References of sparse that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_shift_sum(x: Any, stride: Any) -> Any:
    """Each element and the one `stride` before it, added: one round of a scan."""
    out = x.clone()
    out[stride:] += x[: max(len(x) - stride, 0)]
    return out


def nn_shift_right(x: Any, stride: Any) -> Any:
    """The elements moved by one; the first is 0."""
    return torch.cat([torch.zeros(1, dtype=x.dtype), x[:-1]])


def nn_mark_segments(x: Any, stride: Any) -> Any:
    """1 where an element differs from the one before it, and at the first; else 0."""
    return torch.cat([torch.ones(1, dtype=torch.int32), (x[1:] != x[:-1]).to(torch.int32)])


def sparse_sums(x: Any, groups: Any, total: Any) -> Any:
    """Sums of the rows of each group; "or" for booleans."""
    out = torch.zeros((total, x.shape[1]), dtype=x.dtype if x.dtype != torch.bool else torch.int64)
    out = out.index_add(0, torch.tensor(groups), x.to(out.dtype))
    return out != 0 if x.dtype == torch.bool else out


def sparse_rows_product(a: Any, b: Any, one: Any, two: Any) -> Any:
    """Products of the chosen rows of two tensors."""
    return a[one.long()] * b[two.long()]


def sparse_dense_product(dense: Any, x: Any, index: Any) -> Any:
    """Values of a sparse tensor times the dense elements at their indices."""
    return x * dense[tuple(index.long())]


def sparse_addmm(index: Any, x: Any, dense: Any, t: Any, alpha: Any, beta: Any, m: Any) -> Any:
    """beta * t + alpha * (sparse @ dense), the sparse matrix given by indices and values."""
    rows, columns = index.long()
    if x.dtype == torch.bool:
        x, dense, t = (each.to(torch.int64) for each in (x, dense, t))
    product = torch.zeros((m, dense.shape[1]), dtype=x.dtype).index_add(0, rows, x.unsqueeze(1) * dense[columns])
    out = alpha * product + (beta * t if beta else 0)
    return out if out.is_complex() or x.is_floating_point() else out.to(torch.int64)


def sparse_bmm(rows: Any, cols: Any, x: Any, dense: Any, m: Any) -> Any:
    """Batched product of sparse matrices with dense ones."""
    if x.dtype == torch.bool:
        x, dense = x.to(torch.int64), dense.to(torch.int64)
    batch = torch.arange(dense.shape[0]).repeat_interleave(len(x) // dense.shape[0])
    terms = x.unsqueeze(1) * dense[batch, cols.long()]
    out = torch.zeros((dense.shape[0] * m, dense.shape[2]), dtype=x.dtype)
    return out.index_add(0, batch * m + rows.long(), terms).reshape(dense.shape[0], m, -1)


def sparse_pairs(a: Any, b: Any, pairs: Any, which: Any) -> Any:
    """The pairs that are there may have any order: those that are right stand for themselves."""
    got = torch.stack([a, b], 1)
    order = [row.tolist() for row in got]
    return got[:, which] if sorted(order) == sorted(pairs.tolist()) else pairs[:, which]


def _pools(x: Any, sizes: Any) -> Any:
    return x.split(sizes)


def sparse_softmax(x: Any, sizes: Any, log: Any) -> Any:
    """Softmax (or its logarithm) over each pool of values."""
    function = torch.log_softmax if log else torch.softmax
    return torch.cat([function(each, 0) for each in _pools(x, sizes)])


def sparse_softmax_backward(x: Any, dy: Any, sizes: Any, log: Any) -> Any:
    """Gradient of the softmax over pools, from its result."""
    out = []
    for y, g in zip(_pools(x, sizes), _pools(dy, sizes), strict=True):
        total = (g if log else g * y).sum(0, keepdim=True)
        out.append(g - torch.exp(y) * total if log else y * (g - total))
    return torch.cat(out)
