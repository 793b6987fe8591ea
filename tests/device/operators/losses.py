"""Losses, each argument; hand-shaped ones are elsewhere."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.description import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
PLAIN = ("plain",)
ODD = ("plain", "zero", "wide", "inf", "special", "single")

REDUCED = ("mean", "sum", "none")
LOSS = {"terms": "all", "factor": 32.0, "floor": 0.25, "dtypes": "f", "values": ODD, "forms": BOTH}
SHAPES = {
    "small": (5, 7),
    "four": (2, 3, 4, 6),
    "none": (),
    "empty": (0, 7),
    "line": (17,),
    "long": (3, 1031),
    "high": (1031, 3),
    "one": (1, 1),
    "column": (33, 1),
    "row": (1, 31),
    "rows": (20011, 4),
    "tall": (65543,),
}
PAIRS = {key: size for key, size in SHAPES.items() if len(size) == 2}
for name, more in (
    ("mse_loss", {}),
    ("l1_loss", {}),
    ("smooth_l1_loss", {"beta": (ABSENT, 0.5, 0.0, 3.0)}),
    ("huber_loss", {"delta": (ABSENT, 0.5, 3.0)}),
    ("soft_margin_loss", {}),
):
    t.add(
        name,
        "any",
        "whole" if name == "soft_margin_loss" else "any",
        reduction=REDUCED,
        **more,
        act=lambda x, y, name=name, **k: getattr(F, name)(x, y.detach() if name == "soft_margin_loss" else y, **k),
        sizes=SHAPES,
        **LOSS,
    )
    if name == "l1_loss":
        continue
    t.add(
        f"{name}_aten",
        "any",
        "whole" if name == "soft_margin_loss" else "any",
        reduction=(0, 1, 2),
        paths=(f"aten.{name}",),
        **{**LOSS, "forms": ("out",)},
        sizes={key: SHAPES[key] for key in ("small", "four", "none", "line", "one", "column", "rows", "empty")},
        **({"delta": (0.5, 1.0, 3.0)} if name == "huber_loss" else more),
    )
for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    # Shapes that broadcast: allowed, with a warning.
    t.add(
        f"{name}_broadcast",
        "any:0,1",
        "any:1",
        act=lambda x, y, name=name, **k: getattr(F, name)(x, y.expand(x.shape), **k),
        reduction=REDUCED,
        sizes=PAIRS,
        **{**LOSS, "values": PLAIN},
    )
t.add(
    "mse_loss_weighted",
    "any",
    "any",
    lambda c: c.draw("positive", c.shape),
    act=lambda x, y, w, **k: F.mse_loss(x, y, weight=w.detach(), **k),
    reduction=REDUCED,
    sizes=PAIRS,
    **{**LOSS, "values": PLAIN},
)
t.add(
    "kl_div",
    "any",
    "inner",
    reduction=(*REDUCED, "batchmean"),
    log_target=(ABSENT, False, True),
    paths=("F.kl_div",),
    sizes=SHAPES,
    **LOSS,
)
t.add(
    "binary_cross_entropy",
    lambda c: (
        c.draw("inner", c.shape)
        if c.args["_at"] == "inside"
        else (c.draw("any", c.shape, values="plain") > 0).to(c.draw("any", (1,)).dtype)
    ),
    "inner",
    lambda c: (
        c.draw("positive", {"each": c.shape, "last": c.shape[-1:], "one": ()}[c.args["_w"]]) if c.args["_w"] else None
    ),
    act=lambda x, y, w, flag, **k: F.binary_cross_entropy(x, y, None if w is None else w.detach(), **k),
    without=("autocast",),  # CUDA's refuses it
    _w=(None, "each", "last", "one"),
    _at=("inside", "ends"),
    reduction=REDUCED,
    sizes=SHAPES,
    **{**LOSS, "factor": 64.0, "values": PLAIN},
)
t.add(
    "bce_with_logits",
    "any",
    "inner",
    lambda c: c.draw("positive", c.shape[-1:]) if c.args["_weight"] else None,
    lambda c: c.draw("positive", c.shape[-1:]) if c.args["_pos"] else None,
    act=lambda x, y, w, p, *flags, **k: F.binary_cross_entropy_with_logits(
        x, y, weight=w if w is None else w.detach(), pos_weight=p if p is None else p.detach(), **k
    ),
    _weight=(False, True),
    _pos=(False, True),
    reduction=REDUCED,
    sizes=SHAPES,
    **{**LOSS, "values": ("plain", "zero", "wide", "inf")},
)
# (batch, classes, sides...)
CLASSES = {
    "main": (7, 5),
    "image": (2, 4, 3, 5),
    "line": (2, 4, 9),
    "volume": (2, 3, 2, 3, 2),
    "long": (3, 1031),
    "high": (1031, 3),
    "one": (1, 1),
    "column": (33, 1),
    "row": (1, 31),
    "point": (3, 5, 1, 1),
    "rows": (20011, 4),
    "far": (2, 40009),
    "empty": (0, 5),
    "single": (1, 4, 5, 7),
}


def _classes(c):
    """Class numbers: in no order, one alone, the last, some or all of them ignored."""
    found = c.indices(c.shape[1], (c.shape[0], *c.shape[2:]))
    which, ignored = c.args["_which"], c.args.get("ignore_index", -100)
    if which == "same":
        found = found * 0 + min(1, c.shape[1] - 1)
    elif which == "last":
        found = found * 0 + c.shape[1] - 1
    elif which in ("some ignored", "all ignored"):
        part = torch.arange(found.numel()).reshape(found.shape) % 3 == 1
        found = found.masked_fill(part | (which == "all ignored"), ignored)
    return found


WEIGHT = lambda c: c.draw("positive", (c.shape[1],)) if c.args["_w"] else None
NUMBERED = {
    "_which": ("any", "same", "last", "some ignored", "all ignored"),
    "_w": (False, True),
    "ignore_index": (ABSENT, 0, 1, -1, -100, 300),
    "reduction": REDUCED,
    "sizes": CLASSES,
}
t.add(
    "nll_loss",
    "any",
    _classes,
    WEIGHT,
    act=lambda x, y, w, which, flag, **k: F.nll_loss(x, y, w if w is None else w.detach(), **k),
    **NUMBERED,
    **LOSS,
)
t.add(
    "cross_entropy",
    "any",
    _classes,
    WEIGHT,
    act=lambda x, y, w, which, flag, **k: F.cross_entropy(x, y, w if w is None else w.detach(), **k),
    **NUMBERED,
    label_smoothing=(ABSENT, 0.0, 0.2, 1.0),
    **LOSS,
)
for name in ("nll_loss", "cross_entropy"):
    t.add(
        f"{name}_one_row",
        lambda c: c.draw("any", c.shape),
        lambda c: torch.tensor({"first": 0, "last": c.shape[0] - 1, "ignored": -100}[c.args["_target"]]),
        lambda c: c.draw("positive", c.shape) if c.args["_w"] else None,
        act=lambda x, y, w, target, flag, name=name, **k: getattr(F, name)(x, y, w if w is None else w.detach(), **k),
        _target=("first", "last", "ignored"),
        _w=(False, True),
        reduction=REDUCED,
        sizes={"five": (5,), "one": (1,), "long": (1031,)},
        layouts_of=(0, 2),
        **{**LOSS, "values": PLAIN},
    )
t.add(
    "cross_entropy_soft",
    "any",
    "inner",
    WEIGHT,
    act=lambda x, y, w, flag, **k: F.cross_entropy(x, y, w if w is None else w.detach(), **k),
    _w=(False, True),
    label_smoothing=(ABSENT, 0.0, 0.2, 1.0),
    reduction=REDUCED,
    sizes=CLASSES,
    **LOSS,
)
t.add(
    "poisson_nll_loss",
    "unit",
    "positive",
    log_input=(ABSENT, False, True),
    full=(ABSENT, False, True),
    eps=(ABSENT, 0.1),
    reduction=REDUCED,
    sizes=SHAPES,
    **{**LOSS, "factor": 128.0, "values": ("plain", "zero")},
    paths=("F.poisson_nll_loss",),
)
t.add(
    "gaussian_nll_loss",
    "any",
    "any",
    lambda c: c.draw("positive", {"each": c.shape, "row": (*c.shape[:-1], 1), "short": c.shape[:-1]}[c.args["_var"]]),
    act=lambda x, y, v, how, **k: F.gaussian_nll_loss(x, y, v, **k),
    _var=("each", "row", "short"),
    full=(ABSENT, True),
    eps=(ABSENT, 0.1, 1.0),
    reduction=REDUCED,
    sizes=SHAPES,
    **{**LOSS, "values": ("plain", "zero")},
)
