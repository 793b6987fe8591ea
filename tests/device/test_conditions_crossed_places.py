"""Conditions of places: views of views, operands of one storage, the layouts of both, sizes past a kernel's limits."""

from __future__ import annotations

from math import nan

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.answers import attempt
from device_suite.layouts import LAYOUTS
from device_suite.limits import assigned

cases = Cases("conditions")
ONCE = ("fresh",)


def short(dtype: torch.dtype) -> str:
    """Return a dtype's name without its module."""
    return str(dtype)[6:]


# Views of views, and both operands out of one storage.
_CUTS = {
    "steps": lambda x: x[::2][::2],
    "steps-of-columns": lambda x: x[:, ::2][:, 1::3],
    "step-then-cut": lambda x: x[1::3][1:3],
    "cut-of-cut": lambda x: x[2:3, :4][:, 1:],
    "turned-step": lambda x: x.t()[::4],
    "line": lambda x: x[3, ::3][::2],
    "column": lambda x: x[::2, 5][::2],
}


def _viewed(x: torch.Tensor) -> list[torch.Tensor]:
    return [
        *(x.contiguous(), x.clone(), x + 1, x.sum(), x.to(torch.float16), x > 2, torch.cat([x, x]), x.flip(0)),
        *(x.reshape(-1), torch.empty_like(x).copy_(x), x.mul(x), x[:1].expand(2, *x.shape[1:]) * 2),
    ]


for _name, _cut in _CUTS.items():
    cases.add(
        f"condition-crossed-views-{_name}",
        lambda base, cut=_cut: _viewed(cut(base)),
        make=lambda d: (d.distinct(12 + d.k, 24) / 16,),
        terms=64,
    )


def _beside(x: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    flat = x.view(-1)
    return [(x[2:], x[:-2]), (x[:-1], x[1:]), (flat[5:], flat[:-5]), (x[3], x[1]), (x[2, 3], x[4, 1])]


_NEIGHBOURS = {
    "compared": lambda a, b: [a < b, a <= b, a > b, a >= b, a == b, a != b],
    "computed": lambda a, b: [
        a + b,
        a - b,
        a * b,
        torch.maximum(a, b),
        torch.where(a > 0, a, b),
        torch.lerp(a, b, 0.25),
    ],
    "joined": lambda a, b: [
        torch.cat([a[None], b[None]]),
        torch.stack([a, b], -1),
        torch.hypot(a, b),
        torch.atan2(a, b),
    ],
    "written": lambda a, b: [a.clone().add_(b), a.clone().copy_(b), torch.minimum(a, b)],
}
for _name, _form in _NEIGHBOURS.items():
    cases.add(
        f"condition-crossed-neighbours-{_name}",
        lambda x, form=_form: [form(one, two) for one, two in _beside(x)],
        make=lambda d: (d.distinct(6 + d.k, 5) / 8,),
        factor=16.0,
    )


# The layouts of both operands, every pair.
_PAIRED = {
    "eq": torch.eq,
    "lt": torch.lt,
    "add": torch.add,
    "mul": torch.mul,
    "maximum": torch.maximum,
    "where": lambda a, b: torch.where(a > b, a, b),
    "fmod": lambda a, b: torch.fmod(a, b.abs() + 1),
}
_LAYOUTS = ("contiguous", "transposed", "offset", "step2", "expanded")
for _dtype in (torch.float32, torch.int64):
    for _one in _LAYOUTS:
        for _two in _LAYOUTS:
            cases.add(
                f"condition-crossed-layouts-{_one}-{_two}-{short(_dtype)}",
                lambda a, b, one=_one, two=_two: {
                    name: [form(x := LAYOUTS[one].cut(a, (5, 5)), y := LAYOUTS[two].cut(b, (5, 5))), form(y.t(), x)]
                    for name, form in _PAIRED.items()
                },
                make=lambda d, dtype=_dtype, one=_one, two=_two: tuple(
                    d.integers(-3, 4, *LAYOUTS[layout].base((5, 5))).to(dtype) for layout in (one, two)
                ),
                states=ONCE,
            )


# What a factorisation says of matrices that it cannot factorise.
cases.add(
    "condition-crossed-info",
    lambda a: [
        *(torch.linalg.lu_factor_ex(a)[2], torch.linalg.cholesky_ex(a)[1], torch.linalg.inv_ex(a)[1]),
        *(torch.linalg.lu_factor_ex(a[1])[2], torch.linalg.cholesky_ex(a[2])[1], torch.linalg.det(a)),
        *(torch.linalg.cholesky_ex(assigned(a[0], (at, at), nan))[1] != 0 for at in (0, 1, 3)),
    ],
    make=lambda d: (
        torch.stack(
            [
                torch.eye(4),
                torch.diag(torch.tensor([1.0, 2, 0, 4])),
                -torch.eye(4),
                torch.diag(torch.tensor([1.0, 0, 3, 4])),
            ]
        ),
    ),
    states=ONCE,
    may_be_missing=True,
)


# Sizes past a kernel's limits: matrices of 256 in a batch, long inner sizes, more channels than 2**16.
cases.add(
    "condition-crossed-large-matrices",
    lambda a, b: {
        "lu": attempt(lambda: _rebuilt(a)),
        "cholesky": attempt(
            lambda: torch.linalg.cholesky(a @ a.mT / 64 + torch.eye(260, device=a.device, dtype=a.dtype))
        ),
        "solve": attempt(lambda: torch.linalg.solve(a, b)),
        "inverse": attempt(lambda: torch.linalg.inv(a) @ b),
        "triangular": attempt(lambda: torch.linalg.solve_triangular(a.tril(), b, upper=False)),
    },
    make=lambda d: (torch.eye(260) * 2 + d.normal(2, 260, 260) / 64, d.normal(2, 260, 3)),
    terms=4096,
    floor=4.0,
    states=ONCE,
)


def _rebuilt(a: torch.Tensor) -> torch.Tensor:
    p, lower, upper = torch.lu_unpack(*torch.linalg.lu_factor(a))
    return p @ lower @ upper


for _dtype in (torch.float32, torch.complex64, torch.float16):
    cases.add(
        f"condition-crossed-deep-{short(_dtype)}",
        lambda a, b, c: [
            *(a @ b, torch.addmm(c, a, b), torch.bmm(a[None], b[None]), torch.mv(a, b[:, 0]), torch.dot(a[0], b[:, 1])),
            *(F.linear(a, b.mT), torch.einsum("ik,kj->ij", a, b), torch.baddbmm(c[None], a[None], b[None], beta=2)),
        ],
        make=lambda d, dtype=_dtype: tuple(d.of(dtype, *s) / 16 for s in ((17, 10_007), (10_007, 18), (17, 18))),
        terms=10_007 if _dtype != torch.float16 else 64,
        floor=1.0,
        states=ONCE,
        may_be_missing=_dtype.is_complex,
    )
cases.add(
    "condition-crossed-many-channels",
    lambda x, w, b: [
        attempt(lambda: F.conv2d(x[:, :, None], w[:, :, None], b), gap="65536"),
        attempt(lambda: F.conv1d(x, w, b), gap="65536"),
        attempt(lambda: F.conv2d(x[:, :, :, None], w[:, :, :, None]), gap="65536"),
        F.linear(x[0].mT, w[:, :, 0], b),
    ],
    make=lambda d: (d.normal(1, 2, 3), d.normal(65_541, 2, 2), d.normal(65_541)),
    terms=8,
    states=ONCE,
)
