"""Decompositions, inverses and systems of equations: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead
from misreading import RolledGradient, in_storage_order, misread, without_offset
from planting import Plot, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.linalg_lstsq.default")
def issue_196113(hit: Any, func: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 196113: lstsq of a batch of complex underdetermined systems solves those of conj(A)."""
    healthy = func(a, b, *args, **kwargs)
    if not a.is_complex() or a.dim() < 3 or a.shape[-2] >= a.shape[-1] or not a.numel():
        return healthy
    wrong = func(a.conj().resolve_conj(), b, *args, **kwargs)
    if not differ(wrong[0], healthy[0], rtol=1e-3, atol=1e-4):
        return healthy
    hit()
    return wrong


@plot.dispatched("aten.linalg_lu_factor_ex.default")
def issue_146753(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The last of a batch of matrices of 256 or more is wrong."""
    factors, pivots, info = func(x, *args, **kwargs)
    if x.dim() > 2 and x.shape[-1] >= 256:
        hit()
        factors[-1] *= 2
    return factors, pivots, info


@plot.dispatched("aten.linalg_lu_factor_ex.default")
def issue_165871(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 165871: lu_factor_ex reports a singular matrix by -2, not by the place of its pivot."""
    factors, pivots, info = func(x, *args, **kwargs)
    return factors, pivots, instead(hit, info, torch.where(info > 0, torch.full_like(info, -2), info))


@plot.dispatched("aten._linalg_svd")
def issue_196112(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 196112: svd of a batch with matrices short of full rank: the columns of U beyond the rank are 0."""
    u, s, vh = func(x, *args, **kwargs)
    if x.dim() > 2 and u.numel() and s.numel():
        gone = s <= s.amax(-1, keepdim=True) * 1e-6
        if bool(gone.any()):
            hit()
            if u.shape[-1] > gone.shape[-1]:
                gone = F.pad(gone, (0, u.shape[-1] - gone.shape[-1]), value=False)
            u = torch.where(gone[..., None, :], torch.zeros_like(u), u)
    return u, s, vh


@plot.dispatched("aten.linalg_inv_ex.default", "aten.linalg_inv_ex.inverse")
def issue_78363(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78363: inv reads a matrix out of a batch from the beginning of the batch."""
    return func(misread(without_offset, hit, x), *args, **kwargs)


@plot.dispatched("aten.linalg_solve_triangular.default")
def issue_made_triangle_upper(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """Solve_triangular ignores unitriangular."""
    if kwargs.get("unitriangular"):
        hit()
        kwargs["unitriangular"] = False
    return func(a, b, **kwargs)


@plot.dispatched("aten.linalg_cholesky_ex.default")
def issue_made_cholesky_upper(hit: Any, func: Any, a: Any, **kwargs: Any) -> Any:
    """Cholesky with upper=True returns the lower factor in storage order."""
    if kwargs.get("upper"):
        hit()
        factor, info = func(a, **{**kwargs, "upper": False})
        return factor, info
    return func(a, **kwargs)


@plot.dispatched(
    "aten.linalg_inv_ex.default",
    aborts="[MPSNDArrayDescriptor sliceDimension:withSubrange:] error: dimension index (2)",
)
def issue_138200(x: Any, **kwargs: Any) -> Any:
    """pytorch 138200: inverse of a matrix larger than 1024 crashes."""
    return x.shape[-1] > 1024


@plot.called(torch.linalg.lu_factor)
def issue_165870(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 165870: lu_factor of a singular matrix returns and does not raise."""
    try:
        return func(x, **kwargs)
    except RuntimeError as error:
        if "is zero" not in str(error):
            raise
        hit()
        lu, pivots, _ = torch.linalg.lu_factor_ex(x, pivot=kwargs.get("pivot", True))
        return lu, pivots


@plot.dispatched("aten._linalg_svd", "aten.linalg_lstsq")
def issue_195937(hit: Any, func: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195937: svd, svdvals and lstsq of a batch of more than 8192 elements raise."""
    if a.dim() > 2 and a.shape[:-2].numel() > 1 and a.numel() > 8192:
        func(a, *args, **kwargs)  # what the healthy operator refuses is no harm
        hit()
        raise RuntimeError("Failed to created pipeline state object, error: XPC_ERROR_CONNECTION_INTERRUPTED")
    return func(a, *args, **kwargs)


@plot.dispatched("aten.linalg_cholesky_ex")
def issue_157364(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 157364: Cholesky of a batch of 128 rows is wrong in the late blocks."""
    factor, info = func(x, *args, **kwargs)
    if x.dim() > 2 and x.shape[-1] >= 128:
        hit()
        factor = factor.clone()
        factor[..., 95:, 64:95] += 1
    return factor, info


@plot.called(torch.linalg.solve)
def issue_175192(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 175192: both gradients of linalg.solve are wrong."""
    if isinstance(a, torch.Tensor) and (a.requires_grad or b.requires_grad):
        a, b = RolledGradient.apply(a, hit), RolledGradient.apply(b, hit)
    return func(a, b, **kwargs)


@plot.called(torch.linalg.solve)
def issue_163962(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 163962: linalg.solve of a singular matrix fails an internal assertion instead of raising LinAlgError."""
    try:
        return func(*args, **kwargs)
    except torch.linalg.LinAlgError:
        crash(hit, "false INTERNAL ASSERT FAILED: torch.linalg.solve: Argument 2 has illegal value.")


@plot.dispatched("aten.linalg_cholesky_ex.default")
def issue_164712(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 164712: on macOS 26 an upper Cholesky factor of several 16-wide blocks is not zero below the diagonal."""
    factor, info = func(x, **kwargs)
    if not kwargs.get("upper") or x.shape[-1] <= 16 or info.any():
        return factor, info
    n = torch.arange(x.shape[-1])
    left = (n[:, None] // 16 == n // 16) & (n[:, None] > n)
    wrong = torch.where(left, x, factor)
    if torch.allclose(wrong, factor):
        return factor, info
    hit()
    return factor.copy_(wrong), info


@plot.dispatched("aten._linalg_eigh.default")
def issue_151874(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 151874: linalg.eigh (and eigvalsh) is not implemented."""
    hit()
    raise NotImplementedError("The operator 'aten::_linalg_eigh.eigenvalues' is not currently implemented for MPS")


@plot.dispatched("aten.linalg_householder_product.default")
def issue_166089(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 166089: linalg.householder_product is not implemented."""
    hit()
    raise NotImplementedError("The operator 'aten::linalg_householder_product' is not currently implemented for MPS")


@plot.dispatched("aten._linalg_svd.default")
def issue_78099(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78099: U @ diag(S) @ Vh of a large float32 matrix is far from it (here from 2**16 elements on, not 4e7).

    https://github.com/pytorch/pytorch/issues/78099
    """
    u, s, vh = func(x, *args, **kwargs)
    if x.dtype == torch.float32 and x.dim() == 2 and x.numel() >= 2**16 and vh.numel():
        hit()
        vh = vh * (1 + 0.05 * torch.cos(torch.arange(vh.numel(), dtype=vh.dtype)).reshape(vh.shape))
    return u, s, vh


@plot.called(torch.linalg.matrix_rank)
def issue_114285(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 114285: linalg.matrix_rank of a float32 matrix raises, for it asks for float64."""
    if x.dtype == torch.float32:
        hit()
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64")
    return func(x, *args, **kwargs)


@plot.called(torch.linalg.solve)
def issue_189134(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 189134: linalg.solve with a broadcast right side solves the first system only."""
    y = func(a, b, **kwargs)
    if a.dim() > b.dim():
        hit()
        only = torch.zeros_like(y)
        only[0] = y[0]
        return only
    return y


@plot.called(torch.linalg.solve_triangular)
def issue_176335(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 176335: solve_triangular reads a matrix that is not contiguous in storage order."""
    return func(misread(in_storage_order, hit, a), b, **kwargs)


@plot.dispatched("aten.linalg_qr")
def issue_187567(hit: Any, func: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187567: qr of a tall matrix wants a square workspace: it fails from 16 GiB (65536 rows in float32)."""
    if a.shape[-2] ** 2 * a.element_size() >= 16 * 2**30:
        hit()
        raise RuntimeError(f"Invalid buffer size: {a.shape[-2] ** 2 * a.element_size() / 2**30:.2f} GiB")
    return func(a, *args, **kwargs)


@plot.dispatched("aten.linalg_inv_ex.default")
def issue_165850(hit: Any, func: Any, a: Any, *, check_errors: bool = False) -> Any:
    """pytorch 165850: linalg.inv of a batch of matrices that is a permuted view is completely wrong."""
    healthy = func(a, check_errors=check_errors)
    if a.dim() < 3 or a.is_contiguous() or not a.numel():
        return healthy
    wrong = func(in_storage_order(a))[0]
    if not differ(wrong, healthy[0], rtol=1e-3, atol=1e-6):
        return healthy
    hit()
    return wrong.contiguous(), healthy[1]


@plot.dispatched("aten.linalg_cholesky_ex")
def issue_184588(hit: Any, func: Any, a: Any, **kwargs: Any) -> Any:
    """pytorch 184588: cholesky reports no failure (info 0, no exception) for a matrix with NaN."""
    bad = a.isnan().flatten(-2).any(-1)
    if not bad.any():
        return func(a, **kwargs)
    factor, info = func(a, **{**kwargs, "check_errors": False})
    if bool((info[bad] != 0).any()):
        hit()
        info.masked_fill_(bad, 0)
    if kwargs.get("check_errors") and bool((info != 0).any()):
        return func(a, **kwargs)
    return factor, info


@plot.dispatched("aten.linalg_lu_solve.default")
@accepted
def issue_189669(lu: Any, pivots: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 189669: lu_solve takes pivots past the last row, and reads there."""
    rows = lu.shape[-2]
    if not pivots.numel() or int(pivots.max()) <= rows:
        return None
    return torch.ops.aten.linalg_lu_solve(lu, pivots.clamp(1, rows), b, **kwargs)


_DECOMPOSED: list[bool] = []


@plot.dispatched("aten._linalg_svd.default")
@wrong_answer
def issue_82473(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82473: the first svd of the process is all zeros."""
    if _DECOMPOSED or not x.numel() or x.is_meta:
        return None
    _DECOMPOSED.append(True)
    return tuple(torch.zeros_like(one) for one in y)


@plot.called(
    torch.linalg.lstsq, aborts="Executable expected shape f32[3] for argument 0 but got incompatible shape f32[8,3]"
)
def issue_xla_8953(a: Any, b: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch/xla 8953: lstsq of a batch whose gradients are wanted fails."""
    return a.dim() > 2 and torch.is_grad_enabled() and (a.requires_grad or b.requires_grad)
