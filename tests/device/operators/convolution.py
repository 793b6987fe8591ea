"""Convolution and its transpose: each argument, sizes that tiles are made of."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from engine.description import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
PLAIN = ("plain",)
# No infinite values: what an algorithm that works on tiles makes of them in the neighbourhood is open.
NEURAL = {"dtypes": "f", "values": PLAIN, "forms": BOTH}

# Sizes are (batch, channels in, channels out, spatial...).
LINES = {
    "main": (2, 4, 6, 11),
    "one": (1, 2, 2, 5),
    "many": (3, 6, 4, 40),
    "long": (1, 2, 2, 1031),
    "tiles": (2, 32, 16, 32),
    "empty": (0, 4, 6, 11),
    "point": (3, 4, 4, 1),
    "single": (2, 1, 1, 9),
    "odd": (1, 3, 5, 33),
    "channels": (1, 33, 66, 4),
    "batches": (1031, 2, 2, 3),
    "tall": (1, 1, 2, 65543),
    "pair": (2, 4, 3, 2),
}
IMAGES = {
    "main": (2, 4, 6, 7, 9),
    "one": (1, 2, 2, 5, 5),
    "wide": (1, 2, 4, 3, 33),
    "tiles": (1, 16, 32, 8, 8),
    "empty": (0, 4, 6, 7, 9),
    "point": (3, 4, 4, 1, 1),
    "single": (2, 1, 1, 6, 7),
    "row": (1, 2, 2, 1, 1031),
    "column": (2, 2, 2, 33, 1),
    "odd": (1, 3, 5, 31, 8),
    "channels": (1, 33, 66, 3, 4),
    "batches": (300, 2, 2, 3, 4),
    "pair": (2, 4, 3, 2, 2),
    "three": (1, 6, 4, 3, 3),
}
VOLUMES = {
    "main": (2, 4, 2, 4, 5, 6),
    "one": (1, 2, 2, 4, 4, 4),
    "tiles": (1, 4, 4, 4, 8, 8),
    "point": (2, 2, 4, 1, 1, 1),
    "single": (2, 1, 1, 3, 5, 4),
    "plate": (1, 2, 2, 1, 5, 6),
    "bar": (1, 3, 5, 9, 1, 2),
    "empty": (0, 4, 2, 4, 5, 6),
    "pair": (2, 4, 2, 2, 2, 2),
}
# By rank: kernels, strides, paddings and dilations; each differs by side somewhere, and one side alone has it.
KERNELS = {
    1: ((3,), (1,), (2,), (5,), "whole", (7,)),
    2: ((3, 2), (1, 1), (2, 5), (1, 3), (7, 1), "whole", (3, 3), (2, 2), (5, 5), (7, 7)),
    3: ((3, 2, 3), (1, 1, 1), (2, 1, 2), "whole", (3, 3, 3), (2, 2, 2)),
}
# Up to the one as large as the image: for what only passes on what the others compute.
FEW_KERNELS = {rank: kernels[: kernels.index("whole") + 1] for rank, kernels in KERNELS.items()}
STRIDES = {
    1: (ABSENT, 1, 2, (3,), 4),
    2: (ABSENT, 1, 2, (1, 2), (3, 1), 4, 3),
    3: (ABSENT, 2, (1, 2, 1), (3, 1, 2), 1, 3),
}
PADDINGS = {
    1: (ABSENT, 0, 1, (2,), 5, 3, 4),
    2: (ABSENT, 0, 1, (0, 1), (2, 0), (3, 4), 2, 3, 4),
    3: (ABSENT, 0, 1, (0, 1, 2), (1, 0, 0), 2, 3),
}
DILATIONS = {
    1: (ABSENT, 1, 2, (3,), 4),
    2: (ABSENT, 1, 2, (1, 2), (3, 1), 3, 4),
    3: (ABSENT, 2, (2, 1, 3), 3),
}
EXTRA = {1: (ABSENT, 0, 1), 2: (ABSENT, 1, (1, 0), (0, 1), 2), 3: (ABSENT, 1, (1, 0, 0), (0, 1, 2))}
# As many groups as there are channels is a kernel of its own on most back ends.
GROUPS = ("one", "two", "each")


def _groups(c):
    """The number of groups: what the word asks, as far as the channels can be divided."""
    most = math.gcd(c.shape[1], c.shape[2])
    return {"one": 1, "two": math.gcd(most, 2), "each": most}[c.args["_groups"]]


def _weight(c, turned):
    groups = _groups(c)
    sides = (c.shape[1], c.shape[2] // groups) if turned else (c.shape[2], c.shape[1] // groups)
    kernel = c.shape[3:] if c.args["_kernel"] == "whole" else c.args["_kernel"]
    if max(kernel) > 2000:
        raise ValueError("a kernel that nobody has")
    return c.draw("unit", (*sides, *kernel))


def _input(c):
    return c.draw("unit", (c.shape[0], c.shape[1], *c.shape[3:]))


for rank, shapes in ((1, LINES), (2, IMAGES), (3, VOLUMES)):
    for turned in (False, True):
        name = f"conv_transpose{rank}d" if turned else f"conv{rank}d"
        t.add(
            name,
            _input,
            lambda c, turned=turned: _weight(c, turned),
            lambda c: c.draw("unit", (c.shape[2],)) if c.args["_bias"] else None,
            _groups,
            act=lambda x, w, b, g, flag, kernel, how, name=name, **k: getattr(F, name)(x, w, b, groups=g, **k),
            _bias=(True, False),
            _kernel=(FEW_KERNELS if turned else KERNELS)[rank],
            _groups=GROUPS,
            stride=STRIDES[rank],
            padding=PADDINGS[rank],
            dilation=DILATIONS[rank],
            **({"output_padding": EXTRA[rank]} if turned else {}),
            # oneDNN ends the process at some transposes of lines of two.
            sizes={
                key: size
                for key, size in shapes.items()
                if not turned or key not in (("tall", "batches", "pair") if rank == 1 else ("tall", "batches"))
            },
            terms=64,
            factor=32.0,
            **NEURAL,
        )
        t.add(
            f"{name}_unbatched" if name != "conv2d" else "conv_unbatched",
            lambda c: _input(c)[0],
            lambda c, turned=turned: _weight(c, turned),
            _groups,
            act=lambda x, w, g, kernel, how, name=name, **k: getattr(F, name)(x, w, groups=g, **k),
            _kernel=FEW_KERNELS[rank],
            _groups=GROUPS,
            stride=(ABSENT, 2, 3),
            padding=(ABSENT, 1, 2, 3, 4),
            sizes={key: shapes[key] for key in ("main", "one", "point", "single", "pair")},
            terms=64,
            factor=32.0,
            **NEURAL,
        )
    t.add(
        f"conv{rank}d_same",
        _input,
        lambda c: _weight(c, False),
        _groups,
        act=lambda x, w, g, kernel, how, **k: getattr(F, f"conv{x.dim() - 2}d")(x, w, groups=g, **k),
        _kernel=KERNELS[rank],
        _groups=GROUPS,
        padding=("same", "valid"),
        dilation=DILATIONS[rank],
        sizes={key: size for key, size in shapes.items() if key not in ("tall", "batches", "tiles")},
        terms=64,
        factor=32.0,
        **NEURAL,
    )
    # Which of the three gradients are requested chooses the kernels.
    t.add(
        f"convolution_backward{rank}d",
        _input,
        lambda c: _weight(c, c.args["_turned"]),
        _groups,
        act=lambda *given: _gradients(*given),
        _kernel=FEW_KERNELS[rank],
        _stride=(1, 2, STRIDES[rank][3]),
        _padding=(0, 1, PADDINGS[rank][3]),
        _dilation=(1, 2),
        _turned=(False, True),
        _groups=GROUPS,
        _mask=((True, True, True), (True, False, False), (False, True, False), (False, False, True)),
        sizes={key: shapes[key] for key in ("main", "one", "tiles", "point", "single", "pair")},
        layouts_of=(0, 1),
        terms=64,
        factor=32.0,
        **{**NEURAL, "forms": ("call",)},
    )


def _gradients(x, w, groups, kernel, stride, padding, dilation, turned, how, mask):
    each = lambda value: list(value) if isinstance(value, tuple) else [value] * (x.dim() - 2)
    options = (each(stride), each(padding), each(dilation), turned, [0] * (x.dim() - 2), groups)
    above = torch.convolution(x, w, None, *options)
    slope = (torch.arange(above.numel(), device=x.device) % 7 - 3).to(x.dtype).reshape(above.shape)
    sides = [above.shape[1]] if mask[2] else None
    return torch.ops.aten.convolution_backward(slope, x, w, sides, *options, list(mask))


# Where an output's size is chosen: what is added at one end, by side, with strides and gaps that allow it.
t.add(
    "conv_transpose2d_more",
    _input,
    lambda c: _weight(c, True),
    _groups,
    act=lambda x, w, g, kernel, how, **k: F.conv_transpose2d(x, w, groups=g, **k),
    _kernel=((3, 3), (1, 1), (2, 4), (2, 2), (5, 5)),
    _groups=GROUPS,
    stride=(2, 3, (2, 5)),
    padding=(0, 1, (0, 2), 2, 4),
    output_padding=(0, 1, (1, 0), (0, 1), 2),
    dilation=(1, 2, (2, 3), 4),
    sizes={key: IMAGES[key] for key in ("main", "one", "single", "odd", "point")},
    terms=64,
    factor=32.0,
    **NEURAL,
)
t.add(
    "conv2d_complex",
    _input,
    lambda c: _weight(c, False),
    lambda c: c.draw("unit", (c.shape[2],)) if c.args["_bias"] else None,
    _groups,
    act=lambda x, w, b, g, flag, kernel, how, **k: F.conv2d(x, w, b, groups=g, **k),
    _bias=(True, False),
    _kernel=KERNELS[2][:3],
    _groups=GROUPS,
    stride=(ABSENT, 2, (1, 2)),
    padding=(ABSENT, 1, "same"),
    sizes={key: IMAGES[key] for key in ("main", "one", "point", "single")},
    terms=64,
    factor=32.0,
    **{**NEURAL, "dtypes": "c"},
)
t.add(
    "conv_depthwise",
    lambda c: c.draw("unit", c.shape),
    lambda c: c.draw("unit", (c.shape[1] * c.args["_m"], 1, *c.args["_kernel"])),
    lambda c: c.draw("unit", (c.shape[1] * c.args["_m"],)) if c.args["_bias"] else None,
    act=lambda x, w, b, m, kernel, flag, **k: F.conv2d(x, w, b, groups=x.shape[1], **k),
    _m=(1, 2, 3),
    _kernel=((3, 3), (1, 1), (5, 2), (1, 7), (5, 5), (2, 2), (7, 7)),
    _bias=(False, True),
    stride=(1, 2, (2, 1), 4, 3),
    padding=(0, 1, (0, 2), 2, 4, "same", "valid"),
    dilation=(1, 2, (1, 3), 3, 4),
    sizes={
        "main": (2, 4, 7, 9),
        "odd": (1, 3, 17, 5),
        "tiles": (1, 32, 8, 8),
        "single": (2, 1, 9, 7),
        "many": (1, 130, 5, 7),
        "row": (1, 2, 1, 1031),
        "pair": (2, 4, 2, 2),
        "point": (3, 4, 1, 1),
        "square": (2, 4, 9, 9),
    },
    terms=16,
    factor=32.0,
    **NEURAL,
)
t.add(
    "conv_tbc",
    lambda c: c.draw("unit", c.shape),
    lambda c: c.draw("unit", (3 if c.shape[0] > 1 else 1, c.shape[2], 4)),
    lambda c: c.draw("unit", (4,)),
    paths=("torch.conv_tbc",),
    _pad=(0, 1, 3),
    sizes={"main": (7, 2, 3), "one": (1, 1, 1), "long": (1031, 1, 2), "odd": (33, 3, 5)},
    terms=16,
    factor=32.0,
    **NEURAL,
)
