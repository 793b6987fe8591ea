"""Linear algebra: solvers, factorisations, powers; what is unique of answers that are not."""

from __future__ import annotations

import torch

from engine.description import ABSENT, ANY_LAYOUT, Table

t = Table()

# A matrix of equal rows is singular.
UNSPREAD = tuple(layout for layout in ANY_LAYOUT if layout != "expanded")


def _unit(c, *sides):
    return torch.eye(*sides).to(c.draw("any", (1,)).dtype)


def _steady(c):
    """A well-conditioned square matrix, or a batch of them."""
    shape = (*c.shape, c.shape[-1])
    return c.draw("unit", shape) / max(c.shape[-1], 1) + _unit(c, c.shape[-1]) * 1.5


def _mirrored(c):
    """The same with its rows in the opposite order: each step of elimination exchanges two."""
    return _steady(c).flip(-2) if c.args["_pivots"] else _steady(c)


def _tall(c):
    """A well-conditioned matrix of full rank with as many columns as the row says, or a batch of them."""
    count = c.args["_columns"]
    return c.draw("unit", (*c.shape, count)) / max(c.shape[-1], count) + _unit(c, c.shape[-1], count) * 1.5


def _definite(c):
    x = _steady(c)
    return x @ x.mT.conj() + _unit(c, c.shape[-1])


def _one_triangle(c):
    """A definite matrix whose other triangle holds what must not be read."""
    x, upper = _definite(c), c.args.get("upper", c.args.get("_u", "L") == "U")
    other = torch.ones(c.shape[-1], c.shape[-1]).tril(-1).bool()
    return x.masked_fill(other if upper else other.mT, 7.0)


SQUARE = {
    "main": (5,),
    "batch": (3, 4),
    "one": (1,),
    "big": (33,),
    "deep": (2, 2, 3),
    "empty": (0, 3),
    "two": (2,),
    "tile": (32,),
    "odd": (31,),
    "bigger": (65,),
    "single": (1, 5),
    "points": (7, 1),
    "many": (130, 3),
    "nothing": (0,),
}
L = {
    "dtypes": "sc",
    "values": ("plain",),
    "forms": ("call", "out", "grad"),
    "sizes": SQUARE,
    "terms": 64,
    "factor": 128.0,
    "floor": 1.0,
    "layouts_of": (0, 1),
    "layouts": UNSPREAD,
}
CALL, BOTH = {**L, "forms": ("call",)}, {**L, "forms": ("call", "grad")}
REAL = {**CALL, "dtypes": "s"}
FILLED = {key: size for key, size in SQUARE.items() if 0 not in size}
FLAG = (ABSENT, False, True)


def _right(c):
    """Right-hand sides: several, one, many, or as many as there are unknowns."""
    return c.draw("any", (*c.shape, c.args["_sides"]))


SIDES = {"_sides": (2, 1, 33)}


def _plain(name, count=1):
    """Call without the arguments that chose the operands."""
    home, _, rest = name.partition("_") if name.startswith("linalg_") else ("", "", name)
    return lambda *given, **k: getattr(torch.linalg if home else torch, rest)(*given[:count], **k)


for name in ("linalg_inv", "linalg_det", "linalg_slogdet", "slogdet"):
    t.add(name, _mirrored, act=_plain(name), _pivots=(False, True), **L)
for name in ("inverse", "det", "logdet"):
    t.add(name, _mirrored, act=_plain(name), _pivots=(False, True), **{**BOTH, "dtypes": "s"})
t.add("linalg_inv_ex", _mirrored, act=_plain("linalg_inv_ex"), _pivots=(False, True), check_errors=FLAG, **CALL)
for name in ("linalg_cholesky", "cholesky"):
    t.add(name, _one_triangle, upper=FLAG, **L)
t.add("linalg_cholesky_ex", _one_triangle, upper=FLAG, check_errors=FLAG, **CALL)


def _factor(c):
    lower = torch.linalg.cholesky(_definite(c))
    return lower.mH.clone() if c.args.get("upper", False) is True else lower


t.add("cholesky_inverse", _factor, upper=FLAG, **L)
t.add("cholesky_solve", _right, _factor, act=_plain("cholesky_solve", 2), **SIDES, upper=FLAG, **L)
t.add(
    "linalg_solve",
    _mirrored,
    _right,
    act=_plain("linalg_solve", 2),
    _pivots=(False, True),
    **SIDES,
    left=(ABSENT, True),
    **L,
)
t.add(
    "solve_vector",
    _mirrored,
    lambda c: c.draw("any", c.shape),
    act=lambda a, b, flag: torch.linalg.solve(a, b),
    _pivots=(False, True),
    **{**BOTH, "sizes": {key: size for key, size in FILLED.items() if key not in ("points", "many")}},
)
t.add(
    "solve_ex",
    _mirrored,
    _right,
    act=lambda a, b, flag, sides, **k: torch.linalg.solve_ex(a, b, **k),
    _pivots=(False, True),
    **SIDES,
    check_errors=FLAG,
    **CALL,
)
t.add(
    "solve_left",
    _mirrored,
    lambda c: c.draw("any", (*c.shape[:-1], c.args["_sides"], c.shape[-1])),
    act=lambda a, b, flag, sides, left: torch.linalg.solve(a, b, left=left),
    _pivots=(False, True),
    **SIDES,
    left=(False,),
    **BOTH,
)
# One matrix for a batch of right-hand sides, and the other way round.
t.add(
    "solve_broadcast",
    lambda c: _steady(c) if c.args["_one"] == "right" else _steady(c)[(0,) * (len(c.shape) - 1)],
    lambda c: c.draw("any", (*c.shape, 3) if c.args["_one"] == "matrix" else (c.shape[-1], 3)),
    act=lambda a, b, one: torch.linalg.solve(a, b),
    _one=("right", "matrix"),
    **{**BOTH, "sizes": {key: SQUARE[key] for key in ("batch", "deep", "single", "points", "many")}},
)
t.add(
    "linalg_solve_triangular",
    lambda c: _steady(c).triu() if c.args["upper"] else _steady(c).tril(),
    lambda c: c.draw(
        "any",
        (*c.shape, c.args["_sides"])
        if c.args.get("left", True) is not False
        else (*c.shape[:-1], c.args["_sides"], c.shape[-1]),
    ),
    act=lambda a, b, sides, out=None, **k: torch.linalg.solve_triangular(a, b, out=out, **k),
    **SIDES,
    upper=(True, False),
    left=(ABSENT, True, False),
    unitriangular=(ABSENT, False, True),
    **L,
)
t.add(
    "triangular_solve",
    _right,
    lambda c: _steady(c).triu() if c.args.get("upper", True) is True else _steady(c).tril(),
    act=_plain("triangular_solve", 2),
    **SIDES,
    upper=(ABSENT, True, False),
    transpose=(ABSENT, False, True),
    unitriangular=(ABSENT, False, True),
    **CALL,
)


