"""Rule 5: batches of one, moved between the others: contiguous, and with a stride that says nothing, in each function.

tril and triu took a batch from where the stride of its one leads, https://github.com/pytorch/pytorch/issues/22581
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[..., Any]

# Views of 60 numbers as (n, c, 4, 5), each contiguous: where the one comes from, and what was moved over it.
_VIEWS: dict[str, Form] = {
    "behind": lambda x: x.view(1, 3, 4, 5).transpose(0, 1),
    "before": lambda x: x.view(3, 1, 4, 5).transpose(0, 1),
    "far": lambda x: x.view(3, 4, 5, 1).permute(0, 3, 1, 2),
    "strided": lambda x: x.as_strided((3, 1, 4, 5), (20, 777, 5, 1)),
    "repeated": lambda x: x.as_strided((1, 3, 4, 5), (0, 20, 5, 1)),
    "cut": lambda x: x.view(3, 20).repeat(1, 2).view(3, 2, 4, 5)[:1].transpose(0, 1),
}
# y: such a view.
_FORMS: dict[str, Form] = {
    "triangles": lambda y: [y.triu(), y.tril(-1), y.clone().triu_(1), y.triu(-1).transpose(0, 1) + 0],
    "matrices": lambda y: [torch.linalg.matrix_norm(y), y.diagonal(0, -2, -1) + 0],
    "inverse": lambda y: torch.linalg.inv(y[..., :4] / 64 + 2 * torch.eye(4, device=y.device)),
    "det": lambda y: torch.linalg.det(y[..., :4] / 64 + 2 * torch.eye(4, device=y.device)),
    "cholesky": lambda y: torch.linalg.cholesky(y @ y.mT / 4096 + 3 * torch.eye(4, device=y.device)),
    "products": lambda y: [y @ y.mT, torch.einsum("abij,abkj->abik", y, y), F.linear(y, y[0, 0]), y.mT @ y],
    "bmm": lambda y: [torch.bmm(y[:, 0], y[:, 0].mT), torch.baddbmm(y[:, 0, :, :4], y[:, 0], y[:, 0].mT)],
    "sums": lambda y: [y.sum(d) for d in range(4)] + [y.sum((0, 2)), y.mean((1, 3)), y.amax((2, 3))],
    "chosen": lambda y: [y.argmax(d) for d in range(4)] + [y.cumsum(d) for d in range(4)],
    "shares": lambda y: [(y / 16).softmax(d) for d in range(4)] + [(y / 16).logsumexp(1)],
    "sorted": lambda y: [y.sort(d)[0] for d in range(4)] + [y.topk(1, 1)[1]],
    "pointwise": lambda y: [y + 1, y * y, -y, y.abs(), torch.where(y > 0, y, 2 * y), y.clamp(-3, 3), y + y[:, :1, 0]],
    "moved": lambda y: [
        y.flip(0, 1),
        y.roll(1, 0),
        y.transpose(1, 2) + 0,
        y.reshape(-1),
        y.flatten(1),
        y.squeeze() + 0,
    ],
    "joined": lambda y: [torch.cat([y, y], 1), torch.stack([y, y]), y.repeat(1, 2, 1, 1), y.expand(2, *y.shape) + 0],
    "picked": lambda y: [y[0], y[:, 0], y[..., [1, 3]], y[y > 3], y.gather(1, torch.zeros_like(y, dtype=torch.int64))],
    "written": lambda y: [
        y.clone().index_fill_(0, torch.tensor([0], device=y.device), 7),
        y.clone().masked_fill_(y > 2, 5),
        torch.zeros_like(y).copy_(y),
        y.scatter(0, torch.zeros_like(y[:1], dtype=torch.int64), y),
        torch.empty_like(y).fill_(3),
    ],
    "copied": lambda y: [y.clone(), y.contiguous(), y.clone(memory_format=torch.contiguous_format), y.to(torch.int32)],
    "last": lambda y: [y.contiguous(memory_format=torch.channels_last), y.to(memory_format=torch.channels_last) * 2],
    "unfolded": lambda y: [y.unfold(3, 2, 1) + 0, F.unfold(y, 2)],
}
_IMAGES: dict[str, Form] = {
    "convolved": lambda y: derived(lambda a: F.conv2d(a, a.detach()[:1, :, :3, :2] / 64, padding=1), y),
    "turned": lambda y: derived(
        lambda a: F.conv_transpose2d(a, a.detach()[:1, :1, :3, :2].expand(a.shape[1], 2, 3, 2)), y
    ),
    "max_pool": lambda y: derived(lambda a: F.max_pool2d(a, 2), y),
    "avg_pool": lambda y: derived(lambda a: F.avg_pool2d(a, 2, 1), y),
    "nearest": lambda y: derived(lambda a: F.interpolate(a, scale_factor=2.0), y),
    "bilinear": lambda y: derived(lambda a: F.interpolate(a, (7, 6), mode="bilinear"), y),
    "padded": lambda y: derived(lambda a: F.pad(a, (1, 2, 0, 1), mode="reflect"), y),
    "sampled": lambda y: F.grid_sample(y, y[:, 0, :, :2, None].expand(-1, -1, -1, 2) / 40, align_corners=False),
    "batch_norm": lambda y: derived(lambda a: F.batch_norm(a, None, None, training=True), y),
    "layer_norm": lambda y: derived(lambda a: F.layer_norm(a, (4, 5)), y),
    "group_norm": lambda y: derived(lambda a: F.group_norm(a, 1), y),
    "attended": lambda y: derived(lambda a: F.scaled_dot_product_attention(a, a, a), y / 16),
    "linear": lambda y: derived(lambda a: F.linear(a, a.detach()[0, 0]), y),
    "shuffled": lambda y: F.pixel_unshuffle(y[..., :4], 2),
    "lost": lambda y: [F.mse_loss(y, y.flip(3)), F.cross_entropy(y / 16, torch.zeros_like(y[:, 0], dtype=torch.int64))],
    "activated": lambda y: [derived(f, y / 16) for f in (F.gelu, F.silu, torch.tanh)],
}
for _dtype in (torch.float32, *HALVES, torch.int64):
    add_table(
        cases,
        f"ones-between-{str(_dtype)[6:]}",
        {
            f"{view}-{name}": lambda x, cut=_VIEWS[view], form=form: form(cut(x))
            for view in _VIEWS
            for name, form in {**_FORMS, **(_IMAGES if _dtype == torch.float32 else {})}.items()
            if _dtype in (torch.float32, torch.int64)
            or name in ("triangles", "products", "sums", "copied", "last", "bmm")
        },
        lambda d, dtype=_dtype: (
            (d.distinct(60) / 2 + 0.25).to(dtype) if dtype != torch.int64 else d.distinct(60, dtype=dtype),
        ),
        terms=64 if _dtype == torch.float32 else 8,
        factor=16.0,
        deterministic=False,
    )
add_table(  # by itself: CUDA is known to read it wrongly
    cases,
    "ones-between-adaptive",
    {view: lambda x, cut=_VIEWS[view]: F.adaptive_avg_pool2d(cut(x), (2, 3)) for view in _VIEWS},
    lambda d: (d.distinct(60) / 2 + 0.25,),
    deterministic=False,
)
