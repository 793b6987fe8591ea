"""Products of batches of matrices, sums of products by characters and by sides."""

from __future__ import annotations

import torch

from engine.description import Table

from .matrices import ADDED, ALPHA, BETA, IGNORED, NAN, NO_ALPHA, M, placed

t = Table()

# (batch, rows, depth, columns)
BATCHED = {
    "main": (4, 5, 7, 3),
    "one": (1, 2, 9, 1),
    "long": (2, 3, 1031, 2),
    "tiles": (2, 32, 64, 16),
    "many": (130, 3, 4, 5),
    "empty": (0, 5, 7, 3),
    "prime": (3, 17, 31, 13),
    "single": (1, 5, 7, 3),
    "dots": (33, 1, 31, 1),
    "outers": (3, 33, 1, 5),
    "pairs": (2, 4, 2, 4),
    "columns": (2, 300, 3, 1),
    "rows": (2, 1, 33, 300),
    "points": (1031, 1, 1, 1),
    "deep": (2, 4, 300, 4),
    "hollow": (2, 5, 0, 3),
    "far": (20011, 2, 2, 1),
}
B = {**M, "sizes": BATCHED}
LESS = {key: size for key, size in BATCHED.items() if key != "far"}
FEW = {key: size for key, size in BATCHED.items() if key not in ("far", "points", "tiles")}
t.add("bmm", "any:0,1,2", "any:0,2,3", **{**B, "values": ("plain", "wide", "inf", "special")})
t.add(
    "baddbmm",
    "any:0,1,3",
    "any:0,1,2",
    "any:0,2,3",
    beta=BETA,
    alpha=ALPHA,
    **{**B, "values": ADDED["values"], "forms": ("call", "inplace", "out", "grad")},
)
t.add(
    "baddbmm_ignored",
    NAN(0, 1, 3),
    "any:0,1,2",
    "any:0,2,3",
    paths=("torch.baddbmm", "Tensor.baddbmm"),
    **{**IGNORED, "sizes": BATCHED},
)
t.add(
    "addbmm",
    "any:1,3",
    "any:0,1,2",
    "any:0,2,3",
    beta=BETA,
    alpha=ALPHA,
    **{**B, "values": ADDED["values"], "terms": 256, "forms": ("call", "inplace", "out", "grad"), "sizes": LESS},
)
for name, forms, given in (
    ("baddbmm", (lambda c: c.shape[3:], lambda c: (c.shape[1], 1), lambda c: (c.shape[0], 1, 1), lambda c: ()), B),
    ("addbmm", (lambda c: c.shape[3:], lambda c: (c.shape[1], 1), lambda c: ()), {**B, "terms": 256}),
):
    t.add(
        f"{name}_row",
        placed(*forms),
        "any:0,1,2",
        "any:0,2,3",
        act=lambda x, a, b, of, name=name, **k: getattr(torch, name)(x, a, b, **k),
        _of=tuple(range(len(forms))),
        beta=BETA,
        alpha=NO_ALPHA,
        **{**given, "values": ADDED["values"], "sizes": FEW},
    )
t.add("matmul_broadcast", "any:0,1,2", "any:2,3", paths=("torch.matmul", "Tensor.matmul"), **B)
t.add("matmul_vector", "any:0,1,2", "any:2", paths=("torch.matmul", "Tensor.matmul"), **B)
t.add(
    "matmul_deep",
    lambda c: c.draw("any", (2, *c.shape[:3])),
    lambda c: c.draw("any", (c.shape[0], c.shape[2], c.shape[3])),
    paths=("torch.matmul", "Tensor.matmul"),
    **{**B, "sizes": FEW},
)
t.add(
    "einsum",
    "any:0,1,2",
    "any:0,2,3",
    act=lambda x, y, how: torch.einsum(how, x, y),
    _how=(
        *("bij,bjk->bik", "bij,bjk->ik", "bij,bjk->bki", "bij,cjk->bci", "bij,bjk", "bij,bjk->"),
        *("bij,bjk->b", "...ij,...jk->...ik", "bij,bjk->i", "bij,cjd->bcid"),
    ),
    **{
        **B,
        "forms": ("call", "grad"),
        "terms": 256,
        "sizes": {k: v for k, v in FEW.items() if k not in ("rows", "columns", "many")},
    },
)
t.add(
    "tensordot",
    "any:0,1,2",
    "any:1,2,3",
    act=lambda x, y, d: torch.tensordot(x, y, d),
    _d=(2, ([1, 2], [0, 1]), ([2], [1]), ([-1], [-2]), ([2, 1], [1, 0])),
    **{
        **B,
        "forms": ("call", "grad"),
        "terms": 256,
        "sizes": {k: FEW[k] for k in ("main", "one", "prime", "single", "outers", "pairs", "dots", "hollow")},
    },
)
