"""Normalisation of rows, groups and channels."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .spec import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
PLAIN = ("plain",)
NEURAL = {"dtypes": "f", "values": PLAIN, "forms": BOTH}

ROWS = {
    "main": (5, 7),
    "three": (2, 3, 8),
    "long": (3, 1031),
    "high": (1031, 3),
    "tiles": (32, 64),
    "longer": (2, 4099),
    "four": (2, 3, 4, 6),
}
WEIGHTS = {"terms": 64, "factor": 64.0, "floor": 0.25}


def _affine(place):
    return lambda c: c.draw("any", (c.shape[place],)) if c.args["_affine"] else None


t.add(
    "layer_norm",
    "any",
    _affine(-1),
    _affine(-1),
    act=lambda x, w, b, flag, **k: F.layer_norm(x, x.shape[-1:], w, b, **k),
    _affine=(True, False),
    eps=(ABSENT, 0.1),
    sizes=ROWS,
    laid=(0,),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "layer_norm_two",
    "any",
    lambda c: c.draw("any", c.shape[-2:]),
    act=lambda x, w, **k: F.layer_norm(x, x.shape[-2:], w, **k),
    sizes={"three": (2, 3, 8), "four": (2, 3, 4, 6)},
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "rms_norm",
    "any",
    _affine(-1),
    act=lambda x, w, flag, **k: F.rms_norm(x, x.shape[-1:], w, **k),
    _affine=(True, False),
    eps=(ABSENT, 0.1),
    sizes=ROWS,
    laid=(0,),
    **NEURAL,
    **WEIGHTS,
)
CHANNELS = {
    "image": (4, 6, 5, 7),
    "line": (4, 6, 9),
    "volume": (2, 6, 2, 3, 4),
    "rows": (9, 6),
    "big": (2, 6, 33, 32),
    "tiles": (4, 32, 4, 4),
}
t.add(
    "group_norm",
    "any",
    _affine(1),
    _affine(1),
    act=lambda x, w, b, flag, g, **k: F.group_norm(x, g, w, b, **k),
    _affine=(True, False),
    _groups=(1, 2),
    eps=(ABSENT, 0.1),
    sizes=CHANNELS,
    laid=(0,),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "instance_norm",
    "any",
    _affine(1),
    _affine(1),
    act=lambda x, w, b, flag, **k: F.instance_norm(x, None, None, w, b, **k),
    _affine=(True, False),
    eps=(ABSENT, 0.1),
    sizes={k: v for k, v in CHANNELS.items() if k != "rows"},
    laid=(0,),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "batch_norm",
    "any",
    lambda c: c.draw("unit", (c.shape[1],)),
    lambda c: c.draw("positive", (c.shape[1],)),
    _affine(1),
    _affine(1),
    act=lambda x, m, v, w, b, flag, training, **k: F.batch_norm(x, m.detach(), v.detach(), w, b, training, **k),
    _affine=(True, False),
    _training=(False, True),
    momentum=(ABSENT, 0.5),
    eps=(ABSENT, 0.1),
    sizes=CHANNELS,
    laid=(0,),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "batch_norm_stats",
    "any",
    lambda c: c.draw("unit", (c.shape[1],)),
    lambda c: c.draw("positive", (c.shape[1],)),
    act=lambda x, m, v, mom: (F.batch_norm(x, m, v, None, None, True, mom), m, v),
    _mom=(0.1, 0.7),
    dtypes="f",
    values=PLAIN,
    forms=("call",),
    sizes=CHANNELS,
    laid=(0,),
    **WEIGHTS,
)
t.add(
    "local_response_norm",
    size=(2, 3),
    alpha=(ABSENT, 0.1),
    beta=(ABSENT, 0.5),
    k=(ABSENT, 2.0),
    sizes={k: CHANNELS[k] for k in ("image", "line", "volume")},
    paths=("F.local_response_norm",),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "normalize",
    p=(ABSENT, 1, 3, float("inf")),
    dim=(ABSENT, 0, -1),
    sizes=ROWS,
    paths=("F.normalize",),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "weight_norm",
    "any",
    lambda c: c.draw("positive", (c.shape[0], 1)),
    act=lambda v, g: torch._weight_norm(v, g, 0),
    sizes={"main": (5, 7), "tiles": (32, 64)},
    **NEURAL,
    **WEIGHTS,
)
t.add("cosine_similarity", "any", "any", dim=(ABSENT, 0, -1), eps=(ABSENT, 0.1), sizes=ROWS, **NEURAL, **WEIGHTS)
t.add(
    "pairwise_distance",
    "any",
    "any",
    p=(ABSENT, 1, 3),
    keepdim=(ABSENT, True),
    sizes={"main": (5, 7), "long": (3, 1031)},
    **NEURAL,
    **WEIGHTS,
)
