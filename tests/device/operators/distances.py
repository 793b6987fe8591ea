"""Distances, losses of them and of margins, and those of many labels."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.description import ABSENT, Table

from .losses import LOSS, PAIRS, REDUCED, SHAPES
from .matrices import SIDES
from .norms import NEURAL, ROWS, WEIGHTS

t = Table()
ROWWISE = {**NEURAL, **WEIGHTS}
SIGNS = lambda c: c.indices(2, c.shape[:1]) * 2 - 1
MARGIN = (ABSENT, 0.5, 0.0, -1.0, 3.0)
FLAT = {**LOSS, "values": ("plain", "zero")}
WIDE = {**FLAT, "dtypes": "s"}  # the CPU has no half precision for these
t.add(
    "hinge_embedding_loss",
    "any",
    lambda c: c.indices(2, c.shape) * 2 - 1,
    margin=MARGIN,
    reduction=REDUCED,
    sizes=SHAPES,
    paths=("F.hinge_embedding_loss",),
    **FLAT,
)
t.add(
    "margin_ranking_loss",
    "any",
    "any",
    "whole",
    margin=MARGIN,
    reduction=REDUCED,
    sizes=SHAPES,
    paths=("F.margin_ranking_loss",),
    **FLAT,
)
t.add(
    "triplet_margin_loss",
    "any",
    "any",
    "any",
    margin=(ABSENT, 0.5, 5.0),
    p=(ABSENT, 1, 3, 0.5, float("inf")),
    eps=(ABSENT, 0.1),
    swap=(ABSENT, False, True),
    reduction=REDUCED,
    sizes={**PAIRS, "line": (17,)},
    paths=("F.triplet_margin_loss",),
    **{**LOSS, "values": ("plain",)},
)
t.add(
    "triplet_margin_with_distance_loss",
    "any",
    "any",
    "any",
    act=lambda x, y, z, how, **k: F.triplet_margin_with_distance_loss(
        x, y, z, distance_function=None if how is None else lambda a, b: (a - b).abs().amax(-1), **k
    ),
    _how=(None, "largest"),
    margin=(ABSENT, 0.5, 5.0),
    swap=(ABSENT, True),
    reduction=REDUCED,
    sizes={key: size for key, size in PAIRS.items() if key != "empty"},
    **{**LOSS, "values": ("plain",)},
)
t.add(
    "cosine_embedding_loss",
    "any",
    "any",
    SIGNS,
    margin=(ABSENT, 0.2, -0.5, 1.0),
    reduction=REDUCED,
    sizes=PAIRS,
    paths=("F.cosine_embedding_loss",),
    **FLAT,
)
t.add(
    "multilabel_soft_margin_loss",
    "any",
    "inner",
    lambda c: c.draw("positive", c.shape[-1:]) if c.args["_w"] else None,
    act=lambda x, y, w, flag, **k: F.multilabel_soft_margin_loss(x, y, w if w is None else w.detach(), **k),
    _w=(False, True),
    reduction=REDUCED,
    sizes=PAIRS,
    **FLAT,
)
# Class numbers of each row, ended by -1.
LABELS = lambda c: c.indices(c.shape[-1], c.shape).masked_fill(
    torch.arange(c.shape[-1])
    >= {"none": 0, "one": 1, "some": (c.shape[-1] + 1) // 2, "all": c.shape[-1]}[c.args["_many"]],
    -1,
)
CLASSES = {key: PAIRS[key] for key in ("small", "high", "one", "column", "row")}
t.add(
    "multilabel_margin_loss",
    "any",
    LABELS,
    act=lambda x, y, many, **k: F.multilabel_margin_loss(x, y, **k),
    _many=("none", "one", "some", "all"),
    reduction=REDUCED,
    sizes={**CLASSES, "line": (17,)},
    **WIDE,
)
t.add(
    "multi_margin_loss",
    "any",
    lambda c: c.indices(c.shape[-1], c.shape[:-1]),
    lambda c: c.draw("positive", c.shape[-1:]) if c.args["_w"] else None,
    act=lambda x, y, w, flag, **k: F.multi_margin_loss(x, y, weight=w if w is None else w.detach(), **k),
    _w=(False, True),
    p=(ABSENT, 1, 2),
    margin=(ABSENT, 0.5, 0.0, 3.0),
    reduction=REDUCED,
    sizes={**CLASSES, "long": (3, 1031), "line": (17,)},
    **WIDE,
)
# (steps, batch, classes): targets of several lengths, doubled characters, and one that is too long to be reached.
CTC = {
    "main": (9, 3, 5),
    "one": (12, 1, 4),
    "short": (2, 3, 5),
    "two": (9, 3, 2),
    "many": (33, 2, 40),
    "long": (130, 1, 3),
}


def _characters(c):
    found = c.indices(c.shape[2] - 1, (c.shape[1], 3))
    found = found * 0 if c.args["_same"] else found
    return found + (1 if c.args["_blank"] == 0 else 0)


t.add(
    "ctc_loss",
    lambda c: torch.log_softmax(c.draw("any", c.shape).double(), -1).to(c.draw("any", (1,)).dtype),
    _characters,
    act=lambda x, y, same, blank, lengths, flat, **k: F.ctc_loss(
        x,
        torch.cat([row[:end] for row, end in zip(y, lengths)]) if flat else y,
        torch.full((x.shape[1],), x.shape[0]) - torch.arange(x.shape[1]) * flat,
        torch.tensor(lengths[: x.shape[1]]),
        blank if blank == 0 else x.shape[2] - 1,
        **k,
    ),
    _same=(False, True),
    _blank=(0, "last"),
    _lengths=((3, 1, 2), (1, 1, 1), (0, 2, 3)),
    _flat=(False, True),
    reduction=REDUCED,
    zero_infinity=(ABSENT, False, True),
    sizes=CTC,
    **{**LOSS, "dtypes": "s", "factor": 256.0, "values": ("plain",)},
)
t.add(
    "cosine_similarity",
    "any",
    "any",
    dim=(ABSENT, 0, -1, -2),
    eps=(ABSENT, 0.1, 1e-5, 1.0),
    sizes=ROWS,
    **ROWWISE,
)
t.add(
    "cosine_similarity_pairs",
    lambda c: c.draw("any", (c.shape[0], 1, c.shape[1])),
    lambda c: c.draw("any", (1, *c.shape)),
    dim=(-1, 0),
    eps=(ABSENT, 0.1),
    sizes={key: ROWS[key] for key in ("main", "column", "row", "one")},
    paths=("torch.cosine_similarity", "F.cosine_similarity"),
    **ROWWISE,
)
t.add(
    "pairwise_distance",
    "any",
    "any",
    p=(ABSENT, 1, 3, float("inf"), 0.5, 0),
    eps=(ABSENT, 0.1, 0.0),
    keepdim=(ABSENT, True),
    sizes={key: ROWS[key] for key in ("main", "long", "line", "column", "row", "one", "three", "rows", "empty")},
    paths=("torch.pairwise_distance", "F.pairwise_distance"),
    **ROWWISE,
)
t.add(
    "cdist",
    "any:0,1",
    "any:2,1",
    p=(ABSENT, 1.0, 0.0, 3.0, float("inf"), 2.0, 0.5),
    compute_mode=(
        *(ABSENT, "donot_use_mm_for_euclid_dist", "use_mm_for_euclid_dist"),
        "use_mm_for_euclid_dist_if_necessary",
    ),
    dtypes="s",
    values=("plain",),
    forms=("call", "grad"),
    terms=256,
    factor=64.0,
    floor=4.0,
    sizes={
        k: SIDES[k] for k in ("main", "one", "prime", "long", "empty", "column", "outer", "point", "pairs", "hollow")
    },
)
t.add(
    "pdist",
    p=(ABSENT, 1.0, 0.0, 3.0, float("inf"), 0.5),
    dtypes="s",
    values=("plain", "zero"),
    forms=("call", "grad"),
    terms=64,
    factor=64.0,
    floor=4.0,
    paths=("torch.pdist", "F.pdist"),
    sizes={"small": (5, 7), "column": (33, 1), "pair": (2, 9), "one": (1, 4), "long": (3, 1031)},
)
