"""Rule 3: sides of matrices past the blocks of a library: 129, 257, 513, and far more rows than columns.

A factorisation works in panels, and by another kernel past a side: lu of a matrix with a side past 65536 ended the
process, https://github.com/ROCm/rocSOLVER/issues/907
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import add_table

cases = Cases("conditions")
Form = Callable[..., Any]
_SHOWN = 4000


def _places(y: torch.Tensor) -> Any:
    """Return every so many numbers of a matrix, its first row and its last one."""
    return [y[0], y[-1], y.flatten()[:: max(1, y.numel() // _SHOWN)]]


def _matrix(x: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Return what is far from singular: numbers below one, and a diagonal that outweighs its row."""
    return x[: rows * columns].reshape(rows, columns) / columns + 2 * torch.eye(rows, columns, device=x.device)


def _definite(x: torch.Tensor, n: int) -> torch.Tensor:
    y = _matrix(x, n, n)
    return (y + y.mT) / 2


def _factors(lu: torch.Tensor, pivots: torch.Tensor) -> Any:
    """Return the factors: a diagonal that outweighs its column leaves no choice, and the rows in turn."""
    return [_places(lu), pivots]


def _orthogonal(q: torch.Tensor, r: torch.Tensor) -> Any:
    """Return what has one answer: a column's sign is free."""
    return [_places(q @ r), _places(q.mT @ q), r.diagonal().abs()]


def _right(x: torch.Tensor, n: int) -> torch.Tensor:
    return x[: 3 * n].reshape(n, 3)


def _triangle(x: torch.Tensor, n: int, upper: bool) -> torch.Tensor:
    return _matrix(x, n, n).triu() if upper else _matrix(x, n, n).tril()


def _rooted(x: torch.Tensor, n: int, upper: bool) -> torch.Tensor:
    return torch.linalg.cholesky(_definite(x, n), upper=upper)


_FORMS: dict[str, Form] = {
    "lu": lambda x, n: _factors(*torch.linalg.lu_factor(_matrix(x, n, n))),
    "lu-parts": lambda x, n: [_places(one) for one in torch.linalg.lu(_matrix(x, n, n))],
    "lu-solve": lambda x, n: torch.linalg.lu_solve(*torch.linalg.lu_factor(_matrix(x, n, n)), _right(x, n)),
    "solve": lambda x, n: torch.linalg.solve(_matrix(x, n, n), _right(x, n)),
    "solve-one": lambda x, n: torch.linalg.solve(_matrix(x, n, n), x[:n]),
    "solve-right": lambda x, n: torch.linalg.solve(_matrix(x, n, n), _right(x, n).mT, left=False),
    **{
        f"triangular{'-upper' * upper}{way}": lambda x, n, upper=upper, options=options: torch.linalg.solve_triangular(
            _triangle(x, n, upper), _right(x, n), upper=upper, **options
        )
        for upper in (False, True)
        for way, options in (("", {}), ("-unit", {"unitriangular": True}))
    },
    "triangular-right": lambda x, n: torch.linalg.solve_triangular(
        _triangle(x, n, True), _right(x, n).mT, upper=True, left=False
    ),
    "triangular-turned": lambda x, n: torch.linalg.solve_triangular(
        _triangle(x, n, True).mT, _right(x, n), upper=False
    ),
    "cholesky": lambda x, n: _places(_rooted(x, n, False)),
    "cholesky-upper": lambda x, n: _places(_rooted(x, n, True)),
    "cholesky-solve": lambda x, n: torch.cholesky_solve(_right(x, n), _rooted(x, n, False)),
    "cholesky-solve-upper": lambda x, n: torch.cholesky_solve(_right(x, n), _rooted(x, n, True), upper=True),
    "cholesky-inverse": lambda x, n: _places(torch.cholesky_inverse(_rooted(x, n, False))),
    "inverse": lambda x, n: _places(torch.linalg.inv(_matrix(x, n, n))),
    # Of half of the diagonal: 2**n is past float32.
    "determinant": lambda x, n: torch.linalg.det(_matrix(x, n, n) / 2),
    "determinant-sign": lambda x, n: [torch.linalg.slogdet(turn * _matrix(x, n, n)) for turn in (1, -1)],
    "determinant-log": lambda x, n: torch.logdet(_matrix(x, n, n)),
    "qr": lambda x, n: _orthogonal(*torch.linalg.qr(_matrix(x, n, n))),
    "power": lambda x, n: _places(torch.linalg.matrix_power(_matrix(x, n, n) / 2, 5)),
    "exponential": lambda x, n: _places(torch.linalg.matrix_exp(_matrix(x, n, n) / 2)),
    "ldl": lambda x, n: _places(torch.linalg.ldl_solve(*torch.linalg.ldl_factor(_definite(x, n)), _right(x, n))),
}
_LIGHT = ("lu", "lu-solve", "solve", "triangular", "cholesky", "cholesky-solve")
for _sides, _names in (((129, 257), _FORMS), ((513,), _LIGHT), ((513, 1030), _FORMS)):
    add_table(
        cases,
        f"sides-{_sides[0]}{'-more' * (_sides[-1] == 1030)}",
        {f"{name}-{n}": lambda x, n=n, name=name: _FORMS[name](x, n) for name in _names for n in _sides},
        lambda d, most=_sides[-1]: (d.uniform(-1, 1, most * most),),
        terms=4096,
        full=_sides[-1] == 1030,
    )


