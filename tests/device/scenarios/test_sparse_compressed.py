"""Sparse tensors of compressed rows and columns, plain and in blocks: made, converted, read, computed with"""

from __future__ import annotations

import pickle
from typing import Any

import torch

from device_suite import Cases
from device_suite.limits import each
from device_suite.sparse import told

cases = Cases("scenarios")
_BLOCKS: dict[str, Any] = {"csr": None, "csc": None, "bsr": (2, 3), "bsc": (2, 3)}


def _members(y: torch.Tensor) -> Any:
    if y.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [y.crow_indices(), y.col_indices(), y.values()]
    return [y.ccol_indices(), y.row_indices(), y.values()]


def _built(layout: str, x: torch.Tensor, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Return a tensor of (4, 6) by its factory: a line without entries, one with several."""
    block = _BLOCKS[layout]
    places = {"csr": (0, 2, 2, 3, 5), "csc": (0, 1, 1, 3, 3, 4, 5), "bsr": (0, 1, 3), "bsc": (0, 2, 3)}[layout]
    others = {"csr": (1, 5, 0, 2, 3), "csc": (2, 0, 3, 1, 3), "bsr": (1, 0, 1), "bsc": (0, 1, 0)}[layout]
    values = x.flatten()[:5] if block is None else x.flatten()[:18].reshape(3, *block)
    made = getattr(torch, f"sparse_{layout}_tensor")
    return made(  # type: ignore[no-any-return]
        torch.tensor(places, dtype=dtype, device=x.device), torch.tensor(others, dtype=dtype, device=x.device), values,
        (4, 6),
    )  # fmt: skip


# y is compressed, of (4, 6); x is dense, of the same shape.
_FORMS: dict[str, Any] = {
    "dense": lambda y, x: y.to_dense(),
    "members": lambda y, x: _members(y),
    "form": lambda y, x: str((y.layout, tuple(y.shape), y._nnz(), y.dense_dim(), y.sparse_dim(), y.is_sparse_csr)),
    "coordinates": lambda y, x: y.to_sparse(),
    "coordinates-members": lambda y, x: [(s := y.to_sparse()).indices(), s.values(), str(s.is_coalesced())],
    "brought": lambda y, x: [y.cpu().to(y.device), y.clone(), y.detach()],
    "pickled": lambda y, x: pickle.loads(pickle.dumps(y)),
    "others": lambda y, x: [
        y.to_sparse_csr(),
        y.to_sparse_csc(),
        y.to_sparse_bsr((2, 2)),
        y.to_sparse_bsc((1, 3)),
    ],
    "dtypes": lambda y, x: [y.float(), y.half(), y.int(), y.to(torch.complex64)],
    "turned": lambda y, x: [y.t(), y.transpose(0, 1), y.mT],
    "mm": lambda y, x: [y @ x.mT, torch.mm(y, x.mT.contiguous()), torch.sparse.mm(y, x.mT)],
    "dense-mm": lambda y, x: x.mT @ y,
    "mv": lambda y, x: [y @ x[0], torch.mv(y, x.mT[:, 1])],
    "addmm": lambda y, x: [torch.addmm(x @ x.mT, y, x.mT, beta=b, alpha=a) for b, a in ((1, 1), (0, 2), (0.5, -1))],
    "addmv": lambda y, x: torch.addmv(x[:, 0], y, x[0], beta=0.5, alpha=2),
    "mm-two": lambda y, x: y @ y.t(),
    "add": lambda y, x: [y + y, y.add(y, alpha=2)],
    "add-dense": lambda y, x: [x + y, x.add(y, alpha=3)],
    "mul": lambda y, x: [y * 2, 3 * y],
    "mul-dense": lambda y, x: y * x,
    "neg": lambda y, x: -y,
    "mul-two": lambda y, x: y * y,
    "sum": lambda y, x: y.sum(),
    "sum-sides": lambda y, x: [y.sum(0, keepdim=True), y.sum(1, keepdim=True)],
    "functions": lambda y, x: [getattr(y, name)() for name in ("abs", "sin", "sign", "neg", "floor", "relu", "tanh")],
    "in-place": lambda y, x: [y.clone().mul_(3), y.clone().zero_(), y.clone().neg_(), y.clone().abs_()],
    "values": lambda y, x: [(z := y.clone()).values().mul_(2), z],
    "copy_": lambda y, x: y.clone().copy_(y * 2),
    "alike": lambda y, x: torch.empty_like(y).copy_(y),
    "select": lambda y, x: [y.select(0, 1), y.select(1, -1), y[2]],
    "mask": lambda y, x: x.sparse_mask(y),
}
_FROM: dict[str, Any] = {
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 3)),
    "bsr-one": lambda x: x.to_sparse_bsr((1, 1)),
    "bsc": lambda x: x.to_sparse_bsc((4, 2)),
    "layout": lambda x: x.to_sparse(layout=torch.sparse_csr),
    "layout-blocks": lambda x: x.to_sparse(layout=torch.sparse_bsr, blocksize=(2, 2)),
    "dense-sides": lambda x: x.unsqueeze(-1).expand(*x.shape, 2).to_sparse_csr(dense_dim=1),
    "batch": lambda x: torch.stack([x, x * 2]).to_sparse_csr(),
    "nothing": lambda x: (x * 0).to_sparse_csr(),
    "nothing-blocks": lambda x: (x * 0).to_sparse_bsr((2, 3)),
    "no-rows": lambda x: x[:0].to_sparse_csr(),
    "no-columns": lambda x: x[:, :0].to_sparse_csr(),
    "row": lambda x: x[1:2].to_sparse_csr(),
    "column": lambda x: x[:, 4:5].to_sparse_csc(),
    "turned": lambda x: x.t().to_sparse_csr(),
}


def _read(y: torch.Tensor) -> Any:
    return [_members(y), told(y), told(y.to_sparse())]


def _asked(layout: str, x: torch.Tensor) -> Any:
    x = x[:4]
    y = _built(layout, x)
    return each({name: lambda form=form: told(form(y, x)) for name, form in _FORMS.items()})


def _started(x: torch.Tensor) -> Any:
    return {
        **each({name: lambda form=form: _read(form(x[:4] * (x[:4].abs() > 1))) for name, form in _FROM.items()}),
        **each({f"built-{name}": lambda name=name: _read(_built(name, x, torch.int32)) for name in _BLOCKS}),
    }


for _dtype in (torch.float32, torch.int64):
    _fields: Any = {"terms": 64, "floor": 1.0, "states": ("fresh",), "anywhere": True, "may_be_missing": True}
    for _layout in _BLOCKS if _dtype == torch.float32 else ("csr",):
        cases.add(
            f"layout-sparse-{_layout}-{str(_dtype)[6:]}",
            lambda x, layout=_layout: _asked(layout, x),
            make=lambda d, dtype=_dtype: (d.of(dtype, 4, 6),),
            since="2.10",
            **_fields,
        )
    cases.add(
        f"layout-sparse-compressed-{str(_dtype)[6:]}",
        _started,
        make=lambda d, dtype=_dtype: (d.of(dtype, 4, 6),),
        since="2.10",
        **_fields,
    )
