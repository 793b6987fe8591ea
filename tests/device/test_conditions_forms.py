"""The forms that a function takes: ranks of both operands, dimensions none or all, paddings of every length."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table

cases = Cases("conditions")


# Products of every two ranks from 1 to 5, the batches equal or of one.
_LEFT = {1: (4,), 2: (3, 4), 3: (2, 3, 4), 4: (5, 2, 3, 4), 5: (1, 5, 1, 3, 4)}
_RIGHT = {1: (4,), 2: (4, 6), 3: (2, 4, 6), 4: (5, 1, 4, 6), 5: (2, 1, 2, 4, 6)}
for _dtype in (torch.float32, torch.float16, torch.int64):
    add_table(
        cases,
        f"ranks-{str(_dtype)[6:]}",
        {
            f"{one}x{two}": lambda a, b, one=one, two=two: [
                a[one] @ b[two],
                torch.matmul(a[one].mT.contiguous().mT if one > 1 else a[one], b[two]),
            ]
            for one in _LEFT
            for two in _RIGHT
        },
        lambda d, dtype=_dtype: (
            {rank: d.of(dtype, *shape) for rank, shape in _LEFT.items()},
            {rank: d.of(dtype, *shape) for rank, shape in _RIGHT.items()},
        ),
    )
add_table(
    cases,
    "ranks-derived",
    {
        f"{one}x{two}": lambda a, b, one=one, two=two: derived(torch.matmul, a[one], b[two])
        for one in _LEFT
        for two in _RIGHT
    },
    lambda d: (
        {rank: d.normal(*shape) for rank, shape in _LEFT.items()},
        {rank: d.normal(*shape) for rank, shape in _RIGHT.items()},
    ),
)
add_table(
    cases,
    "ranks-linear",
    {
        f"{rank}-{bias}": lambda a, w, b, rank=rank, bias=bias: derived(
            lambda x, y, *z: F.linear(x, y, *z), a[rank], w, *((b,) if bias else ())
        )
        for rank in _LEFT
        for bias in (False, True)
    },
    lambda d: ({rank: d.normal(*shape) for rank, shape in _LEFT.items()}, d.normal(6, 4), d.normal(6)),
)

# No dimension, an empty list, some, all, from the end; one call after the other on one shape.
_DIMS: tuple[Any, ...] = ((), (0,), (1, 2), (-1,), (0, 1, 2), (-2,), (-3, 2), (2, 0), (-3,), (-2, -1), (-3, -2))
_OVER: dict[str, Any] = {
    "sum": lambda x, dim, keep: x.sum(dim, keepdim=keep),
    "mean": lambda x, dim, keep: x.mean(dim, keepdim=keep),
    "nansum": lambda x, dim, keep: torch.nansum(x, dim, keepdim=keep),
    "nanmean": lambda x, dim, keep: torch.nanmean(x, dim, keepdim=keep),
    "amax": lambda x, dim, keep: x.amax(dim, keepdim=keep),
    "amin": lambda x, dim, keep: x.amin(dim, keepdim=keep),
    "var": lambda x, dim, keep: x.var(dim, keepdim=keep),
    "std": lambda x, dim, keep: x.std(dim, keepdim=keep),
    "var_mean": lambda x, dim, keep: torch.var_mean(x, dim, keepdim=keep),
    "logsumexp": lambda x, dim, keep: x.logsumexp(dim or (0,), keepdim=keep),
    "norm": lambda x, dim, keep: x.norm(2, dim, keepdim=keep),
    "norm-1": lambda x, dim, keep: torch.norm(x, 1, dim, keepdim=keep),
    "vector_norm": lambda x, dim, keep: torch.linalg.vector_norm(x, 3, dim, keepdim=keep),
    "count_nonzero": lambda x, dim, keep: torch.count_nonzero(x, dim),
    "all": lambda x, dim, keep: torch.all(x > -1, dim, keepdim=keep),
    "any": lambda x, dim, keep: torch.any(x > 1, dim, keepdim=keep),
    "flip": lambda x, dim, keep: x.flip(dim),
    "roll": lambda x, dim, keep: x.roll((1,) * len(dim), dim) if dim else x.roll(5),
    "squeeze": lambda x, dim, keep: x[:, :1].squeeze(dim) + 1,
}
add_table(
    cases,
    "dims",
    {
        name: lambda x, form=form: [form(x, dim, keep) for keep in (False, True) for dim in (*_DIMS, *reversed(_DIMS))]
        for name, form in _OVER.items()
    },
    lambda d: (d.normal(3, 4, 5),),
)

# Paddings: none, empty, as long as a side, longer than it, cut and grown at once; every rank that a mode takes.
_SHAPES: dict[int, tuple[int, ...]] = {1: (2, 3, 4), 2: (2, 3, 4, 3), 3: (1, 2, 3, 2, 3)}


def _pads(mode: str, rank: int) -> list[tuple[int, ...]]:
    sides = _SHAPES[rank][:1:-1]
    whole = {"reflect": -1, "circular": 0, "replicate": 4, "constant": 4}[mode]
    most = [side + whole for side in sides]
    one = [tuple(most[at // 2] if at == place else 0 for at in range(2 * rank)) for place in range(2 * rank)]
    both = tuple(most[at // 2] for at in range(2 * rank))
    cut = tuple(1 if at % 2 else -1 for at in range(2 * rank))
    return [(0,) * 2 * rank, *one, both, cut]


for _mode in ("constant", "replicate", "reflect", "circular"):
    add_table(
        cases,
        f"paddings-{_mode}",
        {
            f"{rank}-{'_'.join(map(str, pads))}": lambda x, rank=rank, pads=pads, mode=_mode: [
                derived(lambda y: F.pad(y, pads, mode=mode), x[rank]),
                F.pad(x[rank].transpose(0, 1), pads, mode=mode),
            ]
            for rank in _SHAPES
            for pads in _pads(_mode, rank)
        },
        lambda d: ({rank: d.normal(*shape) for rank, shape in _SHAPES.items()},),
    )
add_table(
    cases,
    "paddings-empty",
    {
        "pad": lambda x: [F.pad(x, ()), F.pad(x[0, 0], ()), F.pad(x[:0], (1, 1)), F.pad(x, (0, 0))],
        "constant_pad_nd": lambda x: [torch.constant_pad_nd(x, []), torch.constant_pad_nd(x, [0, 0], 2.0)],
        "all": lambda x: [F.pad(x, (1, 2, 0, 1, 2, 0)), F.pad(x, (0, 0, 0, 0, 3, 0), value=-1), F.pad(x, (-1, -1))],
    },
    lambda d: (d.normal(2, 3, 4),),
)

# Columns, rows and single places: every shape with sides of 1, in what takes an index or a dimension.
_THIN = ((1,), (5, 1), (1, 5), (1, 1), (1, 5, 1), (5, 1, 1), (1, 1, 5))
_INDEXED: dict[str, Any] = {
    "gather": lambda x, i, dim: [x.gather(dim, i), torch.take_along_dim(x, i, dim), x.gather(dim, i * 0)],
    "scatter": lambda x, i, dim: [
        x.scatter(dim, i, 2.0),
        x.scatter(dim, _own_places(x, dim), x + 1),
        x.scatter_add(dim, i, x),
    ],
    "reduced": lambda x, i, dim: [x.scatter_reduce(dim, i, x, r) for r in ("sum", "prod", "mean", "amax", "amin")],
    "index": lambda x, i, dim: [
        x.index_select(dim, i.flatten()[:1]),
        x.index_add(dim, i.flatten()[:1], x.narrow(dim, 0, 1)),
        x.index_copy(dim, i.flatten()[:1], x.narrow(dim, 0, 1) * 2),
        x.index_fill(dim, i.flatten()[:1], 3),
    ],
    "ordered": lambda x, i, dim: [*x.sort(dim), *x.topk(1, dim), *x.kthvalue(1, dim), *x.median(dim), *x.mode(dim)],
    "scanned": lambda x, i, dim: [x.cumsum(dim), x.cumprod(dim), *x.cummax(dim), x.logcumsumexp(dim), x.flip(dim)],
    "reduced_to": lambda x, i, dim: [
        x.sum(dim),
        x.amax(dim),
        x.argmax(dim),
        x.prod(dim),
        x.softmax(dim),
        x.norm(dim=dim),
    ],
    "unfolded": lambda x, i, dim: [x.unfold(dim, 1, 1) * 2, *x.unbind(dim), *x.split(1, dim), x.diff(dim=dim)],
    "repeated": lambda x, i, dim: [
        x.repeat_interleave(2, dim),
        x.roll(1, dim),
        torch.cat([x, x], dim),
        x.unsqueeze(dim) + 1,
    ],
}


def _own_places(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Return an index that gives each element its own place: no two are written to one."""
    shape = [side if d == dim % x.dim() else 1 for d, side in enumerate(x.shape)]
    return torch.arange(x.shape[dim], device=x.device).reshape(shape).expand(x.shape).clone()


