"""Joined, repeated and split."""

from __future__ import annotations

import torch

from engine.description import ABSENT, REDUCED, Table

t = Table()

EVERY = {"dtypes": "fibc", "values": ("plain", "wide", "special")}
MOVED = {**EVERY, "forms": ("call", "grad"), "sizes": REDUCED}
SIDED = {**MOVED, "sizes": tuple(size for size in REDUCED if size != "none")}
# Of half a hundred thousand elements, many copies are not made.
SHORT = tuple(size for size in REDUCED if size not in ("tall", "tall_column", "wide", "many"))
DIM = (0, -1, 1, -2)

t.add(
    "expanded_sum",
    act=lambda x, n: (x[None].expand(n, *x.shape) * 2, x[None].expand(n, *x.shape).sum(0)),
    _n=(0, 1, 3),
    dtypes="fi",
    forms=("call", "grad"),
    terms=4,
    values=("plain", "special"),
)
t.add(
    "expanded_inside",
    act=lambda x, n: (x[..., None].expand(*x.shape, n).clone(), x[..., None].expand(*x.shape, n) + 1),
    _n=(0, 1, 2, 33),
    dtypes="fic",
    forms=("call", "grad"),
    terms=8,
    sizes=("small", "four", "none", "line", "column", "row", "empty"),
    values=("plain", "special"),
)
t.add(
    "repeat",
    repeats=((2, 1, 2, 1, 1, 1), (3,), (2, 3), (0, 1), (1, 2, 1, 3), (1, 1), (33, 1), (1, 33)),
    paths=("Tensor.repeat",),
    **{**MOVED, "sizes": SHORT},
)
t.add("tile", dims=((2,), (1, 3), (2, 1, 1), (), (0,), (1, 33)), **{**MOVED, "sizes": SHORT})
t.add("repeat_interleave", repeats=(0, 1, 2, 3), dim=(ABSENT, None, *DIM), **MOVED)
t.add(
    "repeat_interleave_each",
    "any",
    lambda c: c.at(c.indices(4, (c.shape[c.args["dim"]],)), 4),
    dim=DIM,
    _at=(ABSENT, torch.int32, "equal"),
    paths=("torch.repeat_interleave", "Tensor.repeat_interleave"),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "one", "three", "long", "high", "column", "row", "middle", "empty", "five"),
    terms=4,
    layouts_of=(0, 1),
    **EVERY,
)
t.add(
    "repeat_interleave_one",
    "any",
    lambda c: torch.tensor([3]),
    dim=(ABSENT, *DIM),
    paths=("torch.repeat_interleave", "Tensor.repeat_interleave"),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "three", "column"),
    terms=4,
    layouts_of=(0,),
    **EVERY,
)
t.add(
    "repeat_interleave_counts",
    lambda c: c.at(c.indices(5, (c.shape[0] if c.shape else 1,)), 5),
    dtypes="s",
    _at=(ABSENT, torch.int32, "equal", "sorted", "none"),
    paths=("torch.repeat_interleave",),
    forms=("call",),
    values=("plain",),
    sizes=("line", "one", "high", "empty"),
)


def _copies(parts):
    return [part.clone() for part in parts]


t.add(
    "split_parts",
    act=lambda x, n, d: _copies(torch.split(x, n, d)),
    _n=(1, 2, 3, 33, 100_000),
    _d=(*DIM, 2),
    **{**MOVED, "sizes": ("small", "four", "three", "line", "empty", "hollow", "five", "column", "row", "middle")},
)
t.add(
    "split_uneven",
    act=lambda x, how, d: _copies(torch.split(x, (*how, x.shape[d] - sum(how)), d)),
    _how=((1,), (0, 2), (2, 1), (0,), ()),
    _d=DIM,
    **SIDED,
)
t.add("chunk_parts", act=lambda x, n, d: _copies(torch.chunk(x, n, d)), _n=(1, 2, 3, 5, 9), _d=(*DIM, 2), **SIDED)
t.add(
    "tensor_split",
    act=lambda x, n, d: _copies(torch.tensor_split(x, n, d)),
    _n=(1, 2, 3, (1, 3), (), (2, 2), (3, 1), (-1,), 9),
    _d=(*DIM, 2),
    **SIDED,
)
for name, sizes in (
    ("hsplit", ("four", "tiles", "three", "five", "column", "row", "line")),
    ("vsplit", ("four", "tiles", "three", "five", "column", "row")),
    ("dsplit", ("four", "three", "five", "middle")),
):
    t.add(
        name,
        act=lambda x, n, name=name: _copies(getattr(torch, name)(x, n)),
        _n=(1, 2, (1, 3), (2,)),
        dtypes="fic",
        values=("plain", "special"),
        forms=("call", "grad"),
        sizes=sizes,
    )
