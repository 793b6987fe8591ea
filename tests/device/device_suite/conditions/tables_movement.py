"""Operators that move values: views made dense, joins."""

from __future__ import annotations

import torch

from .spec import ABSENT, REDUCED, Table

t = Table()

EVERY = {"dtypes": "fibc", "values": ("plain", "wide", "special")}
MOVED = {**EVERY, "forms": ("call", "grad"), "sizes": REDUCED}

t.add("flip", dims=((0,), (-1,), (0, 1), (0, -1), ()), **MOVED)
t.each(
    "fliplr flipud", dtypes="fibc", forms=("call", "grad"), values=("plain",), sizes=("small", "four", "line", "long")
)
t.add("roll", shifts=((1,), (-2,), (100,)), dims=((0,), (-1,), (1,)), **MOVED)
t.add("roll_flat", act=lambda x, s: torch.roll(x, s), _s=(1, -3), **MOVED)
t.add("roll_both", act=lambda x, s: torch.roll(x, s, (0, 1)), _s=((1, 2), (-1, 3)), **MOVED)
t.add("rot90", k=(1, 2, 3, -1), dims=((0, 1), (1, 0), (-1, -2)), **MOVED)
t.each(
    "tril triu",
    _diagonal=(ABSENT, 1, -1, 3, -7),
    dtypes="fibc",
    values=("plain", "wide", "special"),
    forms=("call", "grad"),
    sizes=("small", "four", "tiles", "long", "high", "three", "five", "empty", "hollow"),
)
# With two dimensions only: the CPU (2.13) writes beyond an out= of four whose matrices are not dense.
for name in ("tril", "triu"):
    t.add(
        f"{name}_written",
        _diagonal=(ABSENT, 1, -1, 3, -7),
        dtypes="fibc",
        values=("plain",),
        forms=("inplace", "out"),
        paths=(f"torch.{name}", f"Tensor.{name}"),
        sizes=("small", "tiles", "long", "high", "empty", "hollow"),
    )
