"""Rule 1: what is refused of some operands is refused of none too: losses, activations, layers and draws of no rows.

nll_loss of nothing took a weight of another dtype, https://github.com/pytorch/pytorch/issues/171931; losses of shapes
that differ, https://github.com/pytorch/pytorch/issues/40023, https://github.com/pytorch/pytorch/issues/53030
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]


def _ones(x: torch.Tensor, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    return torch.ones(shape, device=x.device, dtype=dtype or x.dtype)


# x: (n, 5), of each number of rows; c: (n,) classes below 5. What is wrong is wrong whatever n is.
_CLASSES: dict[str, Form] = {
    **{
        f"{name}-weight-{what}": lambda x, c, name=name, weight=weight: getattr(F, name)(x, c, weight(x))
        for name in ("nll_loss", "cross_entropy")
        for what, weight in {
            "half": lambda x: _ones(x, 5).half(),
            "double": lambda x: _ones(x, 5).to(torch.bfloat16),
            "whole": lambda x: _ones(x, 5).int(),
            "few": lambda x: _ones(x, 4),
            "many": lambda x: _ones(x, 6),
            "rank": lambda x: _ones(x, 5, 1),
        }.items()
    },
    **{
        f"{name}-target-{what}": lambda x, c, name=name, target=target: getattr(F, name)(x, target(x, c))
        for name in ("nll_loss", "cross_entropy")
        for what, target in {
            "more": lambda x, c: _ones(x, len(x) + 2, dtype=torch.int64),
            "rank": lambda x, c: c[:, None, None],
            "bool": lambda x, c: c > 0,
            "short": lambda x, c: c.short(),
            "floats": lambda x, c: c.to(x.dtype),
        }.items()
    },
    **{
        f"nll_loss-images-{what}": lambda x, c, target=target, w=weight: F.nll_loss(
            x[:, :, None, None], target(c), w(x)
        )
        for what, target, weight in (
            ("weight", lambda c: c[:, None, None], lambda x: _ones(x, 4)),
            ("weight-half", lambda c: c[:, None, None], lambda x: _ones(x, 5).half()),
            ("rows", lambda c: c[:, None], lambda x: None),
            ("wider", lambda c: c[:, None, None].expand(-1, 2, 1), lambda x: None),
            ("kind", lambda c: c[:, None, None].short(), lambda x: None),
        )
    },
    "smoothing": lambda x, c: F.cross_entropy(x, c, label_smoothing=1.5),
    "shares-rows": lambda x, c: F.cross_entropy(x, _ones(x, len(x) + 1, 5)),
    "shares-classes": lambda x, c: F.cross_entropy(x, _ones(x, len(x), 4)),
    "shares-whole": lambda x, c: F.cross_entropy(x, _ones(x, len(x), 5, dtype=torch.int64)),
    "shares-weight": lambda x, c: F.cross_entropy(x, x, _ones(x, 4)),
    "shares-ignored": lambda x, c: F.cross_entropy(x, x, ignore_index=2),
    "margins-weight": lambda x, c: F.multi_margin_loss(x, c, weight=_ones(x, 4)),
    "margins-weight-kind": lambda x, c: F.multi_margin_loss(x, c, weight=_ones(x, 5).half()),
    "margins-rank": lambda x, c: F.multi_margin_loss(x, c[:, None]),
    "margins-more": lambda x, c: F.multi_margin_loss(x, _ones(x, len(x) + 1, dtype=torch.int64)),
    "margins-power": lambda x, c: F.multi_margin_loss(x, c, p=3),
    "labels-rows": lambda x, c: F.multilabel_margin_loss(x, _ones(x, len(x) + 1, 5, dtype=torch.int64)),
    "labels-columns": lambda x, c: F.multilabel_margin_loss(x, _ones(x, len(x), 4, dtype=torch.int64)),
    "labels-rank": lambda x, c: F.multilabel_margin_loss(x, c),
    "labels-kind": lambda x, c: F.multilabel_margin_loss(x, _ones(x, len(x), 5, dtype=torch.int32)),
    "labels-floats": lambda x, c: F.multilabel_margin_loss(x, x),
    "cosine-rank": lambda x, c: F.cosine_embedding_loss(x, x, c[:, None]),
    "cosine-columns": lambda x, c: F.cosine_embedding_loss(x, x[:, :4], c),
    "cosine-ranks": lambda x, c: F.cosine_embedding_loss(x, x[None], c),
    "cosine-point": lambda x, c: F.cosine_embedding_loss(x, x, c.new_ones(())),
    "ranking-rank": lambda x, c: F.margin_ranking_loss(x, x, c),
    "ranking-ranks": lambda x, c: F.margin_ranking_loss(x, x[None], x),
    "triplet-ranks": lambda x, c: F.triplet_margin_loss(x, x[None], x),
    "triplet-columns": lambda x, c: F.triplet_margin_loss(x, x[:, :3], x),
    "triplet-margin": lambda x, c: F.triplet_margin_loss(x, x, x, margin=-1.0),
    "multilabel-soft": lambda x, c: F.multilabel_soft_margin_loss(x, x[:, :3]),
}
_PAIRS: dict[str, Form] = {
    **{
        name: lambda x, y, name=name, **o: getattr(F, name)(x, y, **o)
        for name in (
            "binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss huber_loss "
            "soft_margin_loss kl_div poisson_nll_loss hinge_embedding_loss"
        ).split()
    },
    "gaussian_nll_loss": lambda x, y, **o: F.gaussian_nll_loss(x, y, torch.ones_like(x), **o),
}
_WRONG: dict[str, Form] = {
    "columns": lambda x, c: _ones(x, len(x), 4),
    "rows": lambda x, c: _ones(x, len(x) + 2, 5),
    "row": lambda x, c: _ones(x, len(x) + 2),
}
_STRICT: dict[str, Form] = {
    **_WRONG,
    "one-column": lambda x, c: x[:, :1],
    "flat": lambda x, c: x.flatten(),
    "rank": lambda x, c: x[None],
    "point": lambda x, c: x.new_ones(()),
}
_SPELLED: dict[str, Form] = {
    **{
        f"{name}-{what}-{how}": lambda x, c, loss=loss, y=y, how=how: loss(x.sigmoid(), y(x, c), reduction=how)
        for (name, loss), how in itertools.product(_PAIRS.items(), ("none", "sum", "mean"))
        for what, y in (_STRICT if "entropy" in name else _WRONG).items()
    },
    **{
        f"{name}-{how}": lambda x, c, loss=loss, how=how: loss(x.sigmoid(), x.sigmoid(), reduction=how)
        for (name, loss), how in itertools.product(_PAIRS.items(), ("", "average", "MEAN", "batch"))
    },
    **{
        f"{name}-weight-{n}": lambda x, c, name=name, n=n: _PAIRS[name](x.sigmoid(), x.sigmoid(), weight=_ones(x, n))
        for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits")
        for n in (3, 6)
    },
    "pos_weight": lambda x, c: F.binary_cross_entropy_with_logits(x, x, pos_weight=_ones(x, 4)),
    "huber-delta": lambda x, c: F.huber_loss(x, x, delta=0.0),
    "huber-delta-below": lambda x, c: F.huber_loss(x, x, delta=-1.0),
    "smooth-beta": lambda x, c: F.smooth_l1_loss(x, x, beta=-1.0),
    "gaussian-rank": lambda x, c: F.gaussian_nll_loss(x, x, _ones(x, 4)),
    "gaussian-number": lambda x, c: F.gaussian_nll_loss(x, x, -1.0),
}
_OTHERS: dict[str, Form] = {
    **{
        f"{name}-{dim}": lambda x, c, act=act, dim=dim: act(x, dim)
        for name, act in {
            "softmax": lambda x, dim: F.softmax(x, dim),
            "log_softmax": lambda x, dim: F.log_softmax(x, dim),
            "softmin": lambda x, dim: F.softmin(x, dim),
            "glu": lambda x, dim: F.glu(x, dim),
            "logsumexp": lambda x, dim: torch.logsumexp(x, dim),
            "logcumsumexp": lambda x, dim: torch.logcumsumexp(x, dim),
            "normalize": lambda x, dim: F.normalize(x, dim=dim),
            "gumbel": lambda x, dim: F.gumbel_softmax(x, dim=dim),
            "cosine": lambda x, dim: F.cosine_similarity(x, x, dim),
        }.items()
        for dim in (2, -3, 1 if name == "glu" else 7)
    },
    **{
        f"{name}-{p}-{training}": lambda x, c, name=name, p=p, training=training: getattr(F, name)(
            x, p, training=training
        )
        for name, p in itertools.product(
            ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d"), (-0.5, 1.5, float("nan"))
        )
        for training in (False, True)
    },
    "prelu-weights": lambda x, c: F.prelu(x, _ones(x, 4)),
    "prelu-kind": lambda x, c: F.prelu(x, _ones(x, 1).half()),
    "rrelu-bounds": lambda x, c: F.rrelu(x, 0.5, 0.25),
    "softshrink": lambda x, c: F.softshrink(x, -1.0),
    "gelu": lambda x, c: F.gelu(x, approximate="none "),
    "softmax-whole": lambda x, c: c[:, None].softmax(1, dtype=torch.int32),
    **{f"gelu-{act}": lambda x, c, act=act: getattr(F, act)(c) for act in ("gelu", "silu", "softplus", "elu", "mish")},
    "layer_norm": lambda x, c: F.layer_norm(x, (4,)),
    "layer_norm-weight": lambda x, c: F.layer_norm(x, (5,), _ones(x, 4)),
    "batch_norm": lambda x, c: F.batch_norm(x, _ones(x, 4), _ones(x, 4)),
    "batch_norm-weight": lambda x, c: F.batch_norm(x, None, None, _ones(x, 4), training=True),
    "group_norm": lambda x, c: F.group_norm(x, 2),
    "rms_norm": lambda x, c: F.rms_norm(x, (4,)),
    "linear": lambda x, c: F.linear(x, _ones(x, 3, 4)),
    "linear-kind": lambda x, c: F.linear(x, _ones(x, 3, 5).half()),
    "bilinear": lambda x, c: F.bilinear(x, x, _ones(x, 2, 5, 4)),
    "embedding": lambda x, c: F.embedding(x, _ones(x, 4, 2)),
    "embedding-bag": lambda x, c: F.embedding_bag(c, _ones(x, 5, 2)),
    "one_hot": lambda x, c: F.one_hot(x),
    "multinomial": lambda x, c: torch.multinomial(x, 6),
    "multinomial-0": lambda x, c: torch.multinomial(x.abs(), 0),
    "multinomial-rank": lambda x, c: torch.multinomial(x[None], 1),
    "multinomial-whole": lambda x, c: torch.multinomial(c[:, None], 1),
    "normal-shapes": lambda x, c: torch.normal(x, _ones(x, 4)),
    "normal-spread": lambda x, c: torch.normal(x, -1.0),
    "bernoulli": lambda x, c: x.bernoulli_(1.5),
    "exponential": lambda x, c: x.exponential_(-1.0),
    "geometric": lambda x, c: x.geometric_(1.5),
    "cauchy": lambda x, c: x.cauchy_(0, -1.0),
    "log_normal": lambda x, c: x.log_normal_(0, -1.0),
    "uniform": lambda x, c: x.uniform_(1, 0),
    "random": lambda x, c: x.random_(5, 5),
    "normal": lambda x, c: x.normal_(0, -1.0),
    **{
        f"whole-{name}": lambda x, c, name=name: getattr(c, name)()
        for name in ("normal_", "uniform_", "exponential_", "cauchy_", "log_normal_")
    },
    "binomial": lambda x, c: torch.binomial(c, c),
    "poisson-whole": lambda x, c: torch.poisson(c),
}


def _of(rows: int, form: Form) -> Callable[[torch.Tensor, torch.Tensor], Any]:
    return lambda x, c: form(x[:rows].clone(), c[:rows])


for _name, _forms in (("classes", _CLASSES), ("losses", _SPELLED), ("others", _OTHERS)):
    for _kind, _rows in (("none", (0,)), ("some", (3,))):
        add_refused(
            cases,
            f"of-{_kind}-{_name}",
            lambda d: (d.uniform(0.25, 0.75, 6, 5), d.integers(0, 4, 6)),
            {f"{key}-{rows}": _of(rows, form) for key, form in _forms.items() for rows in _rows},
            since="2.13",
        )
