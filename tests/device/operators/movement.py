"""Operators that move values: turned, cut out of diagonals, made dense, padded."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.description import ABSENT, REDUCED, Table

t = Table()

EVERY = {"dtypes": "fibc", "values": ("plain", "wide", "special")}
MOVED = {**EVERY, "forms": ("call", "grad"), "sizes": REDUCED}
SIDED = {**MOVED, "sizes": tuple(size for size in REDUCED if size != "none")}
PLANES = {**MOVED, "sizes": tuple(size for size in REDUCED if size not in ("none", "one", "line", "tall"))}
PAIRS = (
    "small",
    "four",
    "tiles",
    "long",
    "high",
    "three",
    "five",
    "empty",
    "hollow",
    "column",
    "row",
    "middle",
    "many",
)

t.add("flip", dims=((0,), (-1,), (0, 1), (0, -1), (), (1,), (-2,), (1, 2)), **MOVED)
t.each(
    "fliplr flipud",
    forms=("call", "grad"),
    sizes=("small", "four", "long", "column", "row", "empty", "wide", "middle"),
    **EVERY,
)
t.add("roll", shifts=((1,), (-2,), (100,), (0,), (33,)), dims=((0,), (-1,), (1,), (-2,)), **SIDED)
t.add("roll_flat", act=lambda x, s: torch.roll(x, s), _s=(1, -3, 0, 40_009), **MOVED)
t.add(
    "roll_both",
    act=lambda x, s, d: torch.roll(x, s, d),
    _s=((1, 2), (-1, 3), (0, 5), (32, -32)),
    _d=((0, 1), (1, 0), (-1, -2), (0, 0)),
    **SIDED,
)
t.add("rot90", k=(ABSENT, 0, 1, 2, 3, -1, 5), dims=(ABSENT, (0, 1), (1, 0), (-1, -2), (0, 2)), **PLANES)
DIAGONAL = (ABSENT, 0, 1, -1, 3, -7, 40)
t.each("tril triu", _diagonal=DIAGONAL, forms=("call", "grad"), sizes=PAIRS, **EVERY)
# With two dimensions only: the CPU (2.13) writes beyond an out= of four whose matrices are not dense.
for name in ("tril", "triu"):
    t.add(
        f"{name}_written",
        _diagonal=DIAGONAL,
        dtypes="fibc",
        values=("plain", "special"),
        forms=("inplace", "out"),
        paths=(f"torch.{name}", f"Tensor.{name}"),
        sizes=("small", "tiles", "long", "high", "empty", "hollow", "column", "row"),
    )
t.add(
    "diag",
    diagonal=(ABSENT, 0, 1, -2, 6, -4),
    forms=("call", "out", "grad"),
    sizes=("small", "line", "one", "long", "tiles", "high", "column", "row", "empty", "many"),
    **EVERY,
)
t.add(
    "diagonal",
    offset=(ABSENT, 0, 1, -1, 4, -3),
    dim1=(ABSENT, 0, 1, -2),
    dim2=(ABSENT, 1, -1, 0),
    finish=lambda y: y + 0 if y.dtype != torch.bool else y.clone(),
    **PLANES,
)
t.add(
    "diag_embed",
    offset=(ABSENT, 0, 1, -1, 3),
    dim1=(ABSENT, 0, -1, 1),
    dim2=(ABSENT, 1, -2, 0),
    forms=("call", "grad"),
    sizes=("small", "line", "one", "three", "empty", "column", "row", "high"),
    **EVERY,
)
t.add(
    "diagflat",
    offset=(ABSENT, 0, 1, -2, 9),
    forms=("call", "grad"),
    sizes=("small", "line", "none", "one", "empty", "three", "column"),
    **EVERY,
)
t.add("contiguous", memory_format=(ABSENT, torch.contiguous_format), paths=("Tensor.contiguous",), **MOVED)
t.add("clone", memory_format=(ABSENT, torch.contiguous_format, torch.preserve_format), paths=("Tensor.clone",), **MOVED)
t.add(
    "channels_last_copy",
    act=lambda x: (x.contiguous(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)),
    forms=("call", "grad"),
    sizes={
        "four": (2, 3, 4, 6),
        "one": (2, 1, 5, 3),
        "pixel": (3, 5, 1, 1),
        "wide": (1, 3, 2, 10007),
        "none": (0, 3, 2, 2),
    },
    **EVERY,
)
t.add(
    "channels_last_3d_copy",
    act=lambda x: x.contiguous(memory_format=torch.channels_last_3d) * 1,
    dtypes="fic",
    values=("plain", "special"),
    forms=("call", "grad"),
    sizes={"five": (2, 3, 1, 4, 3), "one": (2, 1, 5, 3, 2), "voxel": (3, 5, 1, 1, 1)},
)
t.add(
    "permuted",
    act=lambda x, how: x.permute(*[(d + how) % x.dim() for d in range(x.dim())]).contiguous(),
    _how=(0, 1, 2, 3, -1),
    **SIDED,
)
t.add(
    "reversed_sides",
    act=lambda x: (x.permute(*reversed(range(x.dim()))).contiguous(), x.permute(*reversed(range(x.dim()))).clone() * 1),
    **{**SIDED, "dtypes": "fic"},
)
t.add("flattened", act=lambda x, **k: torch.flatten(x, **k), start_dim=(0, 1, -2, 2), end_dim=(-1, 1, -2, 2), **MOVED)
t.add("ravel", **MOVED)
t.add(
    "reshaped", act=lambda x, how: x.reshape(how), _how=((-1,), (1, -1), (-1, 1), (-1, 2), (3, -1), (2, -1, 2)), **MOVED
)
t.add(
    "reshaped_as",
    act=lambda x, how: x.reshape([x.shape[(d + how) % x.dim()] for d in range(x.dim())]) * 1,
    _how=(1, -1),
    **{**MOVED, "dtypes": "fic"},
)
t.add(
    "unflattened",
    act=lambda x, d, how: torch.unflatten(x, d, how).clone(),
    _d=(0, -1, 1),
    _how=((1, -1), (-1, 1), (-1, 2), (2, -1), (-1, 1, 1)),
    **SIDED,
)
t.add(
    "transposed_copy",
    act=lambda x, a, b: x.transpose(a, b).contiguous(),
    _a=(0, -1, 1),
    _b=(1, -2, 0, 2),
    **MOVED,
)
t.add(
    "moved_dims",
    act=lambda x, a, b: (torch.movedim(x, a, b).clone(), torch.movedim(x, (a,), (b,)).contiguous()),
    _a=(0, -1, 1),
    _b=(1, -2, 0, 2),
    **MOVED,
)
t.add(
    "squeezed",
    act=lambda x, d: [(x.squeeze() if d is None else x.squeeze(d)).clone(), x.unsqueeze(0 if d is None else d).clone()],
    _d=(None, 0, -1, 1, -2, 2),
    **MOVED,
)
t.add(
    "narrowed",
    act=lambda x, dim, start, length: x.narrow(dim, start, length).clone(),
    _dim=(0, -1, 1, -2),
    _start=(0, 1, -1, 3),
    _length=(0, 1, 2, 3),
    **SIDED,
)
t.add(
    "selected",
    act=lambda x, d, at: (torch.select(x, d, at).clone(), torch.select(x, d, at) == torch.select(x, d, 0)),
    _dim=(0, -1, 1, -2, 2),
    _place=(0, -1, 1, 2),
    dtypes="fibc",
    forms=("call",),
    values=("plain", "special"),
    sizes=SIDED["sizes"],
)
t.add(
    "unfolded",
    act=lambda x, d, size, step: x.unfold(d, size, step) * 1,
    _d=(0, -1, 1, -2),
    _size=(0, 1, 2, 3, 5),
    _step=(1, 2, 3, 7),
    dtypes="fic",
    forms=("call", "grad"),
    sizes=REDUCED,
    values=("plain", "special"),
    terms=4,
)
t.add(
    "strided",
    act=lambda x, how: torch.as_strided(x.reshape(-1), *how).clone(),
    _how=(
        ((2, 3), (3, 1)),
        ((3, 2), (1, 3)),
        ((4, 4), (1, 1)),
        ((2, 2), (0, 1)),
        ((2, 2), (2, 3), 4),
        ((), ()),
        ((0, 3), (3, 1)),
    ),
    forms=("call", "grad"),
    terms=4,
    sizes=("small", "four", "line", "long", "tiles", "middle"),
    **EVERY,
)
t.add(
    "vander",
    act=lambda x, **k: torch.vander(x, **k),
    N=(ABSENT, 0, 1, 2, 4),
    increasing=(False, True),
    dtypes="fic",
    values=("plain", "equal", "zero"),
    forms=("call",),
    sizes=("line", "one"),
    factor=64.0,
)

MOVED_OF_PADDING = {"values": ("plain", "wide", "special"), "forms": ("call", "grad"), "sizes": REDUCED}
t.add(
    "pad_constant",
    act=lambda x, p, **k: F.pad(x, p, **k),
    _p=(
        *((1, 2), (0, 3), (3, 0), (0, 0), (70, 1), ()),  # the last side
        *((1, 0, 2, 1), (0, 0, 1, 0), (0, 0, 0, 2), (1, 1, 0, 0)),  # one of two sides alone
        *((-1, 1), (-1, -1), (2, 0, -1, 1), (0, -1, 0, 0)),  # cut
        *((1, 0, 0, 2, 1, 1), (0, 0, 0, 0, 1, 0), (1, 1, 1, 1, 1, 1, 1, 1), (0, 0, -1, 2, 0, 0, 1, 0)),
    ),
    mode=(ABSENT, "constant"),
    value=(ABSENT, 1.5, -2, 0, None, True, float("inf"), float("nan")),
    **{**MOVED_OF_PADDING, "dtypes": "fibc", "sizes": (*REDUCED, "rows")},
)
t.add(
    "constant_pad_nd",
    _p=((1, 2), (0, 3), (), (-1, 1), (0, 0, 1, 0), (2, 0, -1, 1), (0, 0, 0, 0, 1, 2)),
    _value=(0, 1.5, -2, True),
    paths=("torch.constant_pad_nd", "aten.constant_pad_nd"),
    **{**MOVED_OF_PADDING, "dtypes": "fib", "forms": ("call", "out", "grad")},
)
SIDES = {
    "line": (3, 17),
    "small": (2, 3, 7),
    "image": (2, 3, 4, 6),
    "volume": (1, 2, 3, 4, 5),
    "long": (1, 2, 1031),
    "flat": (4, 3, 5),
    "empty": (0, 3, 7),
    "wide": (1, 2, 3, 400),
    "point": (2, 3, 1, 1),
    "two": (2, 2, 2, 2),
    "column": (1, 5, 33, 1),
    "many": (300, 1, 3, 4),
    "channels": (1, 130, 4, 5),
    "tall": (1, 1, 65543),
}
t.add(
    "pad_reflect",
    act=lambda x, p, mode: F.pad(x, p, mode),
    _p=(
        *((1, 2), (2, 0), (0, 2), (0, 0), (4, 5), (6, 0), (17, 0)),
        *((1, 1, 2, 0), (1, 0, 1, 2), (0, 0, 1, 0), (0, 1, 0, 0), (3, 2, 3, 3)),
        *((1, 1, 1, 0, 1, 1), (0, 0, 0, 0, 0, 1), (4, 4, 3, 3, 2, 2)),
    ),
    _mode=("reflect", "replicate", "circular"),
    dtypes="fic",
    values=("plain", "wide", "special"),
    forms=("call", "grad"),
    sizes=SIDES,
    terms=8,
)
for kind in ("reflection", "replication"):
    for rank, shape in (
        (1, {"three": (2, 3, 7), "flat": (3, 9), "long": (1, 2, 1031), "many": (1031, 1, 3)}),
        (2, {"four": (2, 3, 5, 6), "flat": (3, 5, 6), "wide": (1, 1, 3, 1031), "high": (1, 33, 31, 3)}),
        (3, {"five": (1, 2, 3, 4, 5), "flat": (2, 3, 4, 5), "long": (1, 1, 3, 3, 301), "many": (33, 1, 3, 3, 3)}),
    ):
        name = f"{kind}_pad{rank}d"
        pads = (
            (1, 2, 0, 1, 2, 1)[: 2 * rank],
            (1,) * 2 * rank,
            (0,) * 2 * rank,
            *(tuple(2 if place == one else 0 for place in range(2 * rank)) for one in range(2 * rank)),
        )
        t.add(
            name,
            _padding=pads,
            dtypes="f",
            values=("plain", "special"),
            forms=("call", "out", "grad"),
            sizes={**shape, "point": (2, 3, *(1,) * rank), "empty": (0, 3, *(4,) * rank)},
            paths=(f"aten.{name}",),
            terms=8,
        )
