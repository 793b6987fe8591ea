"""What the CPU refuses, a device refuses too: an answer to a call that has none is made up, or out of other memory."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.refusals import a_table, add_refused

cases = Cases("conditions")


# Numbers that name no dimension, no place and no part.
add_refused(
    cases,
    "dimensions",
    a_table,
    {
        name: lambda x, y, i, name=name, dim=dim, more=more: getattr(torch, name)(x, *more, dim)
        for name, *more in (
            *(("sum",), ("mean",), ("prod",), ("amax",), ("argmax",), ("var",), ("cumsum",), ("cumprod",), ("sort",)),
            *(("softmax",), ("logsumexp",), ("any",), ("all",), ("median",), ("unbind",), ("diff", 1), ("cummax",)),
            *(("topk", 2), ("kthvalue", 2), ("flip",), ("roll", 1), ("chunk", 2), ("split", 2), ("argsort",)),
        )
        for dim in (2,)
    },
)
add_refused(
    cases,
    "counts",
    a_table,
    {
        "topk": lambda x, y, i: x.topk(8),
        "topk-negative": lambda x, y, i: x.topk(-1),
        "kthvalue": lambda x, y, i: x.kthvalue(8),
        "kthvalue-zero": lambda x, y, i: x.kthvalue(0),
        "narrow": lambda x, y, i: x.narrow(1, 5, 3),
        "select": lambda x, y, i: x.select(0, 5),
        "split": lambda x, y, i: x.split([2, 2], 0),
        "view": lambda x, y, i: x.view(4, 9),
        "unflatten": lambda x, y, i: x.unflatten(1, (2, 3)),
        "expand": lambda x, y, i: x.expand(3, 7),
        "repeat": lambda x, y, i: x.repeat(2),
        "as_strided": lambda x, y, i: x.as_strided((6, 7), (7, 1)),
        "unfold": lambda x, y, i: x.unfold(1, 8, 1),
        "roll": lambda x, y, i: x.roll((1, 2), (0,)),
        "cross": lambda x, y, i: torch.linalg.cross(x, x),
        "tril": lambda x, y, i: x[0].tril(),
        "diagonal": lambda x, y, i: x.diagonal(0, 1, 1),
        "multinomial": lambda x, y, i: torch.multinomial(x.abs(), 8),
        "random": lambda x, y, i: x.random_(5, 5),
        "normal": lambda x, y, i: x.normal_(0, -1),
        "bernoulli": lambda x, y, i: x.bernoulli_(2.0),
        "uniform": lambda x, y, i: x.uniform_(2, 1),
        "dropout": lambda x, y, i: F.dropout(x, 2.0),
        "arange": lambda x, y, i: torch.arange(3, 9, -1, device=x.device),
        "linspace": lambda x, y, i: torch.linspace(0, 1, -1, device=x.device),
    },
)
# Chances that are none. CUDA ends the process's context where one is below 0 or above 1.
add_refused(
    cases,
    "chances",
    a_table,
    {
        "above": lambda x, y, i: torch.bernoulli(x.abs() + 2),
        "below": lambda x, y, i: torch.bernoulli(-x.abs() - 1),
        "nan": lambda x, y, i: torch.bernoulli(x * float("nan")),
        "filled": lambda x, y, i: x.bernoulli_(y.mT.abs() + 2),
        "one-of-many": lambda x, y, i: torch.bernoulli((x * 0 + 0.5).index_fill(1, i[:1], 1.5)),
        "weights-below": lambda x, y, i: torch.multinomial(-x.abs() - 1, 1),
        "weights-nan": lambda x, y, i: torch.multinomial(x * float("nan"), 1),
        "weights-infinite": lambda x, y, i: torch.multinomial(x.abs() + float("inf"), 1),
    },
    issues=("185065",),
    devices=("mps", "cpu"),
)
# Operands whose sizes do not go together.
add_refused(
    cases,
    "sizes",
    a_table,
    {
        "add": lambda x, y, i: x + y,
        "add_": lambda x, y, i: x[0].add_(x),
        "where": lambda x, y, i: torch.where(x > 0, x, y),
        "lerp": lambda x, y, i: torch.lerp(x, y, 0.5),
        "mm": lambda x, y, i: torch.mm(x, x),
        "matmul": lambda x, y, i: x @ x,
        "bmm": lambda x, y, i: torch.bmm(x[None], y[None].expand(2, 7, 5)),
        "addmm": lambda x, y, i: torch.addmm(x, x, y),
        "mv": lambda x, y, i: torch.mv(x, x[:, 0]),
        "dot": lambda x, y, i: torch.dot(x[0], y[0]),
        "linear": lambda x, y, i: F.linear(x, y),
        "cat": lambda x, y, i: torch.cat([x, y]),
        "stack": lambda x, y, i: torch.stack([x, y]),
        "copy": lambda x, y, i: x.copy_(y),
        "masked_fill": lambda x, y, i: x.masked_fill(y > 0, 1),
        "index": lambda x, y, i: x[y > 0],
        "index_add": lambda x, y, i: x.index_add(0, i, x),
        "index_copy": lambda x, y, i: x.index_copy(0, i, x),
        "gather": lambda x, y, i: x.gather(0, torch.zeros(2, 9, dtype=torch.int64, device=x.device)),
        "scatter": lambda x, y, i: x.scatter(0, torch.zeros(6, 7, dtype=torch.int64, device=x.device), x),
        "mse": lambda x, y, i: F.mse_loss(x, y),
        "nll": lambda x, y, i: F.nll_loss(x, i),
        "bce": lambda x, y, i: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
        "layer_norm": lambda x, y, i: F.layer_norm(x, (5,)),
        "group_norm": lambda x, y, i: F.group_norm(x, 2),
        "batch_norm": lambda x, y, i: F.batch_norm(x[:1], None, None, training=True),
        "attention": lambda x, y, i: F.scaled_dot_product_attention(x[None], x[None, :, :6], x[None]),
        "inverse": lambda x, y, i: torch.linalg.inv(x),
        "solve": lambda x, y, i: torch.linalg.solve(x @ y, y),
        "cholesky": lambda x, y, i: torch.linalg.cholesky(-(x @ x.mT)),
        "singular": lambda x, y, i: torch.linalg.inv(x[:3, :3] * 0),
        "out": lambda x, y, i: torch.add(i, 1, out=torch.zeros(6, dtype=torch.bool, device=x.device)),
        "inplace": lambda x, y, i: i.add_(1.5),
        "dtypes": lambda x, y, i: torch.mm(x, y.half()),
        "bitwise": lambda x, y, i: x & x,
    },
)


def _layers(d: Any) -> Any:
    return d.normal(2, 4, 5, 6), d.normal(4, 4, 3, 3)


# Arguments of layers.
_LAYERS: dict[str, Any] = {
    "conv-channels": lambda x, w: F.conv2d(x[:, :3], w),
    "conv-kernel": lambda x, w: F.conv2d(x[..., :2], w),
    "conv-stride": lambda x, w: F.conv2d(x, w, stride=0),
    "conv-padding": lambda x, w: F.conv2d(x, w, padding=-1),
    "conv-dilation": lambda x, w: F.conv2d(x, w, dilation=0),
    "conv-groups": lambda x, w: F.conv2d(x, w, groups=3),
    "conv-bias": lambda x, w: F.conv2d(x, w, w[0, 0, 0]),
    "turned-channels": lambda x, w: F.conv_transpose2d(x[:, :3], w),
    "pool-kernel": lambda x, w: F.max_pool2d(x, 7),
    "pool-padding": lambda x, w: F.max_pool2d(x, 2, padding=2),
    "pool-stride": lambda x, w: F.avg_pool2d(x, 2, stride=-1),
    "pool-mean-padding": lambda x, w: F.avg_pool2d(x, 2, padding=2),
    "pool-divisor": lambda x, w: F.avg_pool2d(x, 2, divisor_override=0),
    "interpolate": lambda x, w: F.interpolate(x, (0, 3)),
    "reflect": lambda x, w: F.pad(x, (6, 0), mode="reflect"),
    "circular": lambda x, w: F.pad(x, (7, 0), mode="circular"),
    "cut": lambda x, w: F.pad(x, (-7, 0)),
    "fold": lambda x, w: F.fold(x[:, :, 0], (3, 3), 2),
    "unfold": lambda x, w: F.unfold(x, 7),
    "shuffle": lambda x, w: F.pixel_shuffle(x[:, :3], 2),
    "unshuffle": lambda x, w: F.pixel_unshuffle(x, 2),
    "glu": lambda x, w: F.glu(x, 2),
    "grid": lambda x, w: F.grid_sample(x, x[:1, :2, :, :2], align_corners=False),
    "norm-weights": lambda x, w: F.batch_norm(x, None, None, w[0, 0, 0], training=True),
}
for _rank, _turned in ((1, F.conv_transpose1d), (2, F.conv_transpose2d), (3, F.conv_transpose3d)):
    for _name, _more in (("stride", {"stride": 2}), ("dilation", {"dilation": 2}), ("neither", {})):
        _LAYERS[f"turned-{_rank}-{_name}"] = lambda x, w, rank=_rank, turned=_turned, more=_more: turned(
            x.reshape(2, 4, *(30,), *(1,) * (rank - 1)),
            w.reshape(4, 4, 9, *(1,) * (rank - 1)),
            output_padding=(2, *(0,) * (rank - 1)),
            **more,
        )
add_refused(cases, "layers", _layers, _LAYERS)

# Indices beyond a table: below its beginning, just past its end, far past it. Each reads or writes what is not its own.
_TABLE_ROWS = 5
_INDEXED: dict[str, Any] = {
    "index_select": lambda x, i: x.index_select(0, i),
    "index": lambda x, i: x[i],
    "index-two": lambda x, i: x[i, i * 0],
    "index_put": lambda x, i: x.index_put((i,), x[:2]),
    "setitem": lambda x, i: (x.__setitem__(i, 0), x)[1],
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "take": lambda x, i: x.take(i * 7),
    "put": lambda x, i: x.put_(i * 7, x[0, :2]),
    "scatter": lambda x, i: x.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None], x),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i[:, None], x, "amax"),
    "index_add": lambda x, i: x.index_add(0, i, x[:2]),
    "index_copy": lambda x, i: x.index_copy(0, i, x[:2]),
    "index_fill": lambda x, i: x.index_fill(0, i, 7.0),
    "index_fill_": lambda x, i: x[1:4].index_fill_(0, i, 7.0),
    "embedding": lambda x, i: F.embedding(i, x),
    "bag": lambda x, i: F.embedding_bag(i[None], x, mode="sum"),
    "bag-mean": lambda x, i: F.embedding_bag(i, x, i * 0, mode="mean"),
    "bag-max": lambda x, i: F.embedding_bag(i[None], x, mode="max"),
    "nll": lambda x, i: F.nll_loss(x[:2, :5], i, ignore_index=-100),
    "cross_entropy": lambda x, i: F.cross_entropy(x[:2, :5], i),
    "one_hot": lambda x, i: F.one_hot(i, 5),
    "bincount": lambda x, i: torch.bincount(i - 9),
    "masked_scatter": lambda x, i: x.masked_scatter(x > -99, x[0]),
    "unpool": lambda x, i: F.max_unpool2d(x[None, None, :1, :2], 9 * i[None, None, None], 2),
    "unpool-3d": lambda x, i: F.max_unpool3d(x[None, None, None, :1, :2], 19 * i[None, None, None, None], 2),
    "unpool-1d": lambda x, i: F.max_unpool1d(x[None, :1, :2], 5 * i[None, None], 2),
}
# What is found wrong on the device stops CUDA for the whole process.
for _name, _wrong in (("below", (-_TABLE_ROWS - 1, 1)), ("past", (_TABLE_ROWS, 1)), ("far", (1, _TABLE_ROWS + 9))):
    add_refused(
        cases,
        f"indices-{_name}",
        lambda d, wrong=_wrong: (d.normal(_TABLE_ROWS, 7), torch.tensor(wrong)),
        _INDEXED,
        devices=("mps", "cpu"),
    )
