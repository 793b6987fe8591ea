"""Products of matrices and vectors."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .spec import ABSENT, Table

t = Table()

FULL = ("call", "out", "grad")
# (rows, depth, columns)
SIDES = {
    "main": (5, 7, 3),
    "one": (1, 9, 1),
    "long": (3, 1031, 2),
    "tiles": (32, 64, 48),
    "high": (1031, 3, 5),
    "empty": (0, 7, 3),
    "hollow": (5, 0, 3),
    "prime": (17, 31, 67),
    "wide": (2, 5, 1031),
}
M = {"dtypes": "fic", "values": ("plain",), "forms": FULL, "terms": 64, "factor": 16.0, "floor": 1.0, "sizes": SIDES}
WIDE = {**M, "values": ("plain", "wide", "inf")}
t.add("mm", "any:0,1", "any:1,2", **WIDE)
t.add("matmul", "any:0,1", "any:1,2", **WIDE)
t.add("mv", "any:0,1", "any:1", **M)
t.add("dot", "any:1", "any:1", **M)
t.add("vdot", "any:1", "any:1", **M)
t.add("inner", "any:0,1", "any:2,1", **M)
t.add("outer", "any:0", "any:2", **M)
t.add(
    "linear",
    "any:0,1",
    "any:2,1",
    lambda c: c.draw("any", (c.shape[2],)) if c.args["_b"] else None,
    act=lambda x, w, b, flag: F.linear(x, w, b),
    _b=(True, False),
    **{**M, "forms": ("call", "grad")},
)
t.add(
    "linear_deep",
    lambda c: c.draw("any", (2, 3, *c.shape[:2])),
    "any:2,1",
    lambda c: c.draw("any", (c.shape[2],)),
    act=lambda x, w, b: F.linear(x, w, b),
    **{**M, "forms": ("call", "grad"), "sizes": {k: SIDES[k] for k in ("main", "one", "tiles", "prime", "empty")}},
)
t.add("linear_one", "any:1", "any:2,1", act=lambda x, w: F.linear(x, w), **{**M, "forms": ("call", "grad")})
for name, first in (("addmm", (0, 2)), ("addmv", (0,)), ("addr", None)):
    second, third = {"addmm": ("any:0,1", "any:1,2"), "addmv": ("any:0,1", "any:1"), "addr": ("any:0", "any:2")}[name]
    t.add(
        name,
        "any:0,2" if name != "addmv" else "any:0",
        second,
        third,
        beta=(ABSENT, 2, 0),
        alpha=(ABSENT, -1, 3),
        **{**M, "forms": ("call", "inplace", "out", "grad")},
    )
NAN = lambda *sides: lambda c: c.draw("any", [c.shape[side] for side in sides]) * float("nan")
IGNORED = {**M, "dtypes": "f", "forms": ("call", "inplace"), "beta": (0,), "alpha": (ABSENT, 3)}
t.add("addmm_ignored", NAN(0, 2), "any:0,1", "any:1,2", paths=("torch.addmm", "Tensor.addmm"), **IGNORED)
t.add("addmv_ignored", NAN(0), "any:0,1", "any:1", paths=("torch.addmv", "Tensor.addmv"), **IGNORED)
t.add("addr_ignored", NAN(0, 2), "any:0", "any:2", paths=("torch.addr", "Tensor.addr"), **IGNORED)
t.add("addmm_row", "any:2", "any:0,1", "any:1,2", beta=(ABSENT, 2), alpha=(ABSENT, 3), paths=("torch.addmm",), **M)
BATCHED = {
    "main": (4, 5, 7, 3),
    "one": (1, 2, 9, 1),
    "long": (2, 3, 1031, 2),
    "tiles": (2, 32, 64, 16),
    "many": (130, 3, 4, 5),
    "empty": (0, 5, 7, 3),
    "prime": (3, 17, 31, 13),
}
B = {**M, "sizes": BATCHED}
t.add("bmm", "any:0,1,2", "any:0,2,3", **{**B, "values": ("plain", "wide", "inf")})
t.add(
    "baddbmm",
    "any:0,1,3",
    "any:0,1,2",
    "any:0,2,3",
    beta=(ABSENT, 2, 0),
    alpha=(ABSENT, -1, 3),
    **{**B, "forms": ("call", "inplace", "out", "grad")},
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
    beta=(ABSENT, 2, 0),
    alpha=(ABSENT, 3),
    **{**B, "terms": 256, "forms": ("call", "inplace", "out", "grad")},
)
t.add("matmul_broadcast", "any:0,1,2", "any:2,3", paths=("torch.matmul", "Tensor.matmul"), **B)
t.add("matmul_vector", "any:0,1,2", "any:2", paths=("torch.matmul", "Tensor.matmul"), **B)
t.add(
    "matmul_deep",
    lambda c: c.draw("any", (2, *c.shape[:3])),
    lambda c: c.draw("any", (c.shape[0], c.shape[2], c.shape[3])),
    paths=("torch.matmul", "Tensor.matmul"),
    **{**B, "sizes": {k: BATCHED[k] for k in ("main", "one", "prime", "empty")}},
)
t.add(
    "einsum",
    "any:0,1,2",
    "any:0,2,3",
    act=lambda x, y, how: torch.einsum(how, x, y),
    _how=("bij,bjk->bik", "bij,bjk->ik", "bij,bjk->bki", "bij,cjk->bci"),
    **{**B, "forms": ("call", "grad"), "terms": 256, "sizes": {k: BATCHED[k] for k in ("main", "one", "prime")}},
)
t.add(
    "tensordot",
    "any:0,1,2",
    "any:1,2,3",
    act=lambda x, y, d: torch.tensordot(x, y, d),
    _d=(2,),
    **{**B, "forms": ("call", "grad"), "terms": 256, "sizes": {k: BATCHED[k] for k in ("main", "one", "prime")}},
)
t.add(
    "bilinear",
    "any:1,0",
    "any:1,2",
    lambda c: c.draw("any", (4, c.shape[0], c.shape[2])),
    act=lambda x, y, w: F.bilinear(x, y, w),
    **{**M, "forms": ("call", "grad"), "terms": 256, "sizes": {k: SIDES[k] for k in ("main", "one", "prime")}},
)
t.add("kron", "any:0,1", "any:1,2", **{**M, "sizes": {k: SIDES[k] for k in ("main", "one", "empty")}})
t.add(
    "multi_dot",
    "any:0,1",
    "any:1,2",
    "any:2,0",
    act=lambda x, y, z: torch.linalg.multi_dot([x, y, z]),
    **{**M, "forms": ("call", "grad"), "terms": 512, "sizes": {k: SIDES[k] for k in ("main", "one", "prime")}},
)
t.add(
    "cdist",
    "any:0,1",
    "any:2,1",
    p=(ABSENT, 1.0, 0.0, 3.0, float("inf")),
    compute_mode=(ABSENT, "donot_use_mm_for_euclid_dist"),
    dtypes="s",
    values=("plain",),
    forms=("call", "grad"),
    terms=256,
    factor=64.0,
    floor=4.0,
    sizes={k: SIDES[k] for k in ("main", "one", "prime", "long", "empty")},
)
t.add(
    "cross",
    lambda c: c.draw("any", (*c.shape, 3)),
    lambda c: c.draw("any", (*c.shape, 3)),
    dim=(-1,),
    paths=("torch.cross", "linalg.cross", "Tensor.cross"),
    dtypes="fic",
    values=("plain", "wide"),
    forms=FULL,
    terms=4,
    wide_floor=48.0,  # half types round each of the two products
    sizes=("small", "none", "empty", "line", "three"),
)
t.add(
    "cross_first",
    lambda c: c.draw("any", (3, *c.shape)),
    lambda c: c.draw("any", (3, *c.shape)),
    dim=(0,),
    paths=("torch.cross", "linalg.cross", "Tensor.cross"),
    dtypes="fic",
    values=("plain", "wide"),
    forms=FULL,
    terms=4,
    wide_floor=48.0,  # half types round each of the two products
    sizes=("small", "none", "empty", "line", "three"),
)
t.add(
    "linalg_vecdot",
    "any",
    "any",
    dim=(ABSENT, 0),
    dtypes="fc",
    values=("plain",),
    forms=("call", "out", "grad"),
    terms="all",
    floor=1.0,
    sizes=("small", "four", "line", "long", "three"),
)
t.add(
    "cov",
    dtypes="f",
    correction=(ABSENT, 0),
    values=("plain",),
    forms=("call", "grad"),
    terms=64,
    factor=32.0,
    floor=1.0,
    sizes=("small", "line", "long"),
)
t.add(
    "corrcoef",
    dtypes="s",
    values=("plain",),
    forms=("call",),
    terms=64,
    factor=64.0,
    floor=1.0,
    sizes=("small", "long"),
)
t.add(
    "matrix_norm",
    act=lambda x, **k: torch.linalg.matrix_norm(x, **k),
    ord=("fro", 1, -1, float("inf"), float("-inf"), "nuc", 2),
    keepdim=(False, True),
    dim=((-2, -1), (0, 1)),
    dtypes="s",
    values=("plain",),
    forms=("call", "grad"),
    terms=64,
    factor=64.0,
    floor=1.0,
    sizes=("small", "four", "three", "tiles"),
)
