"""Rules 1 and 3: what linear algebra says of matrices at a limit: vast, tiny, zero, of NaN, without rows, in no batch.

The sign of a determinant too small for its dtype, https://github.com/pytorch/pytorch/issues/154312; a NaN that
slogdet took for 0, https://github.com/pytorch/pytorch/issues/173638; a right side for many matrices,
https://github.com/pytorch/pytorch/issues/189134
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table
from device_suite.near import add_beside
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]
L = torch.linalg


def _definite(a: torch.Tensor) -> torch.Tensor:
    return a + a.mH


# a: square, with a large diagonal; b: what stands on the right, of two columns. Nothing is squared.
_SOLVED: dict[str, Form] = {
    "det": lambda a, b: [L.det(a), torch.det(a), a.det()],
    "slogdet": lambda a, b: [*L.slogdet(a), *torch.slogdet(a), *a.mT.slogdet()],
    "slogdet-negative": lambda a, b: [*L.slogdet(-a), *L.slogdet(a.flip(-1)), *L.slogdet(a.roll(1, -2))],
    "logdet": lambda a, b: [torch.logdet(a), a.logdet(), torch.logdet(a.mT.contiguous())],
    "inv": lambda a, b: [L.inv(a), torch.inverse(a), *L.inv_ex(a), a.mT.inverse()],
    "solve": lambda a, b: [L.solve(a, b), L.solve(a, b[..., 0]), L.solve(a, b.mT, left=False), *L.solve_ex(a, b)],
    "lu_factor": lambda a, b: [*L.lu_factor(a), *L.lu_factor_ex(a)],
    "lu": lambda a, b: [*L.lu(a), *torch.lu_unpack(*L.lu_factor(a))],
    "lu_solve": lambda a, b: [
        L.lu_solve(*L.lu_factor(a), b),
        L.lu_solve(*L.lu_factor(a), b, adjoint=True),
        L.lu_solve(*L.lu_factor(a), b.mT, left=False),
    ],
    "triangular": lambda a, b: [
        L.solve_triangular(a.triu(), b, upper=True),
        L.solve_triangular(a.tril(), b, upper=False),
        L.solve_triangular(a.tril(), b.mT, upper=False, left=False),
    ],
    "cholesky": lambda a, b: [L.cholesky(_definite(a)), L.cholesky(_definite(a), upper=True)],
    "cholesky_ex": lambda a, b: [*L.cholesky_ex(_definite(a)), L.cholesky_ex(-_definite(a))[1]],
    "cholesky_solve": lambda a, b: torch.cholesky_solve(b, L.cholesky(_definite(a))),
    "norms": lambda a, b: [L.matrix_norm(a, p) for p in (1, -1, float("inf"), -float("inf"))],
    "cond": lambda a, b: [L.cond(a, 1), L.cond(a, float("inf")), L.cond(a, -1)],
    "power": lambda a, b: [L.matrix_power(a, 0), L.matrix_power(a, 1), L.matrix_power(a, -1)],
    "traces": lambda a, b: [a.diagonal(0, -2, -1).sum(-1), a.tril().sum(-1), a.mH.triu().sum(-2)],
    "derived": lambda a, b: [
        derived(lambda x: L.slogdet(x)[1], a),
        derived(lambda x: x.logdet(), a),
        derived(lambda x, y: L.solve(x, y), a, b),
    ],
}
# Of these the squares are in range too.
_SQUARED: dict[str, Form] = {
    "qr": lambda a, b: [L.qr(a)[1].abs(), L.qr(a, mode="r")[1].abs(), L.qr(a, mode="complete")[1].abs()],
    "svdvals": lambda a, b: [L.svdvals(a), L.svd(a)[1], torch.svd(a)[1]],
    "rebuilt": lambda a, b: [(s := L.svd(a))[0] @ (s[1][..., None] * s[2]), L.matmul(*L.qr(a))],
    "eigvalsh": lambda a, b: [L.eigvalsh(_definite(a)), L.eigh(_definite(a))[0], L.eigvalsh(_definite(a), "U")],
    "rank": lambda a, b: [L.matrix_rank(a), L.matrix_rank(_definite(a), hermitian=True), L.matrix_rank(a, rtol=1e-3)],
    "pinv": lambda a, b: [L.pinv(a), L.pinv(_definite(a), hermitian=True), torch.pinverse(a)],
    "norms": lambda a, b: [L.matrix_norm(a, p) for p in ("fro", "nuc", 2, -2)],
    "cond": lambda a, b: [L.cond(a), L.cond(a, "fro"), L.cond(a, "nuc"), L.cond(a, -2)],
    "lstsq": lambda a, b: L.lstsq(a, b)[0],
    "ldl": lambda a, b: L.ldl_solve(*L.ldl_factor(_definite(a)), b),
    "power": lambda a, b: [L.matrix_power(a, 2), L.matrix_power(a, 3), L.multi_dot([a, a, b]) if a.dim() == 2 else a],
}


def _scaled(form: Form, scale: float, kind: str, a: torch.Tensor, b: torch.Tensor) -> Any:
    a, b = a * scale, b * (scale if scale < 1 else 1.0)
    if kind == "batch":
        a, b = torch.stack([a, a.mT, 2 * a]), torch.stack([b, b, -b])
    elif kind == "one":
        a, b = a[:1, :1], b[:1]
    elif kind == "unit":
        a = torch.eye(4, dtype=a.dtype, device=a.device) * scale
    return form(a, b)


for _dtype in (torch.float32, torch.complex64):
    for _kind, _forms, _scales in (
        ("solved", _SOLVED, (2.0**-66, 2.0**66)),
        ("squared", _SQUARED, (2.0**-40, 2.0**30)),
    ):
        add_beside(
            cases,
            f"matrix-limits-{_kind}-{str(_dtype)[6:]}",
            {
                f"{name}-{kind}-{scale:.0e}": lambda a, b, form=form, scale=scale, kind=kind: _scaled(
                    form, scale, kind, a, b
                )
                for name, form in _forms.items()
                for kind, scale in itertools.product(("whole", "batch", "one", "unit"), _scales)
                if _dtype == torch.float32 or kind in ("whole", "batch")
            },
            lambda d, dtype=_dtype: (
                (d.normal(4, 4) / 4 + torch.eye(4) * 2).to(dtype),
                d.normal(4, 2).to(dtype),
            ),
            share=2.0**-10,
            since="2.1",
        )

# A batch whose matrices are of very unlike size: each is judged by itself.
add_beside(
    cases,
    "matrix-limits-apart",
    {
        name: lambda a, b, form=form: [list(one.unbind(0)) for one in form(a, b)]
        for name, form in {
            "det": lambda a, b: [L.det(a), *L.slogdet(a)],
            "inv": lambda a, b: [L.inv(a), L.inv_ex(a)[0]],
            "solve": lambda a, b: [L.solve(a, b), L.solve(a, b.mT, left=False)],
            "lu": lambda a, b: [L.lu_factor(a)[0], L.lu_solve(*L.lu_factor(a), b)],
            "cholesky": lambda a, b: [L.cholesky(_definite(a)), torch.cholesky_solve(b, L.cholesky(_definite(a)))],
            "triangular": lambda a, b: [L.solve_triangular(a.triu(), b, upper=True)],
            "values": lambda a, b: [L.svdvals(a), L.eigvalsh(_definite(a)), L.matrix_norm(a), L.matrix_norm(a, 1)],
            "rank": lambda a, b: [L.matrix_rank(a), L.cond(a), L.cond(a, 1)],
            "qr": lambda a, b: [L.qr(a)[1].abs(), L.pinv(a)],
            "products": lambda a, b: [a @ b, torch.bmm(a, b), torch.baddbmm(b, a, b), L.matrix_power(a, 2)],
        }.items()
    },
    lambda d: (
        (d.normal(6, 4, 4) / 4 + torch.eye(4) * 2)
        * torch.tensor([1.0, 2**-20, 2**20, 2**-30, 8, 2**30])[:, None, None],
        d.normal(6, 4, 2),
    ),
    share=2.0**-10,
    since="2.1",
)


def _tells(form: Form, a: torch.Tensor) -> bool:
    """Say whether a NaN is seen: in the answer, or as a refusal."""
    try:
        found = form(a)
    except L.LinAlgError:
        return True
    return any(bool(one.isnan().any()) for one in (found if isinstance(found, (list, tuple)) else [found]))


# Of each place of a matrix: where the CPU sees it there.
_SEEN: dict[str, Form] = {
    "det": lambda a: L.det(a),
    "slogdet": lambda a: L.slogdet(a)[1],
    "logdet": lambda a: a.logdet(),
    "inv": lambda a: L.inv(a),
    "inv_ex": lambda a: L.inv_ex(a)[0],
    "solve": lambda a: L.solve(a, torch.ones_like(a[..., :1])),
    "lu": lambda a: L.lu(a)[2],
    "lu_factor": lambda a: L.lu_factor(a)[0],
    "fro": lambda a: L.matrix_norm(a),
    "one": lambda a: L.matrix_norm(a, 1),
    "inf": lambda a: L.matrix_norm(a, float("inf")),
    "power": lambda a: L.matrix_power(a, 2),
    "exp": lambda a: L.matrix_exp(a),
    "product": lambda a: a @ torch.ones_like(a),
    "zero-product": lambda a: a @ torch.zeros_like(a),
    "vector": lambda a: a @ torch.zeros_like(a[..., 0, :, None]),
    "added": lambda a: torch.addmm(a, torch.ones_like(a), torch.ones_like(a)),
    "trace": lambda a: a.sum((-2, -1)),
    "kron": lambda a: torch.kron(a, torch.zeros_like(a)),
}
_PLACES = list(itertools.product(range(3), repeat=2))


def _seen(form: Form, place: tuple[int, int], batch: bool, a: torch.Tensor) -> bool:
    a = a.clone()
    a[place] = float("nan")
    return _tells(form, torch.stack([a, a]) if batch else a)


add_beside(
    cases,
    "matrix-limits-nan",
    {
        f"{name}-{place}-{batch}": lambda a, form=form, place=place, batch=batch: _seen(form, place, batch, a)
        for name, form in _SEEN.items()
        for place in _PLACES
        for batch in (False, True)
        if not (batch and name == "added")
    },
    lambda d: (torch.tensor([[-1.0, 2, 3], [4, 5, 6], [7, 8, 10]]),),
    since="2.1",
)

# Matrices of zeros, and others whose rank and determinant are known to the last digit.
_KNOWN: dict[str, Form] = {
    "zeros": lambda n, at: torch.zeros(n, n, **at),
    "strict": lambda n, at: torch.ones(n, n, **at).triu(1),
    "row": lambda n, at: torch.eye(n, **at) * (torch.arange(n, **at) != n // 2),
    "unit": lambda n, at: torch.eye(n, **at),
    "vast": lambda n, at: torch.eye(n, **at) * 2.0**60,
    "tiny": lambda n, at: torch.eye(n, **at) * 2.0**-60,
    "signs": lambda n, at: torch.diag(1 - 2 * (torch.arange(n, **at) % 2)),
    "turned": lambda n, at: torch.eye(n, **at).flip(0),
    "twos": lambda n, at: torch.diag(2.0 ** (torch.arange(n, **at) % 3)),
}
_SAID: dict[str, Form] = {
    "det": lambda x: [L.det(x), torch.det(x)],
    "slogdet": lambda x: [*L.slogdet(x)],
    "logdet": lambda x: torch.logdet(x),
    "rank": lambda x: [L.matrix_rank(x), L.matrix_rank(x, hermitian=True), L.matrix_rank(x, atol=0.5, rtol=0.0)],
    "svdvals": lambda x: L.svdvals(x),
    "eigvalsh": lambda x: L.eigvalsh(x + x.mT),
    "norms": lambda x: [L.matrix_norm(x, p) for p in (1, -1, float("inf"), 2, -2, "nuc")],
    "infos": lambda x: [L.inv_ex(x)[1] != 0, L.lu_factor_ex(x)[2] != 0, L.cholesky_ex(x)[1] != 0],
    "lu": lambda x: [*L.lu_factor_ex(x)[:2]],
    "triangles": lambda x: [x.tril(), x.triu(), x.tril(-1), x.triu(1), x.diagonal(0, -2, -1)],
    "exp": lambda x: L.matrix_exp(x / x.abs().amax().clamp(min=1)),
    "power": lambda x: [L.matrix_power(x, n) for n in (0, 1, 2)],
}
_SINGULAR = ("zeros", "strict", "row")  # which rows are exchanged there is open
add_beside(
    cases,
    "matrix-limits-known",
    {
        f"{said}-{known}-{n}-{batch}": lambda x, act=_SAID[said], make=make, n=n, batch=batch: act(
            make(n, {"device": x.device, "dtype": x.dtype}).expand(*(batch,) * bool(batch), n, n)
        )
        for said in _SAID
        for known, make in _KNOWN.items()
        for n in (1, 3, 9)
        for batch in (0, 3)
        if not (n != 3 and (batch or said in ("exp", "power", "triangles", "norms")))
        and not (said == "lu" and known in _SINGULAR)
    },
    lambda d: (d.normal(1),),
    share=2.0**-16,
    since="2.1",
)

# No rows, no columns, no matrices: every function with every option that still has an answer.
_NOTHING: dict[str, Form] = {
    "det": lambda a: [L.det(a), *L.slogdet(a), torch.logdet(a)],
    "inv": lambda a: [L.inv(a), *L.inv_ex(a), torch.inverse(a)],
    "solve": lambda a: [L.solve(a, a), L.solve(a, a[..., :1]), L.solve(a, a, left=False), *L.solve_ex(a, a)],
    "cholesky": lambda a: [L.cholesky(a), L.cholesky(a, upper=True), *L.cholesky_ex(a), torch.cholesky_inverse(a)],
    "cholesky_solve": lambda a: [torch.cholesky_solve(a, a), torch.cholesky_solve(a[..., :1], a, upper=True)],
    "eigh": lambda a: [*L.eigh(a), L.eigvalsh(a), *L.eigh(a, "U")],
    "eig": lambda a: [*L.eig(a), L.eigvals(a)],
    "power": lambda a: [L.matrix_power(a, n) for n in (0, 1, 2, -1)],
    "exp": lambda a: L.matrix_exp(a),
    "lu_solve": lambda a: [L.lu_solve(*L.lu_factor(a), a), L.lu_solve(*L.lu_factor(a), a, left=False)],
    "ldl": lambda a: [*L.ldl_factor(a), L.ldl_solve(*L.ldl_factor(a), a)],
    "triangular": lambda a: [L.solve_triangular(a, a, upper=True), L.solve_triangular(a, a, upper=False, left=False)],
    "old-triangular": lambda a: [*torch.triangular_solve(a, a), *torch.triangular_solve(a, a, False, True, True)],
    "derived": lambda a: [derived(f, a) for f in (L.det, L.inv, torch.logdet, L.matrix_exp, L.cholesky, L.eigvalsh)],
    "derived-solve": lambda a: derived(L.solve, a, a),
}
_RECTANGLES: dict[str, Form] = {
    "qr": lambda a: [*L.qr(a), L.qr(a, mode="r")[1], *L.qr(a, mode="complete"), *torch.qr(a)],
    "svd": lambda a: [*L.svd(a), *L.svd(a, full_matrices=False), L.svdvals(a), torch.svd(a, compute_uv=False)[1]],
    "lu": lambda a: [*L.lu(a), *L.lu_factor(a), *L.lu_factor_ex(a), *torch.lu_unpack(*L.lu_factor(a))],
    "lu-unpivoted": lambda a: [*torch.lu_unpack(*L.lu_factor(a), unpack_data=False)],
    "pinv": lambda a: [L.pinv(a), torch.pinverse(a), L.pinv(a, rtol=1e-3)],
    "rank": lambda a: [L.matrix_rank(a), L.matrix_rank(a, atol=0.1)],
    "norms": lambda a: [L.matrix_norm(a, p) for p in ("fro", "nuc")] + [L.norm(a), torch.norm(a), L.vector_norm(a, 1)],
    "dims": lambda a: [L.vector_norm(a, p, d) for p in (0, 1, 2, 3) for d in (-1, -2, (-2, -1))],
    "keeps": lambda a: [L.matrix_norm(a, keepdim=True), L.vector_norm(a, dim=-1, keepdim=True)],
    "householder": lambda a: L.householder_product(a, a.sum(-2)) if a.shape[-2] >= a.shape[-1] else a,
    "products": lambda a: [a @ a.mT, a.mT @ a, a @ a.sum(-2)[..., None], torch.einsum("...ij,...kj->...ik", a, a)],
    "gram": lambda a: [torch.cdist(a, a), torch.cdist(a, a, 1), torch.cdist(a.mT, a.mT, float("inf"))],
    "crossed": lambda a: [L.vecdot(a, a), torch.kron(a, a), torch.inner(a, a)],
    "moved": lambda a: [a.tril(), a.triu(), a.diagonal(0, -2, -1), a.mT.contiguous(), a.adjoint() * 2, a.rot90()],
    "derived": lambda a: [derived(f, a) for f in (L.svdvals, L.pinv, L.matrix_norm, lambda x: x @ x.mT)],
    "derived-qr": lambda a: derived(lambda x: L.qr(x)[1], a),
    "chained": lambda a: L.multi_dot([a, a.mT, a]) if a.dim() == 2 else a,
    "lstsq": lambda a: L.lstsq(a, a)[0],
}
_SHAPES = ((0, 0), (0, 3, 3), (2, 0, 0), (2, 0, 3, 3))
_SIDES = ((0, 3), (3, 0), (2, 0, 3), (2, 3, 0), (0, 3, 2))
add_table(
    cases,
    "matrix-limits-nothing",
    {
        **{
            f"{name}-{shape}": lambda x, form=form, shape=shape: form(x[:0].reshape(shape))
            for name, form in (_NOTHING | _RECTANGLES).items()
            for shape in _SHAPES
        },
        **{
            f"{name}-{shape}": lambda x, form=form, shape=shape: form(x[:0].reshape(shape))
            for name, form in _RECTANGLES.items()
            for shape in _SIDES
        },
    },
    lambda d: (d.normal(1),),
    since="2.1",
)
add_refused(
    cases,
    "matrix-limits",
    lambda d: (torch.tensor([[1.0, 2.0], [2.0, 4.0]]), d.normal(2, 2)),
    {
        f"{name}-{kind}": lambda a, b, act=act, cut=cut: act(cut(a), cut(b) * 0 + 1)
        for name, act in {
            "inv": lambda a, b: L.inv(a),
            "inverse": lambda a, b: torch.inverse(a),
            "inv_ex": lambda a, b: L.inv_ex(a, check_errors=True),
            "solve": lambda a, b: L.solve(a, b),
            "solve-left": lambda a, b: L.solve(a, b, left=False),
            "solve_ex": lambda a, b: L.solve_ex(a, b, check_errors=True),
            "lu_factor": lambda a, b: L.lu_factor(a),
            "lu_factor_ex": lambda a, b: L.lu_factor_ex(a, check_errors=True),
            "cholesky": lambda a, b: L.cholesky(-a),
            "cholesky-old": lambda a, b: torch.cholesky(-a),
            "cholesky_ex": lambda a, b: L.cholesky_ex(-a, check_errors=True),
            "power": lambda a, b: L.matrix_power(a, -1),
        }.items()
        for kind, cut in {
            "one": lambda x: x,
            "zero": lambda x: x * 0,
            "batch": lambda x: torch.stack([torch.eye(2, device=x.device), x]),
            "first": lambda x: torch.stack([x, torch.eye(2, device=x.device)]),
        }.items()
    },
    since="2.1",
)
