"""Rules 1 and 3: what is made of numbers alone: grids, products of sets, powers, steps, triangles, windows; and norms.

A step of linspace was inexact, https://github.com/pytorch/pytorch/issues/4419; whole numbers past 2**24 came out
alike, https://github.com/pytorch/pytorch/issues/137635
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[..., Any]
L = torch.linalg

# x: 4 numbers; y: 3; z: 2.
_MADE: dict[str, Form] = {
    **{
        f"meshgrid-{indexing}-{count}": lambda x, y, z, indexing=indexing, count=count: [
            one * 1 for one in torch.meshgrid(*(x, y, z, x[:1])[:count], indexing=indexing)
        ]
        for indexing in ("ij", "xy")
        for count in (1, 2, 3, 4)
    },
    "meshgrid-ends": lambda x, y, z: [
        *torch.meshgrid(x[0], y, indexing="ij"),
        *torch.meshgrid(x[:0], y, indexing="xy"),
        *torch.meshgrid(x[::2], y.flip(0), indexing="xy"),
    ],
    "cartesian": lambda x, y, z: [torch.cartesian_prod(x), torch.cartesian_prod(x, y), torch.cartesian_prod(x, y, z)],
    "cartesian-none": lambda x, y, z: [torch.cartesian_prod(x[:0], y), torch.cartesian_prod(x, y[:1])],
    "combinations": lambda x, y, z: [
        torch.combinations(x[:n], r, with_replacement=again)
        for n in (0, 1, 4)
        for r in (1, 2, 3)
        for again in (False, True)
    ],
    "vander": lambda x, y, z: [torch.vander(x, n, up) for n in (None, 0, 1, 3) for up in (False, True)],
    "vander-rows": lambda x, y, z: [L.vander(x), L.vander(torch.stack([x, -x]), N=3), L.vander(x[:1], N=5)],
    "diagonals": lambda x, y, z: [
        [torch.diag(x, k), torch.diagflat(y, k), torch.diag_embed(x, k), torch.diag_embed(x, k, 1, 0)]
        for k in (-2, 0, 3)
    ],
    "triangles": lambda x, y, z: [
        [torch.outer(x, y).tril(k), torch.outer(y, x).triu(k)] for k in (-9, -3, -1, 0, 1, 2, 9, 2**31, -(2**31))
    ],
    "triangles-deep": lambda x, y, z: [x.expand(2, 3, 4).tril(k).triu(-k) for k in (0, 1, 2)],
    "triangles-in-place": lambda x, y, z: [torch.outer(x, y).tril_(1), torch.outer(x, y).mT.triu_(1)],
    "blocks": lambda x, y, z: [torch.block_diag(x, y[:, None], z.sum()), torch.block_diag(x[:0], y)],
    "repeated": lambda x, y, z: [
        x.repeat(2, 3),
        x.tile(2, 1),
        x.repeat_interleave(2),
        torch.kron(x, y),
        x.repeat(0, 2),
    ],
    "integrated": lambda x, y, z: [
        torch.trapezoid(x),
        torch.trapezoid(x, dx=0.5),
        torch.cumulative_trapezoid(x, x.cumsum(0)),
        *torch.gradient(x),
        *torch.gradient(x, spacing=2.0, edge_order=2),
        *torch.gradient(torch.outer(x, y), spacing=[0.5, 2.0]),
        *torch.gradient(x, spacing=(x.cumsum(0),)),
        *torch.gradient(torch.outer(x, y), dim=1),
    ],
    "differences": lambda x, y, z: [
        [x.diff(n), x.diff(n, prepend=z), x.diff(n, append=y[:1]), torch.outer(x, y).diff(n, dim=0)] for n in (0, 1, 2)
    ],
    "covariances": lambda x, y, z: [
        torch.cov(torch.stack([x, x.flip(0)]), correction=c, fweights=f, aweights=a)
        for c in (0, 1)
        for f in (None, torch.tensor([1, 2, 1, 3], device=x.device))
        for a in (None, x.abs())
    ],
    "corrcoef": lambda x, y, z: [torch.corrcoef(torch.stack([x, x.flip(0), x**2])), torch.corrcoef(x)],
    "distances": lambda x, y, z: [
        [torch.cdist(x[:, None], y[:, None], p), torch.dist(x, x.flip(0), p), F.pdist(x[:, None], p)]
        for p in (0.0, 0.5, 1.0, 2.0, 3.0, float("inf"))
    ],
    "norms": lambda x, y, z: [
        [L.vector_norm(one, p), torch.norm(one, p), L.norm(one, p), L.vector_norm(one, p, 0, True)]
        for p in (0, 1, 2, 3, 0.5, -1, -2, float("inf"), -float("inf"))
        for one in (x, y - y[0])
    ],
    "norms-none": lambda x, y, z: [[L.vector_norm(x[:0], p), x[:0].norm(p)] for p in (0, 0.5, 1, 2, 3)],
    "crossed": lambda x, y, z: [
        L.cross(y, x[:3]),
        L.cross(torch.outer(x, y), y[None]),
        torch.cross(y, y.flip(0), dim=0),
    ],
    "derived": lambda x, y, z: [
        derived(lambda a, b: torch.meshgrid(a, b, indexing="xy")[0] * 2, x, y),
        derived(lambda a, b: torch.cartesian_prod(a, b), x, y),
        derived(lambda a: torch.combinations(a, 2), x),
        derived(lambda a: L.vector_norm(a, 3), x),
    ],
}


def _numbers(d: Any, count: int, dtype: torch.dtype) -> torch.Tensor:
    """Return numbers above 0, halves where the dtype has them."""
    whole = d.distinct(count).abs() + 1
    return (whole if dtype == torch.int64 else whole / 2).to(dtype)  # type: ignore[no-any-return]


for _dtype in (torch.float32, *HALVES, torch.int64, torch.complex64):
    add_table(
        cases,
        f"made-grids-{str(_dtype)[6:]}",
        {
            name: form
            for name, form in _MADE.items()
            if _dtype == torch.float32
            or (
                not name.startswith(("integrated", "cov", "corr", "dist", "norms", "crossed", "derived"))
                and not (_dtype in HALVES and name == "vander-rows")
            )
        },
        lambda d, dtype=_dtype: tuple(_numbers(d, n, dtype) for n in (4, 3, 2)),
        terms=64,
        factor=16.0,
        since="2.1",
    )

# Steps between ends that each dtype has; into every other place, and into a column.
_ENDS: dict[str, tuple[Any, ...]] = {
    "arange": ((7,), (2, 9), (9, 0, -2), (-1, 1, 0.25), (5, 5), (2**24, 2**24 + 9, 2)),
    "linspace": ((0, 8, 9), (-4, 4, 5), (3, 3, 4), (1, -1, 3), (2, 5, 1), (2, 5, 0), (0, 8196, 4099)),
    "logspace": ((0, 4, 5, 2), (-2, 2, 5, 2), (3, 3, 2, 2), (1, 2, 0), (3, 1, 1)),
    "eye": ((3,), (2, 4), (4, 2), (0, 3), (1, 1)),
    "full": (((3, 2), 0.5), ((3, 2), -3), ((2,), 2**24 + 1)),
}
_ACTS: dict[str, Form] = {
    f"{name}-{ends}": lambda x, name=name, ends=ends, **o: getattr(torch, name)(*ends, **o)
    for name, some in _ENDS.items()
    for ends in some
} | {f"between-{n}": lambda x, n=n, **o: torch.linspace(x[0], x[1], n, **o) for n in (0, 1, 2, 5)}
# Not whole, or past what half a float has: what comes of them there is open.
_BROKEN = ("0.25", "0.5", "logspace", "between", "8196")
_PAST = ("16777", "8196")


def _into(act: Form, way: str, x: torch.Tensor) -> Any:
    if way in ("made", "half", "long"):
        return act(x, dtype={"made": x.dtype, "half": torch.float16, "long": torch.int64}[way], device=x.device)
    made = act(x, dtype=x.dtype, device=x.device)
    base = torch.full((*made.shape[:-1], 2 * made.shape[-1]), -7.0, dtype=x.dtype, device=x.device)
    if way == "stepped":
        part = base[..., ::2]
    else:
        part = base.mT.contiguous().mT[..., : made.shape[-1]] if base.dim() > 1 else base[: len(made)]
    act(x, out=part)
    return [part, base]


add_table(
    cases,
    "made-steps",
    {
        f"{name}-{way}": lambda x, act=act, way=way: _into(act, way, x)
        for name, act in _ACTS.items()
        for way in ("made", "half", "long", "stepped", "column")
        if not any(one in name for one in {"long": _BROKEN, "half": _PAST}.get(way, ()))
    },
    lambda d: (torch.tensor([1.0, 3.0]),),
    terms=16,
    since="2.1",
)
