"""Normalisation of rows, groups and channels."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.description import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
# A row of zeros has no variance: its least divisor is eps alone.
# The statistics of what is not finite are open: NaN and infinity lie elsewhere, as the way of adding goes.
VALUES = ("plain", "zero", "wide")
NEURAL = {"dtypes": "f", "values": VALUES, "forms": BOTH}
EPS = (ABSENT, 1e-12, 0.1, 1e-5, 1.0)

ROWS = {
    "main": (5, 7),
    "three": (2, 3, 8),
    "long": (3, 1031),
    "high": (1031, 3),
    "tiles": (32, 64),
    "longer": (2, 4099),
    "four": (2, 3, 4, 6),
    "column": (33, 1),
    "row": (1, 31),
    "one": (1, 1),
    "line": (17,),
    "rows": (20011, 4),
    "far": (2, 40009),
    "empty": (0, 7),
}
WEIGHTS = {"terms": 64, "factor": 64.0, "floor": 0.25}
# Of weight and bias: both, none, one alone.
AFFINE = ("both", "none", "weight", "bias")


def _affine(place, which):
    """A weight or a bias for each channel, where the word names it."""

    def made(c):
        is_given = c.args["_affine"] in ("both", which)
        return c.draw("quarters", c.shape[place:] if place < 0 else (c.shape[place],)) if is_given else None

    return made


t.add(
    "layer_norm",
    "any",
    _affine(-1, "weight"),
    _affine(-1, "bias"),
    act=lambda x, w, b, flag, **k: F.layer_norm(x, x.shape[-1:], w, b, **k),
    _affine=AFFINE,
    eps=EPS,
    sizes=ROWS,
    **NEURAL,
    **WEIGHTS,
)
DEEP = {"three": (2, 3, 8), "four": (2, 3, 4, 6), "pair": (3, 4), "narrow": (33, 1, 5), "thin": (5, 33, 1)}
t.add(
    "layer_norm_two",
    "any",
    _affine(-2, "weight"),
    _affine(-2, "bias"),
    act=lambda x, w, b, flag, **k: F.layer_norm(x, x.shape[-2:], w, b, **k),
    _affine=AFFINE,
    eps=EPS,
    sizes=DEEP,
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "native_layer_norm",
    "any",
    _affine(-1, "weight"),
    _affine(-1, "bias"),
    act=lambda x, w, b, flag, eps: torch.native_layer_norm(x, x.shape[-1:], w, b, eps),
    _affine=AFFINE,
    _eps=EPS[1:],
    sizes={key: ROWS[key] for key in ("main", "three", "long", "column", "row", "one", "rows")},
    **{**NEURAL, "dtypes": "s", "values": ("plain", "zero", "wide")},
    **WEIGHTS,
)
t.add(
    "rms_norm",
    "any",
    _affine(-1, "weight"),
    act=lambda x, w, flag, **k: F.rms_norm(x, x.shape[-1:], w, **k),
    _affine=("weight", "none"),
    eps=EPS,
    sizes=ROWS,
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "rms_norm_two",
    "any",
    _affine(-2, "weight"),
    act=lambda x, w, flag, **k: F.rms_norm(x, x.shape[-2:], w, **k),
    _affine=("weight", "none"),
    eps=EPS,
    sizes=DEEP,
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
    "single": (3, 1, 4, 5),
    "batch": (1, 6, 3, 4),
    "point": (5, 12, 1, 1),
    "long": (1, 2, 1031),
    "many": (2, 130, 3),
    "high": (1031, 2, 3),
    "far": (1, 1, 40009),
    "empty": (0, 6, 5, 7),
}
t.add(
    "group_norm",
    "any",
    _affine(1, "weight"),
    _affine(1, "bias"),
    act=lambda x, w, b, flag, g, **k: F.group_norm(x, x.shape[1] if g == "each" else g, w, b, **k),
    _affine=AFFINE,
    _groups=(1, 2, "each"),
    eps=EPS,
    sizes=CHANNELS,
    **NEURAL,
    **WEIGHTS,
)


def _statistics(domain):
    def made(c):
        kept = c.args["_running"] if "_running" in c.args else c.args["_training"] != "without statistics"
        return c.draw(domain, (c.shape[1],)) if kept else None

    return made


t.add(
    "instance_norm",
    "any",
    _affine(1, "weight"),
    _affine(1, "bias"),
    _statistics("quarters"),
    _statistics("positive"),
    act=lambda x, w, b, m, v, flag, running, own, **k: F.instance_norm(
        x, m if m is None else m.detach(), v if v is None else v.detach(), w, b, own, **k
    ),
    _affine=AFFINE,
    _running=(False, True),
    _own=(True, False),
    momentum=(ABSENT, 0.0, 0.5),
    eps=EPS,
    sizes={key: size for key, size in CHANNELS.items() if key != "rows"},
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "batch_norm",
    "any",
    _statistics("quarters"),
    _statistics("positive"),
    _affine(1, "weight"),
    _affine(1, "bias"),
    act=lambda x, m, v, w, b, flag, running, training, **k: F.batch_norm(
        x, m if m is None else m.detach(), v if v is None else v.detach(), w, b, training, **k
    ),
    _affine=AFFINE,
    _running=(True, False),
    _training=(False, True),
    momentum=(ABSENT, 0.0, 0.5, 1.0),
    eps=EPS,
    sizes=CHANNELS,
    layouts_of=(0, 1, 3),
    **NEURAL,
    **WEIGHTS,
)
for name in ("batch_norm", "instance_norm"):
    t.add(
        f"{name}_stats",
        "any",
        lambda c: c.draw("quarters", (c.shape[1],)),
        lambda c: c.draw("positive", (c.shape[1],)),
        act=lambda x, m, v, mom, eps, name=name: (
            getattr(F, name)(x, m, v, None, None, True, mom, eps),
            m,
            v,
        ),
        _mom=(0.1, 0.7, 0.0, 1.0),
        _eps=EPS[1:],
        dtypes="f",
        values=VALUES,
        forms=("call",),
        sizes={key: size for key, size in CHANNELS.items() if name == "batch_norm" or key not in ("rows", "point")},
        **WEIGHTS,
    )
t.add(
    "native_batch_norm",
    "any",
    _affine(1, "weight"),
    _affine(1, "bias"),
    _statistics("quarters"),
    _statistics("positive"),
    act=lambda x, w, b, m, v, flag, training, momentum, eps: torch.native_batch_norm(
        x, w, b, m, v, training is not False, momentum, eps
    )[: 3 if training else 1],
    _affine=AFFINE,
    _training=(True, False, "without statistics"),
    _momentum=(0.1, 0.0, 1.0),
    _eps=EPS[1:],
    dtypes="s",
    values=VALUES,
    forms=("call",),
    sizes={key: size for key, size in CHANNELS.items() if key not in ("empty", "far")},
    **WEIGHTS,
)
t.add(
    "native_group_norm",
    "any",
    _affine(1, "weight"),
    _affine(1, "bias"),
    act=lambda x, w, b, flag, groups, eps: torch.native_group_norm(
        x, w, b, x.shape[0], x.shape[1], x[0, 0].numel(), groups, eps
    ),
    _affine=AFFINE,
    _groups=(1, 2, 3),
    _eps=EPS[1:],
    layouts=("dense", "offset"),  # it takes the input as it lies in memory
    sizes={key: CHANNELS[key] for key in ("image", "line", "volume", "rows", "point", "batch")},
    **{**NEURAL, "dtypes": "s", "values": VALUES},
    **WEIGHTS,
)
t.add(
    "local_response_norm",
    size=(2, 3, 1, 5, 9),
    alpha=(ABSENT, 0.1, 0.0, 1.0),
    beta=(ABSENT, 0.5, 0.0, 1.0),
    k=(ABSENT, 2.0, 1e-3),
    sizes={key: CHANNELS[key] for key in ("image", "line", "volume", "single", "point", "batch", "long", "many")},
    paths=("F.local_response_norm",),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "normalize",
    act=lambda x, **k: F.normalize(x, **k),
    p=(ABSENT, 1, 3, float("inf"), 0.5, 0, 2.0),
    dim=(ABSENT, 0, -1, (0, 1)),
    eps=(ABSENT, 0.1, 1e-5, 1.0),
    sizes=ROWS,
    **{**NEURAL, "forms": ("call", "out", "grad")},
    **WEIGHTS,
)
t.add(
    "weight_norm",
    "any",
    lambda c: c.draw("positive", (c.shape[0], *(1,) * (len(c.shape) - 1)) if c.args["_dim"] == 0 else c.shape[-1:]),
    act=lambda v, g, dim: torch._weight_norm(
        v, g if dim == 0 else g.reshape(*(1,) * (v.dim() - 1), -1), v.dim() - 1 if dim else 0
    ),
    _dim=(0, -1),
    sizes={**{key: ROWS[key] for key in ("main", "tiles", "high", "column", "row")}, "deep": (4, 3, 5)},
    **{**NEURAL, "values": ("plain", "wide")},
    **WEIGHTS,
)
