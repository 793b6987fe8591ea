"""Products of matrices and vectors."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.description import ABSENT, SIZES, Table

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
    "dot": (1, 300, 1),
    "outer": (33, 1, 31),
    "pairs": (4, 2, 4),
    "column": (300, 33, 1),
    "row": (1, 33, 300),
    "point": (1, 1, 1),
    "deep": (4, 300, 4),
    "rows": (20011, 4, 2),
    "columns": (2, 4, 20011),
    "none": (5, 7, 0),
}
M = {
    "dtypes": "fic",
    "values": ("plain", "special"),
    "forms": FULL,
    "terms": 64,
    "factor": 16.0,
    "floor": 1.0,
    "sizes": SIDES,
}
WIDE = {**M, "values": ("plain", "wide", "inf", "special")}
SMALL = {key: size for key, size in SIDES.items() if max(size) < 2000}
# Factors: what is nothing, what is one, whole numbers of both signs, and a fraction, which integers refuse.
BETA = (ABSENT, 2, 0, 1, -1, 0.5)
ALPHA = (ABSENT, -1, 3, 1, 0.25)
NO_ALPHA = (*ALPHA, 0)
# Finite values: what nothing times infinity is, where alpha is 0, is open.
ADDED = {**M, "values": ("plain", "zero")}
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
        beta=BETA,
        alpha=ALPHA,
        **{**ADDED, "forms": ("call", "inplace", "out", "grad")},
    )
NAN = lambda *sides: lambda c: c.draw("any", [c.shape[side] for side in sides]) * float("nan")
IGNORED = {**ADDED, "dtypes": "f", "forms": ("call", "inplace"), "beta": (0, 0.0), "alpha": (ABSENT, 3, -0.5)}
t.add("addmm_ignored", NAN(0, 2), "any:0,1", "any:1,2", paths=("torch.addmm", "Tensor.addmm"), **IGNORED)
t.add("addmv_ignored", NAN(0), "any:0,1", "any:1", paths=("torch.addmv", "Tensor.addmv"), **IGNORED)
t.add("addr_ignored", NAN(0, 2), "any:0", "any:2", paths=("torch.addr", "Tensor.addr"), **IGNORED)


# What is added is one row, one column, one element, or a number without dimensions.
def placed(*forms):
    """Draw what is added, in the form that the row names; without a factor that counts the CPU leaves its memory."""

    def made(c):
        if c.args.get("beta", 1) == 0 and c.args.get("alpha", 1) == 0:
            raise ValueError("nothing is requested")
        return c.draw("any", forms[c.args["_of"]](c))

    return made


for name, forms, given in (
    (
        "addmm",
        (lambda c: c.shape[2:], lambda c: (c.shape[0], 1), lambda c: (1, 1), lambda c: ()),
        ("any:0,1", "any:1,2"),
    ),
    ("addmv", (lambda c: (1,), lambda c: ()), ("any:0,1", "any:1")),
    ("addr", (lambda c: c.shape[2:], lambda c: (c.shape[0], 1), lambda c: ()), ("any:0", "any:2")),
):
    t.add(
        f"{name}_row",
        placed(*forms),
        *given,
        act=lambda x, a, b, of, name=name, **k: getattr(torch, name)(x, a, b, **k),
        _of=tuple(range(len(forms))),
        beta=BETA,
        alpha=NO_ALPHA,
        **{**ADDED, "sizes": SMALL},
    )
for name in ("_addmm_activation",):
    t.add(
        name,
        "any:2",
        "any:0,1",
        "any:1,2",
        beta=BETA[:4],
        alpha=ALPHA[:4],
        use_gelu=(ABSENT, True),
        paths=(f"aten.{name}",),
        **{**M, "dtypes": "f", "forms": ("call", "out"), "values": ("plain",), "sizes": SMALL},
    )
t.add(
    "bilinear",
    "any:1,0",
    "any:1,2",
    lambda c: c.draw("any", (c.args["_many"], c.shape[0], c.shape[2])),
    lambda c: c.draw("any", (c.args["_many"],)) if c.args["_bias"] else None,
    act=lambda x, y, w, b, many, flag: F.bilinear(x, y, w, b),
    _many=(4, 1, 33),
    _bias=(False, True),
    **{
        **M,
        "forms": ("call", "grad"),
        "terms": 256,
        "sizes": {k: SIDES[k] for k in ("main", "one", "prime", "point", "pairs", "outer")},
    },
)
t.add("kron", "any:0,1", "any:1,2", **{**M, "sizes": {k: SIDES[k] for k in ("main", "one", "empty", "point", "pairs")}})
t.add(
    "multi_dot",
    "any:0,1",
    "any:1,2",
    "any:2,0",
    act=lambda x, y, z: torch.linalg.multi_dot([x, y, z]),
    **{
        **M,
        "forms": ("call", "grad"),
        "terms": 512,
        "sizes": {k: SMALL[k] for k in SMALL if k not in ("long", "high", "wide")},
    },
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
    without=("alias",),  # of a vector and itself nothing but rounding is left
    wide_floor=48.0,  # half types round each of the two products
    sizes=("small", "none", "empty", "line", "three", "one", "high", "tiles", "long"),
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
    without=("alias",),  # of a vector and itself nothing but rounding is left
    wide_floor=48.0,  # half types round each of the two products
    sizes=("small", "none", "empty", "line", "three", "one", "high", "tiles", "long"),
)
# One of the two operands has sides of one where the other has more.
t.add(
    "cross_broadcast",
    lambda c: c.draw("any", (*c.shape[:-1], 1, 3)),
    lambda c: c.draw("any", (1, c.shape[-1], 3)),
    act=lambda x, y, dim, **out: torch.linalg.cross(x, y, dim=dim, **out),
    _dim=(-1, 2),
    dtypes="fic",
    values=("plain", "special"),
    forms=FULL,
    terms=4,
    sizes={"small": (5, 7), "column": (33, 1), "row": (1, 31), "high": (1031, 3)},
)
t.add(
    "linalg_vecdot",
    "any",
    "any",
    dim=(ABSENT, 0, -1, -2),
    dtypes="fc",
    values=("plain",),
    forms=("call", "out", "grad"),
    terms="all",
    floor=1.0,
    sizes=("small", "four", "line", "long", "three", "high", "one", "none", "empty", "hollow", "tiles"),
)
t.add(
    "cov",
    "any",
    lambda c: (c.indices(3, c.shape[-1:]) + 1) if c.args["_counts"] else None,
    lambda c: c.draw("positive", c.shape[-1:]).detach() if c.args["_weights"] else None,
    act=lambda x, n, w, counts, weights, **k: torch.cov(x, fweights=n, aweights=w if w is None else w.detach(), **k),
    _counts=(False, True),
    _weights=(False, True),
    correction=(ABSENT, 0, 1, 2),
    dtypes="f",
    values=("plain", "zero"),
    forms=("call", "grad"),
    terms=64,
    factor=32.0,
    floor=1.0,
    sizes={"small": (5, 7), "line": (17,), "long": (3, 1031), "row": (1, 31), "pair": (4, 2), "tiles": (32, 64)},
)
t.add(
    "corrcoef",
    dtypes="s",
    values=("plain",),
    forms=("call", "grad"),
    terms=64,
    factor=64.0,
    floor=1.0,
    sizes={"small": (5, 7), "line": (17,), "long": (3, 1031), "row": (1, 31), "tiles": (32, 64)},
)
t.add(
    "matrix_norm",
    act=lambda x, **k: torch.linalg.matrix_norm(x, **k),
    ord=("fro", 1, -1, float("inf"), float("-inf"), "nuc", 2, -2),
    keepdim=(False, True),
    dim=((-2, -1), (0, 1), (1, 0), (-1, 0)),
    dtypes="s",
    values=("plain",),
    forms=("call", "grad"),
    terms=64,
    factor=64.0,
    floor=1.0,
    sizes={
        **{key: SIZES[key] for key in ("small", "four", "three", "tiles")},
        "column": (33, 1),
        "row": (1, 31),
        "one": (1, 1),
    },
)
t.add("ger", "any:0", "any:2", paths=("torch.ger", "Tensor.ger"), **{**M, "sizes": SMALL})
t.add(
    "chain_matmul",
    "any:0,1",
    "any:1,2",
    "any:2,0",
    "any:0,1",
    act=lambda a, b, c, d: torch.linalg.multi_dot([a, b, c, d]),
    **{
        **M,
        "dtypes": "fc",
        "values": ("plain",),
        "forms": ("call", "grad"),
        "terms": 512,
        "factor": 64.0,
        "sizes": {
            key: SMALL[key] for key in ("main", "one", "prime", "point", "pairs", "outer", "column", "row", "hollow")
        },
    },
)
t.add(
    "block_diag_of_pairs",
    "any:0,1",
    "any:1,2",
    lambda c: c.draw("any", c.shape[:1]),
    act=lambda *blocks: torch.block_diag(*blocks),
    **{
        **M,
        "forms": ("call", "grad"),
        "sizes": {key: SMALL[key] for key in ("main", "one", "empty", "hollow", "pairs")},
    },
)
