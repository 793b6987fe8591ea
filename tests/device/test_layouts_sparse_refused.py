"""Sparse tensors that are none, and what is asked of them that they have not: a device refuses it as the CPU does."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.refusals import add_refused
from device_suite.sparse import made

cases = Cases("layouts")


def _coordinates(x: torch.Tensor, places: Any, shape: Any = None, count: int = 3, **more: Any) -> torch.Tensor:
    """Return a sparse tensor that is looked at as it is made."""
    at = torch.tensor(places, device=x.device)
    sizes = () if shape is None else (shape,)
    return torch.sparse_coo_tensor(at, x.flatten()[:count], *sizes, check_invariants=True, **more)


def _compressed(x: torch.Tensor, places: Any, others: Any, count: int = 3, shape: Any = (3, 4)) -> torch.Tensor:
    first, second = torch.tensor(places, device=x.device), torch.tensor(others, device=x.device)
    return torch.sparse_csr_tensor(first, second, x.flatten()[:count], shape, check_invariants=True)


_REFUSED: dict[str, Any] = {
    "place-past": lambda x: _coordinates(x, [[0, 3, 1], [0, 1, 2]], (3, 4)),
    "place-past-second": lambda x: _coordinates(x, [[0, 1, 1], [0, 4, 2]], (3, 4)),
    "place-below": lambda x: _coordinates(x, [[0, -1, 1], [0, 1, 2]], (3, 4)),
    "place-below-alone": lambda x: _coordinates(x, [[0, -1, 1], [0, 1, 2]]),
    "places-of-one-side": lambda x: _coordinates(x, [0, 1, 2], (3, 4)),
    "places-of-three-sides": lambda x: _coordinates(x, [[[0, 1, 2]], [[0, 1, 2]]], (3, 4)),
    "values-fewer": lambda x: _coordinates(x, [[0, 1, 1], [0, 1, 2]], (3, 4), 2),
    "values-more": lambda x: _coordinates(x, [[0, 1, 1], [0, 1, 2]], (3, 4), 4),
    "shape-shorter": lambda x: _coordinates(x, [[0, 1, 1], [0, 1, 2]], (3,)),
    "shape-longer": lambda x: _coordinates(x, [[0, 1, 1], [0, 1, 2]], (3, 4, 5)),
    "shape-negative": lambda x: _coordinates(x, [[0, 1, 1], [0, 1, 2]], (-3, 4)),
    "shape-none": lambda x: _coordinates(x, [[0, 1, 1], [0, 1, 2]], (0, 4)),
    "coalesced-wrongly": lambda x: _coordinates(x, [[1, 0, 1], [0, 1, 2]], (3, 4), is_coalesced=True),
    "indices": lambda x: made("equal", x.flatten()).indices(),
    "values": lambda x: made("equal", x.flatten()).values(),
    "add-sides": lambda x: made("equal", x.flatten()) + made("row", x.flatten()),
    "add-ranks": lambda x: made("equal", x.flatten()) + made("line", x.flatten()),
    "add-dense-sides": lambda x: x[:, :5] + made("equal", x.flatten()),
    "mm-sides": lambda x: made("equal", x.flatten()) @ x,
    "mm-rank": lambda x: torch.sparse.mm(made("equal", x.flatten()), x[0]),
    "bmm-rank": lambda x: torch.bmm(made("equal", x.flatten()), x),
    "to_sparse-more": lambda x: x.to_sparse(3),
    "to_sparse-negative": lambda x: x.to_sparse(-1),
    "transpose": lambda x: made("equal", x.flatten()).transpose(0, 2),
    "transpose-forms": lambda x: made("rows", x.flatten()).transpose(0, 1),
    "t": lambda x: made("deep", x.flatten()).t(),
    "unsqueeze": lambda x: made("equal", x.flatten()).unsqueeze(4),
    "cat-sides": lambda x: torch.cat([made("equal", x.flatten()), made("row", x.flatten())], 1),
    "cat-dense": lambda x: torch.cat([made("equal", x.flatten()), x]),
    "select": lambda x: made("equal", x.flatten()).select(0, 4),
    "select-side": lambda x: made("equal", x.flatten()).select(2, 0),
    "narrow": lambda x: made("equal", x.flatten()).narrow_copy(1, 4, 3),
    "index_select": lambda x: made("equal", x.flatten()).index_select(0, torch.tensor([4], device=x.device)),
    "index_select-below": lambda x: made("equal", x.flatten()).index_select(0, torch.tensor([-5], device=x.device)),
    "index_select-side": lambda x: made("equal", x.flatten()).index_select(2, torch.tensor([0], device=x.device)),
    "sum": lambda x: torch.sparse.sum(made("equal", x.flatten()), 2),
    "sum-twice": lambda x: torch.sparse.sum(made("equal", x.flatten()), (0, 0)),
    "softmax": lambda x: torch.sparse.softmax(made("equal", x.flatten()), 2),
    "resize-less": lambda x: made("equal", x.flatten()).sparse_resize_((2, 3), 2, 0),
    "resize-sides": lambda x: made("equal", x.flatten()).sparse_resize_((4, 6), 2, 1),
    "resize-negative": lambda x: made("equal", x.flatten()).sparse_resize_((-4, 6), 2, 0),
    "copy-dense": lambda x: x.clone().copy_(made("equal", x.flatten())),
    "copy-shape": lambda x: made("equal", x.flatten()).copy_(made("deep", x.flatten())),
    "mask-shape": lambda x: x[:, :5].sparse_mask(made("equal", x.flatten()).coalesce()),
    "view": lambda x: made("equal", x.flatten()).view(6, 4),
    "item": lambda x: made("equal", x.flatten()).item(),
    "storage": lambda x: made("equal", x.flatten()).untyped_storage(),
    "array": lambda x: made("equal", x.flatten()).cpu().numpy(),
}
_REFUSED_ROWS: dict[str, Any] = {
    "first-not-0": lambda x: _compressed(x, [1, 2, 2, 3], [0, 1, 2]),
    "last-not-all": lambda x: _compressed(x, [0, 1, 2, 2], [0, 1, 2]),
    "falling": lambda x: _compressed(x, [0, 2, 1, 3], [0, 1, 2]),
    "rows-more": lambda x: _compressed(x, [0, 1, 2, 3, 3], [0, 1, 2]),
    "rows-fewer": lambda x: _compressed(x, [0, 1, 3], [0, 1, 2]),
    "column-past": lambda x: _compressed(x, [0, 1, 2, 3], [0, 4, 2]),
    "column-below": lambda x: _compressed(x, [0, 1, 2, 3], [0, -1, 2]),
    "column-twice": lambda x: _compressed(x, [0, 2, 2, 3], [1, 1, 2]),
    "columns-fewer": lambda x: _compressed(x, [0, 1, 2, 3], [0, 1]),
    "values-fewer": lambda x: _compressed(x, [0, 1, 2, 3], [0, 1, 2], 2),
    "fractions": lambda x: _compressed(x, [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0]),
    "kinds": lambda x: _compressed(x, [0, 1, 2, 3], [0.0, 1.0, 2.0]),
    "negative": lambda x: _compressed(x, [0, 1, 2, 3], [0, 1, 2], 3, (3, -4)),
    "line": lambda x: _compressed(x, [0, 1, 2, 3], [0, 1, 2], 3, (3,)),
    "blocks": lambda x: x.to_sparse_bsr((3, 3)),
    "blocks-none": lambda x: x.to_sparse_bsr((0, 1)),
    "vector": lambda x: x[0].to_sparse_csr(),
    "crow-of-columns": lambda x: x.to_sparse_csc().crow_indices(),
    "crow-of-coordinates": lambda x: x.to_sparse().crow_indices(),
    "crow-of-dense": lambda x: x.crow_indices(),
    "indices-of-rows": lambda x: x.to_sparse_csr().indices(),
    "mm": lambda x: x.to_sparse_csr() @ x,
    "add": lambda x: x.to_sparse_csr() + x.mT.to_sparse_csr(),
    "blocks-of-csr": lambda x: x.to_sparse(layout=torch.sparse_csr, blocksize=(2, 2)),
}
for _name, _forms, _release in (("sparse", _REFUSED, "2.8"), ("sparse-rows", _REFUSED_ROWS, "2.10")):
    add_refused(
        cases, _name, lambda d: (d.normal(4, 6),), _forms, since=_release, devices=("mps", "cpu")
    )  # CUDA finds some of it in a kernel, and computes nothing after
