"""Pooling over lines, images and volumes."""

from __future__ import annotations

import torch.nn.functional as F

from .spec import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
PLAIN = ("plain",)
NEURAL = {"dtypes": "f", "values": PLAIN, "forms": BOTH}

LINES = {"main": (2, 3, 12), "flat": (3, 11), "long": (1, 2, 1031), "tiles": (2, 16, 32)}
IMAGES = {
    "main": (2, 3, 8, 9),
    "flat": (3, 7, 8),
    "odd": (1, 2, 17, 5),
    "tiles": (2, 16, 16, 32),
    "empty": (0, 3, 8, 9),
    "long": (1, 1, 4, 1031),
}
VOLUMES = {"main": (2, 3, 5, 6, 7), "flat": (3, 6, 5, 8), "tiles": (1, 4, 4, 8, 8)}
for rank, shapes in ((1, LINES), (2, IMAGES), (3, VOLUMES)):
    t.add(
        f"max_pool{rank}d",
        "distinct",
        dtypes="fi",
        act=lambda x, n=f"max_pool{rank}d", **k: getattr(F, n)(x, **k),
        kernel_size=(2, 3, (3, 2, 2)[:rank]),
        stride=(ABSENT, 1, 2),
        padding=(ABSENT, 1),
        dilation=(ABSENT, 2),
        ceil_mode=(ABSENT, True),
        return_indices=(ABSENT, True),
        forms=BOTH,
        values=("plain", "inf"),
        sizes=shapes,
        terms=8,
    )
    t.add(
        f"avg_pool{rank}d",
        act=lambda x, n=f"avg_pool{rank}d", **k: getattr(F, n)(x, **k),
        kernel_size=(2, 3, (3, 2, 2)[:rank]),
        stride=(ABSENT, 1, 2),
        padding=(ABSENT, 1),
        ceil_mode=(ABSENT, True),
        count_include_pad=(ABSENT, False),
        **({"divisor_override": (ABSENT, 5)} if rank > 1 else {}),
        sizes=shapes,
        terms=27,
        **NEURAL,
    )
    exact = {
        name: (*shape[: len(shape) - rank], *(12, 8, 4)[:rank])
        for name, shape in shapes.items()
        if name in ("main", "flat")
    }
    t.add(
        f"adaptive_avg_pool{rank}d",
        act=lambda x, o, n=f"adaptive_avg_pool{rank}d": getattr(F, n)(x, o),
        _o=(1, 2, (4, 2, 1)[:rank], 3 if rank == 1 else (2, 4, 2)[:rank]),
        sizes={**exact, "odd": shapes["main"], "tiles": shapes["tiles"]},
        terms=64,
        **NEURAL,
    )
    t.add(
        f"adaptive_max_pool{rank}d",
        "distinct",
        act=lambda x, o, i, n=f"adaptive_max_pool{rank}d": getattr(F, n)(x, o, i),
        _o=(1, 2, (4, 2, 1)[:rank]),
        _i=(False, True),
        sizes={**exact, "odd": shapes["main"]},
        terms=8,
        **NEURAL,
    )
    t.add(
        f"lp_pool{rank}d",
        "positive",
        act=lambda x, p, k, s, c, n=f"lp_pool{rank}d": getattr(F, n)(x, p, k, s, c),
        _p=(2, 1, 3),
        _k=(2, 3),
        _s=(None, 1),
        _c=(False, True),
        sizes={"main": shapes["main"]},
        terms=64,
        factor=64.0,
        **NEURAL,
    )
    t.add(
        f"max_unpool{rank}d",
        "distinct",
        act=lambda x, k, n=rank: getattr(F, f"max_unpool{n}d")(
            *getattr(F, f"max_pool{n}d")(x, k, return_indices=True), k
        ),
        _k=(2, 3),
        sizes={"main": (2, 3, *(6,) * rank), "flat": (3, *(12,) * rank)},
        terms=8,
        **NEURAL,
    )
t.add(
    "max_pool2d_with_indices",
    "distinct",
    kernel_size=(2, 3),
    stride=(ABSENT, 1),
    padding=(ABSENT, 1),
    ceil_mode=(ABSENT, True),
    paths=("aten.max_pool2d_with_indices",),
    forms=("call", "out"),
    dtypes="f",
    values=PLAIN,
    sizes=IMAGES,
)
t.add(
    "max_pool3d_with_indices",
    "distinct",
    kernel_size=(2, 3),
    stride=(ABSENT, 1),
    padding=(ABSENT, 1),
    ceil_mode=(ABSENT, True),
    paths=("aten.max_pool3d_with_indices",),
    forms=("call", "out"),
    dtypes="f",
    values=PLAIN,
    sizes=VOLUMES,
)
for name, shapes in (("avg_pool2d", IMAGES), ("avg_pool3d", VOLUMES)):
    t.add(
        f"{name}_out",
        kernel_size=(2, 3),
        stride=(ABSENT, 1),
        padding=(ABSENT, 1),
        count_include_pad=(ABSENT, False),
        divisor_override=(ABSENT, 5),
        paths=(f"aten.{name}",),
        forms=("out",),
        dtypes="f",
        values=PLAIN,
        sizes=shapes,
        terms=27,
    )
t.add(
    "adaptive_avg_pool2d_out",
    _o=((1, 1), (4, 2)),
    paths=("aten.adaptive_avg_pool2d",),
    forms=("out",),
    dtypes="f",
    values=PLAIN,
    sizes={"main": (2, 3, 8, 6), "flat": (3, 12, 8)},
    terms=64,
)
t.add(
    "adaptive_max_pool2d_out",
    "distinct",
    _o=((1, 1), (4, 2)),
    paths=("aten.adaptive_max_pool2d",),
    forms=("call", "out"),
    dtypes="f",
    values=PLAIN,
    sizes={"main": (2, 3, 8, 6), "flat": (3, 12, 8)},
)