def _rectangle(c):
    """A matrix of more rows than columns, or of fewer, turned by where its largest numbers lie."""
    x = _tall(c)
    return x.flip(-2) if c.args["_pivots"] else x


RECTANGLE = {"_columns": (3, 1, 8), "_pivots": (False, True)}
for name in ("linalg_lu_factor", "linalg_lu"):
    t.add(name, _rectangle, act=_plain(name), **RECTANGLE, **{**L, "forms": ("call", "out"), "sizes": FILLED})
t.add("lu_factor_ex", _rectangle, act=_plain("linalg_lu_factor_ex"), **RECTANGLE, check_errors=FLAG, **CALL)
t.add(
    "lu_solve",
    lambda c: c.draw(
        "any",
        (*c.shape, c.args["_sides"])
        if c.args.get("left", True) is not False
        else (*c.shape[:-1], c.args["_sides"], c.shape[-1]),
    ),
    _mirrored,
    act=lambda b, a, sides, flag, **k: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, **k),
    **SIDES,
    _pivots=(False, True),
    left=(ABSENT, False),
    adjoint=(ABSENT, False, True),
    **CALL,
)
t.add(
    "lu_unpack",
    _rectangle,
    act=lambda a, columns, flag, **k: torch.lu_unpack(*torch.linalg.lu_factor(a), **k),
    **RECTANGLE,
    unpack_data=FLAG[:2],
    unpack_pivots=FLAG[:2],
    **CALL,
)
t.add("matrix_power", _steady, _n=(0, 1, 2, 3, -1, 4, 7, -3), paths=("linalg.matrix_power",), **BOTH)
t.add(
    "matrix_exp",
    lambda c: _steady(c) * c.args["_times"],
    act=lambda a, n: torch.matrix_exp(a),
    _times=(1, 0, 0.01, 4),
    **{**BOTH, "dtypes": "f"},
)
t.add(
    "linalg_householder_product",
    lambda c: c.draw("unit", (*c.shape, c.args["_columns"])),
    lambda c: c.draw("unit", (*c.shape[:-1], c.args["_columns"])),
    act=lambda a, tau, columns, **k: torch.linalg.householder_product(a, tau, **k),
    _columns=(3, 1, 2),
    **{**L, "forms": ("call", "out"), "sizes": {key: size for key, size in SQUARE.items() if size[-1] > 2}},
)
t.add(
    "tensorsolve",
    lambda c: _steady(c).reshape(2, c.shape[-1] // 2, *((c.shape[-1],) if c.args["_flat"] else (c.shape[-1] // 2, 2))),
    lambda c: c.draw("any", (2, c.shape[-1] // 2)),
    act=lambda a, b, flag: torch.linalg.tensorsolve(a, b),
    _flat=(True, False),
    **{**BOTH, "sizes": {"main": (6,), "two": (2,), "tile": (32,)}},
)
t.add(
    "tensorinv",
    lambda c: _steady(c).reshape(2, c.shape[-1] // 2, c.shape[-1]),
    act=lambda a: torch.linalg.tensorinv(a),
    **{**BOTH, "sizes": {"main": (6,), "two": (2,), "tile": (32,)}},
)

COLUMNS = {"_columns": (3, 1, 8, 33)}
FEWER = {key: size for key, size in FILLED.items() if key not in ("bigger", "many")}
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
    **{**REAL, "sizes": FEWER},
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
    without=("autocast",),  # its composite takes other steps on each device
    act=lambda a: torch.linalg.pinv(a, hermitian=True),
    **{**CALL, "sizes": FILLED, "factor": 1024.0},
)
t.add(
    "matrix_rank",
    lambda c: torch.cat([_tall(c), _tall(c)], -1) if c.args["_doubled"] else _tall(c),
    act=lambda a, columns, doubled, **k: torch.linalg.matrix_rank(a, **k),
    **COLUMNS,
    _doubled=(False, True),
    rtol=(ABSENT, 1e-3),
    **{**CALL, "sizes": FEWER},
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
    **{**REAL, "sizes": FEWER},
)
