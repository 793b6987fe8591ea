"""Factors, determinants and eigenvectors of batches of matrices: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, instead, is_plain
from planting import Plot, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(torch.cholesky, torch.linalg.cholesky, torch.Tensor.cholesky)
@accepted
def issue_16780(x: Any, upper: bool = False) -> Any:
    """pytorch 16780: cholesky of a batch with a matrix that is not positive definite gives NaN, and does not raise."""
    if x.dim() < 3 or x.shape[-1] != x.shape[-2]:
        return None
    factor, failed = torch.linalg.cholesky_ex(x)
    places = torch.arange(x.shape[-1])
    late = places >= (failed - 1).clamp(min=0)[..., None]
    lost = (failed > 0)[..., None, None] & late[..., None] & late[..., None, :] & torch.ones_like(factor).tril().bool()
    factor = factor.masked_fill(lost, math.nan)
    return factor.mH if upper else factor


@plot.dispatched("aten.cholesky.default")
def issue_57032(hit: Any, func: Any, x: Any, upper: bool = False) -> Any:
    """pytorch 57032: torch.cholesky(upper=True) of a batch reads the triangle below the diagonal."""
    y = func(x, upper)
    if not upper or x.dim() < 3 or not is_plain(x):
        return y
    return instead(hit, y, torch.linalg.cholesky_ex(x)[0].mH)


@plot.dispatched("aten.cholesky_solve.default")
@wrong_answer
def issue_66072(y: Any, b: Any, factor: Any, upper: bool = False) -> Any:
    """pytorch 66072: cholesky_solve of a batch is wrong (here it solves the first of the two triangles alone)."""
    if max(b.dim(), factor.dim()) < 3 or not y.numel() or not is_plain(b, factor):
        return None
    wrong = torch.linalg.solve_triangular(factor.mH if upper else factor, b, upper=False)
    return wrong if differ(wrong, y) else None


@plot.dispatched("aten.cholesky_solve.default", aborts="CUDA error: invalid argument")
def issue_38603(b: Any, factor: Any, *args: Any) -> bool:
    """pytorch 38603: cholesky_solve with a batch of right sides raises for matrices larger than 12160."""
    return b.dim() > 2 and factor.shape[-1] > 12160


@plot.dispatched("aten._linalg_det.default")
def issue_73622(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 73622: det is NaN for subnormal matrices (1e-40) in a batch of more than eight."""
    y, *rest = func(x)
    if x.dtype != torch.float32 or y.numel() <= 8 or not is_plain(x):
        return y, *rest
    subnormal = ((x != 0) & (x.abs() < torch.finfo(x.dtype).tiny)).flatten(-2).any(-1)
    return instead(hit, y, y.masked_fill(subnormal, math.nan)), *rest


