"""Gradients through sparse tensors: of what is dense, and of the numbers that a sparse one was made of."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.acts import backward, leaf
from device_suite.limits import each
from device_suite.sparse import KINDS, made, shape_of

cases = Cases("layouts")
_WAYS: dict[str, Any] = {
    "there-and-back": lambda x, w, s: x.to_sparse().to_dense() * w,
    "rows": lambda x, w, s: x.to_sparse(1).to_dense() * w,
    "coalesced": lambda x, w, s: x.to_sparse().coalesce().values(),
    "sum": lambda x, w, s: torch.sparse.sum(x.to_sparse(), 0).to_dense(),
    "number": lambda x, w, s: (x.to_sparse() * 3).to_dense() * w,
    "two": lambda x, w, s: (x.to_sparse() + w.to_sparse()).to_dense() * w,
    "add": lambda x, w, s: (x + w.to_sparse()) * w,
    "mm": lambda x, w, s: torch.sparse.mm(x.to_sparse(), w.mT),
    "mm-fixed": lambda x, w, s: torch.sparse.mm(s.detach(), w.mT) * 2 + x.sum(),
    "addmm": lambda x, w, s: torch.sparse.addmm(w @ w.mT, x.to_sparse(), w.mT, beta=0.5, alpha=2),
    "mask": lambda x, w, s: (x * w).sparse_mask(s.detach().coalesce()).to_dense(),
    "softmax": lambda x, w, s: torch.sparse.softmax(x.to_sparse(), 1).to_dense() * w,
    "turned": lambda x, w, s: x.to_sparse().t().to_dense() * w.mT,
    "csr": lambda x, w, s: x.to_sparse_csr().to_dense() * w,
    "csr-mm": lambda x, w, s: x.to_sparse_csr() @ w.mT,
}


def _derived(x: torch.Tensor, w: torch.Tensor) -> Any:
    def asked(form: Any) -> Any:
        a, b = leaf(x.clone()), leaf(w.clone())
        return backward(form(a, b, made("equal", x.flatten())), a, b)

    answers = each({name: lambda form=form: asked(form) for name, form in _WAYS.items()})

    def made_of(kind: str) -> Any:
        numbers = leaf(torch.cat([x.flatten(), w.flatten(), x.flatten()]))
        dense = made(kind, numbers).to_dense()
        return backward(
            dense * torch.linspace(1, 2, dense.numel(), device=x.device).to(x.dtype).view_as(dense), numbers
        )

    return {**answers, **each({f"made-{kind}": lambda kind=kind: made_of(kind) for kind in KINDS if shape_of(kind)})}


for _dtype in (torch.float32, torch.float16):
    cases.add(
        f"layout-sparse-gradients-{str(_dtype)[6:]}",
        _derived,
        make=lambda d, dtype=_dtype: (d.normal(4, 6, dtype=dtype), d.normal(4, 6, dtype=dtype)),
        since="2.8",
        terms=64,
        floor=1.0,
        states=("fresh",),
        anywhere=True,
        may_be_missing=True,
    )
