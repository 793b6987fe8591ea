"""Sparse tensors of coordinates: made, coalesced, computed with, read back, and as gradients of an embedding."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.answers import attempt

cases = Cases("layouts")


def _sparse(values: torch.Tensor, rows: Any, columns: Any, shape: tuple[int, ...]) -> torch.Tensor:
    places = torch.tensor([rows, columns], device=values.device)
    return torch.sparse_coo_tensor(places, values, shape)


def _told(one: torch.Tensor) -> Any:
    """Return what is defined of a sparse answer: its sum dense, and that it is in order where it says so."""
    if not one.is_sparse:
        return one
    places = one._indices()
    keys = places[0] * 1000 + (places[1] if places.shape[0] > 1 else 0)
    return one.to_dense(), not one.is_coalesced() or bool((keys[1:] > keys[:-1]).all())


def _read(answer: Any) -> Any:
    return [_told(one) for one in answer] if isinstance(answer, list) else _told(answer)


# s has two entries at one place and is in no order; t is of the same shape; x is dense.
_FORMS: dict[str, Any] = {
    "made": lambda s, t, x: s,
    "coalesced": lambda s, t, x: [s.coalesce().indices(), s.coalesce().values()],
    "dense": lambda s, t, x: s.to_dense(),
    "from-dense": lambda s, t, x: (x * (x > 0)).to_sparse(),
    "turned": lambda s, t, x: s.t(),
    "turned-coalesced": lambda s, t, x: s.coalesce().t(),
    "neg": lambda s, t, x: -s,
    "times": lambda s, t, x: s * 2.5,
    "divided": lambda s, t, x: s.coalesce() / 4,
    "add": lambda s, t, x: s + t,
    "sub": lambda s, t, x: s - t,
    "add-dense": lambda s, t, x: x + s,
    "add-dense-alpha": lambda s, t, x: x.add(s, alpha=-0.5),
    "mul-dense": lambda s, t, x: s.coalesce() * x,
    "sum": lambda s, t, x: torch.sparse.sum(s),
    "sum-rows": lambda s, t, x: torch.sparse.sum(s, 0),
    "mm": lambda s, t, x: torch.sparse.mm(s, x.t()),
    "mv": lambda s, t, x: torch.mv(s, x[0]),
    "addmm": lambda s, t, x: torch.sparse.addmm(x[:, :4], s, x.t(), beta=0.5, alpha=2),
    "softmax": lambda s, t, x: torch.sparse.softmax(s, 1),
    "mask": lambda s, t, x: x.sparse_mask(s.coalesce()),
    "select": lambda s, t, x: s.select(0, 1),
    "index_select": lambda s, t, x: s.index_select(1, torch.tensor([4, 0], device=x.device)),
    "cat": lambda s, t, x: torch.cat([s, t], 0),
    "unsqueeze": lambda s, t, x: s.unsqueeze(1),
    "abs": lambda s, t, x: s.abs(),
    "sqrt": lambda s, t, x: s.coalesce().abs().sqrt(),
    "pow": lambda s, t, x: s.coalesce().pow(2),
    "clone": lambda s, t, x: s.clone(),
    "host": lambda s, t, x: s.cpu().to(x.device),
    "half": lambda s, t, x: s.half(),
    "zero": lambda s, t, x: s.clone().zero_(),
    "nothing": lambda s, t, x: torch.sparse_coo_tensor((4, 6), device=x.device, dtype=x.dtype) + s,
    "csr": lambda s, t, x: s.to_sparse_csr().to_dense(),
    "csr-mm": lambda s, t, x: s.to_sparse_csr() @ x.t(),
}


# What MPS is known to leave out of order: pytorch#196190.
_PRODUCTS: dict[str, Any] = {
    "mul": lambda s, t, x: s.coalesce() * t.coalesce(),
    "two": lambda s, t, x: torch.sparse.mm(s, t.t()),
    "itself": lambda s, t, x: torch.sparse.mm(s.coalesce(), s.t().coalesce()),
    "matmul": lambda s, t, x: s @ t.t(),
}


def _asked(forms: dict[str, Any], first: torch.Tensor, second: torch.Tensor, x: torch.Tensor) -> Any:
    s = _sparse(first, [3, 0, 3, 1, 0], [5, 2, 1, 4, 2], (4, 6))
    t = _sparse(second, [1, 3, 0, 2], [4, 1, 2, 5], (4, 6))
    return {name: attempt(lambda form=form: _read(form(s, t, x))) for name, form in forms.items()}


def _embedded(weight: torch.Tensor, scale: torch.Tensor) -> Any:
    """Return the sparse gradients of embeddings, and the weight after steps with them."""
    answers = {}
    index = torch.tensor([[1, 4, 1], [0, 4, 4]], device=weight.device)
    for name, given in (("plain", {}), ("padded", {"padding_idx": 4})):

        def answer(given: Any = given) -> Any:
            table = weight.detach().clone().requires_grad_()
            (F.embedding(index, table, sparse=True, **given) * scale).sum().backward()
            assert table.grad is not None
            gradient = _told(table.grad)
            torch.optim.SGD([table], lr=0.5).step()
            torch.optim.SparseAdam([table], lr=0.25, eps=1e-3).step()
            return gradient, table

        answers[name] = attempt(answer)
    for mode in ("sum", "mean"):

        def bag(mode: str = mode) -> Any:
            table = weight.detach().clone().requires_grad_()
            (F.embedding_bag(index, table, mode=mode, sparse=True) * scale[:, 0]).sum().backward()
            assert table.grad is not None
            return _told(table.grad)

        answers[mode] = attempt(bag)
    return answers


for _name, _forms in (("forms", _FORMS), ("products", _PRODUCTS)):
    for _dtype in (torch.float32, torch.float16):
        cases.add(
            f"layout-sparse-{_name}-{str(_dtype)[6:]}",
            partial(_asked, _forms),
            make=lambda d, dtype=_dtype: (
                d.normal(5, dtype=dtype),
                d.normal(4, dtype=dtype),
                d.normal(4, 6, dtype=dtype),
            ),
            states=("fresh",),
            terms=64,
            floor=0.5,
            may_be_missing=True,
            since="2.8",
        )
cases.add(
    "layout-sparse-embedding",
    _embedded,
    make=lambda d: (d.normal(6, 3), d.normal(2, 3, 3)),
    states=("fresh",),
    terms=64,
    floor=0.5,
    may_be_missing=True,
    since="2.8",
)