def _rebuilt(q: torch.Tensor, r: torch.Tensor) -> Any:
    return [_places(q @ r), r.diagonal().abs()]


def _least(x: torch.Tensor, rows: int, columns: int) -> Any:
    return torch.linalg.lstsq(_matrix(x, rows, columns), x[: 2 * rows].reshape(rows, 2)).solution


_LONG = ((1030, 5), (5, 1030), (4099, 3), (66_000, 2), (2, 66_000))
add_table(
    cases,
    "sides-long",
    {
        f"{name}-{rows}-{columns}": lambda x, form=form, rows=rows, columns=columns: form(x, rows, columns)
        for name, form in {
            "lu": lambda x, m, n: _factors(*torch.linalg.lu_factor(_matrix(x, m, n))),
            "qr": lambda x, m, n: _rebuilt(*torch.linalg.qr(_matrix(x, m, n))),
            "values": lambda x, m, n: torch.linalg.svdvals(_matrix(x, m, n)),
            "least": lambda x, m, n: _least(x, m, n) if m > n else x[:1],
            "inverse": lambda x, m, n: _places(torch.linalg.pinv(_matrix(x, m, n))),
        }.items()
        for rows, columns in _LONG
    },
    lambda d: (d.uniform(-1, 1, 132_000),),
    terms=1 << 16,
)


def _known(x: torch.Tensor, n: int) -> torch.Tensor:
    """Return a matrix of known, well apart numbers, in a basis that is a reflection's."""
    place = torch.arange(1, n + 1, device=x.device, dtype=x.dtype) / n
    v = x[:n] / x[:n].norm()
    mirror = torch.eye(n, device=x.device, dtype=x.dtype) - 2 * torch.outer(v, v)
    return (mirror * place) @ mirror


def _spectrum(x: torch.Tensor, n: int) -> Any:
    numbers, vectors = torch.linalg.eigh(_known(x, n))
    return [numbers, _places((vectors * numbers) @ vectors.mT), _places(vectors.mT @ vectors)]


def _parts(x: torch.Tensor, n: int) -> Any:
    u, s, vh = torch.linalg.svd(_known(x, n))
    return [s, _places((u * s) @ vh), _places(u.mT @ u), _places(vh @ vh.mT)]


_VALUES: dict[str, Form] = {
    "eigh": _spectrum,
    "eigvalsh": lambda x, n: torch.linalg.eigvalsh(_known(x, n)),
    "svd": _parts,
    "svdvals": lambda x, n: torch.linalg.svdvals(_known(x, n)),
}
add_table(
    cases,
    "sides-values",
    {f"{name}-{n}": lambda x, n=n, form=form: form(x, n) for name, form in _VALUES.items() for n in (129, 257)},
    lambda d: (d.uniform(-1, 1, 257),),
    terms=1 << 16,
)


# Batches of small matrices with more right sides than a block of threads has: lu_solve raised past 1024,
# https://github.com/pytorch/pytorch/issues/36921
_MANY = 1109
add_table(
    cases,
    "sides-right",
    {
        "solve": lambda a, b: _places(torch.linalg.solve(a, b)),
        "solve-left": lambda a, b: _places(torch.linalg.solve(a, b.mT, left=False)),
        "lu_solve": lambda a, b: _places(torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b)),
        "cholesky_solve": lambda a, b: _places(torch.cholesky_solve(b, torch.linalg.cholesky(a + a.mT))),
        "triangular": lambda a, b: _places(torch.linalg.solve_triangular(a, b, upper=True)),
        "product": lambda a, b: _places(a @ b),
        "inverse": lambda a, b: _places(torch.linalg.inv(a) @ b),
        "lstsq": lambda a, b: _places(torch.linalg.lstsq(a, b)[0]),
    },
    lambda d: (d.normal(3, 4, 4) / 8 + 2 * torch.eye(4), d.normal(3, 4, _MANY)),
    terms=16,
    factor=16.0,
)
