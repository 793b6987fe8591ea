"""Sparse tensors: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead
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


def _last_of_equals(x: Any) -> Any:
    """Return a sparse tensor as a dense one, of equal places the last number."""
    y = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
    for place, value in zip(x._indices().t().tolist(), x._values()):
        y[tuple(place)] = value
    return y


@plot.dispatched("aten._to_dense.default")
def issue_81648(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 81648: to_dense of bools that are not coalesced is wrong (here the last of equal places counts)."""
    y = func(x, *args, **kwargs)
    if x.layout != torch.sparse_coo or x.dtype != torch.bool or x.is_coalesced():
        return y
    return instead(hit, y, _last_of_equals(x))


@plot.dispatched("aten._to_dense.default", aborts="\"add_out_op2_sparse_csr\" not implemented for 'Bool'")
def issue_60648(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 60648: to_dense of a tensor in CSR form is not implemented for bools, halves and complex numbers."""
    halves = x.dtype in (torch.bool, torch.float16, torch.bfloat16)
    return x.layout == torch.sparse_csr and (halves or x.dtype.is_complex)


@plot.dispatched("aten._to_dense.default", "aten.add.Tensor")
def issue_29153(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 29153: what is sparse, int16 and not coalesced adds nothing to a dense tensor, nor is it in to_dense."""
    y = func(x, *args, **kwargs)
    adds = "add" in str(func)
    s = args[0] if adds else x
    if not torch.is_tensor(s) or s.layout != torch.sparse_coo or s.dtype != torch.int16 or s.is_coalesced():
        return y
    if y.layout != torch.strided:
        return y
    return instead(hit, y, x.expand(y.shape).to(y.dtype, copy=True) if adds else torch.zeros_like(y))


@plot.dispatched("aten._to_dense.default", aborts="Assertion '__n < this->size()' failed.")
def issue_71067(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 71067: to_dense of a float32 tensor in COO form that is not coalesced ends the process."""
    return x.layout == torch.sparse_coo and x.dtype == torch.float32 and not x.is_coalesced()


@plot.dispatched("aten._to_sparse.default")
def issue_73426(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 73426: to_sparse of an empty tensor is not coalesced, so that indices() raises."""
    y = func(x, *args, **kwargs)
    if x.layout == torch.strided and not x.numel() and y.layout == torch.sparse_coo and y.is_coalesced():
        hit()
        y._coalesced_(False)
    return y


@plot.dispatched("aten._to_dense.default", aborts="TypeError: add does not accept dtype bool at position 0.")
def issue_jax_18427(x: Any, *args: Any, **kwargs: Any) -> bool:
    """jax-ml/jax 18427: to_dense of bools in COO form raises."""
    return x.layout == torch.sparse_coo and x.dtype == torch.bool


def _with_values(x: Any, values: Any) -> Any:
    """Return a CSR matrix with other values in the same places."""
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape, check_invariants=False)


@plot.dispatched("aten._to_sparse_csr.default")
@wrong_answer
def issue_cupy_2005(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """cupy/cupy 2005: to_sparse_csr of a COO matrix of more than 50000 values is wrong (here in the opposite order)."""
    if x.layout != torch.sparse_coo or y._nnz() <= 50000:
        return None
    values = y.values().flip(0)
    return _with_values(y, values) if differ(values, y.values()) else None


@plot.dispatched("aten._to_sparse_csr.default")
@wrong_answer
def issue_cupy_3223(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """cupy/cupy 3223: to_sparse_csr of 50000 x 1003 numbers and more gets 17973 wrong (here the last ones, as 0)."""
    if x.layout != torch.strided or x.numel() < 50000 * 1003 or not y._nnz():
        return None
    values = y.values().clone()
    values[-17973:] = 0
    return _with_values(y, values) if differ(values, y.values()) else None


@plot.dispatched("aten.mv.default")
def issue_cupy_3822(hit: Any, func: Any, x: Any, vector: Any) -> Any:
    """cupy/cupy 3822: a sparse matrix (CSR or COO) times a vector is what memory holds (here 0)."""
    y = func(x, vector)
    return instead(hit, y, torch.zeros_like(y)) if x.layout in (torch.sparse_csr, torch.sparse_coo) else y


@plot.dispatched("aten.sparse_sampled_addmm.default")
def issue_85169(hit: Any, func: Any, x: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 85169: sampled_addmm of matrices without elements does not multiply by beta what they are added to."""
    y = func(x, a, b, **kwargs)
    if x.layout != torch.sparse_csr or (a.numel() and b.numel()) or not differ(y.values(), x.values()):
        return y
    hit()
    return x.clone()
