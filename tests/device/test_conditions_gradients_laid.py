"""Rules 3 and 6: the gradient that comes in lies otherwise than the answer: for each layer of images, in each rank.

A gradient of one voxel whose channels lie beside each other, https://github.com/pytorch/pytorch/issues/113642; that of
an average in channels_last, https://github.com/pytorch/pytorch/issues/107201; weights that are a slice of more,
https://github.com/pytorch/pytorch/issues/192212
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[..., torch.Tensor]

# How one tensor of at least three dimensions lies; its numbers stay.
_WAYS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda g: g,
    "last": lambda g: g.movedim(1, -1).contiguous().movedim(-1, 1),
    "first": lambda g: g.movedim(0, -1).contiguous().movedim(-1, 0),
    "turned": lambda g: g.mT.contiguous().mT,
    "steps": lambda g: torch.stack([g, g - 1], -1)[..., 0],
    "slice": lambda g: torch.cat([g - 1, g, g + 1], -1)[..., g.shape[-1] : 2 * g.shape[-1]],
    "channels": lambda g: torch.cat([g, g + 1], 1).movedim(1, -1).contiguous().movedim(-1, 1)[:, : g.shape[1]],
    "deep": lambda g: torch.stack([g, g + 1, g - 1], 2)[:, :, 1],
}
# Gradients alone: numbers that are one in memory.
_SPREAD: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "one": lambda g: g.flatten()[:1].view((1,) * g.dim()).expand_as(g),
    "one-channel": lambda g: g[:, :1].expand_as(g),
    "one-image": lambda g: g[:1].expand_as(g),
    "one-column": lambda g: g[..., :1].expand_as(g),
}


def _of(name: str, x: torch.Tensor) -> Any:
    return getattr(F, name.format(x.dim() - 2))


def _grid(x: torch.Tensor, side: int) -> torch.Tensor:
    """Return places for each image, off the pixels and some of them outside."""
    rank, count = x.dim() - 2, side ** (x.dim() - 2) * (x.dim() - 2)
    places = torch.arange(x.shape[0] * count, device=x.device) * 7 % 11
    return (places.to(x.dtype) / 4.7 - 1.07).view(x.shape[0], *(side,) * rank, rank)


_LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}
# x: (2, 4, sides); w: (4, 4, 2, ...) or (4, 1, 2, ...); in each rank.
_LAYERS: dict[str, Form] = {
    "conv": lambda x, w, d: _of("conv{}d", x)(x, w),
    "conv-padded": lambda x, w, d: _of("conv{}d", x)(x, w, stride=2, padding=1),
    "conv-gaps": lambda x, w, d: _of("conv{}d", x)(x, w, padding=1, dilation=2),
    "conv-groups": lambda x, w, d: _of("conv{}d", x)(x, w[:, :2], groups=2),
    "conv-depthwise": lambda x, w, d: _of("conv{}d", x)(x, d, padding=1, groups=4),
    "conv-one": lambda x, w, d: _of("conv{}d", x)(x, w[(..., *(slice(0, 1),) * (x.dim() - 2))]),
    "turned": lambda x, w, d: _of("conv_transpose{}d", x)(x, w, stride=2),
    "turned-groups": lambda x, w, d: _of("conv_transpose{}d", x)(x, w[:, :2], padding=1, groups=2),
    "turned-depthwise": lambda x, w, d: _of("conv_transpose{}d", x)(x, d, stride=2, groups=4),
    "max_pool": lambda x, w, d: _of("max_pool{}d", x)(x, 2),
    "max_pool-padded": lambda x, w, d: _of("max_pool{}d", x)(x, 3, 1, 1),
    "max_pool-gaps": lambda x, w, d: _of("max_pool{}d", x)(x, 2, 1, 1, 2),
    "avg_pool": lambda x, w, d: _of("avg_pool{}d", x)(x, 2),
    "avg_pool-padded": lambda x, w, d: _of("avg_pool{}d", x)(x, 2, 1, 1),
    "avg_pool-inside": lambda x, w, d: _of("avg_pool{}d", x)(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "adaptive_avg": lambda x, w, d: _of("adaptive_avg_pool{}d", x)(x, 2),
    "adaptive_avg-one": lambda x, w, d: _of("adaptive_avg_pool{}d", x)(x, 1),
    "adaptive_avg-more": lambda x, w, d: _of("adaptive_avg_pool{}d", x)(x, 5),
    "adaptive_max": lambda x, w, d: _of("adaptive_max_pool{}d", x)(x, 2),
    "adaptive_max-one": lambda x, w, d: _of("adaptive_max_pool{}d", x)(x, 1),
    "lp_pool": lambda x, w, d: _of("lp_pool{}d", x)(x.square() + 1, 3.0, 2),
    "unpool": lambda x, w, d: _of("max_unpool{}d", x)(*_of("max_pool{}d", x)(x, 2, return_indices=True), 2),
    "nearest": lambda x, w, d: F.interpolate(x, scale_factor=2.0),
    "nearest-one": lambda x, w, d: F.interpolate(x, 1),
    "nearest-crossed": lambda x, w, d: F.interpolate(x, (2, 7, 3)[: x.dim() - 2]),
    "exact-crossed": lambda x, w, d: F.interpolate(x, (7, 2, 5)[: x.dim() - 2], mode="nearest-exact"),
    "linear": lambda x, w, d: F.interpolate(x, scale_factor=2.0, mode=_LINEAR[x.dim()]),
    "linear-one": lambda x, w, d: F.interpolate(x, 1, mode=_LINEAR[x.dim()]),
    "linear-crossed": lambda x, w, d: F.interpolate(x, (2, 7, 3)[: x.dim() - 2], mode=_LINEAR[x.dim()]),
    "linear-corners": lambda x, w, d: F.interpolate(
        x, (7, 2, 5)[: x.dim() - 2], mode=_LINEAR[x.dim()], align_corners=True
    ),
    "area": lambda x, w, d: F.interpolate(x, 2, mode="area"),
    "padded": lambda x, w, d: F.pad(x, (1, 2) * (x.dim() - 2), value=2.0),
    "padded-less": lambda x, w, d: F.pad(x, (-1, 2) * (x.dim() - 2)),
    "reflected": lambda x, w, d: F.pad(x, (1, 2) * (x.dim() - 2), mode="reflect"),
    "repeated": lambda x, w, d: F.pad(x, (2, 1) * (x.dim() - 2), mode="replicate"),
    "wrapped": lambda x, w, d: F.pad(x, (1, 0) * (x.dim() - 2), mode="circular"),
    "batch_norm": lambda x, w, d: F.batch_norm(x, None, None, d.flatten()[:4], w.flatten()[:4], training=True),
    "batch_norm-kept": lambda x, w, d: F.batch_norm(x, x.new_zeros(4), x.new_ones(4), d.flatten()[:4], training=False),
    "instance_norm": lambda x, w, d: F.instance_norm(x, weight=d.flatten()[:4], bias=w.flatten()[:4]),
    "group_norm": lambda x, w, d: F.group_norm(x, 2, d.flatten()[:4]),
    "layer_norm": lambda x, w, d: F.layer_norm(x, x.shape[2:]),
    "rms_norm": lambda x, w, d: F.rms_norm(x, x.shape[-1:]),
    "response_norm": lambda x, w, d: F.local_response_norm(x, 3),
    "normalize": lambda x, w, d: F.normalize(x, dim=1),
    "prelu": lambda x, w, d: F.prelu(x, d.flatten()[:4]),
    "gelu": lambda x, w, d: F.gelu(x),
    "glu": lambda x, w, d: F.glu(x, 1),
    "softmax": lambda x, w, d: x.softmax(1),
    "log_softmax": lambda x, w, d: x.log_softmax(-1),
    "joined": lambda x, w, d: torch.cat([x, x.flip(-1)], 1),
    "summed": lambda x, w, d: x.sum(-1, keepdim=True) + x.mean(1, keepdim=True),
    "scanned": lambda x, w, d: x.cumsum(-1),
    "repeat": lambda x, w, d: x.repeat(1, 2, *(1,) * (x.dim() - 2)),
    "rolled": lambda x, w, d: x.roll(1, -1).flip(1),
}
_IMAGES: dict[str, Form] = {
    "bicubic": lambda x, w, d: F.interpolate(x, (2, 7), mode="bicubic"),
    "bicubic-one": lambda x, w, d: F.interpolate(x, 1, mode="bicubic", align_corners=True),
    "smoothed": lambda x, w, d: F.interpolate(x, (2, 7), mode="bilinear", antialias=True),
    "smoothed-bicubic": lambda x, w, d: F.interpolate(x, (7, 3), mode="bicubic", antialias=True),
    "fractional": lambda x, w, d: F.fractional_max_pool2d(x, 2, 2, _random_samples=x.new_full((2, 4, 2), 0.3)),
    "shuffled": lambda x, w, d: F.pixel_shuffle(x, 2),
    "unshuffled": lambda x, w, d: F.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x, w, d: F.channel_shuffle(x, 2),
    "unfolded": lambda x, w, d: F.unfold(x, 2, padding=1, stride=2),
    "folded": lambda x, w, d: F.fold(x.flatten(2)[..., :6], (3, 4), (2, 2)),
    "sampled": lambda x, w, d: F.grid_sample(x, _grid(x, 3), align_corners=False),
    "sampled-one": lambda x, w, d: F.grid_sample(x, _grid(x, 1), padding_mode="border", align_corners=True),
    "sampled-bicubic": lambda x, w, d: F.grid_sample(x, _grid(x, 2), "bicubic", "reflection", align_corners=False),
    "attention": lambda x, w, d: F.scaled_dot_product_attention(x, x.flip(1), x.sin()),
    "product": lambda x, w, d: x[..., :2] @ w[:2],
    "linear-layer": lambda x, w, d: F.linear(x.mT[..., :2], w[0, 0]),
}
_VOLUMES: dict[str, Form] = {
    "fractional": lambda x, w, d: F.fractional_max_pool3d(x, 2, 2, _random_samples=x.new_full((2, 4, 3), 0.3)),
    "sampled": lambda x, w, d: F.grid_sample(x, _grid(x, 2), align_corners=False),
    "sampled-one": lambda x, w, d: F.grid_sample(x, _grid(x, 1), padding_mode="border", align_corners=True),
    "sampled-nearest": lambda x, w, d: F.grid_sample(x, _grid(x, 2), "nearest", "reflection", align_corners=False),
}


def _asked(form: Form, lies: Any, comes: Any, *operands: torch.Tensor) -> Any:
    """Return an answer, and the gradients of operands that lie one way where the gradient comes in another way."""
    starts = [leaf(lies(one)) for one in operands]
    y = form(*starts)
    y.backward(comes(uneven(y)))
    return [y.detach(), *(one.grad for one in starts)]


_SIDES = {1: (6,), 2: (4, 6), 3: (4, 6, 4)}


def _takes(place: int, rank: int, lies: str, comes: str, half: bool) -> bool:
    """Say whether a pair is asked: channels beside each other for each layer, of the other pairs some in each rank."""
    if half:
        return (place + rank) % 599 == 3
    return (lies == "plain" and (comes == "last" or (place + rank) % 9 == 0)) or (place + rank) % 307 == 3


for _dtype in (torch.float32, *HALVES):
    for _rank, _more in {1: {}, 2: _IMAGES, 3: _VOLUMES}.items():
        _forms, _comes = {**_LAYERS, **_more}, {**_WAYS, **_SPREAD}
        add_table(
            cases,
            f"gradients-laid-{_rank}-{str(_dtype)[6:]}",
            {
                f"{name}-{lies}-{comes}": functools.partial(_asked, _forms[name], _WAYS[lies], _comes[comes])
                for place, (name, lies, comes) in enumerate(itertools.product(_forms, _WAYS, _comes))
                if _takes(place, _rank, lies, comes, _dtype in HALVES)
            },
            lambda d, dtype=_dtype, rank=_rank: (
                (d.distinct(2, 4, *_SIDES[rank]) / 32 + 0.004).to(dtype),
                (d.distinct(4, 4, *(2,) * rank) / 64).to(dtype),
                (d.distinct(4, 1, *(2,) * rank) / 16 + 0.03).to(dtype),
            ),
            terms=256 if _dtype == torch.float32 else 16,
            factor=16.0,
            deterministic=False,
        )
