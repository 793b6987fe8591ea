"""Layouts of losses and distances, forward and backward, in every reduction."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.layout_cases import add_layout_cases
from device_suite.ops import FLOATS, Arg, Op

cases = Cases("layouts")
REDUCTIONS = ("mean", "sum", "none")


def _loss(name: str, *args: Any, options: Any = None, call: Any = None, **fields: Any) -> None:
    def act(*operands: Any) -> Any:
        function = call or getattr(F, name)
        return [function(*operands, reduction=reduction, **(options or {})) for reduction in REDUCTIONS]

    operands = tuple(arg if isinstance(arg, Arg) else Arg(arg) for arg in args)
    label = fields.pop("label", name)
    add_layout_cases(
        cases,
        Op(name=label, args=operands, forms=(act,), **{"terms": 64, "factor": 32, "dtypes": FLOATS[:1], **fields}),
    )


_CLASS = Arg("r", lambda d, dtype, shape: d.integers(0, 7, *shape), torch.int64)
_PIXEL = Arg("b h w", lambda d, dtype, shape: d.integers(0, 3, *shape), torch.int64)
_SIGN = Arg("r", lambda d, dtype, shape: d.integers(0, 2, *shape) * 2.0 - 1)
_SHARE = Arg("r n", "inner")
_WEIGHT = Arg("n", "positive")

_loss("mse_loss", "r n", "r n", dtypes=FLOATS)
_loss("l1_loss", "r n", "r n", dtypes=FLOATS)
_loss("smooth_l1_loss", "r n", "r n", options={"beta": 0.7}, dtypes=FLOATS)
_loss("huber_loss", "r n", "r n", options={"delta": 0.7}, dtypes=FLOATS)
_loss("binary_cross_entropy", _SHARE, _SHARE, grads=(0,))
_loss("binary_cross_entropy_with_logits", "r n", _SHARE, dtypes=FLOATS, grads=(0,))
_loss(
    "binary_cross_entropy_with_logits",
    "r n",
    _SHARE,
    label="bce_weighted",
    grads=(0,),
    call=lambda x, y, reduction: F.binary_cross_entropy_with_logits(
        x, y, weight=y + 1, pos_weight=y[0] + 2, reduction=reduction
    ),
)
_loss("kl_div", "r n", _SHARE, dtypes=FLOATS)
_loss("soft_margin_loss", "r n", Arg("r n", lambda d, dtype, shape: d.integers(0, 2, *shape) * 2.0 - 1), grads=(0,))
_loss("hinge_embedding_loss", "r n", Arg("r n", lambda d, dtype, shape: d.integers(0, 2, *shape) * 2.0 - 1), grads=(0,))
_loss("poisson_nll_loss", "r n", _SHARE, grads=(0,))
_loss("gaussian_nll_loss", "r n", "r n", Arg("r n", "positive"), grads=(0, 1))
_loss("cosine_embedding_loss", "r n", "r n", _SIGN, options={"margin": 0.1}, grads=(0, 1))
_loss("margin_ranking_loss", "r", "r", _SIGN, options={"margin": 0.1}, grads=(0, 1))
_loss("triplet_margin_loss", "r n", "r n", "r n")
_loss("multi_margin_loss", "r n", _CLASS, grads=(0,))
_loss("multilabel_soft_margin_loss", "r n", Arg("r n", lambda d, dtype, shape: d.bools(*shape).float()), grads=(0,))
_loss("nll_loss", "r n", _CLASS, dtypes=FLOATS, tall=False)
_loss("nll_loss", "r n", _CLASS, _WEIGHT, label="nll_loss_weighted", grads=(0,))
_loss("cross_entropy", "r n", _CLASS, dtypes=FLOATS)
_loss("cross_entropy", "r n", _CLASS, _WEIGHT, label="cross_entropy_weighted", grads=(0,))
_loss("cross_entropy", "b c h w", _PIXEL, label="cross_entropy_pixels", dtypes=FLOATS[:2], expanded=False)
# The CPU refuses a gradient for a strided image here.
_loss("nll_loss", Arg("b c h w", fixed=True), _PIXEL, label="nll_loss_pixels", expanded=False)
_loss("cross_entropy", "r n", _SHARE, label="cross_entropy_shares", grads=(0,))
_loss("cross_entropy", "r n", _CLASS, label="cross_entropy_smooth", options={"label_smoothing": 0.2, "ignore_index": 3})
_loss("cross_entropy", "r n", _CLASS, label="cross_entropy_ignoring", options={"ignore_index": 2})


def _distances(x: Any, y: Any) -> Any:
    return [
        F.cosine_similarity(x, y),
        F.cosine_similarity(x, y, dim=0),
        F.pairwise_distance(x, y),
        torch.cdist(x, y, p=1.0),
    ]


add_layout_cases(
    cases, Op("distances", (Arg("r n"), Arg("r n")), (_distances,), terms=64, factor=32, dtypes=FLOATS[:1])
)
add_layout_cases(
    cases,
    Op(
        "pdist",
        (Arg("r n", fixed=True),),
        (lambda x: F.pdist(x.contiguous()),),
        terms=64,
        factor=32,
        dtypes=FLOATS[:1],
        expanded=False,
    ),
)


def _aligned(logits: Any) -> Any:
    targets = torch.tensor([[1, 2, 2], [3, 1, 0]], device=logits.device)
    lengths = torch.tensor([9, 8]), torch.tensor([3, 2])
    scores = F.log_softmax(logits, -1)
    return [F.ctc_loss(scores, targets, *lengths, reduction=reduction) for reduction in REDUCTIONS]


add_layout_cases(
    cases, Op("ctc_loss", (Arg("9 2 n"),), (_aligned,), terms=256, factor=32, dtypes=FLOATS[:1], expanded=False)
)
