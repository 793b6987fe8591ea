"""Convolution and its transpose: each argument, sizes that tiles are made of."""

from __future__ import annotations

import torch.nn.functional as F

from .spec import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
PLAIN = ("plain",)
NEURAL = {"dtypes": "f", "values": PLAIN, "forms": BOTH}

# Convolution: sizes are (batch, channels in, channels out, spatial...).
for rank, shapes in (
    (
        1,
        {
            "main": (2, 4, 6, 11),
            "one": (1, 2, 2, 5),
            "many": (3, 6, 4, 40),
            "long": (1, 2, 2, 1031),
            "tiles": (2, 32, 16, 32),
            "empty": (0, 4, 6, 11),
        },
    ),
    (
        2,
        {
            "main": (2, 4, 6, 7, 9),
            "one": (1, 2, 2, 5, 5),
            "wide": (1, 2, 4, 3, 33),
            "tiles": (1, 16, 32, 8, 8),
            "empty": (0, 4, 6, 7, 9),
        },
    ),
    (3, {"main": (2, 4, 2, 4, 5, 6), "one": (1, 2, 2, 4, 4, 4), "tiles": (1, 4, 4, 4, 8, 8)}),
):
    for turned in (False, True):
        name = f"conv_transpose{rank}d" if turned else f"conv{rank}d"
        t.add(
            f"{name}",
            lambda c: c.draw("unit", (c.shape[0], c.shape[1], *c.shape[3:])),
            lambda c, turned=turned, rank=rank: c.draw(
                "unit",
                (c.shape[1], c.shape[2] // c.args.get("groups", 1), *(3, 2, 3)[:rank])
                if turned
                else (c.shape[2], c.shape[1] // c.args.get("groups", 1), *(3, 2, 3)[:rank]),
            ),
            lambda c: c.draw("unit", (c.shape[2],)) if c.args["_bias"] else None,
            act=lambda x, w, b, flag, name=name, **k: getattr(F, name)(x, w, b, **k),
            _bias=(True, False),
            stride=(ABSENT, 2, (1, 2, 1)[:rank]),
            padding=(ABSENT, 1, (0, 1, 2)[:rank]),
            dilation=(ABSENT, 2),
            groups=(ABSENT, 2),
            **({"output_padding": (ABSENT,)} if turned else {}),
            sizes=shapes,
            terms=64,
            factor=32.0,
            laid=(0, 1),
            **NEURAL,
        )
for name in ("conv1d", "conv2d"):
    t.add(
        f"{name}_same",
        lambda c: c.draw("unit", (c.shape[0], c.shape[1], *c.shape[3:])),
        lambda c: c.draw("unit", (c.shape[2], c.shape[1], *(3, 2)[: len(c.shape) - 3])),
        act=lambda x, w, name=name, **k: getattr(F, name)(x, w, **k),
        padding=("same", "valid"),
        dilation=(1, 2),
        sizes={
            "main": (2, 4, 6, 11) if name == "conv1d" else (2, 4, 6, 7, 9),
            "unbatched": (2, 3, 4, 40) if name == "conv1d" else (1, 3, 4, 12, 9),
        },
        terms=64,
        factor=32.0,
        **NEURAL,
    )
t.add(
    "conv_transpose2d_more",
    lambda c: c.draw("unit", (2, 4, 5, 6)),
    lambda c: c.draw("unit", (4, 3, 3, 3)),
    act=lambda x, w, **k: F.conv_transpose2d(x, w, **k),
    stride=(2, 3),
    padding=(0, 1),
    output_padding=(0, 1, (1, 0)),
    dilation=(1, 2),
    sizes={"main": (5,)},
    terms=64,
    factor=32.0,
    **NEURAL,
)
t.add(
    "conv_unbatched",
    lambda c: c.draw("unit", (4, 9, 8)),
    lambda c: c.draw("unit", (6, 4, 3, 3)),
    act=lambda x, w, **k: F.conv2d(x, w, **k),
    stride=(1, 2),
    padding=(0, 1),
    sizes={"main": (5,)},
    terms=64,
    factor=32.0,
    **NEURAL,
)
t.add(
    "conv_depthwise",
    lambda c: c.draw("unit", c.shape),
    lambda c: c.draw("unit", (c.shape[1] * c.args["_m"], 1, 3, 3)),
    act=lambda x, w, m, **k: F.conv2d(x, w, groups=x.shape[1], **k),
    _m=(1, 2),
    stride=(1, 2),
    padding=(0, 1),
    dilation=(1, 2),
    sizes={"main": (2, 4, 7, 9), "odd": (1, 3, 17, 5), "tiles": (1, 32, 8, 8)},
    terms=16,
    factor=32.0,
    **NEURAL,
)
t.add(
    "conv_tbc",
    lambda c: c.draw("unit", c.shape),
    lambda c: c.draw("unit", (3, c.shape[2], 4)),
    lambda c: c.draw("unit", (4,)),
    paths=("torch.conv_tbc",),
    _pad=(0, 1),
    sizes={"main": (7, 2, 3)},
    terms=16,
    factor=32.0,
    **NEURAL,
)
