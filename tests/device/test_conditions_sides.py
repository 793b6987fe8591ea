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


def _solved(x: torch.Tensor, n: int) -> Any:
    """Solve for three columns; triangular_solve is deprecated, and asked as long as it is there."""
    a, b = _matrix(x, n, n), x[: 3 * n].reshape(n, 3)
    upper, many = a.triu(), {"upper": False}
    found = [torch.linalg.solve(a, b), torch.linalg.solve(a, b[:, 0]), torch.linalg.solve(a, b.mT, left=False)]
    found += [torch.linalg.solve_triangular(upper, b, upper=True), torch.linalg.solve_triangular(upper.mT, b, **many)]
    found += [torch.linalg.solve_triangular(upper, b.mT, upper=True, left=False)]
    found.append(torch.linalg.solve_triangular(a.tril(), b, unitriangular=True, **many))
    return found + [torch.triangular_solve(b, upper, transpose=turn)[0] for turn in (False, True)]


def _root(x: torch.Tensor, n: int) -> Any:
    a, b = _definite(x, n), x[: 3 * n].reshape(n, 3)
    root = torch.linalg.cholesky(a)
    upper = torch.linalg.cholesky(a, upper=True)
    solved = [torch.cholesky_solve(b, root), torch.cholesky_solve(b, upper, upper=True)]
    return [_places(root), _places(upper), solved, _places(torch.cholesky_inverse(root))]


_FORMS: dict[str, Form] = {
    "lu": lambda x, n: _factors(*torch.linalg.lu_factor(_matrix(x, n, n))),
    "lu-parts": lambda x, n: [_places(one) for one in torch.linalg.lu(_matrix(x, n, n))],
    "lu-solve": lambda x, n: torch.linalg.lu_solve(
        *torch.linalg.lu_factor(_matrix(x, n, n)), x[: 3 * n].reshape(n, 3)
    ),
    "solve": _solved,
    "cholesky": _root,
    "inverse": lambda x, n: _places(torch.linalg.inv(_matrix(x, n, n))),
    # 2**n is past float32: half of the diagonal.
    "determinants": lambda x, n: [
        torch.linalg.det(_matrix(x, n, n) / 2),
        [torch.linalg.slogdet(turn * _matrix(x, n, n)) for turn in (1, -1)],
        torch.logdet(_matrix(x, n, n)),
    ],
    "qr": lambda x, n: _orthogonal(*torch.linalg.qr(_matrix(x, n, n))),
    "power": lambda x, n: [_places(torch.linalg.matrix_power(_matrix(x, n, n) / 2, 5))],
    "exponential": lambda x, n: _places(torch.linalg.matrix_exp(_matrix(x, n, n) / 2)),
    "ldl": lambda x, n: _places(
        torch.linalg.ldl_solve(*torch.linalg.ldl_factor(_definite(x, n)), x[: 3 * n].reshape(n, 3))
    ),
}
_LIGHT = ("lu", "cholesky", "lu-solve")
for _name, _form in _FORMS.items():
    for _sides in ((129, 257), (513,), (1030,)):
        add_table(
            cases,
            f"sides-{_name}{'' if _sides[0] < 500 else f'-{_sides[0]}'}",
            {str(n): lambda x, n=n, form=_form: form(x, n) for n in _sides},
            lambda d, most=_sides[-1]: (d.uniform(-1, 1, most * most),),
            terms=4096,
            full=_sides[0] > 1000 or (_sides[0] > 500 and _name not in _LIGHT),
        )


def _triangle(q: torch.Tensor, r: torch.Tensor) -> Any:
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
            "qr": lambda x, m, n: _triangle(*torch.linalg.qr(_matrix(x, m, n))),
            "values": lambda x, m, n: torch.linalg.svdvals(_matrix(x, m, n)),
            "least": lambda x, m, n: _least(x, m, n) if m > n else x[:1],
            "inverse": lambda x, m, n: _places(torch.linalg.pinv(_matrix(x, m, n))),
        }.items()
        for rows, columns in _LONG
    },
    lambda d: (d.uniform(-1, 1, 132_000),),
    terms=1 << 16,
)


def _values(x: torch.Tensor, n: int) -> Any:
    """Decompose a matrix of known, well apart numbers, in a basis that is a reflection's."""
    place = torch.arange(1, n + 1, device=x.device, dtype=x.dtype) / n
    v = x[:n] / x[:n].norm()
    mirror = torch.eye(n, device=x.device, dtype=x.dtype) - 2 * torch.outer(v, v)
    a = (mirror * place) @ mirror
    numbers, vectors = torch.linalg.eigh(a)
    u, s, vh = torch.linalg.svd(a)
    rebuilt = [_places((vectors * numbers) @ vectors.mT), _places((u * s) @ vh)]
    return [numbers, s, rebuilt, _places(vectors.mT @ vectors), _places(u.mT @ u)]


add_table(
    cases,
    "sides-values",
    {str(n): lambda x, n=n: _values(x, n) for n in (129, 257)},
    lambda d: (d.uniform(-1, 1, 257),),
    terms=4096,
)
