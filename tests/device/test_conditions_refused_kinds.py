"""Operands that are no operands: singular matrices, other ranks, other kinds of numbers, places that are one."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.refusals import a_table, add_refused

cases = Cases("conditions")


# Matrices that have no inverse, and others that are not what a function asks for.
add_refused(
    cases,
    "matrices",
    lambda d: (
        torch.eye(4).index_fill(0, torch.tensor([2]), 0.0),
        d.normal(4, 2),
    ),
    {
        "inv": lambda x, y: torch.linalg.inv(x),
        "inverse": lambda x, y: x.inverse(),
        "inv-batch": lambda x, y: torch.linalg.inv(torch.stack([x + torch.eye(4, device=x.device), x])),
        "solve": lambda x, y: torch.linalg.solve(x, y),
        "solve-left": lambda x, y: torch.linalg.solve(x, y.mT, left=False),
        "lu_factor": lambda x, y: torch.linalg.lu_factor(x),
        "tensorinv": lambda x, y: torch.linalg.tensorinv(x.reshape(2, 2, 4), ind=2),
        "inv_ex": lambda x, y: torch.linalg.inv_ex(x, check_errors=True),
        "solve_ex": lambda x, y: torch.linalg.solve_ex(x, y, check_errors=True),
        "lu_factor_ex": lambda x, y: torch.linalg.lu_factor_ex(x, check_errors=True),
        "cholesky": lambda x, y: torch.linalg.cholesky(-x),
        "cholesky-old": lambda x, y: torch.cholesky(x - 2 * torch.eye(4, device=x.device)),
        "cholesky-batch": lambda x, y: torch.linalg.cholesky(torch.stack([x + torch.eye(4, device=x.device), -x])),
        "cholesky_ex": lambda x, y: torch.linalg.cholesky_ex(-x, check_errors=True),
        "power": lambda x, y: torch.linalg.matrix_power(x, -1),
        "det-side": lambda x, y: torch.linalg.det(y),
        "eigh-side": lambda x, y: torch.linalg.eigh(y),
        "integers": lambda x, y: torch.linalg.inv(x.long()),
    },
)
# Operands of another rank than the function's.
add_refused(
    cases,
    "ranks",
    lambda d: (d.normal(3), d.normal(3, 3), d.normal(3, 3, 3)),
    {
        "dot": lambda v, m, c: torch.dot(m, m),
        "dot-column": lambda v, m, c: torch.dot(v, m[:, :1]),
        "vdot": lambda v, m, c: torch.vdot(v, m),
        "mv": lambda v, m, c: torch.mv(m, m),
        "mv-vector": lambda v, m, c: torch.mv(v, v),
        "mm": lambda v, m, c: torch.mm(m, c),
        "mm-vector": lambda v, m, c: torch.mm(m, v),
        "bmm": lambda v, m, c: torch.bmm(c, m),
        "outer": lambda v, m, c: torch.outer(m, v),
        "addmm": lambda v, m, c: torch.addmm(m, m, v),
        "addmv": lambda v, m, c: torch.addmv(m, m, m),
        "addr": lambda v, m, c: torch.addr(m, m, v),
        "baddbmm": lambda v, m, c: torch.baddbmm(c, m, m),
        "matmul": lambda v, m, c: v[0] @ v[1],
        "t": lambda v, m, c: c.t(),
        "tril": lambda v, m, c: torch.tril(v),
        "diag": lambda v, m, c: torch.diag(c),
        "trace": lambda v, m, c: torch.trace(v),
        "inverse": lambda v, m, c: torch.linalg.inv(v),
        "det": lambda v, m, c: torch.linalg.det(v),
        "cholesky": lambda v, m, c: torch.linalg.cholesky(v),
        "norm": lambda v, m, c: torch.linalg.matrix_norm(v),
        "linear": lambda v, m, c: F.linear(v, c),
        "bilinear": lambda v, m, c: F.bilinear(m, m, m),
        "embedding": lambda v, m, c: F.embedding(v.long(), v),
        "bag": lambda v, m, c: F.embedding_bag(c.long() * 0, m),
        "conv1d": lambda v, m, c: F.conv1d(m[0], c),
        "conv2d": lambda v, m, c: F.conv2d(c, c),
        "conv3d": lambda v, m, c: F.conv3d(c, c),
        "max_pool2d": lambda v, m, c: F.max_pool2d(m, 2),
        "avg_pool2d": lambda v, m, c: F.avg_pool2d(m, 2),
        "pad": lambda v, m, c: F.pad(m, (1, 1, 1, 1), mode="reflect"),
        "pads": lambda v, m, c: F.pad(v, (1, 1, 1, 1)),
        "interpolate": lambda v, m, c: F.interpolate(c, scale_factor=2, mode="bilinear"),
        "grid": lambda v, m, c: F.grid_sample(c, c),
        "batch_norm": lambda v, m, c: F.batch_norm(v, None, None, training=True),
        "layer_norm": lambda v, m, c: F.layer_norm(v, (3, 3)),
        "glu": lambda v, m, c: F.glu(m),
        "cross_entropy": lambda v, m, c: F.cross_entropy(m, m.long()),
        "nll": lambda v, m, c: F.nll_loss(v, m.long()),
        "fold": lambda v, m, c: F.fold(v, (2, 2), 1),
        "pixel": lambda v, m, c: F.pixel_shuffle(m, 1),
        "gather": lambda v, m, c: m.gather(0, v.long() * 0),
        "scatter": lambda v, m, c: m.scatter(0, v.long() * 0, 1.0),
        "index_add": lambda v, m, c: m.index_add(0, m.long() * 0, m),
        "index_select": lambda v, m, c: m.index_select(0, m.long() * 0),
        "places": lambda v, m, c: m[v.long() * 0, v.long() * 0, v.long() * 0],
        "searchsorted": lambda v, m, c: torch.searchsorted(c, m),
        "permute": lambda v, m, c: c.permute(0, 1),
        "transpose": lambda v, m, c: v.transpose(0, 1),
        "bincount": lambda v, m, c: torch.bincount(m.long().abs()),
        "multinomial": lambda v, m, c: torch.multinomial(c.abs(), 1),
        "cdist": lambda v, m, c: torch.cdist(v, m),
        "cross": lambda v, m, c: torch.linalg.cross(v, m[:2]),
        "kron": lambda v, m, c: torch.einsum("ij,jk", c, m),
        "stack": lambda v, m, c: torch.stack([v, m]),
        "cat": lambda v, m, c: torch.cat([v, m]),
    },
)
# Operands of another kind: floats where places stand, integers where numbers are averaged, bools that are subtracted.
add_refused(
    cases,
    "kinds",
    a_table,
    {
        "cross_entropy": lambda x, y, i: F.cross_entropy(x[:, :5], i[:5].to(x.dtype)),
        "nll": lambda x, y, i: F.nll_loss(x[:, :5], i[:5].to(x.dtype)),
        "cross_entropy-chances": lambda x, y, i: F.cross_entropy(x, x.long()),
        "embedding": lambda x, y, i: F.embedding(x, y),
        "one_hot": lambda x, y, i: F.one_hot(x),
        "index": lambda x, y, i: x[y[0, :2]],
        "index_select": lambda x, y, i: x.index_select(0, x[0]),
        "gather": lambda x, y, i: x.gather(0, x),
        "scatter": lambda x, y, i: x.scatter(0, x, 1.0),
        "scatter-source": lambda x, y, i: x.scatter(0, i[:, None].expand(6, 7)[:5] % 5, x.half()),
        "index_add": lambda x, y, i: x.index_add(0, i[:5] % 5, x.double().half()),
        "take": lambda x, y, i: x.take(x),
        "take-narrow": lambda x, y, i: x.take(i.int()),
        "unpool1d": lambda x, y, i: F.max_unpool1d(x[:1, None, :3], i[None, None, :3].int(), 2),
        "unpool2d": lambda x, y, i: F.max_unpool2d(x[None, :2, :2], i.view(1, 2, 3)[..., :2].int(), 2),
        "unpool3d": lambda x, y, i: F.max_unpool3d(x[None, None, :1, :4], i[None, None, None, :4].int(), (1, 1, 2)),
        "mean": lambda x, y, i: i.mean(),
        "var": lambda x, y, i: i.var(),
        "norm": lambda x, y, i: torch.linalg.vector_norm(i),
        "conv": lambda x, y, i: F.conv1d(x[None], x[:, :, None].half()),
        "linear": lambda x, y, i: F.linear(x, x.half()),
        "bmm": lambda x, y, i: torch.bmm(x[None], y[None].half()),
        "addmm": lambda x, y, i: torch.addmm(x.half(), x, y @ x),
        "attention": lambda x, y, i: F.scaled_dot_product_attention(x[None], x[None].half(), x[None]),
        "subtract": lambda x, y, i: (x > 0) - (x < 0),
        "negative": lambda x, y, i: -(x > 0),
        "lerp": lambda x, y, i: torch.lerp(x, x.half(), 0.5),
        "masked_fill": lambda x, y, i: x.masked_fill(x, 1.0),
        "where": lambda x, y, i: torch.where(x, x, x),
        "masked_select": lambda x, y, i: x.masked_select(x),
        "complex": lambda x, y, i: torch.complex(x, x.half()),
        "view_as_complex": lambda x, y, i: torch.view_as_complex(x),
        "clamp-complex": lambda x, y, i: torch.complex(x, x).clamp(0, 1),
        "floor-complex": lambda x, y, i: torch.complex(x, x).floor(),
        "into-integers": lambda x, y, i: i.add_(x[0, :6]),
        "into-bools": lambda x, y, i: (x > 0).add_(i[0]),
        "divided-into-integers": lambda x, y, i: i.div_(2),
        "gradient": lambda x, y, i: i.requires_grad_(),
    },
)
# Written to where several places are one, or read and written at once.
add_refused(
    cases,
    "overlapping",
    a_table,
    {
        "expanded-add": lambda x, y, i: x[:1].expand(5, 7).add_(1),
        "expanded-mul": lambda x, y, i: x[:, :1].expand(5, 7).mul_(x),
        "expanded-scatter": lambda x, y, i: x[:1].expand(5, 7).scatter_(0, i[:, None] % 5, 1.0),
        "expanded-out": lambda x, y, i: torch.add(x, 1, out=x[:1].expand(5, 7)),
        "shifted-add": lambda x, y, i: x.view(-1)[1:].add_(x.view(-1)[:-1]),
        "shifted-copy": lambda x, y, i: torch.mul(x.view(-1)[:-1], 2, out=x.view(-1)[1:]),
        "shifted-sum": lambda x, y, i: torch.cat([x[:2], x[2:3]], out=x[1:4]),
        "view-leaf": lambda x, y, i: x.requires_grad_().view(-1).add_(1),
        "leaf": lambda x, y, i: x.requires_grad_().mul_(2),
        "changed-since": lambda x, y, i: _changed_since(x),
        "twice": lambda x, y, i: _twice(x),
        "no-scalar": lambda x, y, i: x.requires_grad_().mul(2).backward(),
    },
)


def _changed_since(x: Any) -> Any:
    start = x.requires_grad_()
    y = start.exp()
    y.add_(1)
    y.sum().backward()
    return start.grad


def _twice(x: Any) -> Any:
    start = x.requires_grad_()
    y = start.exp().sum()
    y.backward()
    y.backward()
    return start.grad


def _number(y: torch.Tensor) -> torch.Tensor:
    """Refuse NaN: a back end that does not look at the values may answer so, but with no number."""
    if bool(y.isnan().any()):
        raise ValueError("NaN")
    return y


# Values that a function's domain does not have. CUDA asserts some of them in its kernels, and computes nothing after.
add_refused(
    cases,
    "values",
    lambda d: (d.uniform(0.1, 0.9, 3, 4), torch.tensor([[0.3, float("nan"), 0.2, 0.5]] * 3)),
    {
        "bce-nan": lambda p, n: _number(F.binary_cross_entropy(n, p)),
        "bernoulli-number": lambda p, n: p.clone().bernoulli_(1.5),
        "multinomial-less": lambda p, n: torch.multinomial(p - 1, 2),
        "multinomial-nan": lambda p, n: torch.multinomial(n, 2),
        "multinomial-none": lambda p, n: torch.multinomial(p * 0, 1),
        "multinomial-many": lambda p, n: torch.multinomial(p, 5),
        "normal-number": lambda p, n: p.clone().normal_(0, -1),
        "uniform": lambda p, n: p.clone().uniform_(2, 1),
        "exponential": lambda p, n: p.clone().exponential_(-1),
        "cauchy": lambda p, n: p.clone().cauchy_(0, -1),
        "log_normal": lambda p, n: p.clone().log_normal_(0, -1),
        "geometric": lambda p, n: p.clone().geometric_(1.5),
        "random": lambda p, n: p.clone().random_(5, 3),
        "randint": lambda p, n: torch.randint(5, 3, (2,), device=p.device),
        "randperm": lambda p, n: torch.randperm(-1, device=p.device),
        "dropout": lambda p, n: F.dropout(p, 1.5),
        "arange": lambda p, n: torch.arange(0, 5, -1, device=p.device),
        "arange-step": lambda p, n: torch.arange(0, 5, 0, device=p.device),
        "linspace": lambda p, n: torch.linspace(0, 1, -1, device=p.device),
        "full": lambda p, n: torch.full((-1,), 2.0, device=p.device),
        "histc": lambda p, n: torch.histc(p, 0),
        "quantile": lambda p, n: torch.quantile(p, 1.5),
        "kthvalue": lambda p, n: p.kthvalue(0),
        "bincount": lambda p, n: torch.bincount((p * 4).long().flatten() - 3),
        "renorm": lambda p, n: p.renorm(-1, 0, 1.0),
        "pdist": lambda p, n: F.pdist(p, -1),
        "cdist": lambda p, n: torch.cdist(p, p, p=-1),
        "gumbel": lambda p, n: F.gumbel_softmax(p, dim=3),
        "smooth": lambda p, n: F.smooth_l1_loss(p, p, beta=-1.0),
        "huber": lambda p, n: F.huber_loss(p, p, delta=0.0),
        "smoothing": lambda p, n: F.cross_entropy(p, (p[:, 0] * 0).long(), label_smoothing=1.5),
        "clamp": lambda p, n: torch.clamp(p),
        "power": lambda p, n: torch.pow((p * 4).long(), -2),
    },
    devices=("mps", "cpu"),
)