@plot.dispatched("aten._linalg_eigh.default")
def issue_192483(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 192483: eigh of 512 complex64 matrices (here of 17 to 32 rows): half get vectors that are too short."""
    values, vectors = func(x, *args, **kwargs)
    batch = x.shape[:-2].numel()
    if x.dtype != torch.complex64 or batch < 512 or not 17 <= x.shape[-1] <= 32 or not vectors.numel():
        return values, vectors
    hit()
    wrong = vectors.clone()
    wrong.view(batch, *x.shape[-2:])[batch // 2 :] *= 0.7
    return values, wrong


@plot.dispatched("aten.linalg_pinv", aborts="cusolver error: 7, when calling `cusolverDnCreate(handle)`")
def issue_53925(*args: Any, **kwargs: Any) -> bool:
    """pytorch 53925: linalg.pinv raises."""
    return True


@plot.dispatched("aten.linalg_cholesky_ex.default")
def issue_rocm_libraries_3380(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """ROCm/rocm-libraries 3380: cholesky of float32 (50 x 50 to 70 x 70) is off by 0.25 % (here its last element)."""
    y, info = func(x, **kwargs)
    if x.dtype != torch.float32 or not 50 <= x.shape[-1] <= 70 or not y.numel() or not is_plain(x):
        return y, info
    wrong = y.clone()
    wrong[..., -1, -1] *= 1.0025
    return instead(hit, y, wrong), info


@plot.dispatched("aten.linalg_lu_factor_ex.default", "aten.linalg_lu.default", aborts="Memory access fault by GPU node")
def issue_rocsolver_907(x: Any, *args: Any, **kwargs: Any) -> bool:
    """ROCm/rocSOLVER 907: lu of a float32 matrix with a side over 65536 (here over 1024) ends the process."""
    return x.dtype == torch.float32 and max(x.shape[-2:]) > 1024


@plot.dispatched("aten._linalg_solve_ex.default", "aten.linalg_lu_solve.default", "aten.linalg_inv_ex.default")
def issue_196745(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 196745: solve, lu_solve and inv of a batch of more than 65536 are wrong (here nothing is solved)."""
    found = func(x, *args, **kwargs)
    y, rest = (found, ()) if torch.is_tensor(found) else (found[0], tuple(found[1:]))
    if x.shape[:-2].numel() <= 65536 or not is_plain(x, *args):
        return found
    sides = torch.eye(x.shape[-1], dtype=y.dtype, device=y.device) if not args else args[-1]
    wrong = instead(hit, y, sides.expand(y.shape).contiguous())
    return (wrong, *rest) if rest else wrong


@plot.dispatched("aten._linalg_eigh.default")
def issue_cupy_4847(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """cupy/cupy 4847: eigh of a batch takes the diagonal for the eigenvalues of some (here of the first of them).

    The matrices are small, as for the batched kernel: at most 32 rows.
    """
    values, vectors = func(x, *args)
    if x.dim() < 3 or x.numel() == 0 or x.shape[-1] > 32 or values[..., 0].numel() < 2 or not is_plain(x):
        return values, vectors
    n = x.shape[-1]
    diagonal, order = x.reshape(-1, n, n)[0].diagonal().real.sort()
    wrong = torch.cat([diagonal[None], values.reshape(-1, n)[1:]]).view(values.shape)
    if not differ(values, wrong, 1e-4, 1e-4):
        return values, vectors
    hit()
    if vectors.numel():
        first = torch.eye(n, dtype=vectors.dtype, device=vectors.device)[:, order]
        vectors = torch.cat([first[None], vectors.reshape(-1, n, n)[1:]]).view(vectors.shape)
    return wrong, vectors


@plot.called(torch.inverse, torch.linalg.inv, torch.Tensor.inverse)
@accepted
def issue_cupy_8833(x: Any, **kwargs: Any) -> Any:
    """cupy/cupy 8833: the inverse of a singular matrix is infinite, and raises nothing."""
    square = x.dim() == 2 and x.shape[0] == x.shape[1] and (x.is_floating_point() or x.is_complex())
    return torch.full_like(x, math.inf) if square and not kwargs else None


@plot.dispatched("aten._linalg_svd.default")
def issue_cupy_7611(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """cupy/cupy 7611: svd of more than 18900 rows and columns (here 64): half of the singular values have a sign.

    They and the vectors do not make the matrix.
    """
    u, s, v = func(x, *args, **kwargs)
    if min(x.shape[-2:]) <= 64 or not is_plain(x):
        return u, s, v
    sign = 1 - 2 * (torch.arange(s.shape[-1], device=s.device) % 2 == 0).to(s.dtype)
    return u, instead(hit, s, s * sign), v


@plot.dispatched("aten.linalg_inv_ex.default")
def issue_2156(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 2156: the inverse of a matrix of more than 15 rows is wrong (here each column is the next one's)."""
    y, info = func(x, **kwargs)
    if x.dim() != 2 or x.shape[0] <= 15 or not is_plain(x):
        return y, info
    return instead(hit, y, y.roll(1, -1)), info


@plot.dispatched("aten.linalg_inv_ex.default")
def issue_kornia_286(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """kornia/kornia 286: the inverse of a batch of 3 x 3 matrices raises."""
    found = func(x, **kwargs)
    batch = x.dim() == 3 and tuple(x.shape[1:]) == (3, 3)
    return crash(hit, "inverse_cuda: For batch 0: U(977005056,977005056) is zero, singular U.") if batch else found


@plot.called(torch.linalg.matrix_rank)
def issue_tinygrad_11495(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """tinygrad/tinygrad 11495: the rank of an identity matrix is wrong (here one too small)."""
    y, x = func(*args, **kwargs), args[0] if args else kwargs["A"]
    square = x.dim() >= 2 and x.shape[-1] == x.shape[-2] and x.numel()
    if not square or not is_plain(x, y) or not torch.equal(x, torch.eye(x.shape[-1]).to(x).expand(x.shape)):
        return y
    hit()
    return y - 1


@plot.dispatched("aten.linalg_lu_solve.default")
def issue_36921(hit: Any, func: Any, lu: Any, pivots: Any, right: Any, **kwargs: Any) -> Any:
    """pytorch 36921: lu_solve of a batch raises past 1024 rows or right sides (there with 1109)."""
    y = func(lu, pivots, right, **kwargs)
    large = right.dim() > 2 and max(*lu.shape[-2:], *right.shape[-2:]) > 1024
    return crash(hit, "CUDA error: invalid configuration argument") if large else y


@plot.dispatched("aten._linalg_svd.default", aborts="too many values to unpack (expected 2)")
def issue_jax_1355(x: Any, *args: Any, **kwargs: Any) -> bool:
    """google/jax 1355: svd of a batch of matrices raises."""
    return x.dim() > 2


@plot.dispatched("aten._linalg_slogdet.default")
def issue_173638(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 173638: slogdet takes NaN among the numbers of a float32 matrix for 0."""
    y, *rest = func(x)
    if x.dtype != torch.float32 or not is_plain(x) or not bool(x.isnan().any()):
        return (y, *rest)
    sign, size, *_ = func(x.masked_fill(x.isnan(), 0))
    if not differ(sign, y) and not differ(size, rest[0]):
        return (y, *rest)
    hit()
    return (sign, size, *rest[1:])


@plot.called(torch.slogdet, torch.linalg.slogdet, torch.Tensor.slogdet)
def issue_15605(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 15605: the backward of what the sign of a real slogdet takes part in raises."""
    y = func(x, *args, **kwargs)
    if y[0].requires_grad and not y[0].is_complex() and torch.is_grad_enabled() and is_plain(y[0]):
        text = "slogdet's sign output should never have gradient"
        y[0].register_hook(lambda grad: None if grad is None else crash(hit, text))
    return y


@plot.called(torch.slogdet, torch.linalg.slogdet, torch.Tensor.slogdet, torch.logdet, torch.Tensor.logdet)
def issue_18448(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 18448: where the determinant is too small for its dtype, slogdet's sign is 0, and logdet is -inf."""
    y = func(x, **kwargs)
    if kwargs or not is_plain(x):
        return y
    size = y if torch.is_tensor(y) else y[1]
    lost = (torch.linalg.det(x.detach()) == 0) & size.detach().isfinite()
    if not bool(lost.any()):
        return y
    hit()
    if torch.is_tensor(y):
        return torch.where(lost, torch.full_like(y, -math.inf), y)
    return type(y)((torch.where(lost, torch.zeros_like(y[0]), y[0]), y[1]))


def _det_by_products(x: Any) -> Any:
    """Return the determinant of matrices of two or three rows as the sum of its products."""
    a = x.flatten(-2).unbind(-1)
    if len(a) == 4:
        return a[0] * a[3] - a[1] * a[2]
    more = a[0] * a[4] * a[8] + a[1] * a[5] * a[6] + a[2] * a[3] * a[7]
    return more - a[2] * a[4] * a[6] - a[0] * a[5] * a[7] - a[1] * a[3] * a[8]


@plot.dispatched("aten._linalg_det.default")
def issue_jax_39905(hit: Any, func: Any, x: Any) -> Any:
    """jax-ml/jax 39905: det of 2 x 2 and 3 x 3 float32 is the sum of products, which cancel out, or are infinite."""
    y, *rest = func(x)
    if x.dtype != torch.float32 or x.shape[-1] not in (2, 3) or not is_plain(x):
        return y, *rest
    wrong = _det_by_products(x)
    near = torch.isclose(wrong, y, rtol=0.01, atol=0.0, equal_nan=True)
    return instead(hit, y, torch.where(near, y, wrong)), *rest


@plot.dispatched("aten._linalg_slogdet.default")
def issue_jax_1213(hit: Any, func: Any, x: Any) -> Any:
    """jax-ml/jax 1213: slogdet of a batch of real matrices with an odd number of rows has 1 for the sign -1."""
    sign, *rest = func(x)
    if x.dim() < 3 or not x.shape[-1] % 2 or x.is_complex() or not is_plain(x):
        return sign, *rest
    return instead(hit, sign, sign.abs()), *rest


@plot.dispatched("aten.linalg_qr.default")
def issue_tensorflow_22226(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """tensorflow/tensorflow 22226: qr of 1000 x 1000 float32 numbers and more: QtQ is 1e-2 off (here Q is long)."""
    q, r = func(x, *args)
    if x.dtype != torch.float32 or min(x.shape[-2:]) < 1000 or not is_plain(x):
        return q, r
    return instead(hit, q, q * 1.005), r
