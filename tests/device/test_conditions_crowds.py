"""Many of something small: batches of matrices, images of few pixels, rows, bags; and products over nothing."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table

cases = Cases("conditions")
_DEAR = 5_000  # batches beyond this are asked for what costs little


def _gram(x: torch.Tensor) -> torch.Tensor:
    return x @ x.mH


def _definite(x: torch.Tensor) -> torch.Tensor:
    return _gram(x) + torch.eye(x.shape[-1], device=x.device, dtype=x.dtype)


def _eigen(x: torch.Tensor) -> Any:
    values, vectors = torch.linalg.eigh(_definite(x))
    return [values, (vectors * values[..., None, :].to(x.dtype)) @ vectors.mH, vectors.mH @ vectors]


def _singular(x: torch.Tensor, full: bool) -> Any:
    u, s, v = torch.linalg.svd(x, full_matrices=full)
    return [s, (u * s[..., None, :].to(x.dtype)) @ v, u.mH @ u]


# x: square matrices near the unit; b: right sides of two columns.
_CHEAP: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "bmm": lambda x, b: [torch.bmm(x, b), x @ b, x.mT @ b, torch.bmm(x.mT, x), x @ b[..., 0, None]],
    "baddbmm": lambda x, b: [torch.baddbmm(b, x, b, beta=2, alpha=-1), torch.baddbmm(b[:1], x, b, beta=0)],
    "einsum": lambda x, b: [torch.einsum("bij,bjk->bik", x, b), torch.einsum("bij,bij->b", x, x)],
    "matmul-one": lambda x, b: [x @ b[0], x[0] @ b, torch.matmul(b.mT, x)],
    "det": lambda x, b: [torch.linalg.det(x), torch.linalg.det(x[:, :1, :1])],
    "slogdet": lambda x, b: [*torch.linalg.slogdet(x)],
    "inv": lambda x, b: [torch.linalg.inv(x), torch.linalg.inv_ex(x)[0]],
    "solve": lambda x, b: [torch.linalg.solve(x, b), torch.linalg.solve(x, b[..., :1])],
    "cholesky": lambda x, b: torch.linalg.cholesky(_definite(x)),
    "triangular": lambda x, b: [
        torch.linalg.solve_triangular(x.triu(), b, upper=True),
        torch.linalg.solve_triangular(x.tril(), b.mT.contiguous(), upper=False, left=False),
    ],
    "power": lambda x, b: torch.linalg.matrix_power(x, 3),
    "parts": lambda x, b: [x.tril(), x.triu(1), x.diagonal(dim1=1, dim2=2), torch.diag_embed(b[..., 0]), x.mT + x],
    "norms": lambda x, b: [
        torch.linalg.matrix_norm(x),
        torch.linalg.matrix_norm(x, 1),
        x.sum((1, 2)),
        x.diagonal().sum(),
    ],
}
_COSTLY: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "eigh": lambda x, b: _eigen(x),
    "eigvalsh": lambda x, b: torch.linalg.eigvalsh(_definite(x)),
    "svd": lambda x, b: [_singular(x, True), _singular(b, False) if b.shape[-1] <= b.shape[-2] else []],
    "svdvals": lambda x, b: torch.linalg.svdvals(x),
    "qr": lambda x, b: [(q := torch.linalg.qr(x))[0] @ q[1], q[0].mH @ q[0], torch.linalg.qr(b)[1].abs()],
    "lu": lambda x, b: [(found := torch.linalg.lu(x))[0] @ found[1] @ found[2], found[1].triu(1).abs()],
    "lu_solve": lambda x, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(x), b),
    "cholesky_solve": lambda x, b: torch.cholesky_solve(b, torch.linalg.cholesky(_definite(x))),
    "cholesky_inverse": lambda x, b: torch.cholesky_inverse(torch.linalg.cholesky(_definite(x))),
    "pinv": lambda x, b: torch.linalg.pinv(x),
    "lstsq": lambda x, b: torch.linalg.lstsq(x, b).solution,
    "exp": lambda x, b: torch.linalg.matrix_exp(x),
}


def _batch(d: Any, dtype: torch.dtype, count: int, side: int, scale: float = 1.0) -> Any:
    x = d.of(dtype, count, side, side) / (4 * side) + torch.eye(side).to(dtype) * 1.5
    return x * scale, d.of(dtype, count, side, 2)


# Of many matrices that are not small.
_LARGE = ("bmm", "det", "inv", "solve", "cholesky", "triangular", "eigh", "svdvals", "qr", "lu_solve")
# How many, and of which side.
for _count, _side in ((70, 3), (70, 33), (513, 2), (513, 17), (4099, 2), (65_543, 2), (65_543, 1)):
    for _dtype in (torch.float32, torch.complex64):
        if _dtype.is_complex and (_count > _DEAR or _side == 33):
            continue
        _forms = {**_CHEAP, **(_COSTLY if _count < _DEAR else {})}
        if _side > 9:
            _forms = {name: _forms[name] for name in _LARGE}
        if _dtype.is_complex:
            _forms.pop("pinv", None)  # of vectors whose phase is open
        add_table(
            cases,
            f"crowd-matrices-{_count}-{_side}-{str(_dtype)[6:]}",
            _forms,
            lambda d, count=_count, side=_side, dtype=_dtype: _batch(d, dtype, count, side),
            terms=256,
            factor=64.0,
        )
for _dtype in (torch.float16, torch.bfloat16):
    add_table(
        cases,
        f"crowd-pairs-{str(_dtype)[6:]}",
        {
            "bmm": lambda x, y: torch.bmm(x, y),
            "matmul": lambda x, y: x @ y.mT,
            "baddbmm": lambda x, y: torch.baddbmm(y, x, y, beta=0.5),
            "einsum": lambda x, y: torch.einsum("nij,njk->nik", x, y),
        },
        lambda d, dtype=_dtype: tuple((d.distinct(65_543, 2, 2) / 131_072).to(dtype) for _ in range(2)),
        terms=4,
    )
_DERIVED = ("bmm", "det", "inv", "solve", "cholesky", "triangular", "einsum", "power", "svdvals", "eigvalsh", "qr")


def _numbered(shape: tuple[int, ...]) -> torch.Tensor:
    """Return whole numbers that a dozen bits hold, no two neighbours alike."""
    count = 1
    for side in shape:
        count *= side
    return (torch.arange(count, dtype=torch.int32) % 3001).float().reshape(shape)


def _first(form: Any, *operands: torch.Tensor) -> torch.Tensor:
    found = form(*operands)
    while not isinstance(found, torch.Tensor):
        found = found[0]
    return found


for _count, _side in ((70, 3), (513, 2), (4099, 2)):
    add_table(
        cases,
        f"crowd-matrices-derived-{_count}",
        {
            name: lambda x, b, form=form: derived(lambda x, b: _first(form, x, b) + 0 * b.sum(), x, b)
            for name, form in {**_CHEAP, **_COSTLY}.items()
            if name in _DERIVED
        },
        lambda d, count=_count, side=_side: _batch(d, torch.float32, count, side),
        terms=256,
        factor=128.0,
    )
# Smaller than any normal number.
add_table(
    cases,
    "crowd-matrices-subnormal",
    {name: _CHEAP[name] for name in ("bmm", "power", "norms")},
    lambda d: tuple(one * 1e-40 for one in _batch(d, torch.float32, 70, 4)),
)
# Products over nothing are 0, however wide they are.
_NOTHING: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "mm": lambda a, b: a[0] @ b[0],
    "mm-turned": lambda a, b: b[0].mT @ a[0].mT,
    "bmm": lambda a, b: torch.bmm(a, b),
    "matmul": lambda a, b: torch.matmul(a[0], b),
    "mv": lambda a, b: b[0].mT @ a[0, 0],
    "outs": lambda a, b: [
        torch.bmm(a, b, out=torch.full((2, 3, b.shape[2]), 7.0, device=a.device, dtype=a.dtype)),
        torch.mm(a[0], b[0], out=torch.full((3, b.shape[2]), 7.0, device=a.device, dtype=a.dtype)),
    ],
    "addmm": lambda a, b: [torch.addmm(a.new_ones(3, b.shape[2]), a[0], b[0], beta=beta) for beta in (2, 1, 0)],
    "addmm-row": lambda a, b: torch.addmm(a.new_ones(b.shape[2]), a[0], b[0]),
    "addmv": lambda a, b: torch.addmv(a.new_ones(b.shape[2]), b[0].mT, a[0, 0], beta=3),
    "baddbmm": lambda a, b: [torch.baddbmm(a.new_ones(2, 3, b.shape[2]), a, b, beta=beta) for beta in (2, 1, 0)],
    "addbmm": lambda a, b: torch.addbmm(a.new_ones(3, b.shape[2]), a, b, beta=3),
    "einsum": lambda a, b: torch.einsum("bij,bjk->bki", a, b),
    "tensordot": lambda a, b: torch.tensordot(a[0], b[0], 1),
    "linear": lambda a, b: [F.linear(a, b[0].mT), F.linear(a[0], b[0].mT, a.new_ones(b.shape[2]))],
    "sums": lambda a, b: [b.sum(1), b.mean(1).isnan(), b.prod(1), b.any(1), b.all(1), b.logsumexp(1), b.norm(dim=1)],
    "derived": lambda a, b: derived(torch.bmm, a, b),
}
for _wide in (43_201, 70_001):
    add_table(
        cases,
        f"crowd-nothing-{_wide}",
        _NOTHING,
        lambda d, wide=_wide: (torch.zeros(2, 3, 0), torch.zeros(2, 0, wide)),
    )
# More than 2**22 results along a side of two, which is the third.
_PAIRED = {2: (7, 601, 2, 1009)}
for _dim, _shape in _PAIRED.items():
    cases.add(
        f"condition-limit-crowd-results-{_dim}",
        lambda x, dim=_dim: x.sum(dim),
        make=lambda d, shape=_shape: (_numbered(shape),),
        states=("fresh",),
    )
