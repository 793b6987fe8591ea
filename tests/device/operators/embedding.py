"""Embedding and bags of it: rows of a table by number, their sums, means and maxima."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from engine.description import ABSENT, Table
from engine.pools import LENGTH

t = Table()
BOTH = ("call", "grad")
TABLES = {
    "main": (7, 5),
    "long": (3, 1031),
    "high": (1031, 3),
    "tiles": (32, 64),
    "column": (33, 1),
    "row": (1, 31),
    "far": (2, 20011),
    "rows": (20011, 4),
}
# How many numbers there are, and in how many sides.
QUERIES = {"few": (5,), "matrix": (3, 4), "none": (), "empty": (0,), "one": (1, 1), "many": (1031,), "deep": (2, 1, 3)}
# Which numbers: in no order, one alone, each in order, the last.
WHICH = ("any", "same", "sorted", "last")


def numbers(c, shape, below=None):
    """Indices into the table, of the dtype and kind that the row names."""
    if math.prod(shape) * c.shape[-1] > LENGTH:
        raise ValueError("more than is requested of one row")
    below = c.shape[0] if below is None else below
    found = c.indices(below, shape)
    which = c.args["_which"]
    if which == "same":
        found = found * 0 + min(1, below - 1)
    elif which == "last":
        found = found * 0 + below - 1
    elif which == "sorted":
        found = found.reshape(-1).sort()[0].reshape(found.shape)
    return found.to(c.args["_kind"])


INDEXED = {"_which": WHICH, "_kind": (torch.int64, torch.int32)}
t.add(
    "embedding",
    lambda c: numbers(c, QUERIES[c.args["_queried"]]),
    "any",
    act=lambda i, w, queried, which, kind, **k: F.embedding(i, w, **k),
    _queried=tuple(QUERIES),
    **INDEXED,
    padding_idx=(ABSENT, None, 0, 1, -1),
    scale_grad_by_freq=(ABSENT, False, True),
    dtypes="fc",
    values=("plain", "wide", "inf"),
    forms=BOTH,
    sizes=TABLES,
    terms=12,
)
t.add(
    "embedding_renormed",
    lambda c: numbers(c, (5,)),
    "any",
    act=lambda i, w, which, kind, most, norm: (lambda own: (F.embedding(i, own, None, most, norm), own))(w.clone()),
    **INDEXED,
    _most=(1.0, 5.0, 100.0),
    _norm=(2.0, 1.0, 3.0, float("inf")),
    dtypes="f",
    values=("plain",),
    forms=("call",),
    sizes={key: TABLES[key] for key in ("main", "tiles", "column", "row", "long")},
    terms=64,
)
t.add(
    "embedding_dense_backward",
    lambda c: c.draw("any", (*QUERIES[c.args["_queried"]], c.shape[1])),
    lambda c: numbers(c, QUERIES[c.args["_queried"]]),
    act=lambda g, i, queried, which, kind, count, padding, scaled: torch.ops.aten.embedding_dense_backward(
        g, i, count, padding, scaled
    ),
    _queried=("few", "matrix", "empty", "one", "deep"),
    **INDEXED,
    _count=(40, 1031, 2003),
    _padding=(-1, 0, 1),
    _scaled=(False, True),
    dtypes="f",
    values=("plain", "inf"),
    forms=("call",),
    sizes={key: TABLES[key] for key in ("main", "column", "row", "tiles")},
    terms=12,
)
BAG = {
    "_mode": ("sum", "mean", "max"),
    **INDEXED,
    "padding_idx": (ABSENT, None, 0, 1, -1),
    "scale_grad_by_freq": (ABSENT, True),
    "dtypes": "f",
    "values": ("plain", "wide"),
    "forms": BOTH,
    "sizes": TABLES,
    "terms": 12,
}
# One weight for each number, in a sum alone.
_WEIGHTED = lambda c, shape: c.draw("halves", shape) if c.args["_weighted"] and c.args["_mode"] == "sum" else None
t.add(
    "embedding_bag",
    lambda c: numbers(c, c.args["_bags"]),
    "any",
    lambda c: _WEIGHTED(c, c.args["_bags"]),
    act=lambda i, w, s, mode, which, kind, bags, weighted, **k: F.embedding_bag(
        i, w, mode=mode, per_sample_weights=s, **k
    ),
    **BAG,
    _bags=((4, 3), (1, 1), (33, 2), (1, 17), (0, 3), (1031, 1)),
    _weighted=(False, True),
)
# Where each bag begins: empty ones at the start, between and at the end; one bag; each number a bag.
BEGINNINGS = {
    "empty": (0, 2, 2, 7),
    "first": (0, 0, 0, 5),
    "last": (0, 4, 9, 9),
    "one": (0,),
    "each": tuple(range(9)),
    "all": (0, 9),
}
t.add(
    "embedding_bag_offsets",
    lambda c: numbers(c, (9,)),
    "any",
    # Where the end is included it is the count of numbers: the CPU reads beyond its memory for another one.
    lambda c: torch.tensor(
        BEGINNINGS[c.args["_begin"]] + ((9,) if c.args.get("include_last_offset") else ()), dtype=c.args["_kind"]
    ),
    lambda c: _WEIGHTED(c, (9,)),
    act=lambda i, w, o, s, mode, which, kind, begin, weighted, **k: F.embedding_bag(
        i, w, o, mode=mode, per_sample_weights=s, **k
    ),
    **{key: value for key, value in BAG.items() if key != "sizes"},
    _begin=tuple(BEGINNINGS),
    _weighted=(False, True),
    include_last_offset=(ABSENT, False, True),
    sizes={**TABLES, "far": (2, 9001)},
    layouts_of=(0, 1, 3),
)
t.add(
    "one_hot_kinds",
    lambda c: numbers(c, QUERIES[c.args["_queried"]], 5),
    act=lambda i, queried, which, kind, count: F.one_hot(i, count),
    _queried=tuple(key for key in QUERIES if key != "empty"),
    **{**INDEXED, "_kind": (torch.int64,)},
    _count=(-1, 5, 6, 33),
    dtypes="s",
    values=("plain",),
    forms=("call",),
    sizes=("one",),
)
