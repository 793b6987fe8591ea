"""Linear algebra without one answer: what is unique of singular and own values, of orthogonal factors, least squares."""

from __future__ import annotations

import torch

from engine.description import ABSENT, Table

from .linear_algebra import CALL, FILLED, REAL, _definite, _one_triangle, _tall

t = Table()
COLUMNS = {"_columns": (3, 1, 8, 33)}
WIDER = {key: size for key, size in FILLED.items() if key not in ("bigger", "many")}
ANY = lambda c: c.draw("any", (*c.shape, c.args["_columns"]))
t.add(
    "qr",
    _tall,
    act=lambda a, columns, mode: torch.linalg.qr(a, mode)[1].abs(),
    **COLUMNS,
    _mode=("reduced", "complete", "r"),
    **{**CALL, "sizes": FILLED},
)
t.add(
    "qr_product",
    ANY,
    act=lambda a, columns, mode: (lambda q, r: q @ r)(*torch.linalg.qr(a, mode)),
    **COLUMNS,
    _mode=("reduced", "complete"),
    **{**CALL, "sizes": FILLED},
)
t.add(
    "qr_orthogonal",
    ANY,
    act=lambda a, columns, mode: (lambda q: q.mH @ q)(torch.linalg.qr(a, mode)[0]),
    **COLUMNS,
    _mode=("reduced", "complete"),
    **{**CALL, "sizes": FILLED},
)
t.add("svdvals", ANY, act=lambda a, columns: torch.linalg.svdvals(a), **COLUMNS, **{**CALL, "sizes": FILLED})
t.add(
    "svd_product",
    ANY,
    act=lambda a, columns, full: _product(a, full),
    **COLUMNS,
    _full=(False, True),
    **{**CALL, "sizes": FILLED},
)


def _product(a, full):
    u, s, v = torch.linalg.svd(a, full_matrices=full)
    count = s.shape[-1]
    return (u[..., :count] * s.unsqueeze(-2)) @ v[..., :count, :]


t.add("eigvalsh", _one_triangle, act=lambda a, u: torch.linalg.eigvalsh(a, u), _u=("L", "U"), **CALL)
t.add(
    "eigh_product",
    _one_triangle,
    act=lambda a, u: (lambda w, v: (v * w.unsqueeze(-2)) @ v.mH)(*torch.linalg.eigh(a, u)),
    _u=("L", "U"),
    **CALL,
)
t.add(
    "eigvals_of_definite",
    _definite,
    act=lambda a: torch.linalg.eigvals(a).abs().sort()[0],
    **{**REAL, "sizes": WIDER},
)
t.add(
    "pinv",
    _tall,
    act=lambda a, columns, **k: torch.linalg.pinv(a, **k),
    **COLUMNS,
    rtol=(ABSENT, None, 1e-3),
    **{**CALL, "sizes": FILLED, "factor": 1024.0},
)
t.add(
    "pinv_hermitian",
    _definite,
    act=lambda a: torch.linalg.pinv(a, hermitian=True),
    **{**CALL, "sizes": FILLED, "factor": 1024.0},
)
t.add(
    "matrix_rank",
    lambda c: torch.cat([_tall(c), _tall(c)], -1) if c.args["_twice"] else _tall(c),
    act=lambda a, columns, twice, **k: torch.linalg.matrix_rank(a, **k),
    **COLUMNS,
    _twice=(False, True),
    rtol=(ABSENT, 1e-3),
    **{**CALL, "sizes": WIDER},
)
t.add(
    "cond",
    _definite,
    act=lambda a, p: torch.linalg.cond(a, p),
    _p=(None, 2, -2, "fro", "nuc", 1, -1, float("inf"), float("-inf")),
    **{**CALL, "sizes": FILLED, "factor": 1024.0},
)
t.add(
    "lstsq",
    _tall,
    lambda c: c.draw("any", (*c.shape, c.args["_sides"])),
    act=lambda a, b, columns, sides: torch.linalg.lstsq(a, b)[0],
    _columns=(3, 1),
    _sides=(2, 1, 33),
    **{
        **CALL,
        "factor": 1024.0,
        "sizes": {key: FILLED[key] for key in ("main", "batch", "big", "deep", "tile", "single")},
    },
)
t.add(
    "ldl_solve",
    _definite,
    lambda c: c.draw("any", (*c.shape, 2)),
    act=lambda a, b: torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a), b),
    **{**REAL, "sizes": WIDER},
)
