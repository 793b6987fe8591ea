"""Rule 3: a side of 1, 2 or 3 beside long ones, a single matrix, one query and one key, a short side before the last.

Places along a side of 1 in 2**15 rows: https://github.com/pytorch/pytorch/issues/40022; sums over a short side that is
not the last: https://github.com/ml-explore/mlx/issues/3784
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.answers import attempt
from device_suite.limits import ONCE, each
from device_suite.ops import FLOATS

cases = Cases("conditions")
Form = Callable[..., Any]
_FIELDS: dict[str, Any] = {"floor": 1.0, "states": ONCE, "may_be_missing": True}


def _named(*names: str, **options: Any) -> dict[str, Form]:
    return {name: lambda x, dim, name=name: getattr(torch, name)(x, dim=dim, **options) for name in names}


_FORMS: dict[str, dict[str, Form]] = {
    "ends": _named("argmax", "argmin", "amax", "amin", "max", "min", "aminmax", "cummax", "cummin"),
    "sorted": {
        **_named("sort", "argsort", "median"),
        "descending": lambda x, dim: x.sort(dim=dim, stable=True, descending=True),
        "topk": lambda x, dim: x.topk(1, dim),
        "kthvalue": lambda x, dim: x.kthvalue(1, dim),
        "flip": lambda x, dim: [x.flip(dim), x.roll(1, dim), x.diff(dim=dim)],
    },
    "reduced": _named("sum", "prod", "count_nonzero", "any", "all", "cumsum", "cumprod"),
}
_FRACTIONS: dict[str, dict[str, Form]] = {
    "averaged": {
        **_named("mean", "nansum", "nanmean", "logsumexp"),
        **_named("var_mean", "std_mean", correction=0),
        **{f"norm-{p}": lambda x, dim, p=p: torch.linalg.vector_norm(x, p, dim) for p in (0, 1, 2, math.inf)},
    },
    "weighed": {
        **_named("softmax", "log_softmax", "logcumsumexp"),
        "normalize": lambda x, dim: F.normalize(x, dim=dim),
        "layer_norm": lambda x, dim: F.layer_norm(x, x.shape[-1:]),
        "rms_norm": lambda x, dim: F.rms_norm(x, x.shape[-1:]),
        "softmin": lambda x, dim: F.softmin(x, dim=dim),
    },
    "derived": {
        name: lambda x, dim, name=name: derived(lambda a: getattr(torch, name)(a, dim=dim), x)
        for name in ("sum", "amax", "prod", "softmax", "log_softmax", "cumsum", "cumprod", "logsumexp")
    },
}
_ROWS = (1 << 15) + 3


def _drawn(d: Any, name: str, side: int, dtype: torch.dtype) -> torch.Tensor:
    """Return rows of distinct numbers where places are answered, and no zero where products are derived."""
    if not dtype.is_floating_point or name in ("ends", "sorted"):
        return d.distinct(_ROWS, side, dtype=dtype)  # type: ignore[no-any-return]
    return d.uniform(0.5, 1.5, _ROWS, side, dtype=dtype) if name == "derived" else d.normal(_ROWS, side, dtype=dtype)  # type: ignore[no-any-return]


def _both_ways(forms: dict[str, Form], *bases: torch.Tensor) -> Any:
    """Ask along the short side of many rows, as the last side and as the first."""
    return [[each(forms, x, 1), each(forms, x.t().contiguous(), 0)] for x in bases]


for _dtype in (torch.float32, torch.int64, torch.float16):
    _tables = _FORMS if _dtype == torch.int64 else _FRACTIONS if _dtype == torch.float16 else _FORMS | _FRACTIONS
    for _name, _forms in _tables.items():
        cases.add(
            f"threshold-short-{_name}-{str(_dtype)[6:]}",
            lambda *bases, forms=_forms: _both_ways(forms, *bases),
            make=lambda d, dtype=_dtype, name=_name: tuple(
                _drawn(d, name, side, dtype) for side in ((1, 2, 3) if name not in ("averaged", "derived") else (1, 3))
            ),
            terms=16,
            full=_dtype != torch.float32,
            quiet=_dtype != torch.float32,
            **_FIELDS,
        )

# Triangles and diagonals of matrices with a side of 1, above, on and below each of their diagonals.
_SHAPES = ((5, 1), (1, 5), (1, 1), (5, 2), (2, 5), (3, 5, 1), (3, 1, 5), (2, 3, 1, 1), (_ROWS, 1), (1, _ROWS))
_CUT: dict[str, Form] = {
    "tril": lambda x, k: x.tril(k),
    "triu": lambda x, k: x.triu(k),
    "in-place": lambda x, k: [x.clone().tril_(k), x.clone().triu_(k)],
    "turned": lambda x, k: [x.mT.tril(k), x.mT.triu(k)],
    "derived": lambda x, k: derived(lambda a: a.tril(k) + a.triu(k + 1), x.float()),
}
for _dtype in (torch.float32, torch.uint8):
    cases.add(
        f"threshold-short-cut-{str(_dtype)[6:]}",
        lambda *bases: [each(_CUT, x, k) for x in bases for k in (-2, -1, 0, 1)],
        make=lambda d, dtype=_dtype: tuple(d.of(dtype, *shape) for shape in _SHAPES),
        **_FIELDS,
    )

# Batches of one, two and three small matrices.
_PRODUCTS: dict[str, Form] = {
    "bmm": torch.bmm,
    "baddbmm": lambda a, b: torch.baddbmm(b, a, b, beta=0.5, alpha=2),
    "addbmm": lambda a, b: torch.addbmm(b[0], a, b),
    "matmul": lambda a, b: [a @ b, a @ b[0], a[0] @ b, a @ b[:, :, 0, None]],
    "turned": lambda a, b: [torch.bmm(a.mT, b), torch.bmm(a, b.mT), torch.bmm(a.mT, b.mT)],
    "mm": lambda a, b: [torch.mm(a[0], b[0]), torch.mv(a[0], b[0, 0]), F.linear(a, b[0]), F.bilinear(a[0], b[0], a)],
    "einsum": lambda a, b: torch.einsum("bij,bjk->bik", a, b),
    "derived": lambda a, b: derived(torch.bmm, a, b),
}
_SOLVED: dict[str, Form] = {
    "solve": lambda a, b: torch.linalg.solve(_solvable(a), b),
    "triangular": lambda a, b: torch.linalg.solve_triangular(_solvable(a).tril(), b, upper=False),
    "inverse": lambda a, b: torch.linalg.inv(_solvable(a)),
    "determinant": lambda a, b: torch.linalg.det(_solvable(a)),
    "cholesky": lambda a, b: torch.linalg.cholesky(_solvable(a @ a.mT)),
}


def _solvable(a: torch.Tensor) -> torch.Tensor:
    return a / 8 + 2 * torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)


for _dtype in FLOATS:
    cases.add(
        f"threshold-short-matrices-{str(_dtype)[6:]}",
        lambda *bases, forms=_PRODUCTS | (_SOLVED if _dtype == torch.float32 else {}): [
            each(forms, a, b) for a, b in bases
        ],
        make=lambda d, dtype=_dtype: tuple(
            (d.normal(batch, side, side, dtype=dtype), d.normal(batch, side, side, dtype=dtype))
            for side in (1, 2, 3, 4, 5, 8, 16, 17)
            for batch in (1, 2, 3)
        ),
        terms=64,
        **_FIELDS,
    )

# One or two queries and keys, with a mask of each shape that spreads over batches and heads.
_MASKS = ((), (3,), (1,), (2, 1), (2, 3))  # its sides before the queries and the keys


def _attended(q: Any, k: Any, v: Any, noise: Any) -> Any:
    answers = [F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True)]
    for front in _MASKS:
        shape = (*front, q.shape[-2], k.shape[-2])
        mask = noise.flatten()[: math.prod(shape)].view(shape)
        for one in (mask, mask > -9):
            form = partial(F.scaled_dot_product_attention, attn_mask=one)
            answers.append(attempt(partial(derived, form, q, k, v)))
    return answers


for _dtype in FLOATS:
    cases.add(
        f"threshold-short-attention-{str(_dtype)[6:]}",
        lambda *bases: [_attended(*one) for one in bases],
        make=lambda d, dtype=_dtype: tuple(
            (
                d.normal(2, 3, queries, 8, dtype=dtype),
                *(d.normal(2, 3, keys, 8, dtype=dtype) for _ in range(2)),
                d.normal(2, 3, queries, keys, dtype=dtype),
            )
            for queries, keys in ((1, 1), (1, 2), (2, 1))
        ),
        terms=16,
        since="2.1",
        **_FIELDS,
    )
