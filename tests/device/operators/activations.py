"""Activations; softmax and its like."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.description import ABSENT, REDUCED, Table
from engine.pools import SINGLES

t = Table()
ACT = {"dtypes": "f", "factor": 32.0}
INF = float("inf")

t.each("gelu", approximate=(ABSENT, "none", "tanh"), **ACT)
t.each("silu mish softsign logsigmoid tanhshrink selu relu6 hardswish hardsigmoid", **ACT)
t.add("log_sigmoid", dtypes="f", factor=32.0, paths=("aten.log_sigmoid",))
t.add("relu", dtypes="fi")
t.add("elu", alpha=(ABSENT, 1.0, 0.5, 2.0, 0.0, -1.0), **ACT)
t.add(
    "elu_scaled",
    alpha=(1.0, 0.5, 0.0),
    scale=(ABSENT, 1, 2.0, 0.0, -1.5),
    input_scale=(ABSENT, 1, 0.5, 0.0, 3.0),
    paths=("aten.elu",),
    **ACT,
)
t.add("celu", alpha=(ABSENT, 1.0, 0.5, 2.0, -1.0), **ACT)
t.add("leaky_relu", negative_slope=(ABSENT, 0.01, 0.2, 0.0, 1.0, -0.5, 1e-12), **ACT)
t.add("hardtanh", min_val=(ABSENT, -1.0, -2.0, 0.0), max_val=(ABSENT, 1.0, 0.5, 6.0), dtypes="fi")
t.add("threshold", _threshold=(0.125, -1.0, 0, INF, -INF), _value=(-2.0, 0.0, 20.0, 0.125), dtypes="fi")
t.add("hardshrink", lambd=(ABSENT, 0.5, 1.0, 0.0, -1.0, 1e-12), dtypes="f")
t.add("softshrink", lambd=(ABSENT, 0.5, 1.0, 0.0, 1e-12), paths=("F.softshrink", "aten.softshrink"), dtypes="f")
t.add("softplus", beta=(ABSENT, 1, 2, 0.5, 10, -1), threshold=(ABSENT, 20, 1.0, 0, -1), dtypes="f", factor=32.0)
t.add(
    "glu",
    dim=(ABSENT, -1, 0, 1, -2, 2),
    dtypes="f",
    factor=32.0,
    sizes={
        "even": (6, 8),
        "images": (2, 6, 4, 4),
        "long": (2, 2062),
        "line": (16,),
        "pair": (33, 2),
        "rows": (40010, 2),
        "empty": (0, 4),
    },
)
t.add(
    "prelu",
    "any",
    lambda c: c.draw("inner", (c.shape[1] if len(c.shape) > 1 and c.args.get("_at") else 1,)),
    dtypes="f",
    _at=(ABSENT, "each"),
    terms="all",
    sizes=("small", "four", "line", "high", "five", "none", "column", "row", "empty", "middle"),
    layouts_of=(0, 1),
)
t.add(
    "rrelu",
    dtypes="f",
    training=(ABSENT, False),
    lower=(ABSENT, 0.1, 0.0, -0.5),
    upper=(ABSENT, 0.5, 1.0),
)
# Every element stays or none does: nothing is drawn.
t.add(
    "dropout_off",
    "any",
    act=lambda x, p, name: getattr(F, name)(x, p, training=False),
    _p=(0.1, 0.9, 0.0, 1.0),
    _name=("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d"),
    forms=("call", "grad"),
    dtypes="f",
)
t.add(
    "dropout_ends",
    "any",
    act=lambda x, p, name: getattr(F, name)(x, p, training=True),
    _p=(0.0, 1.0),
    _name=("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout2d"),
    forms=("call", "grad"),
    dtypes="f",
    values=("plain", "wide"),
)
t.add(
    "activations_inplace",
    "any",
    act=lambda x, name: getattr(F, name)(x, inplace=True),
    _name=(
        "relu",
        "relu6",
        "silu",
        "mish",
        "selu",
        "hardswish",
        "hardsigmoid",
        "leaky_relu",
        "elu",
        "celu",
        "hardtanh",
    ),
    forms=("inplace",),
    **ACT,
)

DIM = (0, -1, 1, -2, 2)
SHARED = {"dtypes": "f", "factor": 32.0, "values": ("plain", "wide", "inf", "masked", "special", "equal", *SINGLES)}

t.each(
    "softmax log_softmax",
    dim=DIM,
    dtype=(ABSENT, torch.float32, torch.float16),
    forms=("call", "out", "grad"),
    sizes=REDUCED,
    **SHARED,
)
t.add(
    "softmax_of_whole",
    act=lambda x, dim, name, dtype: getattr(torch, name)(x, dim, dtype=dtype),
    _dim=DIM,
    _name=("softmax", "log_softmax"),
    _dtype=(torch.float32, torch.float16),
    dtypes="ib",
    factor=32.0,
    forms=("call",),
    values=("plain", "equal"),
    sizes=REDUCED,
)
t.each(
    "special_softmax special_log_softmax",
    dim=DIM,
    dtype=(ABSENT, torch.float32),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "middle"),
    **SHARED,
)
t.add("softmin", dim=DIM, dtype=(ABSENT, torch.float32), forms=("call", "grad"), sizes=REDUCED, **SHARED)
for name in ("_softmax", "_log_softmax"):
    t.add(
        name,
        _dim=DIM,
        _half=(False,),
        paths=(f"aten.{name}",),
        forms=("call", "out"),
        sizes=("small", "four", "none", "long", "three", "row", "tall_column", "middle", "empty"),
        **SHARED,
    )
