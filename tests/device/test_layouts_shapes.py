"""Layouts of views, joins and reorderings."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.layout_cases import add_layout_cases
from device_suite.ops import FLOATS, INTEGERS, Arg, Op

cases = Cases("layouts")
WHOLE = (*FLOATS, *INTEGERS, torch.bool)


def _op(name: str, act: Any, *args: Any, **fields: Any) -> None:
    operands = tuple(arg if isinstance(arg, Arg) else Arg(arg) for arg in args)
    add_layout_cases(cases, Op(name=name, args=operands, forms=(act,), **{"dtypes": WHOLE, "terms": 16, **fields}))


_op(
    "cat",
    lambda x, y: [
        torch.cat((x, y)),
        torch.cat((y, x, y), 1),
        torch.cat([x[:, 1:], y[:, :2]], -1),
        torch.concat((x, x)),
    ],
    "r n",
    "r n",
    out=None,
    tall=True,
    empty="r",
)
_op(
    "cat_out",
    lambda x, y: torch.cat((x, y), 1),
    "r n",
    "r m",
    dtypes=FLOATS[:1],
    out=lambda x, y, out: torch.cat((x, y), 1, out=out),
    grads=(),
)
_op(
    "cat_images",
    lambda x, y: [torch.cat((x, y), 1), torch.cat((x, y)), torch.stack((x, y), 2)],
    "b c h w",
    "b c h w",
    dtypes=FLOATS[:2],
)
_op(
    "stack",
    lambda x, y: [torch.stack((x, y)), torch.stack((y, x), 1), torch.stack((x, y), -1)],
    "r n",
    "r n",
    empty="r",
    out=lambda x, y, out: torch.stack((x, y), out=out) if isinstance(out, torch.Tensor) else None,
)
_op(
    "stacked",
    lambda x, y: [
        torch.hstack((x, y)),
        torch.vstack((x, y)),
        torch.dstack((x, y)),
        torch.column_stack((x, y)),
        torch.block_diag(x, y),
    ],
    "r n",
    "r n",
    dtypes=FLOATS[:1],
)
_op(
    "split",
    lambda x: [*torch.split(x, 2), *x.chunk(3, 1), *torch.unbind(x), *torch.tensor_split(x, 2, 1), *x.split([2, 5], 1)],
    "5 7",
)
_op(
    "views",
    lambda x: [
        x.t(),
        x.transpose(0, 1),
        x.unsqueeze(1),
        x.expand(2, *x.shape),
        x.unfold(1, 3, 2),
        x.diagonal(),
        x.movedim(0, 1),
        torch.swapaxes(x, 0, 1),
        x.T,
        x.mT if hasattr(x, "mT") else x.T,
        x.permute(1, 0),
        torch.atleast_3d(x),
        x.view_as(x),
    ],
    "r n",
)
_op(
    "reshaped",
    lambda x: [
        x.reshape(-1),
        x.flatten(),
        torch.reshape(x, (7, 5)),
        x.ravel(),
        x.unflatten(1, (1, 7)),
        x.reshape(5, 1, 7).squeeze(1),
        torch.flatten(x),
        x.contiguous().view(35),
        torch.squeeze(x.unsqueeze(0)),
    ],
    "5 7",
)
_op(
    "images",
    lambda x: [
        x.permute(0, 2, 3, 1).contiguous(),
        x.contiguous(memory_format=torch.channels_last),
        x.flatten(2),
        x.flatten(1),
        x.transpose(1, 3).reshape(x.shape[0], -1),
        x.clone(memory_format=torch.channels_last) + 0,
    ],
    "b c h w",
)
_op(
    "repeated",
    lambda x: [
        x.repeat(2, 3),
        torch.tile(x, (1, 2)),
        x.repeat_interleave(2, 0),
        torch.repeat_interleave(x, 3, dim=1),
        x.expand_as(x),
    ],
    "r n",
    empty="",
)
_op(
    "repeat_by",
    lambda x, n: torch.repeat_interleave(x, n, dim=0),
    "r n",
    Arg("r", "positive", torch.int64),
    dtypes=FLOATS[:1],
    grads=(),
)
_op(
    "reordered",
    lambda x: [
        torch.flip(x, (0,)),
        x.flip(0, 1),
        torch.roll(x, 2),
        x.roll((1, -2), (0, 1)),
        torch.rot90(x),
        torch.fliplr(x),
        x.flipud(),
    ],
    "r n",
    tall=True,
)
_op(
    "triangles",
    lambda x: [torch.tril(x), x.triu(1), torch.tril(x, -1), x.tril(2), torch.triu(x)],
    "b r n",
    dtypes=WHOLE,
)
_op("triangles_written", lambda x: x.clone().tril_(1), "r n", inplace=lambda x: x.triu_(1), dtypes=FLOATS[:1])
_op(
    "diagonals",
    lambda x: [
        torch.diag(x),
        torch.diag_embed(x),
        torch.diag(x[0], 1),
        torch.diagflat(x[0]),
        x.diagonal(1),
        torch.diagonal(x, -1),
    ],
    "r n",
    dtypes=(*FLOATS, torch.int64),
)
_op(
    "put_back",
    lambda x, y: [
        torch.slice_scatter(x, y[1:3], 0, 1, 3),
        torch.select_scatter(x, y[0], 0, 2),
        torch.diagonal_scatter(x, y[0, :5]),
    ],
    "5 7",
    "5 7",
    dtypes=FLOATS[:1],
    since="1.13",
)
_op(
    "as_strided",
    lambda x: [x.as_strided((2, 3), (3, 1), 1), torch.as_strided(x, (3, 2), (1, 2)), x.as_strided((4,), (2,), 3) + 0],
    "r n",
    dtypes=(*FLOATS[:2], torch.int64),
    expanded=False,
)
_op(
    "grid",
    lambda x, y: [
        *torch.meshgrid(x, y, indexing="ij"),
        *torch.meshgrid(x, y, indexing="xy"),
        torch.cartesian_prod(x, y),
        torch.combinations(x),
    ],
    "r",
    "m",
    dtypes=FLOATS[:1],
)
_op(
    "vander",
    lambda x: [torch.vander(x, 3), *torch.broadcast_tensors(x, x[:1]), torch.broadcast_to(x, (2, *x.shape))],
    Arg("r", "unit"),
    dtypes=FLOATS[:1],
    grads=(),
)
