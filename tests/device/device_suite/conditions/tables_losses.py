"""Losses and embedding, each argument; hand-shaped ones are elsewhere."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .spec import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
PLAIN = ("plain",)

REDUCED = ("mean", "sum", "none")
LOSS = {"terms": "all", "factor": 32.0, "floor": 0.25, "dtypes": "f", "values": PLAIN, "forms": BOTH}
SHAPES = ("small", "four", "none", "empty", "line", "long", "high")
for name, more in (
    ("mse_loss", {}),
    ("l1_loss", {}),
    ("smooth_l1_loss", {"beta": (ABSENT, 0.5)}),
    ("huber_loss", {"delta": (ABSENT, 0.5)}),
    ("soft_margin_loss", {}),
):
    t.add(
        name,
        "any",
        "whole" if name == "soft_margin_loss" else "any",
        reduction=REDUCED,
        **more,
        paths=(f"F.{name}",),
        sizes=SHAPES,
        **LOSS,
    )
    if name in ("soft_margin_loss", "l1_loss"):
        continue
    t.add(
        f"{name}_aten",
        "any",
        "any",
        reduction=(0, 1, 2),
        paths=(f"aten.{name}",),
        **{**LOSS, "forms": ("out",)},
        sizes=("small", "four", "none", "line"),
        **({"delta": (0.5, 1.0)} if more and name == "huber_loss" else {}),
    )
t.add("kl_div", "any", "inner", reduction=REDUCED, log_target=(ABSENT, True), paths=("F.kl_div",), sizes=SHAPES, **LOSS)
t.add(
    "binary_cross_entropy",
    "inner",
    "inner",
    lambda c: c.draw("positive", c.shape) if c.args["_w"] else None,
    act=lambda x, y, w, flag, **k: F.binary_cross_entropy(x, y, None if w is None else w.detach(), **k),
    _w=(False, True),
    reduction=REDUCED,
    sizes=SHAPES,
    laid=(0, 1),
    **{**LOSS, "factor": 64.0},
)
t.add(
    "bce_with_logits",
    "any",
    "inner",
    lambda c: c.draw("positive", c.shape[-1:]),
    act=lambda x, y, w, how, **k: F.binary_cross_entropy_with_logits(
        x, y, pos_weight=w.detach() if how == "pos" else None, weight=w.detach() if how == "weight" else None, **k
    ),
    _how=("none", "pos", "weight"),
    reduction=REDUCED,
    sizes=("small", "four", "line", "long"),
    laid=(0, 1),
    **LOSS,
)
t.add(
    "nll_loss",
    "any",
    lambda c: c.indices(c.shape[1], (c.shape[0], *c.shape[2:])),
    lambda c: c.draw("positive", (c.shape[1],)) if c.args["_w"] else None,
    act=lambda x, y, w, flag, **k: F.nll_loss(x, y, w if w is None else w.detach(), **k),
    _w=(False, True),
    ignore_index=(ABSENT, 1),
    reduction=REDUCED,
    sizes={"main": (7, 5), "image": (2, 4, 3, 5), "line": (2, 4, 9), "long": (3, 1031), "high": (1031, 3)},
    laid=(0,),
    **LOSS,
)
t.add(
    "cross_entropy",
    "any",
    lambda c: c.indices(c.shape[1], (c.shape[0], *c.shape[2:])),
    lambda c: c.draw("positive", (c.shape[1],)) if c.args["_w"] else None,
    act=lambda x, y, w, flag, **k: F.cross_entropy(x, y, w if w is None else w.detach(), **k),
    _w=(False, True),
    ignore_index=(ABSENT, 1),
    label_smoothing=(ABSENT, 0.2),
    reduction=REDUCED,
    sizes={"main": (7, 5), "image": (2, 4, 3, 5), "line": (2, 4, 9), "long": (3, 1031), "high": (1031, 3)},
    laid=(0,),
    **LOSS,
)
t.add(
    "cross_entropy_soft",
    "any",
    "inner",
    act=lambda x, y, **k: F.cross_entropy(x, y, **k),
    label_smoothing=(ABSENT, 0.2),
    reduction=REDUCED,
    sizes={"main": (7, 5), "image": (2, 4, 3, 5)},
    **LOSS,
)
t.add(
    "poisson_nll_loss",
    "unit",
    "positive",
    log_input=(ABSENT, False),
    full=(ABSENT, True),
    reduction=REDUCED,
    sizes=("small",),
    **{**LOSS, "factor": 128.0},
    paths=("F.poisson_nll_loss",),
)
t.add(
    "gaussian_nll_loss",
    "any",
    "any",
    "positive",
    full=(ABSENT, True),
    reduction=REDUCED,
    sizes=("small",),
    paths=("F.gaussian_nll_loss",),
    **LOSS,
)
t.add(
    "hinge_embedding_loss",
    "any",
    "whole",
    margin=(ABSENT, 0.5),
    reduction=REDUCED,
    sizes=("small",),
    paths=("F.hinge_embedding_loss",),
    **{**LOSS, "forms": ("call",)},
)
t.add(
    "margin_ranking_loss",
    "any",
    "any",
    "whole",
    margin=(ABSENT, 0.5),
    reduction=REDUCED,
    sizes=("small", "line"),
    paths=("F.margin_ranking_loss",),
    **LOSS,
)
t.add(
    "triplet_margin_loss",
    "any",
    "any",
    "any",
    margin=(ABSENT, 0.5),
    p=(ABSENT, 1),
    swap=(ABSENT, True),
    reduction=REDUCED,
    sizes=("small", "high"),
    paths=("F.triplet_margin_loss",),
    **LOSS,
)
t.add(
    "cosine_embedding_loss",
    "any",
    "any",
    lambda c: c.indices(2, (c.shape[0],)) * 2 - 1,
    margin=(ABSENT, 0.2),
    reduction=REDUCED,
    sizes=("small", "high"),
    paths=("F.cosine_embedding_loss",),
    laid=(0, 1),
    **LOSS,
)
t.add(
    "multilabel_soft_margin_loss",
    "any",
    "inner",
    reduction=REDUCED,
    sizes=("small",),
    paths=("F.multilabel_soft_margin_loss",),
    **LOSS,
)
t.add(
    "ctc_loss",
    lambda c: torch.log_softmax(c.draw("any", c.shape).double(), -1).to(c.draw("any", (1,)).dtype),
    lambda c: c.indices(c.shape[2] - 1, (c.shape[1], 3)) + 1,
    act=lambda x, y, **k: F.ctc_loss(
        x, y, torch.full((x.shape[1],), x.shape[0]), torch.tensor([3, 1, 2][: x.shape[1]]), **k
    ),
    reduction=REDUCED,
    zero_infinity=(ABSENT, True),
    sizes={"main": (9, 3, 5), "one": (12, 1, 4)},
    laid=(0,),
    **{**LOSS, "dtypes": "s", "factor": 256.0},
)
t.add(
    "embedding",
    lambda c: c.indices(c.shape[0], (3, 4) if c.row.number % 2 else (5,)),
    "any",
    act=lambda i, w, **k: F.embedding(i, w, **k),
    padding_idx=(ABSENT, 1, -1),
    scale_grad_by_freq=(ABSENT, True),
    dtypes="fc",
    values=("plain", "wide"),
    forms=BOTH,
    sizes={"main": (7, 5), "long": (3, 1031), "high": (1031, 3), "tiles": (32, 64)},
    terms=12,
)
t.add(
    "embedding_bag",
    lambda c: c.indices(c.shape[0], (4, 3)),
    "any",
    act=lambda i, w, **k: F.embedding_bag(i, w, **k),
    mode=("sum", "mean", "max"),
    padding_idx=(ABSENT, 1),
    include_last_offset=(ABSENT,),
    dtypes="f",
    values=PLAIN,
    forms=BOTH,
    sizes={"main": (7, 5), "long": (3, 1031), "high": (1031, 3)},
    terms=12,
)
t.add(
    "embedding_bag_offsets",
    lambda c: c.indices(c.shape[0], (9,)),
    "any",
    lambda c: torch.tensor([0, 2, 2, 7]),
    act=lambda i, w, o, **k: F.embedding_bag(i, w, o, **k),
    mode=("sum", "mean", "max"),
    dtypes="f",
    values=PLAIN,
    forms=BOTH,
    sizes={"main": (7, 5), "high": (1031, 3)},
    laid=(1,),
    terms=12,
)
