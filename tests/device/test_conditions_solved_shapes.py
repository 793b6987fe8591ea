"""Rules 1 and 3: solvers of all pairs of batches that broadcast, of long sides, and of every kind of view.

Only the first matrix of a batch was solved, https://github.com/pytorch/pytorch/issues/189134; a batch of Cholesky
factors gave something else than each alone, https://github.com/pytorch/pytorch/issues/66072; conjugates in products,
https://github.com/pytorch/pytorch/issues/148156
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table

cases = Cases("conditions")
Form = Callable[..., Any]
L = torch.linalg
_BATCHES = ((), (1,), (2,), (3, 2), (1, 2), (3, 1), (0,), (2, 0))

# a: batches of (3, 3), with a large diagonal; b: batches of (3, 2).
_SOLVED: dict[str, Form] = {
    "solve": lambda a, b: L.solve(a, b),
    "solve-left": lambda a, b: L.solve(a, b.mT, left=False),
    "solve_ex": lambda a, b: L.solve_ex(a, b)[0],
    "solve-turned": lambda a, b: L.solve(a.mT, b.mT.contiguous().mT),
    "solve-vector": lambda a, b: L.solve(a, b[..., 0]),
    "lu_solve": lambda a, b: L.lu_solve(*L.lu_factor(a), b),
    "lu_solve-left": lambda a, b: L.lu_solve(*L.lu_factor(a), b.mT, left=False),
    "lu_solve-adjoint": lambda a, b: L.lu_solve(*L.lu_factor(a), b, adjoint=True),
    "old-lu_solve": lambda a, b: torch.lu_solve(b, *L.lu_factor(a)),
    "triangular": lambda a, b: L.solve_triangular(a, b, upper=True),
    "triangular-lower": lambda a, b: L.solve_triangular(a, b, upper=False, unitriangular=True),
    "triangular-left": lambda a, b: L.solve_triangular(a, b.mT, upper=False, left=False),
    "triangular-turned": lambda a, b: L.solve_triangular(a.mT, b, upper=True),
    "old-triangular": lambda a, b: torch.triangular_solve(b, a, upper=False, transpose=True)[0],
    "cholesky_solve": lambda a, b: torch.cholesky_solve(b, a.tril()),
    "cholesky_solve-upper": lambda a, b: torch.cholesky_solve(b, a.triu(), upper=True),
    "ldl_solve": lambda a, b: L.ldl_solve(*L.ldl_factor(a + a.mT), b),
    "lstsq": lambda a, b: L.lstsq(a[..., :2], b)[0],
    "matmul": lambda a, b: [a @ b, b.mT @ a, a @ b[..., 0, None], torch.einsum("...ij,...jk->...ik", a, b)],
    "vecdot": lambda a, b: L.vecdot(a, b[..., :1].mT),
    "derived": lambda a, b: derived(L.solve, a, b),
    "derived-left": lambda a, b: derived(lambda x, y: L.solve(x, y.mT, left=False), a, b),
    "derived-triangular": lambda a, b: derived(lambda x, y: L.solve_triangular(x, y, upper=True), a, b),
    "derived-cholesky": lambda a, b: derived(lambda x, y: torch.cholesky_solve(y, x.tril()), a, b),
    "derived-lu": lambda a, b: derived(lambda x, y: L.lu_solve(*L.lu_factor(x), y), a, b),
    "derived-matmul": lambda a, b: derived(torch.matmul, a, b),
}
# The right sides of these are read as vectors where their shape is that of a batch of them, or must be alike.
_ALIKE = ("solve-vector", "lstsq", "ldl_solve", "old-lu_solve")


def _of_batches(form: Form, one: tuple[int, ...], two: tuple[int, ...], a: torch.Tensor, b: torch.Tensor) -> Any:
    count, other = torch.Size(one).numel(), torch.Size(two).numel()
    return form(a[:count].view(*one, 3, 3), b[:other].view(*two, 3, 2))


def _meet(one: tuple[int, ...], two: tuple[int, ...]) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(one[::-1], two[::-1]))


for _dtype in (torch.float32, torch.complex64):
    add_table(
        cases,
        f"solved-shapes-{str(_dtype)[6:]}",
        {
            f"{name}-{one}-{two}": lambda a, b, form=form, one=one, two=two: _of_batches(form, one, two, a, b)
            for number, (name, form) in enumerate(_SOLVED.items())
            for place, (one, two) in enumerate(itertools.product(_BATCHES, _BATCHES))
            if _meet(one, two)
            and (one == two or name not in _ALIKE)
            and not (_dtype.is_complex and (number + place) % 2)
            and not (one == two and "derived" not in name and place % 2)
            and (number + place) % 3 == 0
            and not (name.endswith("-left") and (one, two) == ((1, 2), (1,)))  # read as a batch of vectors
        },
        lambda d, dtype=_dtype: (
            (d.normal(6, 3, 3) / 4 + 2 * torch.eye(3)).to(dtype),
            torch.complex(d.normal(6, 3, 2), d.normal(6, 3, 2)) if dtype.is_complex else d.normal(6, 3, 2),
        ),
        terms=256,
        factor=64.0,
        since="2.1",
    )

# Sides up to 1030: what is solved of factors that are given, so that little is reckoned.
_LONG: dict[str, Form] = {
    "lu_solve": lambda f, p, b: [L.lu_solve(f, p, b), L.lu_solve(f, p, b, adjoint=True)],
    "lu_solve-left": lambda f, p, b: L.lu_solve(f, p, b.mT, left=False),
    "triangular": lambda f, p, b: [L.solve_triangular(f, b, upper=True), L.solve_triangular(f, b, upper=False)],
    "unit": lambda f, p, b: L.solve_triangular(f, b.mT, upper=False, unitriangular=True, left=False),
    "cholesky_solve": lambda f, p, b: torch.cholesky_solve(b, f),
    "unpacked": lambda f, p, b: [one[..., ::97] for one in torch.lu_unpack(f, p)],
    "triangles": lambda f, p, b: [f.tril()[..., ::53], f.triu(2)[..., ::53, :], f.diagonal(1, -2, -1)],
    "products": lambda f, p, b: [f @ b, b.mT @ f, f[..., 0] @ f[..., 1] if f.dim() == 2 else f[..., :1] * 2],
    "slogdet": lambda f, p, b: L.slogdet(f) if f.shape[-1] < 70 else f[..., 0, 0],
}


def _of_side(form: Form, n: int, batch: int, wide: int, f: torch.Tensor, p: torch.Tensor, b: torch.Tensor) -> Any:
    f, p, b = f[:, :n, :n], p[:, :n].clamp(max=n), b[:, :n, :wide]
    return form(*(one[:batch] if batch else one[0] for one in (f, p, b)))


_SIDE = 1030
add_table(
    cases,
    "solved-shapes-long",
    {
        f"{name}-{n}-{batch}-{wide}": lambda f, p, b, form=form, row=(n, batch, wide): _of_side(form, *row, f, p, b)
        for name, form in _LONG.items()
        for n, batch, wide in (
            (1, 2, 1), (2, 0, 3), (17, 2, 2), (33, 2, 3), (65, 0, 2), (129, 2, 1), (1030, 2, 1),
        )
        if n < 300 or name == "lu_solve" or (name == "lu_solve-left" and batch)
    },
    lambda d: (
        (torch.arange(2 * _SIDE * _SIDE) % 127 / 127 - 0.5).view(2, _SIDE, _SIDE) / _SIDE + 2 * torch.eye(_SIDE),
        (torch.arange(1, 1 + _SIDE) + torch.arange(_SIDE) % 3 * (torch.arange(_SIDE) % 5 > 2)).int().expand(2, -1),
        d.normal(2, _SIDE, 3),
    ),
    terms=1 << 12,
    factor=64.0,
    since="2.1",
)  # fmt: skip

# Views whose numbers are conjugated or negated only when they are read.
_VIEWS: dict[str, Form] = {
    "plain": lambda z: z,
    "conj": lambda z: z.conj(),
    "mH": lambda z: z.mH,
    "turned-conj": lambda z: z.mT.conj(),
    "twice": lambda z: z.conj().mT.conj(),
    "stepped": lambda z: torch.stack([z, z * 2], -1)[..., 0].conj(),
    "physical": lambda z: z.conj_physical(),
    "flipped": lambda z: z.flip(0).conj(),
    "copied": lambda z: z.conj().clone(),
}
_OF_TWO: dict[str, Form] = {
    "mm": lambda x, y: [x @ y, torch.mm(x, y), torch.mm(x, y, out=torch.empty_like(y))],
    "mv": lambda x, y: [x @ y[0], torch.mv(x, y[:, 1]), x[1] @ y],
    "dot": lambda x, y: [torch.dot(x[0], y[0]), torch.vdot(x[0], y[:, 0]), torch.inner(x, y), L.vecdot(x, y)],
    "bmm": lambda x, y: [torch.bmm(x[None], y[None]), torch.baddbmm(y[None], x[None], y[None], beta=2j)],
    "added": lambda x, y: [torch.addmm(x, x, y, alpha=1j), torch.addmv(x[0], x, y[0]), torch.addr(x, x[0], y[0])],
    "outer": lambda x, y: [torch.outer(x[0], y[1]), torch.outer(x[:, 0], y[1]), torch.ger(x[2], y[:, 0])],
    "einsum": lambda x, y: [torch.einsum("ij,kj->ik", x, y), torch.einsum("ij,ij->", x, y)],
    "arithmetic": lambda x, y: [x + y, x - y, x * y, x / (y + 9), x + 1, 2j * x, torch.add(x, y, alpha=2j), x == y],
    "ternary": lambda x, y: [torch.addcmul(x, x, y), torch.where(x.real > 0, x, y), torch.lerp(x, y, 0.5)],
    "in-place": lambda x, y: [x.clone().add_(y), x.clone().mul_(y), x.clone().copy_(y), _onto(x, y)],
    "joined": lambda x, y: [torch.cat([x, y]), torch.stack([x, y]), torch.hstack([x, y]), torch.block_diag(x, y)],
    "solved": lambda x, y: [L.solve(x + 5 * _unit(x), y), L.inv(x + 5 * _unit(x)), L.det(x)],
    "factors": lambda x, y: [L.cholesky(x @ x.mH + _unit(x)), L.eigvalsh(x + x.mH), L.svdvals(x), L.matrix_norm(x)],
    "triangular": lambda x, y: L.solve_triangular((x + 5 * _unit(x)).tril(), y, upper=False),
    "transforms": lambda x, y: [torch.fft.fft(x), torch.fft.ifft(x, dim=0), torch.fft.irfft(x, 5), torch.fft.fft2(y)],
    "parts": lambda x, y: [x.real, x.imag, x.imag * 2, x.abs(), x.angle(), x.imag.sum(0), x.sgn(), -x.imag],
    "parts-read": lambda x, y: [x.imag @ y.imag, x.imag.exp(), x.real + y.imag, x.imag.clone().add_(y.imag)],
    "reduced": lambda x, y: [x.sum(), x.mean(0), x.prod(1), x.cumsum(0), x.cumprod(1), x.norm(), x.trace(), x.var(0)],
    "functions": lambda x, y: [x.exp(), x.sin(), x.tanh(), x.sqrt(), x.log(), x.square(), x**2, x**0.5, x.reciprocal()],
    "moved": lambda x, y: [
        x.flip(1),
        x.roll(1),
        x.tril(),
        x.diagonal(),
        x[[1, 0]],
        x[x.real > 0],
        x.T + 0,
        x.repeat(2, 1),
    ],
    "written": lambda x, y: [
        x.index_add(0, _places(x), y[:2]),
        x.masked_fill(x.real > 0, 2j),
        x.index_fill(0, _places(x), 1j),
    ],
    "resolved": lambda x, y: [
        x.resolve_conj(),
        x.imag.resolve_neg(),
        torch.view_as_real(x.resolve_conj()),
        x.adjoint(),
    ],
    "derived": lambda x, y: [derived(torch.matmul, x, y), derived(torch.mul, x, y), derived(lambda z: z.conj() * z, x)],
    "derived-parts": lambda x, y: [derived(f, x) for f in (torch.abs, torch.real, torch.imag, torch.angle, torch.sgn)],
}


def _unit(x: torch.Tensor) -> torch.Tensor:
    return torch.eye(len(x), dtype=x.dtype, device=x.device)


def _places(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([2, 0], device=x.device)


def _onto(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Write through a conjugated view, and return what lies below it."""
    base = x.clone().resolve_conj()
    base.conj().add_(y).mul_(1j)
    other = x.clone().resolve_conj()
    other.imag.mul_(2).add_(1)
    other.conj()[0] = y[1]
    return [base, other]


add_table(
    cases,
    "solved-shapes-conjugates",
    {
        f"{name}-{one}-{two}": lambda x, y, form=form, one=_VIEWS[one], two=_VIEWS[two]: form(one(x), two(y))
        for number, (name, form) in enumerate(_OF_TWO.items())
        for place, (one, two) in enumerate(itertools.product(_VIEWS, _VIEWS))
        if (number + place) % 13 == 0 or (one == "conj" and two in ("plain", "conj"))
    },
    lambda d: tuple(torch.complex(d.normal(3, 3) + 0.1, d.normal(3, 3) + 0.2) for _ in range(2)),
    terms=256,
    factor=32.0,
    floor=1.0,
    since="2.1",
)