t.add(
    "diag",
    diagonal=(ABSENT, 1, -2),
    forms=("call", "out", "grad"),
    sizes=("small", "line", "long", "tiles", "high"),
    **EVERY,
)
t.add(
    "diagonal",
    offset=(ABSENT, 1, -1),
    dim1=(ABSENT, 1, -2),
    dim2=(ABSENT, -1),
    finish=lambda y: y + 0 if y.dtype != torch.bool else y.clone(),
    **MOVED,
)
t.add(
    "diag_embed",
    offset=(ABSENT, 1, -1),
    dim1=(ABSENT, 0),
    dim2=(ABSENT, 1),
    forms=("call", "grad"),
    sizes=("small", "line", "three", "none", "empty"),
    **EVERY,
)
t.add("diagflat", offset=(ABSENT, 1, -2), forms=("call", "grad"), sizes=("small", "line", "empty"), **EVERY)
t.add("contiguous", memory_format=(ABSENT, torch.contiguous_format), paths=("Tensor.contiguous",), **MOVED)
t.add("clone", memory_format=(ABSENT, torch.contiguous_format, torch.preserve_format), paths=("Tensor.clone",), **MOVED)
t.add(
    "channels_last_copy",
    act=lambda x: (x.contiguous(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)),
    dtypes="fibc",
    forms=("call", "grad"),
    sizes=("four",),
)
t.add(
    "permuted",
    act=lambda x, how: x.permute(*[(d + how) % x.dim() for d in range(x.dim())]).contiguous(),
    _how=(1, 2, 3),
    **MOVED,
)
t.add("flattened", act=lambda x, **k: torch.flatten(x, **k), start_dim=(0, 1, -2), end_dim=(-1, 1), **MOVED)
t.add("reshaped", act=lambda x, how: x.reshape(how), _how=((-1,), (1, -1), (-1, 1)), **MOVED)
t.add("transposed_copy", act=lambda x, a, b: x.transpose(a, b).contiguous(), _a=(0, -1), _b=(1, -2), **MOVED)
t.add(
    "narrowed",
    act=lambda x, dim, start, length: x.narrow(dim, start, length).clone(),
    _dim=(0, -1, 1),
    _start=(0, 1),
    _length=(1, 2),
    **MOVED,
)
t.add(
    "sliced",
    act=lambda x, how: x[how] * 1,
    _how=(
        (slice(1, None, 2),),
        (Ellipsis, slice(None, -1)),
        (slice(1, 3), Ellipsis, slice(2, 5)),
        (None, Ellipsis, None),
        (-1,),
        (Ellipsis, 0),
    ),
    dtypes="fic",
    forms=("call", "grad"),
    sizes=REDUCED,
)
t.add(
    "slice_written",
    "any",
    act=lambda x, how, v: x.__setitem__(how, v),
    _how=(
        (slice(1, None, 2),),
        (Ellipsis, slice(None, -1)),
        (slice(1, 3), Ellipsis, slice(2, 5)),
        (-1,),
        (Ellipsis, 0),
    ),
    _v=(0, 3, -1),
    dtypes="fibc",
    forms=("inplace",),
    sizes=REDUCED,
    values=("plain",),
)
t.add(
    "slice_updated",
    "any",
    act=lambda x, how, v: x[how].add_(v),
    _how=(
        (slice(1, None, 2),),
        (Ellipsis, slice(None, -1)),
        (slice(1, 3), Ellipsis, slice(2, 5)),
        (-1,),
        (Ellipsis, 0),
    ),
    _v=(3,),
    dtypes="fic",
    forms=("inplace",),
    sizes=REDUCED,
    values=("plain", "wide"),
)
for name in ("mul", "copy", "fill", "zero", "sub", "clamp", "neg", "exp", "sqrt", "div"):
    given = {"mul": (2,), "fill": (3,), "sub": (1,), "clamp": (0, 1), "div": (2,)}.get(name, ())
    t.add(
        f"slice_{name}",
        "positive",
        act=lambda x, how, name=name, given=given: getattr(x[how], name + "_")(
            *(given if name != "copy" else (x[how].flip(0) * 1,))
        ),
        _how=((slice(1, None),), (Ellipsis, slice(1, None, 2)), (slice(None), slice(1, 3))),
        dtypes="fi" if name in ("mul", "copy", "fill", "zero", "sub", "neg", "clamp") else "f",
        forms=("inplace",),
        sizes=("small", "four", "long", "line", "three"),
        values=("plain",),
        laid=(0,),
    )
