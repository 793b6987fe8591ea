"""Products spelled otherwise, and how results lie: einsum of every order, operands turned, an out= with strides."""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table

cases = Cases("conditions")


def _with_strides(found: Any) -> Any:
    return [found, str(found.stride())]


# Operands of (2, 3) and the like, dense or turned; results in each order of their letters.
_EQUATIONS = tuple(
    f"{one},{two}->{''.join(order)}"
    for one, two in (
        *itertools.product(("fd", "df"), ("bd", "db")),
        *(
            ("f", "b"),
            ("fb", "f"),
            ("f", "fb"),
            ("xfd", "xdb"),
            ("xdf", "xbd"),
            ("xfd", "db"),
            ("fb", "fb"),
            ("xfb", "fb"),
        ),
        *(("fx", "xdb"), ("fxd", "db"), ("xf", "xb"), ("fxd", "xdb")),
    )
    for order in itertools.permutations(
        sorted({*one, *two} - ({"d"} if "d" in two else {"x"} if two == "xb" else set()))
    )
    if len(order) < 4 and order
)
_SIZES = {"f": 3, "b": 5, "d": 4, "x": 2}


def _operand(x: torch.Tensor, letters: str, way: str) -> torch.Tensor:
    """Return a tensor with a side for each letter, dense or laid in the opposite order."""
    sides = [_SIZES[letter] for letter in letters]
    count = 1
    for side in sides:
        count *= side
    if way == "dense":
        return x[:count].reshape(sides)
    return x[:count].reshape(sides[::-1]).permute(*reversed(range(len(sides))))


def _summed(x: torch.Tensor, y: torch.Tensor, equation: str, ways: tuple[str, str]) -> torch.Tensor:
    one, two = equation.split("->", maxsplit=1)[0].split(",")
    return torch.einsum(equation, _operand(x, one, ways[0]), _operand(y, two, ways[1]))


for _dtype in (torch.float32, torch.complex64):
    for _ways in itertools.product(("dense", "turned"), repeat=2):
        add_table(
            cases,
            f"einsum-{'-'.join(_ways)}-{str(_dtype)[6:]}",
            {
                equation: lambda x, y, equation=equation, ways=_ways: _with_strides(_summed(x, y, equation, ways))
                for equation in _EQUATIONS
            },
            lambda d, dtype=_dtype: (d.of(dtype, 60), d.of(dtype, 60)),
        )
add_table(
    cases,
    "einsum-derived",
    {
        f"{equation}-{'-'.join(ways)}": lambda x, y, equation=equation, ways=ways: derived(
            lambda x, y: _summed(x, y, equation, ways), x, y
        )
        for equation in _EQUATIONS
        for ways in (("dense", "turned"), ("turned", "dense"))
    },
    lambda d: (d.normal(60), d.normal(60)),
)
# Products past 2**16 results, of operands and into results that are turned.
_LONG: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "outer": lambda x, y: torch.einsum("i,j->ij", x[0], y[0]),
    "outer-turned": lambda x, y: torch.einsum("i,j->ji", x[0], y[0]),
    "outer-matrices": lambda x, y: torch.einsum("ij,kl->ijkl", x[:2, :150].t(), y[:2, :160].t()),
    "outer-matrices-turned": lambda x, y: torch.einsum("ij,kl->klij", x[:2, :150].t(), y[:2, :160].t()),
    "outer-matrices-mixed": lambda x, y: torch.einsum("ij,kl->ljki", x[:2, :150].t(), y[:2, :160]),
    "product": lambda x, y: [torch.einsum("fd,bd->bf", x.t(), y.t()), torch.einsum("df,db->fb", x, y)],
    "product-t": lambda x, y: [x.T @ y, (y.T @ x).T, x.mT.mm(y), torch.mm(x.H, y), torch.inner(x.t(), y.t())],
    "tensordot": lambda x, y: torch.tensordot(x.t()[:150], y[:, :150], dims=([1], [0])),
    "linear": lambda x, y: [F.linear(x.t(), y.t()), F.linear(x.t().contiguous(), y.t())],
    "kron": lambda x, y: torch.kron(x[:, :40].t(), y[:, :60].t()),
    "outs": lambda x, y: [
        torch.mm(x.t(), y, out=x.new_full((300, 310), 7.0).t()),
        torch.matmul(x.t(), y, out=x.new_full((310, 600), 7.0)[:, ::2]),
    ],
}
for _dtype in (torch.float32, torch.float16, torch.complex64):
    add_table(
        cases,
        f"turned-long-{str(_dtype)[6:]}",
        _LONG,
        lambda d, dtype=_dtype: (d.of(dtype, 3, 310), d.of(dtype, 3, 300)),
    )