add_table(
    cases,
    "sides",
    {
        f"{name}-{'x'.join(map(str, shape))}-{dim}": lambda x, form=form, place=place, dim=dim: form(
            x[place], torch.zeros_like(x[place], dtype=torch.int64), dim
        )
        for (name, form), (place, shape) in itertools.product(_INDEXED.items(), enumerate(_THIN))
        for dim in range(-1, len(shape) - 1)
    },
    lambda d: ([d.distinct(*shape) / 4 for shape in _THIN],),
)

# Changed in place: a tensor that is given more, fewer or other places keeps what it has.
add_table(
    cases,
    "resized",
    {
        "fewer": lambda x: [x.clone().resize_(2, 3), x.clone().resize_(3), x.clone().resize_(0, 4)],
        "more": lambda x: [x.clone().resize_(7, 5).flatten()[:20], x.clone().resize_(2, 3, 4).flatten()[:20]],
        "as": lambda x: [x.clone().resize_as_(x[:2, :2]), x.clone().resize_as_(x.mT.contiguous())],
        "view": lambda x: x[1:, 1:].clone().resize_(2, 2),
    },
    lambda d: (d.distinct(4, 5),),
)
# Each function twice with other numbers: an answer that is kept from the call before is another's.
add_table(
    cases,
    "called-again",
    {
        "conjugates": lambda x: [torch.conj_physical(z) for z in _complex(x)],
        "resolved": lambda x: [z.conj().resolve_conj() * 1 for z in _complex(x)],
        "negated": lambda x: [z.conj().imag.resolve_neg() * 1 for z in _complex(x)],
        "cummax-out": lambda x: [
            torch.cummax(y, 1, out=(torch.empty_like(y), torch.empty_like(y, dtype=torch.int64)))
            for y in (x, -x, x + 1)
        ],
        "packed": lambda x: [
            torch.nn.utils.rnn.pack_padded_sequence(y, torch.tensor([5, 3, 2, 1]), batch_first=True).data
            for y in (x[:, :, None], x.mT.contiguous().mT[:, :, None] * 2, x[:, :, None].expand(4, 5, 3))
        ],
    },
    lambda d: (d.distinct(4, 5) / 2,),
)


def _complex(x: torch.Tensor) -> list[torch.Tensor]:
    return [torch.complex(y, y.flip(0) + 1) for y in (x, -x, x * 3)]
