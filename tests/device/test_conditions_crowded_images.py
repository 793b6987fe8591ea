"""More than 2**16 images, rows, bags and samples of the smallest sizes: pooling, norms, losses, distances, nets."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table

cases = Cases("conditions")
_MANY = 65_543
Form = Callable[..., torch.Tensor]

# x: images of 2 x 2 points, of one channel or of 128.
_IMAGES: dict[str, Form] = {
    "max_pool": lambda x: F.max_pool2d(x, 2),
    "max_pool-1": lambda x: F.max_pool2d(x, (1, 2), 1),
    "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "avg_pool-padded": lambda x: F.avg_pool2d(x, 2, 1, 1, count_include_pad=False),
    "adaptive_avg": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive_avg-more": lambda x: F.adaptive_avg_pool2d(x, (1, 3)),
    "adaptive_max": lambda x: F.adaptive_max_pool2d(x, (1, 2)),
    "lp_pool": lambda x: F.lp_pool2d(x, 2.0, 2),
    "max_pool3d": lambda x: F.max_pool3d(x[:, :, None], (1, 2, 2)),
    "max_pool3d-again": lambda x: F.max_pool3d(x[:, :, None], (1, 2, 2)),
    "avg_pool3d": lambda x: F.avg_pool3d(x[:, :, None], (1, 2, 1)),
    "adaptive3d": lambda x: F.adaptive_avg_pool3d(x[:, :, None], 1),
    "max_pool1d": lambda x: F.max_pool1d(x[:, :, 0], 2),
    "avg_pool1d": lambda x: F.avg_pool1d(x[:, :, 0], 2, 1, 1),
    "nearest": lambda x: F.interpolate(x, (1, 3)),
    "bilinear": lambda x: F.interpolate(x, (3, 1), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, (1, 3), mode="bicubic"),
    "reflected": lambda x: F.pad(x, (1, 0, 0, 0), mode="reflect"),
    "repeated": lambda x: F.pad(x, (0, 1, 0, 0), mode="replicate"),
    "padded": lambda x: F.pad(x, (0, 1, 1, 0), value=2.0),
    "depthwise": lambda x: F.conv2d(x, x[:1, :, :1].transpose(0, 1).detach(), groups=x.shape[1]),
    "convolved": lambda x: F.conv2d(x, x[:3].detach()),
    "sampled": lambda x: F.grid_sample(
        x, x[:, :1, :1, :, None].detach()[:, 0].expand(-1, -1, -1, 2).clamp(-1, 1) * 0.9 + 0.013, align_corners=True
    ),
    "shuffled": lambda x: F.pixel_unshuffle(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True, eps=0.5),
    "instance_norm": lambda x: F.instance_norm(x, eps=0.5),
    "group_norm": lambda x: F.group_norm(x, 1, eps=0.5),
    "layer_norm": lambda x: F.layer_norm(x, (2,), eps=0.5),
    "response_norm": lambda x: F.local_response_norm(x, 2),
    "prelu": lambda x: F.prelu(x, x.detach()[0, :1, 0, 0]),
    "softmax": lambda x: x.softmax(1) + x.softmax(-1),
    "reduced": lambda x: x.sum((2, 3)) + x.amax((2, 3)) + x.mean((2, 3)),
}
for _name, _shape in {
    "images": (_MANY, 1, 2, 2),
    "channels": (1, _MANY, 2, 2),
}.items():
    _given = {
        name: form for name, form in _IMAGES.items() if _name != "channels" or name not in ("convolved", "depthwise")
    }
    add_table(
        cases,
        f"crowded-{_name}",
        {name: lambda x, form=form: derived(form, x) for name, form in _given.items()},
        lambda d, shape=_shape: (d.distinct(*shape) / 2.0**16,),
        terms=4096,
        factor=64.0,
        deterministic=False,
    )

# Rows of x and y, numbers of classes c.
_SAMPLES: dict[str, Form] = {
    **{
        f"{name}-{how}": lambda x, y, c, name=name, how=how: getattr(F, name)(x, y, reduction=how)
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
        for how in ("none", "sum")
    },
    "cross_entropy": lambda x, y, c: F.cross_entropy(x, c, reduction="none") + 0 * y.sum(),
    "cross_entropy-mean": lambda x, y, c: F.cross_entropy(x, c, label_smoothing=0.25) + 0 * y.sum(),
    "cross_entropy-spread": lambda x, y, c: F.cross_entropy(x.T[None], c[None, :1].expand(1, x.shape[0])) + 0 * y.sum(),
    "nll": lambda x, y, c: F.nll_loss(x, c, weight=y[0].detach().abs(), ignore_index=1) + 0 * y.sum(),
    "bce": lambda x, y, c: F.binary_cross_entropy_with_logits(x, y.sigmoid().detach(), reduction="none") + 0 * y,
    "kl": lambda x, y, c: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
    "multi_margin": lambda x, y, c: F.multi_margin_loss(x, c, reduction="none") + 0 * y.sum(),
    "cosine": lambda x, y, c: F.cosine_embedding_loss(x + 3, y + 3, c * 2 - 1, reduction="none"),
    "distance": lambda x, y, c: F.pairwise_distance(x, y + 9),
    "linear": lambda x, y, c: F.linear(x, y[:3]),
    "bilinear": lambda x, y, c: F.bilinear(x, y, x[:4].detach().reshape(2, 2, 2)),
    "embedded": lambda x, y, c: F.embedding(c, x[:2]) * y,
    "bags": lambda x, y, c: F.embedding_bag(c[:, None], x[:2], mode="sum") * y,
    "bags-mean": lambda x, y, c: F.embedding_bag(c, x[:2], torch.arange(len(c), device=c.device)) * y,
    "gathered": lambda x, y, c: x.gather(1, c[:, None]) * y,
    "outer": lambda x, y, c: x[:, :, None] * y[:, None],
    "norm": lambda x, y, c: F.normalize(x + 3, dim=1) * y,
}
add_table(
    cases,
    "crowded-samples",
    {name: lambda x, y, c, form=form: derived(lambda x, y: form(x, y, c), x, y) for name, form in _SAMPLES.items()},
    lambda d: (
        d.integers(-8, 8, _MANY, 2) / 4,
        d.integers(-8, 8, _MANY, 2) / 4 + 0.125,
        d.integers(0, 2, _MANY),
    ),
    terms=_MANY,
    deterministic=False,
)


# Distances of many rows: no two of them are alike but where that is asked.
_ORDERS = (0.5, 1.0, 1.5, 2.0, 3.0)


def _distances(order: float, mode: str) -> Form:
    return lambda x, y: torch.cdist(x, y, order, mode)


for _rows, _others, _depth in ((102, 103, 3), (513, 70, 2), (4100, 3, 1), (2, 4100, 5), (26, 25, 40)):
    add_table(
        cases,
        f"crowded-cdist-{_rows}-{_others}",
        {
            # Which of equal coordinates is the farthest is open: no gradient.
            "inf": lambda x, y: torch.cdist(x, y, float("inf")),
            **{
                f"{order}-{mode[:3]}": lambda x, y, order=order, mode=mode: derived(_distances(order, mode), x, y)
                for order in _ORDERS
                for mode in ("donot_use_mm_for_euclid_dist", "use_mm_for_euclid_dist")
                if order == 2.0 or mode[:3] == "don"
            },
        },
        lambda d, one=_rows, two=_others, depth=_depth: (
            d.distinct(one, depth) / 8,
            d.distinct(two, depth) / 8 + 0.0625,
        ),
        terms=4096,
        factor=64.0,
        deterministic=False,
    )
for _rows, _depth in ((70, 3), (513, 2)):
    add_table(
        cases,
        f"crowded-pdist-{_rows}",
        {
            "inf": lambda x: F.pdist(x, float("inf")),
            **{str(order): lambda x, order=order: derived(lambda y: F.pdist(y, order), x) for order in _ORDERS},
        },
        lambda d, rows=_rows, depth=_depth: (d.distinct(rows, depth) / 8,),
        terms=4096,
        factor=64.0,
        deterministic=False,
    )
# Where coordinates are equal or all but equal.
add_table(
    cases,
    "crowded-alike",
    {
        **{
            f"cdist-{order}": lambda x, y, order=order: derived(_distances(order, "donot_use_mm_for_euclid_dist"), x, y)
            for order in _ORDERS
        },
        **{f"pdist-{order}": lambda x, y, order=order: derived(lambda z: F.pdist(z, order), x) for order in _ORDERS},
        **{
            f"pair-{order}": lambda x, y, order=order: derived(lambda x, y: F.pairwise_distance(x[:3], y, order), x, y)
            for order in _ORDERS[1:4]
        },
    },
    lambda d: (
        torch.tensor([[0.0, 1, 2], [0, 1, 3], [4, 1, 2], [0, 5, 2]]),
        torch.tensor([[0.0, 1, 5], [0, 2, 2], [4, 4, 2]]),
    ),
    terms=64,
    factor=64.0,
)


def _long_pairs(x: torch.Tensor) -> Any:
    """Return a gradient through more than eight million distances, and a few of them."""
    start = x.detach().requires_grad_()
    found = F.pdist(start, 1.0)
    (found[::3].sum() + found[-1]).backward()
    return found.detach()[:: found.shape[0] // 99], start.grad


cases.add(
    "condition-limit-crowded-pdist-4100",
    _long_pairs,
    make=lambda d: (d.permutation(4100).float()[:, None] / 4100,),
    terms=4100,
    states=("fresh",),
    deterministic=False,
    may_be_missing=True,
)
