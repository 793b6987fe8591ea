"""How the operands of what gathers and scatters are drawn: indices of a side, and what is written there."""

from __future__ import annotations

import torch

from engine.description import ABSENT

SIZES = (
    *("small", "four", "none", "empty", "one", "line", "long", "high", "three", "five", "tall"),
    *("row", "tall_column", "wide", "many", "middle"),
)
FEW_SIZES = ("small", "four", "none", "empty", "one", "line", "three", "five", "row", "column", "middle", "high")
DIM = (0, -1, 1, -2, 2)
# Kinds of indices: of another dtype, all alike, in order, fewer than the sides, more, none.
READ = (ABSENT, torch.int32, "equal", "sorted", "part", "more", "none")
ADDED = (ABSENT, torch.int32, "equal", "sorted", "part", "none")
# Where each place is written once.
WRITTEN = (ABSENT, torch.int32, "part", "none")


def side(c):
    """Return the length of the dimension that a row works along."""
    return c.shape[c.args["dim"]] if c.shape else 1


def row(c):
    """Return indices along one dimension, with repeats."""
    if not side(c):
        return c.indices(1, (0,))
    more = 67 if c.args.get("_at") == "more" else min(side(c), 4) + 2
    return c.at(c.indices(side(c), (more,) if c.shape else ()), side(c))


def whole(c):
    """Return an index for each element, with repeats."""
    shape = list(c.shape)
    if shape and side(c) and c.args.get("_at") == "more":
        shape[c.args["dim"]] += 3
    return _cut(c, c.at(c.indices(side(c), shape), side(c)))


def apart(c):
    """Return an index for each element, unlike the others along the dimension."""
    c.once()
    if not c.shape:
        return torch.zeros((), dtype=torch.int64)
    dim, count = c.args["dim"] % len(c.shape), side(c)
    places = torch.arange(count).reshape([count if d == dim else 1 for d in range(len(c.shape))])
    lines = max(c.draw("any", c.shape).numel() // max(count, 1), 1)
    turn = torch.zeros((), dtype=torch.int64)
    if 0 not in c.shape:
        turn = (torch.arange(lines) * 3 + 1).reshape([1 if d == dim else s for d, s in enumerate(c.shape)])
    return _cut(c, c.at(((places + turn) % max(count, 1)).expand(c.shape).clone(), count))


def _cut(c, found):
    if c.args.get("_at") != "part":
        return found
    return found[tuple(slice(0, max(s - 1, min(s, 1))) for s in found.shape)].clone()


def _count(c):
    return {"none": 0, "one": min(side(c), 1), "all": side(c)}.get(c.args.get("_at"), min(side(c), 3))


def few(c):
    """Return different indices along one dimension, in no order."""
    return c.at(c.unique(side(c), _count(c)), side(c))


def source(domain="any"):
    """Return how what is written at `few` indices is drawn."""
    return lambda c: c.draw(
        domain,
        [_count(c) if d == c.args["dim"] % len(c.shape) else s for d, s in enumerate(c.shape)] if c.shape else (),
    )
