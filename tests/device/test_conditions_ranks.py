"""Matrices short of full rank, alone and in batches: what is defined of their factors, whichever a back end chooses."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.limits import add_table

cases = Cases("conditions")


def _of_rank(d: Any, rank: int, *batch: int, rows: int = 5, columns: int = 4) -> Any:
    """Draw matrices of a rank; their last columns repeat the first."""
    few = d.normal(*batch, rows, max(rank, 1))
    places = [place % max(rank, 1) for place in range(columns)]
    return few[..., places] * (rank > 0)


def _gram(q: torch.Tensor) -> torch.Tensor:
    return q.mT @ q


def _svd(x: torch.Tensor, full: bool) -> Any:
    u, s, v = torch.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    return [_gram(u), s, v @ v.mT, (u[..., :k] * s[..., None, :]) @ v[..., :k, :]]


def _eigh(x: torch.Tensor) -> Any:
    values, vectors = torch.linalg.eigh(_gram(x))
    return [values, _gram(vectors), (vectors * values[..., None, :]) @ vectors.mT]


def _qr(x: torch.Tensor, mode: str) -> Any:
    q, r = torch.linalg.qr(x, mode=mode)
    return [_gram(q), q @ r, r.tril(-1)]


def _lu(x: torch.Tensor) -> Any:
    p, lower, upper = torch.linalg.lu(x)
    return [p @ lower @ upper, lower.triu(1), upper.tril(-1)]


_FORMS: dict[str, Any] = {
    "svd": lambda x: _svd(x, False),
    "svd-full": lambda x: _svd(x, True),
    "svd-wide": lambda x: _svd(x.mT, False),
    "values": lambda x: [torch.linalg.svdvals(x), torch.linalg.matrix_norm(x, 2), torch.linalg.matrix_norm(x, "nuc")],
    "rank": lambda x: torch.linalg.matrix_rank(x, atol=1e-3),
    "pinv": lambda x: x @ torch.linalg.pinv(x, atol=1e-3) @ x,
    "eigh": _eigh,
    "qr": lambda x: _qr(x, "reduced"),
    "qr-complete": lambda x: _qr(x, "complete"),
    "lu": _lu,
    "det": lambda x: [torch.linalg.det(_gram(x)), torch.linalg.det(x[..., :4, :])],
    "power": lambda x: torch.linalg.matrix_power(_gram(x) / 8, 3),
    "exp": lambda x: torch.linalg.matrix_exp(_gram(x) / 16),
    "lstsq": lambda x: x @ (torch.linalg.pinv(x, atol=1e-3) @ x[..., :2]),
}
for _rank in (0, 1, 3, 4):
    for _batch in ((), (3,), (2, 2)):
        add_table(
            cases,
            f"rank-{_rank}-{'x'.join(map(str, _batch)) or 'one'}",
            _FORMS,
            lambda d, rank=_rank, batch=_batch: (_of_rank(d, rank, *batch),),
            terms=256,
            factor=32.0,
            floor=4.0,
        )
