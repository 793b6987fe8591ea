"""Rule 3: whole numbers past 2**53, and past the end of int64, in all that multiplies and adds: every bit is right.

A product that goes through float64 loses what is past 2**53, https://github.com/IntelPython/dpnp/issues/2270; sums
and products past the end begin anew, as those of the CPU do.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import add_table

cases = Cases("conditions")

# a, b: (4, 5) and (5, 3); x, y: 7 numbers each.
_PRODUCTS: dict[str, tuple[Callable[..., Any], ...]] = {
    "dot": (
        lambda a, b, x, y: torch.dot(x, y),
        lambda a, b, x, y: torch.vdot(x, y),
        lambda a, b, x, y: torch.inner(x, y),
        lambda a, b, x, y: x @ y,
    ),
    "mv": (
        lambda a, b, x, y: torch.mv(a, b[:, 0]),
        lambda a, b, x, y: a @ b[:, 1],
        lambda a, b, x, y: b[:, 2] @ a.mT,
    ),
    "mm": (
        lambda a, b, x, y: torch.mm(a, b),
        lambda a, b, x, y: a @ b,
        lambda a, b, x, y: a.mT.contiguous().mT @ b,
        lambda a, b, x, y: torch.mm(b.mT, a.mT),
    ),
    "bmm": (
        lambda a, b, x, y: torch.bmm(a.expand(3, 4, 5), b.expand(3, 5, 3)),
        lambda a, b, x, y: torch.matmul(a.expand(2, 1, 4, 5), torch.stack([b, -b])),
        lambda a, b, x, y: torch.baddbmm(b[:1], a.expand(3, 4, 5), torch.stack([b, b + 1, b - 1])),
        lambda a, b, x, y: torch.addbmm(b[:1], a.expand(3, 4, 5), torch.stack([b, b + 1, b - 1])),
    ),
    "tensordot": (
        lambda a, b, x, y: torch.tensordot(a, b, 1),
        lambda a, b, x, y: torch.tensordot(x, y, 0),
        lambda a, b, x, y: torch.tensordot(a, a, 2),
    ),
    "einsum": (
        lambda a, b, x, y: torch.einsum("ij,jk->ik", a, b),
        lambda a, b, x, y: torch.einsum("ij,ij->", a, a + 1),
        lambda a, b, x, y: torch.einsum("i,j->ij", x, y),
        lambda a, b, x, y: torch.einsum("ij->j", a),
    ),
    "outer": (
        lambda a, b, x, y: torch.outer(x, y),
        lambda a, b, x, y: torch.inner(a, b.mT),
        lambda a, b, x, y: torch.kron(x[:2], y),
        lambda a, b, x, y: torch.kron(a, b[:2]),
    ),
    "addmm": (
        lambda a, b, x, y: torch.addmm(b[:1], a, b),
        lambda a, b, x, y: torch.addmm(b[:1], a, b, beta=3, alpha=-2),
        lambda a, b, x, y: torch.addmv(x[:4], a, b[:, 0]),
        lambda a, b, x, y: torch.addr(b[:, :1], b[:, 1], b[0]),
    ),
    "chained": (
        lambda a, b, x, y: torch.chain_matmul(a, b, b.mT) if hasattr(torch, "chain_matmul") else a,
        lambda a, b, x, y: torch.linalg.multi_dot([a, b, b.mT]),
        lambda a, b, x, y: torch.linalg.matrix_power(a[:, :4], 3),
        lambda a, b, x, y: torch.block_diag(a, b),
    ),
    "crossed": (
        lambda a, b, x, y: torch.linalg.cross(a[:, :3], a[:, 1:4]),
        lambda a, b, x, y: torch.mul(a, a + 1).sum(1),
        lambda a, b, x, y: torch.cartesian_prod(x[:2], y[:2]),
        lambda a, b, x, y: torch.vander(x, 4),
    ),
    "linear": (
        lambda a, b, x, y: F.linear(a, b.mT),
        lambda a, b, x, y: F.linear(a, b.mT, b[0]),
    ),
    "sum": (
        lambda a, b, x, y: a.sum(),
        lambda a, b, x, y: a.sum(0),
        lambda a, b, x, y: a.sum(1),
        lambda a, b, x, y: x.sum(),
        lambda a, b, x, y: x.nansum(),
        lambda a, b, x, y: a.trace(),
        lambda a, b, x, y: b[:, :2].sum((0, 1)),
    ),
    "prod": (
        lambda a, b, x, y: a.prod(),
        lambda a, b, x, y: a.prod(0),
        lambda a, b, x, y: a.prod(1),
        lambda a, b, x, y: x.prod(),
        lambda a, b, x, y: y[:2].prod(),
    ),
    "running": (
        lambda a, b, x, y: a.cumsum(0),
        lambda a, b, x, y: a.cumsum(1),
        lambda a, b, x, y: x.cumsum(0),
        lambda a, b, x, y: x.cumprod(0),
        lambda a, b, x, y: a.cumprod(0),
        lambda a, b, x, y: a.cumprod(1),
        lambda a, b, x, y: x.diff(),
        lambda a, b, x, y: a.diff(dim=0),
        lambda a, b, x, y: x.diff(2),
        lambda a, b, x, y: x.flip(0).cumsum(0),
    ),
    "three": (
        lambda a, b, x, y: torch.addcmul(x, x, y),
        lambda a, b, x, y: torch.addcmul(x, x, y, value=-3),
        lambda a, b, x, y: torch.add(x, y, alpha=5),
        lambda a, b, x, y: x.sub(y, alpha=-7),
        lambda a, b, x, y: x * y,
        lambda a, b, x, y: x + y,
        lambda a, b, x, y: x - y,
        lambda a, b, x, y: -x,
        lambda a, b, x, y: x.square(),
        lambda a, b, x, y: x**3,
        lambda a, b, x, y: x.abs(),
        lambda a, b, x, y: 3 * x - 2,
        lambda a, b, x, y: torch.rsub(x, 1),
        lambda a, b, x, y: x * 10**17,
    ),
    "written": (
        lambda a, b, x, y: x.clone().mul_(y),
        lambda a, b, x, y: x.clone().add_(y, alpha=9),
        lambda a, b, x, y: x.clone().addcmul_(x, y),
        lambda a, b, x, y: a.clone().cumsum_(1),
        lambda a, b, x, y: x.clone().sub_(1),
        lambda a, b, x, y: torch.mm(a, b, out=a.new_empty(4, 3)),
        lambda a, b, x, y: torch.dot(x, y, out=x.new_empty(())),
    ),
    "gathered": (
        lambda a, b, x, y: x.scatter_add(0, torch.arange(7, device=x.device) % 2, y),
        lambda a, b, x, y: x.index_add(0, torch.arange(7, device=x.device) % 3, y, alpha=3),
        lambda a, b, x, y: x.clone().index_put_((torch.arange(7, device=x.device) % 2,), y, accumulate=True),
        lambda a, b, x, y: x.scatter_reduce(0, torch.arange(7, device=x.device) % 2, y, "prod"),
        lambda a, b, x, y: a.put(torch.tensor([3, 3, 5], device=x.device), y[:3], accumulate=True),
    ),
    "divided": (
        lambda a, b, x, y: x // 3,
        lambda a, b, x, y: x % 1000,
        lambda a, b, x, y: x // y,
        lambda a, b, x, y: x % y,
        lambda a, b, x, y: torch.fmod(x, y),
        lambda a, b, x, y: torch.div(x, y, rounding_mode="trunc"),
        lambda a, b, x, y: x // -(10**9),
        lambda a, b, x, y: x.gcd(y),
        lambda a, b, x, y: x << 1,
        lambda a, b, x, y: x >> 3,
        lambda a, b, x, y: x & y,
        lambda a, b, x, y: x ^ y,
        lambda a, b, x, y: x.clamp(-(2**60), 2**60),
        lambda a, b, x, y: torch.maximum(x, y),
    ),
    "compared": (
        lambda a, b, x, y: x == x + 1,
        lambda a, b, x, y: x < x + 1,
        lambda a, b, x, y: x.sort()[0],
        lambda a, b, x, y: x.argsort(),
        lambda a, b, x, y: x.amax(),
        lambda a, b, x, y: a.argmax(1),
        lambda a, b, x, y: x.unique(),
        lambda a, b, x, y: torch.isin(x, x + 1),
        lambda a, b, x, y: x.eq(2**53 + 1),
        lambda a, b, x, y: torch.searchsorted(x.sort()[0], x),
        lambda a, b, x, y: x.kthvalue(3)[0],
        lambda a, b, x, y: x.median(),
        lambda a, b, x, y: torch.where(x > y, x, y),
        lambda a, b, x, y: x.cummax(0)[0],
    ),
}


_FORMS = {f"{name}-{number}": form for name, forms in _PRODUCTS.items() for number, form in enumerate(forms)}


def _numbers(low: int, high: int) -> Callable[[Any], tuple[torch.Tensor, ...]]:
    """Draw odd numbers, with both signs, so that a lost bit shows; none is 0."""

    def make(d: Any) -> tuple[torch.Tensor, ...]:
        return tuple(
            (d.integers(low, high, *shape) * 2 + 1) * (d.integers(0, 2, *shape) * 2 - 1)
            for shape in ((4, 5), (5, 3), (7,), (7,))
        )

    return make


for _name, _low, _high in (("exact", 2**26, 2**28), ("vast", 2**53, 2**58), ("past", 2**61, 2**62)):
    add_table(cases, f"products-{_name}", _FORMS, _numbers(_low, _high))