# Where a result goes: dense, turned, each second place, a part of a wider one, backwards in memory order.
_PLACES: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]] = {
    "dense": lambda y: ((base := torch.full_like(y, 7, memory_format=torch.contiguous_format)), base),
    "turned": lambda y: (
        (base := torch.full(y.shape[::-1], 7, dtype=y.dtype, device=y.device)),
        base.permute(tuple(reversed(range(y.dim())))),
    ),
    "stepped": lambda y: (
        (base := torch.full((*y.shape, 2), 7, dtype=y.dtype, device=y.device)),
        base[..., 1],
    ),
    "part": lambda y: (
        (base := torch.full(tuple(side + 3 for side in y.shape), 7, dtype=y.dtype, device=y.device)),
        base[tuple(slice(1, side + 1) for side in y.shape)],
    ),
    "gaps": lambda y: (
        (base := torch.full(tuple(side * 2 for side in y.shape), 7, dtype=y.dtype, device=y.device)),
        base[tuple(slice(None, None, 2) for _ in y.shape)],
    ),
}
# v a vector, m a matrix of (6, 5), s a square one near the unit, b of (2, 5, 4).
_INTO: dict[str, Callable[..., Any]] = {
    "topk-vector": lambda v, m, s, b, **k: torch.topk(v, 5, **k),
    "topk": lambda v, m, s, b, **k: torch.topk(m, 3, 0, **k),
    "topk-last": lambda v, m, s, b, **k: torch.topk(m, 2, **k),
    "sort-vector": lambda v, m, s, b, **k: torch.sort(v, descending=True, **k),
    "sort": lambda v, m, s, b, **k: torch.sort(m, 0, **k),
    "kthvalue": lambda v, m, s, b, **k: torch.kthvalue(m, 2, 1, **k),
    "median": lambda v, m, s, b, **k: torch.median(m, 0, **k),
    "max": lambda v, m, s, b, **k: torch.max(m, 0, **k),
    "min": lambda v, m, s, b, **k: torch.min(m, 1, keepdim=True, **k),
    "cummax": lambda v, m, s, b, **k: torch.cummax(m, 0, **k),
    "cummin": lambda v, m, s, b, **k: torch.cummin(v, 0, **k),
    "aminmax": lambda v, m, s, b, **k: torch.aminmax(m, dim=1, **k),
    "frexp": lambda v, m, s, b, **k: torch.frexp(m, **k),
    "qr": lambda v, m, s, b, **k: torch.linalg.qr(m, **k),
    "eigh": lambda v, m, s, b, **k: torch.linalg.eigh(s @ s.mT, **k),
    "svd": lambda v, m, s, b, **k: torch.linalg.svd(m, full_matrices=False, **k),
    "lu": lambda v, m, s, b, **k: torch.linalg.lu(s, **k),
    "lu_factor": lambda v, m, s, b, **k: torch.linalg.lu_factor(s, **k),
    "slogdet": lambda v, m, s, b, **k: torch.linalg.slogdet(torch.stack([s, s * 2]), **k),
    "inv_ex": lambda v, m, s, b, **k: torch.linalg.inv_ex(s, **k),
    "cholesky_ex": lambda v, m, s, b, **k: torch.linalg.cholesky_ex(s @ s.mT, **k),
    "inv": lambda v, m, s, b, **k: torch.linalg.inv(s, **k),
    "solve": lambda v, m, s, b, **k: torch.linalg.solve(s, b[0], **k),
    "triangular": lambda v, m, s, b, **k: torch.linalg.solve_triangular(s.triu(), b, upper=True, **k),
    "cholesky": lambda v, m, s, b, **k: torch.linalg.cholesky(s @ s.mT, **k),
    "mm": lambda v, m, s, b, **k: torch.mm(m, s, **k),
    "mm-turned": lambda v, m, s, b, **k: torch.mm(s.t(), m.t(), **k),
    "mv": lambda v, m, s, b, **k: torch.mv(m, v[:5], **k),
    "dot": lambda v, m, s, b, **k: torch.dot(v, v, **k),
    "bmm": lambda v, m, s, b, **k: torch.bmm(b.mT, b, **k),
    "matmul": lambda v, m, s, b, **k: torch.matmul(s, b, **k),
    "addmm": lambda v, m, s, b, **k: torch.addmm(m[:1], m, s, beta=2, **k),
    "addmv": lambda v, m, s, b, **k: torch.addmv(v[:6], m, v[:5], alpha=2, **k),
    "baddbmm": lambda v, m, s, b, **k: torch.baddbmm(b[:, :4, :4], b.mT, b, beta=0.5, **k),
    "addbmm": lambda v, m, s, b, **k: torch.addbmm(s[:4, :4], b.mT, b, **k),
    "outer": lambda v, m, s, b, **k: torch.outer(v, m[0], **k),
    "inner": lambda v, m, s, b, **k: torch.inner(m, s, **k),
    "kron": lambda v, m, s, b, **k: torch.kron(s[:2], m[:2], **k),
    "tensordot": lambda v, m, s, b, **k: torch.tensordot(m, s, 1, **k),
    "multi_dot": lambda v, m, s, b, **k: torch.linalg.multi_dot([m, s, m.mT], **k),
    "matrix_power": lambda v, m, s, b, **k: torch.linalg.matrix_power(s, 3, **k),
    "pinv": lambda v, m, s, b, **k: torch.linalg.pinv(m, **k),
    "cross": lambda v, m, s, b, **k: torch.linalg.cross(m[:3], m[3:], dim=0, **k),
    "cumsum": lambda v, m, s, b, **k: torch.cumsum(m, 0, **k),
    "logcumsumexp": lambda v, m, s, b, **k: torch.logcumsumexp(m, 1, **k),
    "sum": lambda v, m, s, b, **k: torch.sum(b, 1, **k),
    "norm": lambda v, m, s, b, **k: torch.linalg.vector_norm(b, dim=2, **k),
    "gather": lambda v, m, s, b, **k: torch.gather(m, 0, m.argsort(0), **k),
    "cat": lambda v, m, s, b, **k: torch.cat([m, s], **k),
    "stack": lambda v, m, s, b, **k: torch.stack([s, s], 1, **k),
    "tril": lambda v, m, s, b, **k: torch.tril(m, 1, **k),
}
# Of these the signs, or the directions in between, are open.
_SIGNED = ("qr", "eigh", "svd")