t.add(
    "unfolded",
    act=lambda x, d, size, step: x.unfold(d, size, step) * 1,
    _d=(0, -1),
    _size=(1, 2, 3),
    _step=(1, 2),
    dtypes="fic",
    forms=("call", "grad"),
    sizes=REDUCED,
    values=("plain",),
    terms=4,
)
t.add(
    "expanded_sum",
    act=lambda x, n: (x[None].expand(n, *x.shape) * 2, x[None].expand(n, *x.shape).sum(0)),
    _n=(1, 3),
    dtypes="fi",
    forms=("call", "grad"),
    terms=4,
    values=("plain",),
)
t.add("repeat", repeats=((2, 1, 2, 1, 1, 1), (3,), (2, 3), (0, 1), (1, 2, 1, 3)), paths=("Tensor.repeat",), **MOVED)
t.add("tile", dims=((2,), (1, 3), (2, 1, 1)), **MOVED)
t.add("repeat_interleave", repeats=(1, 2, 3), dim=(ABSENT, 0, -1), **MOVED)
t.add(
    "repeat_interleave_each",
    "any",
    lambda c: c.indices(4, (c.shape[c.args["dim"]],)),
    dim=(0, -1),
    paths=("torch.repeat_interleave", "Tensor.repeat_interleave"),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "three", "long"),
    laid=(0,),
    **EVERY,
)
t.add(
    "repeat_interleave_counts",
    lambda c: c.indices(5, (c.shape[0] if c.shape else 1,)),
    dtypes="s",
    paths=("torch.repeat_interleave",),
    forms=("call",),
    values=("plain",),
    sizes=("line", "long"),
)
t.add(
    "split_parts",
    act=lambda x, n, d: [part * 1 if part.dtype != torch.bool else part.clone() for part in torch.split(x, n, d)],
    _n=(1, 2, 3),
    _d=(0, -1),
    **{**MOVED, "sizes": ("small", "four", "three", "line", "empty", "hollow", "five")},
)
t.add(
    "chunk_parts",
    act=lambda x, n, d: [part.clone() for part in torch.chunk(x, n, d)],
    _n=(1, 2, 3),
    _d=(0, -1),
    **MOVED,
)
t.add(
    "tensor_split",
    act=lambda x, n, d: [part.clone() for part in torch.tensor_split(x, n, d)],
    _n=(2, (1, 3)),
    _d=(0, -1),
    **MOVED,
)
t.add(
    "unbind_parts",
    act=lambda x, d: [part.clone() for part in torch.unbind(x, d)],
    _d=(0, -1),
    dtypes="fibc",
    forms=("call", "grad"),
    sizes=("small", "four", "three", "line", "empty"),
)
t.add(
    "cat",
    "any",
    "any",
    act=lambda x, y, d, **k: torch.cat([x, y, x], d, **k),
    _d=(0, -1, 1, -2),
    dtypes="fibc",
    values=("plain", "wide", "special"),
    forms=("call", "out", "grad"),
    sizes=REDUCED,
)
t.add(
    "cat_many",
    "any",
    "any",
    act=lambda x, y, d: torch.cat([x, y] * 9, d),
    _d=(0, -1),
    dtypes="fibc",
    forms=("call", "grad"),
    sizes=("small", "four", "one", "line", "empty", "three"),
    values=("plain",),
    terms=20,
)
t.add(
    "cat_uneven",
    "any",
    lambda c: c.draw("any", (2, *c.shape[1:])),
    lambda c: c.draw("any", (0,)),
    act=lambda x, y, z: torch.cat([x, y, z]) if x.dim() == 1 else torch.cat([x, y]),
    dtypes="fibc",
    forms=("call", "grad"),
    sizes=("small", "four", "line", "three", "five", "long"),
)
t.add(
    "cat_last",
    "any",
    lambda c: c.draw("any", (*c.shape[:-1], 3)),
    act=lambda x, y, **k: torch.cat([x, y], -1, **k),
    dtypes="fibc",
    forms=("call", "out", "grad"),
    sizes=("small", "four", "line", "three", "five", "long", "hollow"),
)
t.add(
    "stack",
    "any",
    "any",
    act=lambda x, y, d, **k: torch.stack([x, y], d, **k),
    _d=(0, -1, 1),
    dtypes="fibc",
    values=("plain", "wide", "special"),
    forms=("call", "out", "grad"),
    sizes=REDUCED,
)
for name in ("hstack", "vstack", "dstack", "column_stack"):
    t.add(
        name,
        "any",
        "any",
        act=lambda x, y, name=name, **k: getattr(torch, name)([x, y], **k),
        dtypes="fic",
        values=("plain",),
        forms=("call", "out", "grad"),
        sizes=("small", "four", "none", "line", "empty"),
    )
t.add(
    "block_diag",
    "any",
    "any",
    act=lambda x, y: torch.block_diag(x, y),
    dtypes="fic",
    values=("plain",),
    forms=("call", "grad"),
    sizes=("small", "none", "line"),
)
t.add(
    "meshgrid",
    "any",
    "any",
    act=lambda x, y, **k: [g.clone() for g in torch.meshgrid(x, y, **k)],
    indexing=("ij", "xy"),
    dtypes="fic",
    values=("plain",),
    forms=("call", "grad"),
    sizes=("line", "one", "empty"),
)
t.add(
    "cartesian_prod",
    "any",
    "any",
    act=lambda x, y: torch.cartesian_prod(x, y),
    dtypes="fi",
    values=("plain",),
    forms=("call",),
    sizes=("line", "one"),
)
t.add(
    "combinations",
    act=lambda x, **k: torch.combinations(x, **k),
    r=(2, 3),
    with_replacement=(False, True),
    dtypes="fi",
    values=("plain",),
    forms=("call",),
    sizes=("line", "one"),
)
t.add(
    "vander",
    act=lambda x, **k: torch.vander(x, **k),
    N=(2, 4),
    increasing=(False, True),
    dtypes="fi",
    values=("plain",),
    forms=("call",),
    sizes=("line", "one"),
    factor=64.0,
)
