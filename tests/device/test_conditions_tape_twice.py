"""Gradients of gradients through the public functions: losses with each reduction, pooling, norms, resizing, attention.

A penalty on a gradient's size asks them: that of binary_cross_entropy with a sum failed,
https://github.com/pytorch/pytorch/issues/59477; that of max_pool2d ended the process,
https://github.com/pytorch/pytorch/issues/20465
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.limits import add_table

cases = Cases("conditions")
Form = Callable[..., Any]


def _penalised(form: Form, x: torch.Tensor, *others: Any) -> Any:
    """Return the gradient of what a form answers, and the gradient of its squares: 0 where x is not in it."""
    x = leaf(x.clone())
    y = form(x, *others)
    (first,) = torch.autograd.grad((y * uneven(y)).sum(), x, create_graph=True)
    if not first.requires_grad:
        return [first, torch.zeros_like(x)]
    first.square().sum().backward()
    return [first, x.grad]


def _add(name: str, forms: dict[str, Form], make: Any) -> None:
    add_table(
        cases,
        f"tape-twice-{name}",
        {key: lambda *operands, form=form: _penalised(form, *operands) for key, form in forms.items()},
        make,
        terms=1024,
        factor=16.0,
        deterministic=False,
    )


# x, t and w of (4, 6): t and w from 0.1 to 0.9; k: places below six, s: signs.
_LOSSES: dict[str, Form] = {
    "l1": lambda x, t, w, k, s, **o: F.l1_loss(x, t, **o),
    "mse": lambda x, t, w, k, s, **o: F.mse_loss(x, t, **o),
    "smooth_l1": lambda x, t, w, k, s, **o: F.smooth_l1_loss(x, t, beta=0.7, **o),
    "huber": lambda x, t, w, k, s, **o: F.huber_loss(x, t, delta=0.8, **o),
    "bce": lambda x, t, w, k, s, **o: F.binary_cross_entropy(x.sigmoid(), t, **o),
    "bce-weight": lambda x, t, w, k, s, **o: F.binary_cross_entropy(x.sigmoid(), t, w, **o),
    "logits": lambda x, t, w, k, s, **o: F.binary_cross_entropy_with_logits(x, t, **o),
    "logits-weights": lambda x, t, w, k, s, **o: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=w[0], **o),
    "cross_entropy": lambda x, t, w, k, s, **o: F.cross_entropy(x, k, **o),
    "cross_entropy-weight": lambda x, t, w, k, s, **o: F.cross_entropy(x, k, w[0], **o),
    "cross_entropy-smooth": lambda x, t, w, k, s, **o: F.cross_entropy(x, k, w[0], label_smoothing=0.2, **o),
    "cross_entropy-ignored": lambda x, t, w, k, s, **o: F.cross_entropy(x, k, ignore_index=2, **o),
    "cross_entropy-shares": lambda x, t, w, k, s, **o: F.cross_entropy(x, t, **o),
    "nll": lambda x, t, w, k, s, **o: F.nll_loss(x.log_softmax(1), k, **o),
    "nll-weight": lambda x, t, w, k, s, **o: F.nll_loss(x.log_softmax(1), k, w[0], **o),
    "nll-images": lambda x, t, w, k, s, **o: F.nll_loss(x.view(1, 6, 2, 2).log_softmax(1), k.view(1, 2, 2), w[0], **o),
    "kl_div": lambda x, t, w, k, s, **o: F.kl_div(x.log_softmax(1), t, **o),
    "kl_div-log": lambda x, t, w, k, s, **o: F.kl_div(x.log_softmax(1), t.log(), log_target=True, **o),
    "poisson": lambda x, t, w, k, s, **o: F.poisson_nll_loss(x, t, **o),
    "poisson-full": lambda x, t, w, k, s, **o: F.poisson_nll_loss(x.exp(), t * 9, log_input=False, full=True, **o),
    "gaussian": lambda x, t, w, k, s, **o: F.gaussian_nll_loss(x, t, w, full=True, **o),
    "gaussian-spread": lambda x, t, w, k, s, **o: F.gaussian_nll_loss(t, w, x.exp(), **o),
    "hinge": lambda x, t, w, k, s, **o: F.hinge_embedding_loss(x, s, 0.7, **o),
    "ranking": lambda x, t, w, k, s, **o: F.margin_ranking_loss(x, t, s, 0.2, **o),
    "cosine": lambda x, t, w, k, s, **o: F.cosine_embedding_loss(x, t, s[:, 0], 0.1, **o),
    "triplet": lambda x, t, w, k, s, **o: F.triplet_margin_loss(x, t, w, 2.0, **o),
    "triplet-swap": lambda x, t, w, k, s, **o: F.triplet_margin_loss(x, t, w, 2.0, 3.0, swap=True, **o),
    "triplet-distance": lambda x, t, w, k, s, **o: F.triplet_margin_with_distance_loss(x, t, w, margin=2.0, **o),
    "soft_margin": lambda x, t, w, k, s, **o: F.soft_margin_loss(x, s, **o),
    "multilabel-soft": lambda x, t, w, k, s, **o: F.multilabel_soft_margin_loss(x, (t > 0.5).to(x.dtype), **o),
    "multilabel-weight": lambda x, t, w, k, s, **o: F.multilabel_soft_margin_loss(x, (t > 0.5).to(x.dtype), w, **o),
}
for _reduction in ("none", "mean", "sum"):
    _add(
        f"losses-{_reduction}",
        {name: lambda *ops, form=form, r=_reduction: form(*ops, reduction=r) for name, form in _LOSSES.items()},
        lambda d: (
            d.normal(4, 6),
            d.uniform(0.1, 0.9, 4, 6),
            d.uniform(0.1, 0.9, 4, 6),
            d.integers(0, 6, 4),
            d.integers(0, 2, 4, 6).float() * 2 - 1,
        ),
    )

_RANKS = {1: (2, 3, 12), 2: (2, 3, 6, 8), 3: (1, 2, 4, 6, 4)}
_POOLED: dict[str, Callable[[torch.Tensor, int], Any]] = {
    "max": lambda x, n: getattr(F, f"max_pool{n}d")(x, 3, 2, 1),
    "max-places": lambda x, n: getattr(F, f"max_pool{n}d")(x, 2, return_indices=True)[0],
    "max-adaptive": lambda x, n: getattr(F, f"adaptive_max_pool{n}d")(x, 3),
    "average": lambda x, n: getattr(F, f"avg_pool{n}d")(x.sin(), 3, 2, 1),
    "average-inside": lambda x, n: getattr(F, f"avg_pool{n}d")(x.sin(), 2, ceil_mode=True, count_include_pad=False),
    "average-adaptive": lambda x, n: getattr(F, f"adaptive_avg_pool{n}d")(x.sin(), 3),
    "power": lambda x, n: getattr(F, f"lp_pool{n}d")(x.exp(), 3, 2, 2),
    "back": lambda x, n: getattr(F, f"max_unpool{n}d")(
        *getattr(F, f"max_pool{n}d")(x.exp(), 2, return_indices=True), 2
    ),
    "batch_norm": lambda x, n: F.batch_norm(x, None, None, training=True),
    "batch_norm-kept": lambda x, n: F.batch_norm(x, x.new_zeros(x.shape[1]), x.new_ones(x.shape[1])),
    "instance_norm": lambda x, n: F.instance_norm(x),
    "group_norm": lambda x, n: F.group_norm(x, 1),
    "layer_norm": lambda x, n: F.layer_norm(x, x.shape[2:], x[0, 0].detach().exp()),
    "response": lambda x, n: F.local_response_norm(x, 2, 0.5),
    "normalize": lambda x, n: F.normalize(x, dim=1),
    **{
        f"pad-{mode}": lambda x, n, mode=mode: F.pad(x.sin(), (1, 2) * n, mode)
        for mode in ("constant", "reflect", "replicate", "circular")
    },
    "nearest": lambda x, n: F.interpolate(x.sin(), scale_factor=2, mode="nearest"),
    "nearest-exact": lambda x, n: F.interpolate(x.sin(), scale_factor=1.5, mode="nearest-exact"),
    "area": lambda x, n: F.interpolate(x.sin(), 3, mode="area"),
    "linear": lambda x, n: F.interpolate(x.sin(), scale_factor=1.5, mode=("linear", "bilinear", "trilinear")[n - 1]),
    "convolved": lambda x, n: getattr(F, f"conv{n}d")(x, x[:1, :, :2]),
}
for _rank, _sides in _RANKS.items():
    _add(
        f"windows-{_rank}d",
        {name: lambda x, form=form, rank=_rank: form(x, rank) for name, form in _POOLED.items()},
        lambda d, sides=_sides: (d.distinct(*sides) / 32,),
    )

_BENT = (
    "relu relu6 elu selu celu leaky_relu gelu silu mish softplus softsign tanhshrink hardshrink softshrink hardtanh "
    "hardswish logsigmoid sigmoid tanh rrelu glu"
).split()


def _places(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x[:1, :, 0].detach().tanh(), x[:1, :, 1].detach().tanh()], -1)[:, :, None]


def _by_products(*operands: torch.Tensor, **options: Any) -> torch.Tensor:
    """Attend by the products themselves: the other ways have no gradient of a gradient."""
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return F.scaled_dot_product_attention(*operands, **options)


# x of (2, 4, 6).
_OTHERS: dict[str, Form] = {
    **{name: lambda x, name=name: getattr(F, name)(x) for name in _BENT},
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "prelu": lambda x: F.prelu(x, x[0, :, 0].detach()),
    "threshold": lambda x: F.threshold(x, 0.1, 2.0),
    **{f"softmax-{dim}": lambda x, dim=dim: F.softmax(x, dim) for dim in range(3)},
    **{f"log_softmax-{dim}": lambda x, dim=dim: F.log_softmax(x, dim) for dim in range(3)},
    "softmin": lambda x: F.softmin(x, 1),
    "logsumexp": lambda x: x.logsumexp(1),
    "attention": lambda x: _by_products(x, x * 0.5, x),
    "attention-causal": lambda x: _by_products(x[None], x[None], x[None].sin(), is_causal=True),
    "attention-mask": lambda x: _by_products(x, x, x, attn_mask=x @ x.mT),
    "bicubic": lambda x: F.interpolate(x[None].sin(), scale_factor=1.5, mode="bicubic"),
    "sampled": lambda x: F.grid_sample(x[None].sin(), _places(x), align_corners=False),
    "shuffled": lambda x: F.pixel_shuffle(x.reshape(4, 4, 3).square(), 2),
    "unfolded": lambda x: F.unfold(x[None].square(), 2),
    "folded": lambda x: F.fold(x.square(), (3, 4), (2, 2)),
    "linear": lambda x: F.linear(x, x[0], x[0, :, 0]),
    "bilinear": lambda x: F.bilinear(x, x, x.new_ones(3, 6, 6)),
    "cosine": lambda x: F.cosine_similarity(x[0], x[1]),
    "distances": lambda x: F.pairwise_distance(x[0], x[1]),
    "rms_norm": lambda x: F.rms_norm(x, (6,)),
    "embedding": lambda x: F.embedding(torch.tensor([1, 0, 3, 1], device=x.device), x[0]).square(),
    "bags": lambda x: F.embedding_bag(torch.tensor([[1, 0], [3, 1]], device=x.device), x[0].sin()),
    "transposed": lambda x: F.conv_transpose1d(x, x[0, :, None, :3].sin()),
}
_add("others", _OTHERS, lambda d: (d.distinct(2, 4, 6) / 16 + 0.03,))
