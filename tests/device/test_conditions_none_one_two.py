"""Rule 3: every combination of the sides 0, 1 and 2, with gradients: nothing of one side beside one of another.

A layer of one output raised for a batch of none, https://github.com/pytorch/pytorch/issues/27619
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[..., Any]
_SIDES = tuple(itertools.product((0, 1, 2), repeat=3))


def _cut(x: torch.Tensor, start: int, *shape: int) -> torch.Tensor:
    return x[start : start + int(torch.Size(shape).numel())].reshape(shape)


# a: (m, k); b: (k, n); c: (m, n); v: n numbers.
_PRODUCTS: dict[str, Form] = {
    "mm": lambda a, b, c, v: derived(torch.mm, a, b),
    "matmul": lambda a, b, c, v: derived(lambda p, q: p.expand(2, *p.shape) @ q, a, b),
    "addmm": lambda a, b, c, v: derived(lambda p, q, r: torch.addmm(r, p, q, beta=0.5, alpha=2), a, b, c),
    "addmm-row": lambda a, b, c, v: derived(lambda p, q, r: torch.addmm(r, p, q), a, b, v),
    "bmm": lambda a, b, c, v: derived(lambda p, q: torch.bmm(p.expand(3, *p.shape), q.expand(3, *q.shape)), a, b),
    "bmm-none": lambda a, b, c, v: torch.bmm(a.expand(0, *a.shape), b.expand(0, *b.shape)),
    "baddbmm": lambda a, b, c, v: derived(lambda p, q, r: torch.baddbmm(r[None], p[None], q[None]), a, b, c),
    "addbmm": lambda a, b, c, v: torch.addbmm(c, a[None], b[None]),
    "linear": lambda a, b, c, v: derived(lambda p, q, r: F.linear(p, q.mT, r), a, b, v),
    "linear-bare": lambda a, b, c, v: derived(lambda p, q: F.linear(p, q.mT), a, b),
    "linear-ranks": lambda a, b, c, v: derived(lambda p, q, r: F.linear(p[:, None, None], q.mT, r), a, b, v),
    "mv": lambda a, b, c, v: [torch.mv(b, v), b @ v, torch.addmv(b.sum(1), b, v), v @ b.mT],
    "addr": lambda a, b, c, v: [torch.outer(c.sum(1), v), torch.addr(c, c.sum(1), v), torch.ger(a.sum(1), v)],
    "dot": lambda a, b, c, v: [torch.dot(v, v), torch.inner(c, v), torch.vdot(v, v), v @ v],
    "einsum": lambda a, b, c, v: [torch.einsum("ij,jk->ik", a, b), torch.einsum("ij,jk->", a, b)],
    "tensordot": lambda a, b, c, v: [torch.tensordot(a, b, 1), torch.tensordot(a, b, 0), torch.kron(a, b)],
    "chained": lambda a, b, c, v: [torch.linalg.multi_dot([a, b, c.mT]), torch.linalg.multi_dot([a, b])],
    "cdist": lambda a, b, c, v: [torch.cdist(a, b.mT), torch.cdist(a[None], b.mT[None], p=1.0)],
    "bilinear": lambda a, b, c, v: F.bilinear(a, a, b.new_ones(v.numel(), a.shape[1], a.shape[1]), v),
    "attended": lambda a, b, c, v: derived(
        lambda p, q: F.scaled_dot_product_attention(p[None, None], q[None, None], q[None, None]), a, b.mT
    ),
    "convolved": lambda a, b, c, v: derived(
        lambda p, q, r: F.conv1d(p[..., None].expand(-1, -1, 3), q.mT[..., None].expand(-1, -1, 2), r), a, b, v
    ),
    "convolved-2d": lambda a, b, c, v: derived(
        lambda p, q: F.conv2d(p[..., None, None].expand(-1, -1, 3, 2), q.mT[..., None, None]), a, b
    ),
    "transposed": lambda a, b, c, v: derived(
        lambda p, q: F.conv_transpose2d(p[..., None, None].expand(-1, -1, 3, 2), q[..., None, None]), a, b
    ),
    "blocks": lambda a, b, c, v: [torch.block_diag(a, b), torch.cat([c, c[:1]]), torch.cartesian_prod(v, v)],
}
# x: (m, k, n).
_VOLUMES: dict[str, Form] = {
    "sums": lambda x: [derived(lambda y, d=d: y.sum(d), x) for d in (0, 1, 2, (0, 2), (0, 1, 2))],
    "means": lambda x: [[x.mean(d), x.prod(d), x.norm(dim=d), x.logsumexp(d)] for d in (0, 1, 2)],
    "spreads": lambda x: [[*torch.var_mean(x, d, correction=0), x.std(d)] for d in (0, 1, 2)],
    "truths": lambda x: [[(x > 0).any(d), (x > 0).all(d), x.count_nonzero(d)] for d in (0, 1, 2)],
    "scans": lambda x: [derived(lambda y, d=d: y.cumsum(d), x) for d in (0, 1, 2)],
    "more_scans": lambda x: [[x.cumprod(d), *x.cummax(d), x.logcumsumexp(d), x.diff(dim=d)] for d in (0, 1, 2)],
    "shares": lambda x: [derived(lambda y, d=d: y.softmax(d), x) for d in (0, 1, 2)],
    "more_shares": lambda x: [[x.log_softmax(d), F.normalize(x, dim=d), F.softmin(x, d)] for d in (0, 1, 2)],
    "orders": lambda x: [[*x.sort(d), x.argsort(d), *x.topk(min(1, x.shape[d]), d)] for d in (0, 1, 2)],
    "none_chosen": lambda x: [[*x.topk(0, d), x.narrow(d, 0, 0), x[:0].sum(d)] for d in (0, 1, 2)],
    "turned": lambda x: [x.flip(0, 1, 2), x.roll(1, 2), x.rot90(1, (1, 2)), x.mT.contiguous(), x.movedim(0, 2) + 1],
    "triangles": lambda x: [x.tril(), x.triu(1), x.diagonal(0, 1, 2), x.diag_embed(), x[..., 0:1] + x],
    "joined": lambda x: [torch.cat([x, x[:1]]), torch.stack([x, x], 1), x.repeat(2, 1, 2), x.tile(1, 2, 1)],
    "split": lambda x: [x.chunk(2, 1), x.split(1, 2), x.unbind(0), x.tensor_split(3, 1), torch.hstack([x, x])],
    "padded": lambda x: [derived(lambda y, p=p: F.pad(y, p, value=2.0), x) for p in ((1, 0), (0, 2, 1, 1), (0, -1))],
    "edged": lambda x: [F.pad(x, (1, 0), mode=one) for one in ("replicate", "reflect", "circular")],
    "places": lambda x: [x.nonzero(), x[x > 0], (x > 9).nonzero(), torch.where(x > 0), x.masked_fill(x > 0, 1)],
    "looked_up": lambda x: [
        x.gather(1, torch.zeros_like(x[:, :1], dtype=torch.int64)),
        x.index_select(0, torch.zeros(0, dtype=torch.int64, device=x.device)),
        x[:, torch.zeros(0, dtype=torch.int64, device=x.device)],
        x.flatten()[torch.zeros(2, 0, dtype=torch.int64, device=x.device)],
    ],
    "written": lambda x: [
        x.index_fill(1, torch.zeros(0, dtype=torch.int64, device=x.device), 3.0),
        x.index_add(0, torch.zeros(0, dtype=torch.int64, device=x.device), x[:0]),
        x.index_copy(2, torch.zeros(0, dtype=torch.int64, device=x.device), x[..., :0]),
        x.scatter(1, torch.zeros(x.shape[0], 0, x.shape[2], dtype=torch.int64, device=x.device), 1.0),
        x.scatter_add(2, torch.zeros(*x.shape[:2], 0, dtype=torch.int64, device=x.device), x),
    ],
    "normed": lambda x: [
        derived(lambda y: F.layer_norm(y, y.shape[-1:]), x),
        derived(lambda y: F.batch_norm(y, None, None, training=True), x),
        F.batch_norm(x, x.new_zeros(x.shape[1]), x.new_ones(x.shape[1])),
        F.group_norm(x, 1),
        F.instance_norm(x),
        F.local_response_norm(x, 2),
    ],
    "pooled": lambda x: [
        derived(lambda y: F.max_pool1d(y, 1), x),
        derived(lambda y: F.avg_pool1d(y, 1), x),
        F.adaptive_avg_pool1d(x, 2),
        F.adaptive_max_pool1d(x, 1),
        F.interpolate(x, 3),
        F.interpolate(x, 3, mode="linear"),
    ],
    "losses": lambda x: [
        [f(x, x * 0 + 0.5, reduction=how) for how in ("none", "sum", "mean")]
        for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits, F.kl_div)
    ],
    "classes": lambda x: [
        derived(
            lambda y, h=how: F.cross_entropy(y, torch.zeros_like(x[:, :1], dtype=torch.int64)[:, 0], reduction=h), x
        )
        for how in ("none", "sum", "mean")
    ],
    "activated": lambda x: [derived(f, x) for f in (torch.relu, F.gelu, F.silu, torch.sigmoid, torch.tanh, torch.exp)],
    "mixed": lambda x: [x + x[:1], x * x[:, :1], x / x[..., :1], torch.where(x > 0, x, x[:, :1]), x.lerp(x[:1], 0.5)],
    "unique": lambda x: [x.unique(), torch.unique_consecutive(x), x.histc(3, -1, 1)],
    "drawn": lambda x: [F.dropout(x, 1.0), F.dropout(x, 0.0), torch.ones_like(x).bernoulli(), x.clone().normal_(0, 0)],
    "certain": lambda x: torch.multinomial(torch.ones(x.shape[0], 1, device=x.device), 1),
    "matrices": lambda x: [
        torch.linalg.inv(torch.eye(x.shape[1], device=x.device).expand(x.shape[0], -1, -1)),
        torch.linalg.det(torch.eye(x.shape[1], device=x.device).expand(x.shape[0], -1, -1)),
        torch.linalg.matrix_norm(x),
        torch.linalg.vector_norm(x, 1),
    ],
    "viewed": lambda x: [
        x.reshape(-1, 1),
        x.flatten(1),
        x.unflatten(2, (1, -1)),
        x.unfold(2, 1, 1),
        x.expand(2, *x.shape),
    ],
    "converted": lambda x: [x.long(), x.half(), x > 0, x.to(torch.uint8), x.clone(), x.contiguous()],
}


def _product(form: Form, m: int, k: int, n: int, x: torch.Tensor) -> Any:
    return form(_cut(x, 0, m, k), _cut(x, 4, k, n), _cut(x, 8, m, n), _cut(x, 12, n))


for _dtype in (torch.float32, *HALVES):
    _kinds: dict[str, tuple[dict[str, Form], Any]] = {
        "products": (_PRODUCTS, _product),
        "volumes": (_VOLUMES, lambda form, m, k, n, x: form(_cut(x, 1, m, k, n))),
    }
    for _kind, (_forms, _ask) in _kinds.items():
        add_table(
            cases,
            f"none-one-two-{_kind}-{str(_dtype)[6:]}",
            {
                f"{name}-{m}-{k}-{n}": lambda x, act=act, ask=_ask, m=m, k=k, n=n: ask(act, m, k, n, x)
                for name, act in _forms.items()
                for m, k, n in (_SIDES if _dtype == torch.float32 else _SIDES[1::5])
            },
            lambda d, dtype=_dtype: ((d.distinct(16) / 8 + 0.0625).to(dtype),),
            terms=16 if _dtype == torch.float32 else 4,
            deterministic=False,
        )
