"""Pooling over lines, images and volumes."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.description import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
ODD = ("plain", "inf", "special")
NEURAL = {"dtypes": "f", "values": ODD, "forms": BOTH}

LINES = {
    "main": (2, 3, 12),
    "flat": (3, 11),
    "long": (1, 2, 1031),
    "tiles": (2, 16, 32),
    "empty": (0, 3, 12),
    "point": (2, 33, 1),
    "pair": (1, 1, 2),
    "many": (1031, 1, 5),
    "tall": (1, 1, 65543),
}
IMAGES = {
    "main": (2, 3, 8, 9),
    "flat": (3, 7, 8),
    "odd": (1, 2, 17, 5),
    "tiles": (2, 16, 16, 32),
    "empty": (0, 3, 8, 9),
    "long": (1, 1, 4, 1031),
    "point": (3, 4, 1, 1),
    "row": (1, 5, 1, 33),
    "column": (2, 1, 31, 1),
    "many": (300, 1, 3, 4),
    "channels": (1, 130, 4, 4),
}
VOLUMES = {
    "main": (2, 3, 5, 6, 7),
    "flat": (3, 6, 5, 8),
    "tiles": (1, 4, 4, 8, 8),
    "empty": (0, 3, 5, 6, 7),
    "point": (2, 3, 1, 1, 1),
    "plate": (1, 2, 1, 7, 9),
    "bar": (1, 5, 33, 1, 2),
    "long": (1, 1, 2, 2, 1031),
}
# By rank: values alike for every side, values that differ, and one side alone.
KERNELS = {
    1: (2, 1, 3, (5,), 12, 4, 7),
    2: (2, 1, 3, (3, 2), (1, 4), 5, 4, 7, (8, 9)),
    3: (2, 1, 3, (3, 2, 2), (1, 2, 1), 4, (5, 6, 7)),
}
STRIDES = {
    1: (ABSENT, 1, 2, (3,), 5),
    2: (ABSENT, 1, 2, (2, 1), (1, 3), 4, 3),
    3: (ABSENT, 1, 2, (1, 2, 3), 3, 4),
}
PADDINGS = {
    1: (ABSENT, 0, 1, (2,), 3),
    2: (ABSENT, 0, 1, (1, 0), (0, 1), 2, 3),
    3: (ABSENT, 0, 1, (0, 1, 0), 2),
}
DILATIONS = {1: (ABSENT, 1, 2, (3,), 4), 2: (ABSENT, 1, 2, (1, 2), 3, 4), 3: (ABSENT, 2, (1, 2, 1), 1, 3)}
# The sides of an answer: divisors of the side, none of them, more than it has, and one side kept as it is.
ANSWERS = {
    1: (1, 2, (4,), 3, 5, 12, 17, 0, 33),
    2: (1, 2, (4, 2), (None, 3), (3, None), (5, 7), 16, 0, (0, 3), (3, 0), (33, 1)),
    3: (1, 2, (4, 2, 1), (None, 1, 2), (1, 3, None), (3, 5, 7), 0, (2, 0, 3), (1, 1, 17), (0, 1, 1)),
}


def _filled(pool, x, rank, **options):
    """Pool where each window has an element: the index of an empty one is open, and the CPU writes beyond its memory."""
    each = lambda value: value if isinstance(value, tuple) else (value,) * rank
    padded, spread = each(options.get("padding", 0)), each(options.get("dilation", 1))
    if any(pad and gap > side for side, pad, gap in zip(x.shape[-rank:], padded, spread)):
        raise ValueError("a window without elements")
    return _with_places(pool, x, **options)


def _with_places(pool, *given, out=None, **options):
    """Pool into two tensors, as the overload wants them, or into none."""
    return pool(*given, **options) if out is None else pool(*given, **options, out=out[0], indices=out[1])


for rank, shapes in ((1, LINES), (2, IMAGES), (3, VOLUMES)):
    t.add(
        f"max_pool{rank}d",
        "distinct",
        dtypes="fi",
        act=lambda x, n=rank, **k: _filled(getattr(F, f"max_pool{n}d"), x, n, **k),
        kernel_size=KERNELS[rank],
        stride=STRIDES[rank],
        padding=PADDINGS[rank],
        dilation=DILATIONS[rank],
        ceil_mode=(ABSENT, False, True),
        return_indices=(ABSENT, True),
        forms=BOTH,
        values=(*ODD, "wide"),
        sizes=shapes,
        terms=8,
    )
    t.add(
        f"avg_pool{rank}d",
        dtypes="f" if rank < 3 else "s",  # the CPU has no other kind of volumes
        act=lambda x, n=f"avg_pool{rank}d", **k: getattr(F, n)(x, **k),
        kernel_size=KERNELS[rank],
        stride=STRIDES[rank],
        padding=PADDINGS[rank],
        ceil_mode=(ABSENT, False, True),
        count_include_pad=(ABSENT, False, True),
        **({"divisor_override": (ABSENT, 1, 5, -2, None)} if rank > 1 else {}),
        sizes=shapes,
        terms=27,
        values=ODD,
        forms=BOTH,
    )
    exact = {
        name: (*shape[: len(shape) - rank], *(12, 8, 4)[:rank])
        for name, shape in shapes.items()
        if name in ("main", "flat")
    }
    answered = {**exact, "odd": shapes["main"], **{key: size for key, size in shapes.items() if key not in exact}}
    t.add(
        f"adaptive_avg_pool{rank}d",
        act=lambda x, o, n=f"adaptive_avg_pool{rank}d": getattr(F, n)(x, o),
        _o=ANSWERS[rank],
        sizes=answered,
        terms=64,
        **NEURAL,
    )
    t.add(
        f"adaptive_max_pool{rank}d",
        "distinct",
        act=lambda x, o, i, n=f"adaptive_max_pool{rank}d": getattr(F, n)(x, o, i),
        _o=ANSWERS[rank],
        _i=(False, True),
        sizes=answered,
        terms=8,
        **NEURAL,
    )
    t.add(
        f"lp_pool{rank}d",
        "positive",
        act=lambda x, p, k, s, c, n=f"lp_pool{rank}d": getattr(F, n)(x, p, k, s, c),
        _p=(2, 1, 3, 0.5, 2.5),
        _k=KERNELS[rank] if rank > 1 else (2, 1, 3, 5),
        _s=(None, 1, *STRIDES[rank][2:]) if rank > 1 else (None, 1, 2, 5),
        _c=(False, True),
        sizes={key: size for key, size in shapes.items() if key not in ("tall", "many", "empty")},
        terms=64,
        factor=64.0,
        **{**NEURAL, "dtypes": "f" if rank < 3 else "s"},
    )
    t.add(
        f"max_unpool{rank}d",
        "distinct",
        act=lambda x, k, s, p, n=rank: getattr(F, f"max_unpool{n}d")(
            *getattr(F, f"max_pool{n}d")(x, k, s, p, return_indices=True), k, s, p, x.shape[2:]
        ),
        _k=(2, 3, (3, 2, 2)[:rank], 1),
        _s=(None, 1, 2, (2, 1, 3)[:rank]),
        _p=(0, 1),
        sizes={
            "main": (2, 3, *(6,) * rank),
            "odd": (1, 1, *(7, 5, 6)[:rank]),
            "point": (2, 3, *(1,) * rank),
            "long": (1, 2, *(2,) * (rank - 1), 301),
        },
        terms=8,
        **{**NEURAL, "values": ("plain", "inf")},
    )
    t.add(
        f"max_unpool{rank}d_sized",
        "distinct",
        act=lambda x, more, n=rank: getattr(F, f"max_unpool{n}d")(
            *getattr(F, f"max_pool{n}d")(x, 2, return_indices=True), 2, output_size=x.shape[-n:] if more else None
        ),
        _more=(False, True),
        sizes={"flat": (3, *(12,) * rank), "main": (2, 3, *(6,) * rank)},
        terms=8,
        **{**NEURAL, "values": ("plain",)},
    )
    if rank > 1:
        # Float32 alone: where a random window begins is rounded in the dtype of its sample.
        t.add(
            f"fractional_max_pool{rank}d",
            "distinct",
            lambda c, rank=rank: c.draw("inner", (*(1, *c.shape)[-rank - 2 : -rank], rank)),
            act=lambda x, samples, k, i, n=rank, **more: getattr(F, f"fractional_max_pool{n}d")(
                x, k, return_indices=i, _random_samples=samples.detach(), **more
            ),
            _k=(2, 1, (2, 1, 2)[:rank]),
            _i=(False, True),
            output_size=(2, (3, 1, 2)[:rank], 1),
            sizes={key: shapes[key] for key in ("main", "flat", "tiles", "empty")},
            layouts_of=(0,),
            terms=8,
            **{**NEURAL, "dtypes": "s"},
        )
for rank, shapes in ((2, IMAGES), (3, VOLUMES)):
    t.add(
        f"max_pool{rank}d_with_indices",
        "distinct",
        act=lambda x, n=rank, **k: _filled(getattr(torch.ops.aten, f"max_pool{n}d_with_indices"), x, n, **k),
        kernel_size=KERNELS[rank],
        stride=STRIDES[rank],
        padding=PADDINGS[rank],
        dilation=DILATIONS[rank],
        ceil_mode=(ABSENT, True),
        forms=("call", "out"),
        dtypes="f",
        values=ODD,
        sizes=shapes,
    )
    t.add(
        f"avg_pool{rank}d_out",
        kernel_size=KERNELS[rank],
        stride=STRIDES[rank],
        padding=PADDINGS[rank],
        ceil_mode=(ABSENT, True),
        count_include_pad=(ABSENT, False),
        divisor_override=(ABSENT, 1, 5, -2),
        paths=(f"aten.avg_pool{rank}d",),
        forms=("out",),
        dtypes="f" if rank < 3 else "s",
        values=ODD,
        sizes=shapes,
        terms=27,
    )
    aims = tuple(
        one if isinstance(one, tuple) else (one,) * rank
        for one in ANSWERS[rank]
        if not isinstance(one, tuple) or None not in one
    )
    fitting = {"main": (2, 3, *(12, 8, 4)[:rank]), "flat": (3, *(12, 8, 4)[:rank]), "odd": shapes["main"]}
    written = {
        "_o": aims,
        "dtypes": "f",
        "values": ODD,
        "sizes": {**fitting, **{key: shapes[key] for key in ("point", "tiles", "long", "empty")}},
        "terms": 64,
    }
    name = f"adaptive_avg_pool{rank}d"
    t.add(f"{name}_out", paths=(f"aten.{name}",), forms=("out",), **written)
    name = f"adaptive_max_pool{rank}d"
    t.add(
        f"{name}_out",
        "distinct",
        act=lambda x, sides, name=name, **out: _with_places(getattr(torch.ops.aten, name), x, sides, **out),
        forms=("call", "out"),
        **written,
    )
