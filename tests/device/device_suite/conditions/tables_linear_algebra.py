"""Linear algebra: solvers, factorisations, determinants, powers of a matrix."""

from __future__ import annotations

import torch

from .spec import ABSENT, LAID, Table

t = Table()

# A matrix of equal rows is singular.
UNSPREAD = tuple(layout for layout in LAID if layout != "expanded")


def _steady(c):
    """A well-conditioned square matrix, or a batch of them."""
    shape = (*c.shape, c.shape[-1])
    return c.draw("unit", shape) / max(c.shape[-1], 1) + torch.eye(c.shape[-1]).to(c.draw("any", (1,)).dtype) * 1.5


def _tall(c):
    """A well-conditioned matrix of full rank with three columns, or a batch of them."""
    unit = torch.eye(c.shape[-1], 3).to(c.draw("any", (1,)).dtype)
    return c.draw("unit", (*c.shape, 3)) / c.shape[-1] + unit * 1.5


def _definite(c):
    x = _steady(c)
    return x @ x.mT.conj() + torch.eye(c.shape[-1]).to(x.dtype)


SQUARE = {"main": (5,), "batch": (3, 4), "one": (1,), "big": (33,), "deep": (2, 2, 3), "empty": (0, 3)}
L = {
    "dtypes": "s",
    "values": ("plain",),
    "forms": ("call", "out", "grad"),
    "sizes": SQUARE,
    "terms": 64,
    "factor": 128.0,
    "floor": 1.0,
    "laid": (0, 1),
    "layouts": UNSPREAD,
}
RIGHT = lambda c: c.draw("any", (*c.shape, 2))
t.each("linalg_inv linalg_det", _steady, **L)
t.each("inverse det logdet", _steady, **{**L, "forms": ("call", "grad")})
t.each("linalg_slogdet slogdet", _steady, **L)
t.add("linalg_inv_ex", _steady, check_errors=(ABSENT, True), **{**L, "forms": ("call",)})
t.add("linalg_cholesky", _definite, upper=(ABSENT, True), **L)
t.add("linalg_cholesky_ex", _definite, upper=(ABSENT, True), **{**L, "forms": ("call",)})
t.add("cholesky", _definite, upper=(ABSENT, True), **L)
t.add("cholesky_inverse", lambda c: torch.linalg.cholesky(_definite(c)), upper=(ABSENT,), **L)
t.add("cholesky_solve", RIGHT, lambda c: torch.linalg.cholesky(_definite(c)), upper=(ABSENT,), **L)
t.add("linalg_solve", _steady, RIGHT, **L)
t.add(
    "solve_left",
    _steady,
    lambda c: c.draw("any", (*c.shape[:-1], 2, c.shape[-1])),
    left=(False,),
    paths=("linalg.solve",),
    **{**L, "forms": ("call", "grad")},
)
t.add(
    "linalg_solve_triangular",
    lambda c: _steady(c).triu() if c.args["upper"] else _steady(c).tril(),
    lambda c: (
        c.draw("any", (*c.shape, 2))
        if c.args.get("left", True) is not False
        else c.draw("any", (*c.shape[:-1], 2, c.shape[-1]))
    ),
    upper=(True, False),
    left=(ABSENT, False),
    unitriangular=(ABSENT, True),
    **L,
)
t.add(
    "triangular_solve",
    RIGHT,
    lambda c: _steady(c).triu() if c.args.get("upper", True) is True else _steady(c).tril(),
    upper=(ABSENT, False),
    transpose=(ABSENT, True),
    unitriangular=(ABSENT, True),
    **{**L, "forms": ("call",)},
)
t.each("linalg_lu_factor linalg_lu", _steady, **{**L, "forms": ("call", "out")})
t.add(
    "lu_solve",
    RIGHT,
    _steady,
    act=lambda b, a: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b),
    **{**L, "forms": ("call",)},
)
t.add("lu_unpack", _steady, act=lambda a: torch.lu_unpack(*torch.linalg.lu_factor(a)), **{**L, "forms": ("call",)})
t.add(
    "qr",
    _steady,
    act=lambda a, mode: torch.linalg.qr(a, mode)[1].abs(),
    _mode=("reduced", "complete", "r"),
    **{**L, "forms": ("call",)},
)
t.add(
    "qr_product",
    lambda c: c.draw("any", (*c.shape, 3)),
    act=lambda a: (lambda q, r: q @ r)(*torch.linalg.qr(a)),
    **{**L, "forms": ("call",)},
)
t.add(
    "svdvals",
    lambda c: c.draw("any", (*c.shape, 3)),
    act=lambda a: torch.linalg.svdvals(a),
    **{**L, "forms": ("call",)},
)
t.add(
    "svd_product",
    lambda c: c.draw("any", (*c.shape, 3)),
    act=lambda a: (lambda u, s, v: u @ torch.diag_embed(s) @ v)(*torch.linalg.svd(a, full_matrices=False)),
    **{**L, "forms": ("call",)},
)
t.add("eigvalsh", _definite, act=lambda a, u: torch.linalg.eigvalsh(a, u), _u=("L", "U"), **{**L, "forms": ("call",)})
t.add(
    "eigh_product",
    _definite,
    act=lambda a: (lambda w, v: v @ torch.diag_embed(w) @ v.mT)(*torch.linalg.eigh(a)),
    **{**L, "forms": ("call",)},
)
t.add(
    "pinv",
    lambda c: c.draw("any", (*c.shape, 3)),
    act=lambda a: torch.linalg.pinv(a),
    **{**L, "forms": ("call",), "factor": 1024.0},
)
t.add(
    "lstsq",
    _tall,
    RIGHT,
    act=lambda a, b: torch.linalg.lstsq(a, b)[0],
    **{**L, "forms": ("call",), "factor": 1024.0, "sizes": {"main": (5,), "batch": (3, 4)}},
)
t.add("matrix_power", _steady, _n=(0, 1, 2, 3, -1), paths=("linalg.matrix_power",), **{**L, "forms": ("call", "grad")})
t.add("matrix_exp", _steady, **{**L, "forms": ("call", "grad"), "dtypes": "f"})
t.add(
    "linalg_householder_product",
    lambda c: c.draw("unit", (5, 3)),
    lambda c: c.draw("unit", (3,)),
    **{**L, "forms": ("call", "out"), "sizes": {"main": (5,)}},
)
