"""Rules 1 and 3: functions of two operands, of every pair of ranks from 0 to 3: the CPU's answers and its refusals.

A source of fewer dimensions was repeated, https://github.com/pytorch/pytorch/issues/92576, or ended the process,
https://github.com/pytorch/pytorch/issues/114864
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import add_table, assigned
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]

# x and y: numbers; i: places like y, 0 and 1. Every side is 2.
_FORMS: dict[str, dict[str, Form]] = {
    "products": {
        **{
            name: lambda x, y, i, name=name: getattr(torch, name)(x, y)
            for name in "matmul mm mv dot vdot inner outer bmm kron cdist linalg_cross".split()
            if hasattr(torch, name)
        },
        **{
            name: lambda x, y, i, name=name: getattr(torch, name)(x, y, y)
            for name in "addmm addr addbmm baddbmm".split()
        },
        "linear": lambda x, y, i: F.linear(x, y),
        "bilinear": lambda x, y, i: F.bilinear(x, x, y),
        "tensordot": lambda x, y, i: torch.tensordot(x, y, 1),
        "attended": lambda x, y, i: F.scaled_dot_product_attention(x, y, y),
        "conv1d": lambda x, y, i: F.conv1d(x, y),
        "conv1d-bias": lambda x, y, i: F.conv1d(x, torch.ones_like(x), y),
        "conv2d": lambda x, y, i: F.conv2d(x, y[None]),
        "conv2d-more": lambda x, y, i: F.conv2d(x[None], y[None]),
        "transposed": lambda x, y, i: F.conv_transpose1d(x, y),
    },
    "solved": {
        name: lambda x, y, i, f=f: f(_definite(x), y)
        for name, f in {
            "solve": torch.linalg.solve,
            "solve-left": lambda a, y: torch.linalg.solve(a, y, left=False),
            "triangular": lambda a, y: torch.linalg.solve_triangular(a, y, upper=True),
            "cholesky": lambda a, y: torch.cholesky_solve(y, a),
            "powers": lambda a, y: [torch.linalg.det(a) * y, torch.linalg.inv(a), torch.linalg.cholesky(a), a.trace()],
            "norms": lambda a, y: [torch.linalg.matrix_norm(a), torch.linalg.svdvals(a), torch.linalg.eigvalsh(a)],
            "multi": lambda a, y: torch.linalg.multi_dot([a, y, a]),
        }.items()
    },
    "placed": {
        "gather": lambda x, y, i: x.gather(0, i),
        "along": lambda x, y, i: torch.take_along_dim(x, i, 0),
        "along-flat": lambda x, y, i: torch.take_along_dim(x, i),
        "take": lambda x, y, i: x.take(i),
        "select": lambda x, y, i: x.index_select(0, i),
        "indexed": lambda x, y, i: x[i],
        "masked": lambda x, y, i: x[i > 0],
        "selected": lambda x, y, i: x.masked_select(i > 0),
        "embedding": lambda x, y, i: F.embedding(i, x),
        "bag": lambda x, y, i: F.embedding_bag(i, x),
        "repeated": lambda x, y, i: torch.repeat_interleave(x, i + 1, dim=0),
        "repeated-flat": lambda x, y, i: torch.repeat_interleave(x, i),
        "counted": lambda x, y, i: torch.bincount(i, x),
        "searched": lambda x, y, i: torch.searchsorted(x.abs().cumsum(-1) if x.dim() else x, y),
        "bucket": lambda x, y, i: torch.bucketize(x, y.abs().cumsum(-1) if y.dim() else y),
        "isin": lambda x, y, i: torch.isin(x, y),
        "quantile": lambda x, y, i: torch.quantile(x, y.sigmoid(), 0),
        "one_hot": lambda x, y, i: F.one_hot(i, 2) * x,
    },
    "written": {
        "index_add": lambda x, y, i: x.clone().index_add_(0, _line(x), y),
        "index_add-place": lambda x, y, i: x.clone().index_add_(0, i, x),
        "index_copy": lambda x, y, i: x.clone().index_copy_(0, _line(x), y),
        "index_reduce": lambda x, y, i: x.clone().index_reduce_(0, _line(x), y, "amax"),
        "index_fill": lambda x, y, i: x.clone().index_fill_(0, i, 3.0),
        "index_fill-value": lambda x, y, i: x.clone().index_fill_(0, _line(x), y),
        "scatter": lambda x, y, i: x.clone().scatter_(0, _down(x, i), y),
        "scatter-source": lambda x, y, i: x.clone().scatter_(0, torch.zeros_like(x, dtype=torch.int64)[:1], y),
        "scatter_add": lambda x, y, i: x.clone().scatter_add_(0, i, y),
        "scatter_reduce": lambda x, y, i: x.clone().scatter_reduce_(0, i, y, "amin"),
        "put": lambda x, y, i: x.clone().put_(_line(x), y),
        "index_put": lambda x, y, i: x.clone().index_put_((_line(x),), y),
        "index_put-places": lambda x, y, i: x.clone().index_put_((i * 0,), x[:1] if x.dim() else x),
        "masked_fill": lambda x, y, i: x.clone().masked_fill_(i > 0, 3.0),
        "masked_fill-value": lambda x, y, i: x.clone().masked_fill_(x > 0, y),
        "masked_scatter": lambda x, y, i: x.clone().masked_scatter_(i > 0, x),
        "copied": lambda x, y, i: x.clone().copy_(y),
        "added": lambda x, y, i: x.clone().add_(y),
        "assigned": lambda x, y, i: assigned(x, ..., y),
        "filled": lambda x, y, i: x.clone().fill_(y),
        "diagonal": lambda x, y, i: x.diagonal_scatter(y),
        "selected": lambda x, y, i: x.select_scatter(y, 0, 1),
        "sliced": lambda x, y, i: x.slice_scatter(y, 0, 0, 2),
        "out": lambda x, y, i: torch.add(y, 1, out=x.clone()),
    },
    "shaped": {
        "expand": lambda x, y, i: x.expand_as(y) + 0,
        "view": lambda x, y, i: x.view_as(y) + 0,
        "reshape": lambda x, y, i: x.reshape_as(y) + 0,
        "sum_to_size": lambda x, y, i: x.sum_to_size(y.shape),
        "where": lambda x, y, i: torch.where(i > 0, x, y),
        "lerp": lambda x, y, i: torch.lerp(x, x, y),
        "addcmul": lambda x, y, i: torch.addcmul(x, y, y),
        "clamp": lambda x, y, i: x.clamp(y - 1, y),
        "broadcast": lambda x, y, i: torch.broadcast_tensors(x, y),
        "trapezoid": lambda x, y, i: torch.trapezoid(x, y),
        "trapezoids": lambda x, y, i: torch.cumulative_trapezoid(x, y),
        "diff": lambda x, y, i: torch.diff(x, prepend=y),
        **{
            name: lambda x, y, i, name=name: getattr(torch, name)([x, y])
            for name in "cat stack hstack vstack dstack column_stack".split()
        },
    },
    "normed": {
        "layer_norm": lambda x, y, i: F.layer_norm(x, y.shape),
        "layer_norm-weight": lambda x, y, i: F.layer_norm(x, x.shape[-1:], y),
        "batch_norm": lambda x, y, i: F.batch_norm(x, y, y.abs() + 1),
        "batch_norm-weight": lambda x, y, i: F.batch_norm(x, None, None, y, training=True),
        "instance_norm": lambda x, y, i: F.instance_norm(x, weight=y),
        "group_norm": lambda x, y, i: F.group_norm(x, 1, y),
        "prelu": lambda x, y, i: F.prelu(x, y),
        "similarity": lambda x, y, i: F.cosine_similarity(x, y, -1),
        "distance": lambda x, y, i: F.pairwise_distance(x, y),
    },
    "lost": {
        **{
            name: lambda x, y, i, name=name: getattr(F, name)(x, y)
            for name in "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits kl_div".split()
        },
        "nll": lambda x, y, i: F.nll_loss(x, i),
        "nll-weight": lambda x, y, i: F.nll_loss(x, torch.zeros_like(x[..., 0], dtype=torch.int64), y),
        "entropy": lambda x, y, i: F.cross_entropy(x, i),
        "entropy-shares": lambda x, y, i: F.cross_entropy(x, y.abs()),
        "margins": lambda x, y, i: F.multi_margin_loss(x, i),
        "labels": lambda x, y, i: F.multilabel_soft_margin_loss(x, (i > 0).to(x.dtype)),
        "soft": lambda x, y, i: F.soft_margin_loss(x, i * 2 - 1),
        "ranking": lambda x, y, i: F.margin_ranking_loss(x, x.flip(0) if x.dim() else x, y.sign()),
        "hinge": lambda x, y, i: F.hinge_embedding_loss(x, i * 2 - 1),
        "cosine": lambda x, y, i: F.cosine_embedding_loss(x, x + 1, i * 2 - 1),
        "triplet": lambda x, y, i: F.triplet_margin_loss(x, y, y + 1),
        "gauss": lambda x, y, i: F.gaussian_nll_loss(x, y, y.abs()),
        "poisson": lambda x, y, i: F.poisson_nll_loss(x, y),
    },
}


def _definite(x: torch.Tensor) -> torch.Tensor:
    """Return matrices with a diagonal that outweighs the rest; what is no matrix as it is."""
    return (x + x.mT) / 16 + 3 * torch.eye(2, device=x.device) if x.dim() > 1 else x


def _line(x: torch.Tensor) -> torch.Tensor:
    """Return every place along a side; a number has one."""
    return torch.arange(2 if x.dim() else 1, device=x.device)


def _down(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    """Return places like `i`, each once along the first side: which of two values stays would be open."""
    if not i.dim():
        return i * 0
    count = 2 if x.dim() else 1
    return torch.arange(count, device=x.device).view(-1, *(1,) * (i.dim() - 1)).expand(count, *i.shape[1:])


def _of_ranks(form: Form, one: int, other: int, x: torch.Tensor, y: torch.Tensor) -> Any:
    a, b = (z[: 2**rank].reshape((2,) * rank) for z, rank in ((x, one), (y, other)))
    places = torch.arange(b.numel(), device=b.device).reshape(b.shape) % min(a.numel(), 2)
    return form(a.clone(), b, places)


for _name, _forms in _FORMS.items():
    _asked = {
        f"{form}-{one}-{other}": lambda x, y, act=act, one=one, other=other: _of_ranks(act, one, other, x, y)
        for form, act in _forms.items()
        for one in range(4)
        for other in range(4)
    }
    _make = lambda d: (d.distinct(8) / 4 + 0.375, d.distinct(8) / 4 + 0.875)  # noqa: E731
    add_table(cases, f"every-rank-{_name}", _asked, _make, factor=16.0, deterministic=False)
    add_refused(cases, f"every-rank-{_name}", _make, _asked)
