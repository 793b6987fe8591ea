"""Linear algebra of complex64 and of float32: square, tall and wide matrices, alone and in batches, with gradients.

What is unique only up to a phase is compared by what it means: factors by their product.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import ONCE, each

cases = Cases("complex")


def _hermitian(x: torch.Tensor) -> torch.Tensor:
    return x + x.mH


def _positive(x: torch.Tensor) -> torch.Tensor:
    return x @ x.mH + torch.eye(x.shape[-2], dtype=x.dtype, device=x.device)


def _solved_by_lu(x: torch.Tensor, b: torch.Tensor, **how: Any) -> torch.Tensor:
    return torch.linalg.lu_solve(*torch.linalg.lu_factor(x), b, **how)


def _by_eigenvectors(x: torch.Tensor) -> torch.Tensor:
    values, vectors = torch.linalg.eigh(_hermitian(x))
    return (vectors * values.to(x.dtype)[..., None, :]) @ vectors.mH


def _by_singular_vectors(x: torch.Tensor, whole: bool = False) -> torch.Tensor:
    u, s, v = torch.linalg.svd(x, full_matrices=whole)
    count = s.shape[-1]
    return (u[..., :count] * s.to(x.dtype)[..., None, :]) @ v[..., :count, :]


def _by_reflections(x: torch.Tensor) -> torch.Tensor:
    packed, tau = torch.geqrf(x)
    return torch.linalg.householder_product(packed, tau) @ packed.triu()[..., : tau.shape[-1], :]


# x is (4, 4), alone or in a batch, far from singular; b is (4, 2) like it.
_SQUARE: dict[str, Callable[..., Any]] = {
    "determinant": lambda x, b: [torch.linalg.det(x), *torch.linalg.slogdet(x)],
    "inverse": lambda x, b: [torch.linalg.inv(x), torch.linalg.inv_ex(x)[0], x.inverse()],
    "solve": lambda x, b: [torch.linalg.solve(x, b), torch.linalg.solve(x, b.mT, left=False)],
    "vector": lambda x, b: torch.linalg.solve(x, b[..., 0]),
    "lu": lambda x, b: [*torch.linalg.lu_factor(x), *torch.lu_unpack(*torch.linalg.lu_factor(x))],
    "lu_parts": lambda x, b: torch.linalg.lu(x),
    "lu_solve": lambda x, b: [_solved_by_lu(x, b), _solved_by_lu(x, b, adjoint=True)],
    "lu_right": lambda x, b: _solved_by_lu(x, b.mT.contiguous(), left=False),
    "power": lambda x, b: [torch.linalg.matrix_power(x, 3), torch.linalg.matrix_power(x, -2)],
    "exponential": lambda x, b: torch.linalg.matrix_exp(x / 8),
    "cholesky": lambda x, b: [torch.linalg.cholesky(_positive(x)), torch.linalg.cholesky(_positive(x), upper=True)],
    "cholesky_solve": lambda x, b: torch.cholesky_solve(b, torch.linalg.cholesky(_positive(x))),
    "cholesky_inverse": lambda x, b: torch.cholesky_inverse(torch.linalg.cholesky(_positive(x))),
    "eigenvalues": lambda x, b: [torch.linalg.eigvalsh(_hermitian(x)), torch.linalg.eigvalsh(_hermitian(x), UPLO="U")],
    "eigenvectors": lambda x, b: _by_eigenvectors(x),
    "upper": lambda x, b: torch.linalg.solve_triangular(x.triu(), b, upper=True),
    "lower": lambda x, b: torch.linalg.solve_triangular(x.tril(), b, upper=False),
    "unit": lambda x, b: torch.linalg.solve_triangular(x.triu() / 4, b, upper=True, unitriangular=True),
    "right": lambda x, b: torch.linalg.solve_triangular(x.triu(), b.mT, upper=True, left=False),
    "adjoint": lambda x, b: [torch.linalg.solve(x.mH, b), torch.linalg.inv(x.mT), torch.linalg.det(x.conj())],
    "condition": lambda x, b: [torch.linalg.cond(x), torch.linalg.cond(x, "fro")],
    "written": lambda x, b: [
        torch.linalg.inv(x, out=torch.empty_like(x)),
        torch.linalg.solve(x, b, out=torch.empty_like(b)),
        torch.linalg.cholesky(_positive(x), out=torch.empty_like(x)),
        torch.linalg.solve_triangular(x.triu(), b, upper=True, out=torch.empty_like(b)),
        torch.linalg.matrix_power(x, 2, out=torch.empty_like(x)),
    ],
    "diagonal": lambda x, b: [torch.linalg.diagonal(x) * 2, x.tril(-1), x.triu(1)],
}
# x is (6, 4) or (4, 6), b has as many rows and two columns.
_OBLONG: dict[str, Callable[..., Any]] = {
    "least_squares": lambda x, b: torch.linalg.lstsq(x, b)[0],
    "least_squares_adjoint": lambda x, b: torch.linalg.lstsq(x.mH, x.mH @ b)[0],
    "pinv": lambda x, b: [torch.linalg.pinv(x), x.pinverse()],
    "qr": lambda x, b: [torch.matmul(*torch.linalg.qr(x)), torch.matmul(*torch.linalg.qr(x, mode="complete"))],
    "written": lambda x, b: [
        torch.matmul(*torch.linalg.qr(x, out=(x.new_empty(0), x.new_empty(0)))),
        torch.linalg.svdvals(x, out=x.real.new_empty(0)),
        torch.linalg.pinv(x.real, out=x.real.new_empty(0)),
    ],
    "triangle": lambda x, b: torch.linalg.qr(x, mode="r")[1].abs(),
    "lu": lambda x, b: torch.linalg.lu(x),
    "singular_values": lambda x, b: [torch.linalg.svdvals(x), torch.linalg.svd(x)[1]],
    "singular_vectors": lambda x, b: [_by_singular_vectors(x), _by_singular_vectors(x, whole=True)],
    "rank": lambda x, b: torch.linalg.matrix_rank(x),
    "norms": lambda x, b: [torch.linalg.matrix_norm(x, kind) for kind in ("fro", "nuc", 1, -1, 2, -2)],
    "vector_norms": lambda x, b: [torch.linalg.vector_norm(x, kind, dim=-1) for kind in (1, 2, 3.5, float("inf"))],
    "products": lambda x, b: [x.mH @ b, x @ x.mH, x.mT.conj() @ x],
    "inner": lambda x, b: [torch.linalg.vecdot(x, x * 2), torch.linalg.vecdot(x, x.flip(-1), dim=-2)],
    "crossed": lambda x, b: torch.linalg.cross(x[..., :3, :], x[..., 1:4, :], dim=-2),
}
_TALL = {"reflections": lambda x, b: _by_reflections(x)}
_DERIVED_SQUARE: dict[str, Callable[..., Any]] = {
    "determinant": lambda x, b: [derived(torch.linalg.det, x), derived(lambda x: torch.linalg.slogdet(x)[1], x)],
    "inverse": lambda x, b: derived(torch.linalg.inv, x),
    "solve": lambda x, b: derived(torch.linalg.solve, x, b),
    "lu": lambda x, b: [derived(lambda x, part=part: torch.linalg.lu(x)[part], x) for part in (1, 2)],
    "lu_solve": lambda x, b: derived(_solved_by_lu, x, b),
    "power": lambda x, b: derived(lambda x: torch.linalg.matrix_power(x, 3), x),
    "exponential": lambda x, b: derived(lambda x: torch.linalg.matrix_exp(x / 8), x),
    "cholesky": lambda x, b: derived(lambda x: torch.linalg.cholesky(_positive(x)), x),
    "cholesky_solve": lambda x, b: derived(lambda x, b: torch.cholesky_solve(b, x.tril()), x, b),
    "eigenvalues": lambda x, b: derived(lambda x: torch.linalg.eigvalsh(_hermitian(x)), x),
    "eigenvectors": lambda x, b: derived(_by_eigenvectors, x),
    "triangular": lambda x, b: derived(lambda x, b: torch.linalg.solve_triangular(x.triu(), b, upper=True), x, b),
    "condition": lambda x, b: derived(torch.linalg.cond, x),
}
_DERIVED_OBLONG: dict[str, Callable[..., Any]] = {
    "least_squares": lambda x, b: derived(lambda x, b: torch.linalg.lstsq(x, b)[0], x, b),
    "pinv": lambda x, b: derived(torch.linalg.pinv, x),
    "singular_values": lambda x, b: derived(torch.linalg.svdvals, x),
    "singular_vectors": lambda x, b: derived(_by_singular_vectors, x),
    "norms": lambda x, b: [derived(lambda x, kind=kind: torch.linalg.matrix_norm(x, kind), x) for kind in ("nuc", 2)],
    "inner": lambda x, b: derived(lambda x: torch.linalg.vecdot(x, x.flip(-1)), x),
}


def _draw(dtype: torch.dtype, batch: tuple[int, ...], rows: int, columns: int) -> Callable[[Any], Any]:
    """Return a maker of x and b; the diagonal keeps a matrix, and what is made of it, far from singular."""

    def make(d: Any) -> Any:
        x = d.of(dtype, *batch, rows, columns) / 2
        distinct = torch.arange(3.0, 3 + min(rows, columns)).diag_embed()
        x[..., : distinct.shape[0], : distinct.shape[0]] += distinct.to(dtype)
        return x, d.of(dtype, *batch, rows, 2)

    return make


_TABLES: dict[str, tuple[tuple[int, int], dict[str, Callable[..., Any]]]] = {
    "square": ((4, 4), _SQUARE),
    "tall": ((6, 4), {**_OBLONG, **_TALL}),
    "wide": ((4, 6), _OBLONG),
    "square-derived": ((4, 4), _DERIVED_SQUARE),
    "tall-derived": ((6, 4), _DERIVED_OBLONG),
    "wide-derived": ((4, 6), _DERIVED_OBLONG),
}
# Under a dispatch mode, and so under a plant, torch's own pinv of complex numbers loses a conjugation (seen in 2.13).
_REAL = ("pinv", "tall-derived least_squares", "wide-derived least_squares")
for _name, (_sides, _every) in _TABLES.items():
    for _dtype in (torch.complex64, torch.float32):
        _left_out = _REAL if _dtype.is_complex else ()
        _forms = {key: _every[key] for key in _every if key not in _left_out and f"{_name} {key}" not in _left_out}
        for _batch in ((), (3,), (2, 2)):
            cases.add(
                f"complex-matrices-{_name}-{str(_dtype)[6:]}-{'x'.join(map(str, _batch)) or 'one'}",
                lambda x, b, forms=_forms: each(forms, x, b),
                make=_draw(_dtype, _batch, *_sides),
                terms=64,
                factor=64.0,
                states=ONCE,
                may_be_missing=True,
            )
