"""Edges that operators share: lines past 2**16, columns of long tensors, nothing inside, zeros, large counts."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf
from device_suite.answers import attempt

cases = Cases("conditions")
TWICE = ("fresh", "polluted")
_MIXED = "expected scalar type"


def _derived(form: Any, x: Any, g: Any) -> Any:
    start = leaf(x)
    return backward(form(start), start, grad=g)


def _each(forms: dict[str, Any], x: Any, *rest: Any) -> Any:
    return {name: attempt(lambda form=form: form(x, *rest)) for name, form in forms.items()}


# Lines longer than 2**16, along each dimension.
_LINES = {
    "sum": lambda x, dim: [
        x.sum(dim),
        x.mean(dim, keepdim=True),
        x.nansum([dim]),
        x.var(dim),
        x.std(dim, keepdim=True),
    ],
    "extremes": lambda x, dim: [x.amax(dim), x.amin(dim), *x.max(dim), *x.min(dim), x.argmax(dim), *x.aminmax(dim=dim)],
    "norms": lambda x, dim: [x.norm(2, dim), x.norm(1, dim), torch.linalg.vector_norm(x, float("inf"), dim)],
    "scans": lambda x, dim: [x.cumsum(dim), *x.cummax(dim), *x.cummin(dim), x.logcumsumexp(dim)],
    "sorts": lambda x, dim: [*x.sort(dim), *x.topk(20, dim), *x.kthvalue(40_000, dim), *x.median(dim)],
    "weights": lambda x, dim: [x.softmax(dim), x.log_softmax(dim), x.logsumexp(dim)],
    "moves": lambda x, dim: [x.flip(dim), x.roll(3, dim), torch.cat([x, x.flip(0, 1)], dim), x.diff(dim=dim)],
    "counts": lambda x, dim: [(x > 0).any(dim), (x > -9e9).all(dim), x.count_nonzero(dim), (x > 0).cumsum(dim)],
}
_SHAPES = {"rows": ((2, 70_001), -1), "columns": ((70_001, 2), 0), "across": ((2, 70_001), 0)}
for _name, _form in _LINES.items():
    for _way, (_shape, _dim) in _SHAPES.items():
        if (_name, _way) != ("sorts", "across"):
            cases.add(
                f"condition-edge-line-{_name}-{_way}",
                lambda x, form=_form, dim=_dim: form(x, dim),
                make=lambda d, shape=_shape: (d.distinct(*shape) / 1024,),
                terms=70_001,
                floor=1.0,
                states=TWICE,
            )


def _long(d: Any, rows: int) -> torch.Tensor:
    """Return a long table with something in it that is not a number, away from where it is cut."""
    table = d.normal(rows, 5 if rows > 9999 else 12).clamp(-8, 8) + 0.001
    return table.index_fill(1, torch.tensor([0]), float("inf"))


# Columns of a long tensor, as pieces of wide tables come.
_POINTWISE = {
    "tests": lambda x: [x.isfinite(), x.isinf(), x.isnan(), x > 0, x != x, x.signbit(), x.logical_not()],
    "functions": lambda x: [x.exp(), x.abs().sqrt(), x.sigmoid(), x.tanh(), x.neg(), x.square(), x.floor(), x.erf()],
    "arithmetic": lambda x: [x + 1, x * x, x / 2, x - x[:1], x * x[:, :1], x.clamp(-1, 1), x.where(x > 0, x * 2)],
    "activations": lambda x: [F.gelu(x), F.silu(x), F.relu(x), F.softmax(x, 1), F.layer_norm(x, x.shape[1:])],
    "conversions": lambda x: [x.to(torch.float16), x.to(torch.bfloat16), x.to(torch.int32), x.bool(), x.clone()],
    "lines": lambda x: [x.sum(0), x.cumsum(0), x.amax(0), x.argmin(0), x.mean(1), x.std(0), x.norm(dim=1)],
    "indices": lambda x: [
        x[3::7],
        x[x[:, 0] > 0],
        x.index_select(0, x[:, 1].argsort()[:5]),
        x.flip(0),
        x.t()[1:].sum(1),
    ],
}
for _name, _form in _POINTWISE.items():
    for _rows, _cut in ((2051, slice(4, 9)), (131_075, slice(1, None, 2))):
        cases.add(
            f"condition-edge-columns-{_name}-{_rows}",
            lambda base, form=_form, cut=_cut: form(base[:, cut]),
            make=lambda d, rows=_rows: (_long(d, rows),),
            terms=4096,
            floor=1.0,
            states=TWICE,
        )

# Counts that are larger than a kernel's argument buffer or its first shape.
cases.add(
    "condition-edge-counts",
    lambda x, i: _each(
        {
            "histc": lambda x, i: [torch.histc(x, bins, -2, 2) for bins in (8_200, 10_000, 70_000)],
            "bincount": lambda x, i: [torch.bincount(i, minlength=70_000), torch.bincount(i % 7)],
            "one_hot": lambda x, i: F.one_hot(i[:9] % 1031, 1031),
            "unique": lambda x, i: torch.unique(i + (1 << 40), return_inverse=True, return_counts=True),
            "unique_deep": lambda x, i: torch.unique(i[:4096].reshape(4, 32, 32) % 9, return_counts=True),
            "topk": lambda x, i: x.topk(1_500),
            "searchsorted": lambda x, i: torch.searchsorted(x.sort()[0], x[:77]),
            "embedding": lambda x, i: F.embedding(i[:50], x.reshape(-1, 1)),
        },
        x,
        i,
    ),
    make=lambda d: (d.distinct(20_000) / 8192, d.permutation(20_000)),
    states=TWICE,
)

# Zeros among complex numbers, and complex factors.
cases.add(
    "condition-edge-complex-zeros",
    lambda x: _each(
        {
            "powers": lambda x: [x**number for number in (1, 2, 3, 4)] + [x**2.0, x**0],
            "sizes": lambda x: [x.abs(), x.sgn(), x.angle(), x.square(), (x * 1e-30).abs(), (x * 1e30).abs()],
            "products": lambda x: [x * x, x * 0, x + x.conj(), x.prod(0), x.sum(0), x.cumsum(0), x.exp(), x.sqrt()],
            "quotients": lambda x: [x / 2, x / (1 + 2j), x / (x + 10)],
            "tests": lambda x: [x == 0, x.logical_not(), x.count_nonzero(), x.nonzero()],
        },
        x,
    ),
    make=lambda d: (d.of(torch.complex64, 6, 7).masked_fill(d.bools(6, 7), 0),),
    terms=16,
)
cases.add(
    "condition-edge-complex-factors",
    lambda a, b, c: _each(
        {
            "add": lambda a, b, c: [
                torch.add(a, b, alpha=2j),
                torch.sub(a, b, alpha=1 - 1j),
                torch.rsub(a, b, alpha=2j),
            ],
            "addmm": lambda a, b, c: [torch.addmm(a, b, c, alpha=1j), torch.addmm(a, b, c, beta=2 - 1j, alpha=0.5j)],
            "baddbmm": lambda a, b, c: torch.baddbmm(a[None], b[None], c[None], beta=1j, alpha=2 + 1j),
            "addmv": lambda a, b, c: torch.addmv(a[0], b, c[0], beta=2j, alpha=-1j),
            "addcmul": lambda a, b, c: [torch.addcmul(a, b, c, value=1 + 2j), torch.addcdiv(a, b, c + 9, value=2j)],
            "numbers": lambda a, b, c: [a * 1j, a + 2j, a - 1j, 1j / (a + 9), a == 1j, torch.full_like(a, 1 - 2j)],
        },
        a,
        b,
        c,
    ),
    make=lambda d: tuple(d.of(torch.complex64, 5, 5) for _ in range(3)),
    terms=16,
)

# Nothing inside: products over an inner size of 0, batches of none.
cases.add(
    "condition-edge-nothing",
    lambda x: _each(
        {
            "inner": lambda x: (
                [torch.baddbmm(x, x[:, :, :0], x[:, :0], beta=beta, alpha=3) for beta in (1, 0, 2)]
                + [torch.addbmm(x[0], x[:, :, :0], x[:, :0], beta=2), torch.bmm(x[:, :, :0], x[:, :0])]
            ),
            "batches": lambda x: [torch.addbmm(x[0], x[:0], x[:0], beta=2), torch.bmm(x[:0], x[:0]), x[:0] @ x[0]],
            "matrices": lambda x: [
                torch.addmm(x[0], x[0][:, :0], x[0][:0], beta=2),
                x[0][:, :0] @ x[0][:0],
                x[0][:0] @ x[0],
            ],
            "vectors": lambda x: [
                torch.addmv(x[0, 0], x[0][:, :0], x[0, 0, :0], beta=2),
                torch.dot(x[0, 0, :0], x[0, 0, :0]),
            ],
            "linear": lambda x: [F.linear(x[:, :, :0], x[0][:, :0], x[0, 0]), F.linear(x[:0], x[0])],
            "sums": lambda x: [
                x[:0].sum(),
                x[:0].sum(0),
                x[:0].prod(0),
                x[:0].mean(0),
                x[:, :0].var(1),
                x[:, :0].std(1),
            ],
            "tests": lambda x: [x[:0].any(), x[:0].all(), x[:0].count_nonzero(), x[:0].nonzero(), x[:0].isnan()],
            "joins": lambda x: [
                torch.cat([x[:0], x]),
                torch.stack([x[:0], x[:0]]),
                x[:0].repeat(2, 1, 1),
                x[:0].sort(0)[0],
            ],
        },
        x,
    ),
    make=lambda d: (d.normal(3 + d.k, 4, 4),),
    terms=16,
)

# Weights that are broadcast, and parameters of a wider dtype.
cases.add(
    "condition-edge-broadcast-weights",
    lambda x, y, w: (
        [
            F.binary_cross_entropy(x, y, weight, reduction=how)
            for weight in (w[:1], w[:, :1], w[0, :1], w[0])
            for how in ("none", "mean", "sum")
        ]
        + [F.binary_cross_entropy(x[None, :, :, None], y[None, :, :, None], reduction=how) for how in ("mean", "sum")]
    ),
    make=lambda d: (d.uniform(0.1, 0.9, 4 + d.k, 5), d.uniform(0, 1, 4 + d.k, 5), d.uniform(0.5, 2, 4 + d.k, 5)),
    terms=64,
)
for _dtype in (torch.float16, torch.bfloat16):
    cases.add(
        f"condition-edge-wider-parameters-{str(_dtype)[6:]}",
        lambda x, p, q: [
            attempt(lambda: F.batch_norm(x, p.clone(), q), gap=_MIXED),
            attempt(lambda: F.batch_norm(x, p.clone(), q, q, p), gap=_MIXED),
            attempt(lambda: F.batch_norm(x, p.clone(), q.clone(), training=True), gap=_MIXED),
            attempt(lambda: F.layer_norm(x.mT, (4,), q, p), gap=_MIXED),
            attempt(lambda: F.group_norm(x, 2, q, p), gap=_MIXED),
        ],
        make=lambda d, dtype=_dtype: (d.normal(3, 4, 9, dtype=dtype), d.normal(4), d.uniform(0.5, 2, 4)),
        terms=64,
        floor=1.0,
    )

cases.add(
    "condition-edge-from-the-end",
    lambda x: (
        [
            [
                x.var(dim),
                x.std(dim, keepdim=True),
                x.sum(dim),
                x.mean(dim),
                x.amax(dim),
                torch.var_mean(x, dim),
                x.norm(dim=dim),
            ]
            for dim in (-1, -2, -3, (-1, -3), (0, -1), (-2, -3))
        ]
        + [
            [x.argmax(dim), x.cumsum(dim), x.flip(dim), x.select(dim, -1), x.softmax(dim), x.sort(dim)[0]]
            for dim in (-1, -2, -3)
        ]
    ),
    make=lambda d: (d.distinct(3, 4, 5 + d.k) / 16,),
    terms=64,
)
cases.add(
    "condition-edge-signs-of-zero",
    lambda x: [
        y.signbit()
        for y in (
            x * 0.0,
            -x * 0.0,
            x.neg(),
            x / -3.0,
            x.abs(),
            x.trunc(),
            x.mul(-1),
            x.copysign(x.flip(0)),
            x.clone(),
            x * x.neg(),
        )
    ],
    make=lambda d: (torch.where(d.bools(5, 7), 0.0, 1.0) * (d.integers(0, 2, 5, 7) * 2 - 1),),
)


# Ranges of integers that float32 loses, and factories into views.
def _ranges(run: Any, n: int) -> Any:
    at = {"device": run.device, "dtype": torch.int64}
    answers = [
        torch.arange((1 << 24) + 1, (1 << 24) + 1 + n, **at),
        torch.arange((1 << 40) + 3, (1 << 40) + 3 + 5 * n, 5, **at),
        torch.arange(-(1 << 53) - 1, -(1 << 53) - 1 - n, -1, **at),
        torch.linspace(-(1 << 30), 1 << 30, 5, **at),
        torch.full((n,), (1 << 53) + 1, **at),
    ]
    for dtype in (torch.int32, torch.int16, torch.int8, torch.uint8):
        answers += [
            torch.arange(3, 3 + n, dtype=dtype, device=run.device),
            torch.linspace(0, 96, 9, dtype=dtype, device=run.device),
        ]
    return answers


def _into_views(run: Any, base: Any) -> Any:
    for out, form in (
        (base[1, :4, 1:5], lambda out: torch.eye(4, out=out)),
        (base[2, :, :3], lambda out: torch.eye(6, 3, out=out)),
        (base[0, 1:, 2], lambda out: torch.arange(5, out=out)),
        (base[0, 0], lambda out: torch.linspace(0, 5, 6, out=out)),
    ):
        form(out)
    return base.clone()


cases.add(
    "condition-edge-linspace-wide",
    lambda run, n: [
        torch.linspace(1 << 40, (1 << 40) + 8, n, dtype=torch.int64, device=run.device),
        torch.linspace(2, 9, 5, dtype=torch.int64, device=run.device),
    ],
    make=lambda d: (9,),
)
cases.add(
    "condition-edge-mixed-dtypes",
    lambda a, b, c, d: [
        *(a * b, b * a, a + b, a - b, a[0] * b, torch.maximum(a, b), a == b, a * b[0, 0]),
        *(a / 0, b / 0, a / torch.zeros_like(b), a.to(torch.uint8) / 0, -b / 0),
        *(torch.cat([c, d]), torch.cat([d, c]), torch.cat([c, a.clamp(-9, 9)], 1), torch.cat([a, b])),
    ],
    make=lambda d: (
        d.integers(-30_000, 30_000, 4, 5 + d.k, dtype=torch.int16),
        d.integers(-60_000, 60_000, 4, 5 + d.k, dtype=torch.int32),
        d.normal(4, 5 + d.k, dtype=torch.float16),
        d.normal(4, 5 + d.k),
    ),
)
cases.add("condition-edge-ranges", _ranges, make=lambda d: (7 + d.k,))
cases.add("condition-edge-factories-into-views", _into_views, make=lambda d: (d.normal(3, 6, 6),))
cases.add(
    "condition-edge-gradient-lines",
    lambda x, g: _derived(lambda y: y.logsumexp(0) * y.cumsum(0)[-1], x, g),
    make=lambda d: (d.normal(70_001, 2) / 300, d.normal(2)),
    terms=70_001,
    floor=1.0,
    states=TWICE,
)