def _into(form: Any, operands: Any, place: Any, signed: bool) -> Any:
    """Return what an operator wrote into results that lie as asked, with all that is around them."""
    healthy = form(*operands)
    several = isinstance(healthy, tuple)
    pairs = [place(one) for one in (healthy if several else (healthy,))]
    views = tuple(view for _, view in pairs)
    form(*operands, out=views if several else views[0])
    found = [base for base, _ in pairs]
    return [[base.abs() for base in found] if signed else found, str([view.stride() for view in views])]


for _dtype in (torch.float32, torch.float16, torch.complex64):
    add_table(
        cases,
        f"out-places-{str(_dtype)[6:]}",
        {
            f"{name}-{way}": lambda *operands, form=form, place=place, name=name: _into(
                form, operands, place, name in _SIGNED
            )
            for name, form in _INTO.items()
            for way, place in _PLACES.items()
            if _dtype == torch.float32 or way in ("turned", "stepped")
        },
        lambda d, dtype=_dtype: (
            (d.distinct(9) / 8).to(dtype),
            (d.distinct(6, 5) / 8).to(dtype),
            d.of(dtype, 5, 5) / 16 + torch.eye(5).to(dtype) * 1.5,
            d.of(dtype, 2, 5, 4),
        ),
        factor=64.0,
    )
