"""Layouts of indexing: gather, scatter, masks, selection, embedding."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.layout_cases import add_layout_cases
from device_suite.ops import FLOATS, INTEGERS, Arg, Op

cases = Cases("layouts")
WHOLE = (*FLOATS, *INTEGERS, torch.bool)
ADDED = (*FLOATS, torch.int64, torch.int32)


def _index(high: int) -> Any:
    return lambda d, dtype, shape: d.integers(0, high, *shape)


def _op(name: str, act: Any, *args: Any, **fields: Any) -> None:
    operands = tuple(arg if isinstance(arg, Arg) else Arg(arg) for arg in args)
    add_layout_cases(cases, Op(name=name, args=operands, forms=(act,), **{"terms": 16, "expanded": False, **fields}))


_ROWS = Arg("m", _index(5), torch.int64)


def _unique(d: Any, dtype: Any, shape: Any) -> Any:
    """Indices below 5 without a duplicate along the rows of any view that a layout cuts out."""
    rows = shape[0]
    if len(shape) == 1:  # every second one, or all from the third on, are unique among themselves
        return torch.arange(rows) // (2 if rows > 7 else 1) % 5
    across = torch.arange(shape[1])
    return (torch.arange(rows)[:, None] + across[None, :] // (2 if shape[1] > 7 else 1)) % 5


# The view has four rows at most, or five in another shape.
_UNIQUE = Arg("m", _unique, torch.int64)


_op(
    "index_select",
    lambda x, i: [torch.index_select(x, 0, i), x.index_select(1, i), torch.index_select(x, -1, i)],
    "r n",
    _ROWS,
    dtypes=WHOLE,
    expanded=True,
    out=None,
)
_op(
    "gather",
    lambda x, i: [torch.gather(x, 0, i), x.gather(0, i), torch.take_along_dim(x, i, 0)],
    "r n",
    Arg("m n", _index(5), torch.int64),
    dtypes=WHOLE,
    expanded=True,
    out=None,
    deterministic=False,
)
_op(
    "gather_last",
    lambda x, i: [torch.gather(x, 1, i), torch.gather(x, -1, i)],
    "r n",
    Arg("r m", _index(7), torch.int64),
    dtypes=ADDED,
    expanded=True,
    deterministic=False,
)
_op(
    "take",
    lambda x, i: [torch.take(x, i), x.take(i)],
    "r n",
    Arg("m 3", _index(35), torch.int64),
    dtypes=ADDED,
    deterministic=False,
)
_op(
    "index_1",
    lambda x, i: [x[i], x[:, i], x[..., i], x[i, i], x[i][:, 1:], x[None, i], x[i.unsqueeze(1), i]],
    "r n",
    _ROWS,
    dtypes=WHOLE,
    expanded=True,
    deterministic=False,
)
_op(
    "index_3",
    lambda x, i: [x[:, i], x[:, :, i], x[:, i, 1:3], x[0, i], x[:, i, i], x[1, :, i]],
    "b r n",
    _ROWS,
    dtypes=FLOATS,
    deterministic=False,
)
_op(
    "index_mask",
    lambda x, m: [x[m], x[~m], torch.masked_select(x, m), x.masked_select(~m), x[m.any(1)], x[:, m.any(0)]],
    "r n",
    Arg("r n", "bool"),
    dtypes=WHOLE,
    expanded=True,
    grads=(),
)
_op(
    "nonzero",
    lambda m: [torch.nonzero(m), *torch.nonzero(m, as_tuple=True), m.nonzero(), torch.argwhere(m), torch.where(m)[0]],
    Arg("r n", "bool"),
    dtypes=(torch.bool,),
    grads=(),
    tall=True,
    empty="r",
)
_op(
    "nonzero_numbers",
    lambda x: [torch.nonzero(x.round()), torch.count_nonzero(x.round())],
    "r n",
    dtypes=ADDED[:3],
    grads=(),
)
_op(
    "basic",
    lambda x: [
        x[1],
        x[:, 2],
        x[1:3, ::2],
        x[-1],
        x[..., 0],
        x[None],
        x[1:, None, 2:],
        x.select(1, 2),
        x.narrow(0, 1, 2),
        x[:0],
        x[2:2],
    ],
    "r n",
    dtypes=WHOLE,
    expanded=True,
)


def _writes(name: str, write: Any, *args: Any, **fields: Any) -> None:
    """An operator that writes through an index: in place and not, with what it returns."""
    operands = tuple(arg if isinstance(arg, Arg) else Arg(arg) for arg in args)
    fields = {"dtypes": ADDED, "terms": 16, "expanded": False, **fields}
    add_layout_cases(
        cases, Op(name=name, args=operands, forms=(lambda x, *rest: write(x.clone(), *rest),), inplace=write, **fields)
    )


_writes("index_add", lambda x, i, s: x.index_add_(0, i, s), "5 n", _ROWS, "m n", deterministic=False)
_writes("index_add_columns", lambda x, i, s: x.index_add_(1, i, s, alpha=2), "r 5", _ROWS, "r m", deterministic=False)
_writes("index_copy", lambda x, i, s: x.index_copy_(0, i, s), "5 n", _UNIQUE, "m n", dtypes=WHOLE)
_writes("index_fill", lambda x, i: x.index_fill_(1, i, 3), "r 5", _ROWS, dtypes=WHOLE)
_writes("index_put", lambda x, i, s: x.index_put_((i,), s), "5 n", _UNIQUE, "m n", dtypes=WHOLE)
_writes(
    "index_put_added", lambda x, i, s: x.index_put_((i,), s, accumulate=True), "5 n", _ROWS, "m n", deterministic=False
)
_writes("set_item", lambda x, i, s: _set(x, i, s), "5 n", _UNIQUE, "m n", dtypes=WHOLE)
_writes("put", lambda x, i, s: x.put_(i, s), "5 n", _UNIQUE, "m", dtypes=WHOLE)
_writes("scatter", lambda x, i, s: x.scatter_(0, i, s), "5 n", Arg("m n", _unique, torch.int64), "m n", dtypes=WHOLE)
_writes("scatter_value", lambda x, i: x.scatter_(1, i, 2), "r 5", Arg("r m", _index(5), torch.int64), dtypes=WHOLE)
_writes(
    "scatter_add",
    lambda x, i, s: x.scatter_add_(0, i, s),
    "5 n",
    Arg("m n", _index(5), torch.int64),
    "m n",
    deterministic=False,
)
for _reduce in ("sum", "amax", "amin", "mean", "prod"):
    _writes(
        f"scatter_reduce_{_reduce}",
        lambda x, i, s, reduce=_reduce: x.scatter_reduce_(0, i, s, reduce=reduce),
        "5 n",
        Arg("m n", _index(5), torch.int64),
        "m n",
        deterministic=False,
        dtypes=FLOATS[:1],
        grads=() if _reduce == "prod" else None,
    )
_writes("masked_fill", lambda x, m: x.masked_fill_(m, 2), "r n", Arg("r n", "bool"), dtypes=WHOLE)
_writes("masked_fill_broadcast", lambda x, m: x.masked_fill_(m, -1), "b r n", Arg("b 1 n", "bool"), dtypes=ADDED)
_writes("masked_scatter", lambda x, m, s: x.masked_scatter_(m, s), "r n", Arg("r n", "bool"), "r n", dtypes=ADDED)
_writes("set_mask", lambda x, m: _set(x, m, 4), "r n", Arg("r n", "bool"), dtypes=WHOLE)
_writes("set_slices", lambda x, s: _set_slices(x, s), "r n", "n", dtypes=WHOLE)
_writes("fill_diagonal", lambda x: x.fill_diagonal_(5), "r n", dtypes=ADDED)


def _set(x: Any, place: Any, value: Any) -> Any:
    x[place] = value
    return x


def _set_slices(x: Any, s: Any) -> Any:
    x[1] = s
    x[:, 2] = 1
    x[3:5, 1:3] = x[:2, 4:6].clone()
    x[..., -1] = x[..., 0]
    return x


def _embeddings(i: Any, w: Any) -> Any:
    return [F.embedding(i, w), F.embedding(i, w, padding_idx=1), F.embedding(i[0], w), w[i]]


_TOKENS = Arg("b s", _index(7), torch.int64)
_op("embedding", _embeddings, _TOKENS, "7 r", dtypes=FLOATS, grads=(1,), deterministic=False)
_op(
    "embedding_int32",
    lambda i, w: F.embedding(i, w),
    Arg("b s", _index(7), torch.int32),
    "7 r",
    grads=(1,),
    deterministic=False,
)
_op(
    "embedding_max_norm",
    lambda i, w: F.embedding(i, w.clone(), max_norm=1.0),
    _TOKENS,
    Arg("7 r", fixed=True),
    dtypes=FLOATS[:1],
    grads=(),
    factor=16,
)
for _mode in ("sum", "mean", "max"):
    _op(
        f"embedding_bag_{_mode}",
        lambda i, w, mode=_mode: F.embedding_bag(i.contiguous(), w, mode=mode),
        _TOKENS,
        Arg("7 r"),
        dtypes=FLOATS[:1],
        grads=(1,),
        deterministic=False,
    )
_op("one_hot", lambda i: [F.one_hot(i, 7), F.one_hot(i)], _TOKENS, dtypes=(torch.int64,), grads=())
_op(
    "search",
    lambda x, v: [torch.searchsorted(x.sort()[0], v), torch.bucketize(v, x[0].sort()[0].contiguous(), right=True)],
    Arg("r n", "distinct"),
    "r m",
    dtypes=FLOATS[:1],
    grads=(),
)
_op(
    "isin",
    lambda x, y: torch.isin(x, y),
    Arg("r n", "quarters"),
    Arg("m", "quarters"),
    dtypes=(torch.float32, torch.int64),
    grads=(),
)


@cases.case(
    "layout-tall-indexing",
    make=lambda d: (
        d.normal(65543 + d.k, 2),
        d.permutation(65543)[: 40 + d.k],
        d.bools(65543 + d.k, 1),
        d.normal(40 + d.k, 2),
    ),
)
def _rows_past_two_to_the_sixteen(x: Any, i: Any, mask: Any, s: Any) -> Any:
    edge = torch.tensor([0, 32767, 32768, 65535, 65536, 65542], device=x.device)
    column = edge[:, None].expand(-1, 2)
    return (
        x[i],
        x[edge],
        torch.index_select(x, 0, edge),
        torch.gather(x, 0, column),
        F.embedding(edge, x),
        x[mask[:, 0]],
        torch.take(x, edge * 2),
        x.clone().index_copy_(0, i, s)[edge],
        x.clone().index_add_(0, edge, s[:6]),
        x.clone().scatter_(0, column, s[:6]),
        x.index_fill(0, edge, 3.0),
        x.clone().index_put_((edge,), s[:6]),
        x.masked_fill(mask, 2.0),
        torch.nonzero(mask)[-3:],
        torch.cat((x, x[:3]))[65536:],
        x.flip(0)[:9],
        torch.where(mask, x, -x)[65530:],
        x[65535:].clone(),
        x[65536:, 1] * 2,
        x.t()[:, 65536:].contiguous(),
        x.roll(1, 0)[:2],
    )
