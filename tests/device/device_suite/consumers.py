"""Consumers: operators that are sensitive to the layout of what they get, a tensor x of (2, 4, 6, 6), as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Consumer:
    """One consumer: `act(x, *operands)`, the operands' shapes; `gradients`: also derived; `writes`: to x itself.

    `exact`: it compares values, so it gets them as they were drawn; `distinct`: no two of them equal.
    """

    name: str
    act: Callable[..., Any]
    operands: tuple[tuple[int, ...], ...] = ()
    gradients: bool = True
    writes: bool = False
    exact: bool = False
    distinct: bool = False


def _statistics(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    ramp = torch.arange(4, device=x.device, dtype=torch.float32).to(x.dtype)
    return ramp / 4, ramp / 2 + 0.5


def _heads(x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, k, x.flip(2))


def _target(x: torch.Tensor) -> torch.Tensor:
    return (torch.arange(72, device=x.device) % 4).reshape(2, 6, 6)


def _table(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([3, 0, 5, 5, 1], device=x.device)


CONSUMERS = tuple(
    Consumer(*row[:2], **(row[2] if len(row) > 2 else {}))  # type: ignore[arg-type]
    for row in (
        ("conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), {"operands": ((3, 4, 3, 3), (3,))}),
        ("conv2d_strided", lambda x, w: F.conv2d(x, w, stride=2, dilation=2, padding=2), {"operands": ((3, 4, 3, 3),)}),
        ("conv2d_groups", lambda x, w: F.conv2d(x, w, groups=2), {"operands": ((6, 2, 3, 3),)}),
        ("conv2d_depth", lambda x, w, b: F.conv2d(x, w, b, groups=4), {"operands": ((4, 1, 3, 3), (4,))}),
        ("conv2d_point", lambda x, w: F.conv2d(x, w), {"operands": ((5, 4, 1, 1),)}),
        ("conv1d", lambda x, w: F.conv1d(x[:, :, 2], w, padding=1), {"operands": ((3, 4, 3),)}),
        ("conv3d", lambda x, w: F.conv3d(x.unsqueeze(2), w, padding=1), {"operands": ((3, 4, 3, 3, 3),)}),
        ("transposed1d", lambda x, w: F.conv_transpose1d(x[..., 1], w, stride=2), {"operands": ((4, 3, 3),)}),
        ("transposed2d", lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), {"operands": ((4, 3, 3, 3),)}),
        ("transposed3d", lambda x, w: F.conv_transpose3d(x.unsqueeze(2), w), {"operands": ((4, 2, 1, 3, 3),)}),
        ("matmul", lambda x, w: x @ w, {"operands": ((6, 5),)}),
        ("matmul_left", lambda x, w: w @ x, {"operands": ((5, 6),)}),
        ("matmul_self", lambda x: x @ x.mT),
        ("bmm", lambda x, w: torch.bmm(x[0], w), {"operands": ((4, 6, 5),)}),
        ("bmm_both", lambda x: torch.bmm(x[:, 1], x[:, 2])),
        ("baddbmm", lambda x, w: torch.baddbmm(x[1], x[0], w, beta=0.5, alpha=2), {"operands": ((4, 6, 6),)}),
        ("addmm", lambda x, w: torch.addmm(x[0, 0], x[1, 1], w), {"operands": ((6, 6),)}),
        ("mv", lambda x, w: torch.mv(x[1, 2], w), {"operands": ((6,),)}),
        ("linear", lambda x, w, b: F.linear(x, w, b), {"operands": ((5, 6), (5,))}),
        ("linear_bare", lambda x, w: F.linear(x[:, 0], w), {"operands": ((5, 6),)}),
        ("einsum", lambda x, w: torch.einsum("bchw,kc->bkwh", x, w), {"operands": ((3, 4),)}),
        ("layer_norm", lambda x, w, b: F.layer_norm(x, (6,), w, b), {"operands": ((6,), (6,))}),
        ("layer_norm_two", lambda x: F.layer_norm(x, (6, 6))),
        ("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), {"operands": ((4,), (4,))}),
        ("batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), {"operands": ((4,), (4,))}),
        ("batch_norm_eval", lambda x, w: F.batch_norm(x, *_statistics(x), w), {"operands": ((4,),)}),
        ("instance_norm", lambda x: F.instance_norm(x)),
        ("softmax", lambda x: F.softmax(x, dim=-1)),
        ("softmax_channels", lambda x: F.softmax(x, dim=1)),
        ("log_softmax", lambda x: F.log_softmax(x, dim=2)),
        (
            "sums",
            lambda x: (x.sum(1), x.sum((0, 2)), x.sum(), x.mean(-1, keepdim=True), x.unflatten(1, (2, 2)).sum((0, 3))),
        ),
        ("spread", lambda x: (x.var(1), x.std((2, 3)), x.norm(), torch.linalg.vector_norm(x, 3, dim=2))),
        (
            "extremes",
            lambda x: (x.amax(1), x.amin((2, 3)), x.argmax(1), x.max(2).values, x.max()),
            {"exact": True, "distinct": True},
        ),
        ("running", lambda x: (x.cumsum(1), x.cumsum(-1), x.flip(2).cumprod(2), x.logcumsumexp(0))),
        ("attention", _heads, {"operands": ((2, 4, 6, 6),)}),
        ("attention_causal", lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)),
        (
            "picked",
            lambda x: (x[:, _table(x) % 4], x.index_select(2, _table(x)), x[..., _table(x)], x[_table(x) % 2, 1:3]),
        ),
        (
            "gathered",
            lambda x: (x.gather(3, _table(x).expand(2, 4, 6, 5)), x.take_along_dim(_table(x)[None, None, :, None], 2)),
        ),
        ("masked", lambda x: (x.masked_fill(x > 0, 2), torch.where(x > 0.5, x, -x), x[x > 0]), {"exact": True}),
        (
            "pooled",
            lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1), F.adaptive_avg_pool2d(x, 4)),
            {"exact": True, "distinct": True},
        ),
        ("resized", lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(4, 9), mode="bilinear"))),
        (
            "padded",
            lambda x: (F.pad(x, (1, 2, 0, 1)), F.pad(x, (2, 1, 1, 2), mode="reflect"), x.roll(2, -1), x.flip(1)),
        ),
        ("columns", lambda x: (F.unfold(x, 3), F.fold(x.reshape(2, 4, 36)[..., :25], (6, 6), 2))),
        ("activated", lambda x: (F.gelu(x), F.silu(x), x.tanh(), F.softplus(x), F.leaky_relu(x), x.sigmoid(), x.exp())),
        (
            "combined",
            lambda x, y: (x + y, x * y.mT, torch.addcmul(x, x, y), x.lerp(y, 0.25), x.atan2(y)),
            {"operands": ((2, 4, 6, 6),)},
        ),
        (
            "joined",
            lambda x, y: (torch.cat([x, y], 1), torch.stack([y, x], 2), torch.hstack([x, x])),
            {"operands": ((2, 4, 6, 6),)},
        ),
        (
            "loss",
            lambda x, y: (F.cross_entropy(x, _target(x)), F.mse_loss(x, y), F.smooth_l1_loss(x, y)),
            {"operands": ((2, 4, 6, 6),)},
        ),
        (
            "ordered",
            lambda x: (x.sort(-1).values, x.topk(3, 1).values, x.argsort(2), x.median(1).values),
            {"exact": True, "distinct": True},
        ),
        ("grid", lambda x, g: F.grid_sample(x, torch.tanh(g), align_corners=False), {"operands": ((2, 3, 5, 2),)}),
        ("reshaped", lambda x: (x.reshape(8, 36) * 2, x.flatten(1) + 1, x.contiguous() - 1, x.mT.reshape(-1) * 3)),
        (
            "in_place",
            lambda x, y: x.add_(y).mul_(2).sub_(y.mT, alpha=0.5),
            {"operands": ((2, 4, 6, 6),), "gradients": False, "writes": True},
        ),
        (
            "in_place_math",
            lambda x: x.sigmoid_().neg_().clamp_(-0.9, -0.2).exp_(),
            {"gradients": False, "writes": True},
        ),
        (
            "in_place_terms",
            lambda x, y: x.addcmul_(y, y, value=0.5).addcdiv_(y, y.abs() + 1).lerp_(y, 0.25),
            {"operands": ((2, 4, 6, 6),), "gradients": False, "writes": True},
        ),
        (
            "in_place_fill",
            lambda x: x.masked_fill_(x > 0, 3).index_fill_(1, _table(x)[1:3] % 4, 2),
            {"exact": True, "gradients": False, "writes": True},
        ),
        (
            "in_place_copy",
            lambda x, y: x.copy_(y.flip(-1)).zero_().copy_(y[:1]),
            {"operands": ((2, 4, 6, 6),), "gradients": False, "writes": True},
        ),
        (
            "in_place_rows",
            lambda x, y: x.index_add_(2, _table(x)[:3], y[:, :, :3]).index_copy_(3, _table(x)[:3], y[..., :3]),
            {"operands": ((2, 4, 6, 6),), "gradients": False, "writes": True},
        ),
        (
            "in_place_scatter",
            lambda x, y: x.scatter_(1, _table(x)[1].expand(2, 1, 6, 6) % 4, y[:, :1]).index_put_(
                (_table(x)[1:2],), y[:1], accumulate=True
            ),
            {"operands": ((2, 4, 6, 6),), "gradients": False, "writes": True},
        ),
        (
            "in_place_product",
            lambda x, w: x[0].baddbmm_(x[1].clone(), w),
            {"operands": ((4, 6, 6),), "gradients": False, "writes": True},
        ),
    )
)
