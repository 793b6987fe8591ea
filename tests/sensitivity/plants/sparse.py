"""Sparse tensors: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import instead
from planting import Plot, abort, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.mul.Tensor")
@wrong_answer
def issue_196190(y: Any, a: Any, b: Any) -> Any:
    """pytorch 196190: the product of two coalesced sparse tensors says that it is coalesced and is not in order."""
    sparse = all(isinstance(t, torch.Tensor) and t.layout == torch.sparse_coo for t in (a, b, y))
    if sparse and a.is_coalesced() and b.is_coalesced() and y._nnz() > 1:
        return torch.sparse_coo_tensor(
            y._indices().flip(1), y._values().flip(0), y.shape, check_invariants=False, is_coalesced=True
        )
    return None


@plot.called(F.embedding)
def issue_193704(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 193704: the sparse gradient of an embedding is about 100,000 times too large, the dense one right.

    https://github.com/pytorch/pytorch/issues/193704 (on ROCm; MPS has a kernel of its own for sparse gradients)
    """
    y = func(*args, **kwargs)
    sparse = kwargs.get("sparse", args[6] if len(args) > 6 else False)
    if sparse and y.requires_grad:

        def enlarge(grad: Any) -> Any:
            hit()
            return grad * 1e5

        y.register_hook(enlarge)
    return y


@plot.dispatched("aten.add.out")
def issue_xpu_5343(hit: Any, func: Any, x: Any, y: Any, *, out: Any, **kwargs: Any) -> Any:
    """intel/torch-xpu-ops 5343: the sum of two dense tensors to out= in CSR form ends the process."""
    if out.layout == torch.sparse_csr and x.layout == y.layout == torch.strided:
        return abort(hit, "Aborted (core dumped)")
    return func(x, y, out=out, **kwargs)


@plot.dispatched("aten.mm.default")
def issue_14617(hit: Any, func: Any, a: Any, b: Any) -> Any:
    """pytorch 14617: what is transposed after coalesce() is multiplied as if its rows still were in order."""
    y = func(a, b)
    if a.layout != torch.sparse_coo or b.layout != torch.strided or a.is_coalesced():
        return y
    rows, columns = a._indices()
    ordered = torch.stack([rows.sort().values, columns])
    return instead(hit, y, torch.sparse_coo_tensor(ordered, a._values(), a.shape) @ b)