t.add(
    "unbind_parts",
    act=lambda x, d: _copies(torch.unbind(x, d)),
    _d=(*DIM, 2),
    forms=("call", "grad"),
    sizes=("small", "four", "three", "line", "empty", "column", "row", "five"),
    **EVERY,
)
WITH = (ABSENT, torch.float32, torch.float16, torch.int64, torch.bool)
t.add(
    "cat",
    "any",
    "any",
    act=lambda x, y, d, **k: torch.cat([x, y, x], d, **k),
    _d=(*DIM, 2),
    _with=WITH,
    forms=("call", "out", "grad"),
    sizes=SIDED["sizes"],
    **EVERY,
)
t.add(
    "cat_many",
    "any",
    "any",
    act=lambda x, y, d, n: torch.cat(([x, y] * n)[: max(2 * n - 1, 1)], d),
    _d=DIM,
    _n=(9, 1, 33),
    forms=("call", "grad"),
    sizes=("small", "four", "one", "line", "empty", "three", "column", "row", "middle", "high"),
    terms=20,
    **EVERY,
)


def _lengths(c, length):
    return c.draw("any", [length if d == c.args["_d"] % len(c.shape) else s for d, s in enumerate(c.shape)])


# Parts of unlike lengths, one of them empty, and an old empty line that counts as nothing.
t.add(
    "cat_uneven",
    "any",
    lambda c: _lengths(c, 2),
    lambda c: _lengths(c, c.args["_n"]),
    lambda c: c.draw("any", (0,)),
    act=lambda x, y, z, none, d, n: torch.cat([x, none, y, z][n % 2 :], d),
    _d=(*DIM, 2),
    _n=(0, 1, 3, 33),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "one", "three", "five", "long", "high", "column", "row", "middle", "many", "empty"),
    **EVERY,
)
t.add(
    "cat_last",
    "any",
    lambda c: c.draw("any", (*c.shape[:-1], 3)),
    act=lambda x, y, **k: torch.cat([x, y], -1, **k),
    forms=("call", "out", "grad"),
    sizes=("small", "four", "line", "three", "five", "long", "hollow", "column", "row", "many", "wide"),
    **EVERY,
)
t.add(
    "stack",
    "any",
    "any",
    act=lambda x, y, d, **k: torch.stack([x, y], d, **k),
    _d=(*DIM, 2, -3),
    _with=WITH,
    forms=("call", "out", "grad"),
    sizes=REDUCED,
    **EVERY,
)
for name in ("hstack", "vstack", "dstack", "column_stack", "row_stack"):
    t.add(
        name,
        "any",
        "any",
        act=lambda x, y, name=name, **k: getattr(torch, name)([x, y, x], **k),
        dtypes="fibc",
        _with=WITH,
        values=("plain", "special"),
        forms=("call", "out", "grad"),
        sizes=("small", "four", "none", "one", "line", "empty", "three", "column", "row"),
    )
t.add(
    "at_least",
    "any",
    act=lambda x, n: getattr(torch, f"atleast_{n}d")(x).clone(),
    _n=(1, 2, 3),
    forms=("call", "grad"),
    sizes=("small", "four", "none", "one", "line", "empty", "three"),
    **EVERY,
)
t.add(
    "broadcast_copies",
    "any",
    "any:cast",
    act=lambda x, y: (
        *_copies(torch.broadcast_tensors(x, y)),
        y.expand_as(x).clone(),
        torch.broadcast_to(y, x.shape) * 1,
    ),
    _cast=(ABSENT, "row", "column", "none", "ones"),
    dtypes="fic",
    values=("plain", "special"),
    forms=("call", "grad"),
    terms="all",
    sizes=("small", "four", "none", "one", "line", "empty", "three", "middle", "column", "five"),
)
t.add(
    "block_diag",
    "any",
    "any",
    act=lambda x, y, n: torch.block_diag(*[x, y, y][:n]),
    _n=(1, 2, 3),
    _with=WITH,
    dtypes="fic",
    values=("plain", "special"),
    forms=("call", "grad"),
    sizes=("small", "none", "line", "column", "row", "empty", "hollow", "one"),
)
LINES = {"line": (17,), "one": (1,), "pair": (2,), "empty": (0,)}
t.add(
    "meshgrid",
    "any",
    "any:cast",
    act=lambda x, y, **k: _copies(torch.meshgrid(x, y, **k)),
    indexing=("ij", "xy"),
    _cast=(ABSENT, "none", "ones"),
    dtypes="fibc",
    values=("plain", "special"),
    forms=("call", "grad"),
    terms=20,
    sizes=LINES,
)
t.add(
    "cartesian_prod",
    "any",
    "any",
    act=lambda x, y, n: torch.cartesian_prod(*[x, y, x][:n]),
    _n=(1, 2, 3),
    dtypes="fi",
    values=("plain", "special"),
    forms=("call", "grad"),
    terms=300,
    sizes=LINES,
)
t.add(
    "combinations",
    act=lambda x, **k: torch.combinations(x, **k),
    r=(ABSENT, 0, 1, 2, 3),
    with_replacement=(ABSENT, False, True),
    dtypes="fi",
    values=("plain", "special"),
    forms=("call", "grad"),
    terms=200,
    sizes=LINES,
)
