"""Gathering and scattering: every dimension, index dtype and reduction."""

from __future__ import annotations

import torch

from engine.description import ABSENT, REDUCED, Table

from .indices import ADDED, DIM, FEW_SIZES, READ, SIZES, WRITTEN, apart, whole

t = Table()
EVERY = {"dtypes": "fibc", "values": ("plain", "wide", "special")}
READS = {"forms": ("call", "out", "grad"), "terms": 8, **EVERY}
NUMBERS = (0, 3, -1, 0.5, True)
SIDES = tuple(size for size in SIZES if size != "none")

t.add(
    "gather",
    "any",
    whole,
    act=lambda x, i, dim, **k: torch.gather(x, dim, i, **k),
    dim=DIM,
    _at=READ,
    sparse_grad=(ABSENT, False),
    sizes=SIZES,
    **READS,
)
t.add(
    "take_along_dim",
    "any",
    whole,
    act=lambda x, i, dim, **k: torch.take_along_dim(x, i, dim, **k),
    dim=DIM,
    _at=tuple(how for how in READ if how != torch.int32),
    sizes=SIDES,
    **READS,
)
# One index for each place along the dimension: it is the same for all lines.
t.add(
    "take_along_dim_cast",
    "any",
    lambda c: c.indices(
        c.shape[c.args["dim"]], [s if d == c.args["dim"] % len(c.shape) else 1 for d, s in enumerate(c.shape)]
    ),
    act=lambda x, i, dim, **k: torch.take_along_dim(x, i, dim, **k),
    dim=DIM,
    sizes=SIDES,
    **READS,
)
t.add(
    "take_along_flat",
    "any",
    lambda c: c.indices(max(c.draw("any", c.shape).numel(), 1), (5,)),
    act=lambda x, i: torch.take_along_dim(x, i),
    sizes=tuple(size for size in FEW_SIZES if size != "empty"),
    **{**READS, "forms": ("call", "grad")},
)
t.add(
    "take",
    "any",
    lambda c: c.at(c.indices(max(c.draw("any", c.shape).numel(), 1), (3, 4)), max(c.draw("any", c.shape).numel(), 1)),
    act=lambda x, i, **k: torch.take(x, i, **k),
    _at=(ABSENT, "negative", "equal", "sorted", "none"),
    sizes=REDUCED,
    **READS,
)
SCATTERED = {"dim": DIM, "sizes": SIZES, "forms": ("call", "out", "grad"), **EVERY}
t.add(
    "scatter",
    "any",
    apart,
    "any",
    act=lambda x, i, y, dim, **k: torch.scatter(x, dim, i, y, **k),
    _at=WRITTEN,
    **SCATTERED,
)
t.add(
    "scatter_value",
    "any",
    whole,
    act=lambda x, i, v, dim, **k: torch.scatter(x, dim, i, v, **k),
    _v=NUMBERS,
    _at=ADDED,
    **SCATTERED,
)
INPLACE = {**SCATTERED, "forms": ("inplace",)}
t.add("scatter_inplace", "any", apart, "any", act=lambda x, i, y, dim: x.scatter_(dim, i, y), _at=WRITTEN, **INPLACE)
t.add(
    "scatter_value_inplace",
    "any",
    whole,
    act=lambda x, i, v, dim: x.scatter_(dim, i, v),
    _v=NUMBERS,
    _at=ADDED,
    **INPLACE,
)
OLD = {"dim": DIM, "dtypes": "fi", "values": ("plain", "special"), "_at": WRITTEN}
for how in ("add", "multiply"):
    t.add(
        f"scatter_{how}_old",
        "any",
        apart,
        "any",
        act=lambda x, i, y, dim, how=how, **k: torch.scatter(x, dim, i, y, reduce=how, **k),
        forms=("call", "out"),
        sizes=SIZES,
        **OLD,
    )
    t.add(
        f"scatter_{how}_old_inplace",
        "any",
        apart,
        "any",
        act=lambda x, i, y, dim, how=how: (x.scatter_(dim, i, y, reduce=how), x.scatter_(dim, i, 2, reduce=how)),
        forms=("inplace",),
        sizes=SIZES,
        **OLD,
    )
    t.add(
        f"scatter_value_{how}",
        "any",
        apart,
        act=lambda x, i, v, dim, how=how, **k: torch.scatter(x, dim, i, v, reduce=how, **k),
        _v=(2, 0, -1, 0.5),
        forms=("call", "out"),
        sizes=FEW_SIZES,
        **OLD,
    )
SUMMED = {"dim": DIM, "_at": ADDED, "sizes": SIZES, "terms": 64, "floor": 4.0, **EVERY}
t.add(
    "scatter_add",
    "any",
    whole,
    "any",
    act=lambda x, i, y, dim, **k: torch.scatter_add(x, dim, i, y, **k),
    forms=("call", "out", "grad"),
    **SUMMED,
)
t.add(
    "scatter_add_inplace",
    "any",
    whole,
    "any",
    act=lambda x, i, y, dim: x.scatter_add_(dim, i, y),
    forms=("inplace",),
    **SUMMED,
)
REDUCED_BY = {
    "dim": DIM,
    "reduce": ("sum", "prod", "mean", "amax", "amin"),
    "include_self": (ABSENT, True, False),
    "_at": ADDED,
    "sizes": FEW_SIZES,
    "dtypes": "fi",
    "values": ("plain", "special", "equal", "zero"),
    "terms": 64,
    "floor": 4.0,
    "factor": 32.0,
}
t.add(
    "scatter_reduce",
    "few",
    whole,
    "positive",
    act=lambda x, i, y, dim, reduce, **k: torch.scatter_reduce(x, dim, i, y, reduce, **k),
    forms=("call", "out", "grad"),
    **REDUCED_BY,
)
t.add(
    "scatter_reduce_inplace",
    "few",
    whole,
    "positive",
    act=lambda x, i, y, dim, reduce, **k: x.scatter_reduce_(dim, i, y, reduce, **k),
    forms=("inplace",),
    **REDUCED_BY,
)
t.add(
    "segment_reduce",
    "any",
    lambda c: torch.tensor([2, 0, 1, c.shape[0] - 3]),
    act=lambda x, lengths, reduce, **k: torch.segment_reduce(x, reduce, lengths=lengths, **k),
    reduce=("sum", "mean", "max", "min", "prod"),
    initial=(ABSENT, 0, 1.0),
    unsafe=(ABSENT, True),
    dtypes="f",
    forms=("call", "grad"),
    values=("plain",),
    terms=64,
    floor=1.0,
    sizes={"line": (17,), "small": (5, 7), "high": (1031, 3), "column": (33, 1)},
    layouts_of=(),
)
