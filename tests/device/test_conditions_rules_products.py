"""Rule 3: what is short in each operand and long in their product: differences, terms and places past 2**16.

A gradient of so many differences: https://github.com/pytorch/pytorch/issues/193099
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import ONCE

cases = Cases("conditions")
Form = Callable[..., Any]


def _distance(p: float) -> Form:
    return lambda x, y: derived(lambda a, b: torch.cdist(a, b, p, "donot_use_mm_for_euclid_dist"), x, y)


# x of (66, 17) and y of (61, 17): 68,442 differences.
_DIFFERENCES: dict[str, Form] = {
    **{f"cdist-{p}": _distance(p) for p in (0.5, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)},
    "cdist-product": lambda x, y: derived(lambda a, b: torch.cdist(a, b, 2.0, "use_mm_for_euclid_dist"), x, y),
    "cdist-batches": lambda x, y: derived(
        lambda a, b: torch.cdist(a[:, :16].reshape(3, 22, 16), b[:, None, :16].reshape(61, 16)[None], 1.5), x, y
    ),
    "pairwise": lambda x, y: derived(lambda a, b: F.pairwise_distance(a[:, None], b[None]), x, y),
    "cosine": lambda x, y: derived(lambda a, b: F.cosine_similarity(a[:, None], b[None], dim=-1), x, y),
    "losses": lambda x, y: [
        derived(lambda a, b, loss=loss: loss(a[:, None].expand(66, 61, 17), b[None].expand(66, 61, 17)), x, y)
        for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss)
    ],
    "triplets": lambda x, y: derived(
        lambda a, b: F.triplet_margin_loss(a[:, None], b[None], b.flip(0)[None], reduction="none"), x, y
    ),
}
# Terms: as many products of elements as the forms say, and places that are looked for among others.
_TERMS: dict[str, Form] = {
    "outer": lambda x, y: derived(torch.outer, x.flatten(), y[:5].flatten()),
    "kronecker": lambda x, y: derived(torch.kron, x[:9], y[:31]),
    "bilinear": lambda x, y: derived(lambda a, b: F.bilinear(a[:61], b, a[:51].view(3, 17, 17)), x, y),
    "einsum": lambda x, y: derived(lambda a, b: torch.einsum("ik,jk->ij", a.abs(), b), x, y),
    "tensordot": lambda x, y: derived(lambda a, b: torch.tensordot(a, b, dims=([1], [1])), x, y),
    "pairs": lambda x, y: derived(lambda a, b: torch.cartesian_prod(a.flatten()[:260], b.flatten()[:260]), x, y),
    "grid": lambda x, y: [one[::13, ::7] for one in torch.meshgrid(x.flatten(), y.flatten()[:90], indexing="ij")],
    "is-in": lambda x, y: [torch.isin(x, y), torch.isin(x, x.flip(0)), torch.isin(x.flatten()[5:], x.flatten()[:300])],
    "searched": lambda x, y: [
        torch.searchsorted(y.sort(1)[0], x[:61].repeat(1, 70)),
        torch.bucketize(x.repeat(1, 70), y.flatten().sort()[0]),
    ],
    "picked": lambda x, y: derived(lambda a, b: a[:, _places(a, 4000) % 17] * b[0, 0], x, y),
    "selected": lambda x, y: derived(lambda a, b: a.index_select(1, _places(a, 1000) % 17) * b[:1, :1], x, y),
    "looked-up": lambda x, y: derived(lambda a, b: F.embedding(_places(a, 4000) % 66, a) * b[0], x, y),
    "covariances": lambda x, y: derived(lambda a, b: torch.cov(a) + torch.corrcoef(b.repeat(2, 1)[:66]), x, y),
    "folded": lambda x, y: derived(lambda a, b: F.unfold(a.repeat(1, 6)[None, None], (7, 8)) * b[0, 0], x, y),
    "windows": lambda x, y: derived(lambda a, b: a.repeat(1, 6).unfold(0, 12, 1) * b[0, 0], x, y),
    "convolved": lambda x, y: derived(
        lambda a, b: F.conv2d(a[None, None], b[:60].reshape(12, 1, 5, 17)[..., :16]), x, y
    ),
    "where": lambda x, y: derived(lambda a, b: torch.where((a > 0)[:, None], a[:, None] * 2, b[None]), x, y),
    "lerp": lambda x, y: derived(lambda a, b: torch.lerp(a[:, None], b[None], 0.25), x, y),
    "addcmul": lambda x, y: derived(lambda a, b: torch.addcmul(a[:, None], a[:, None], b[None], value=0.5), x, y),
    "binary": lambda x, y: [
        derived(lambda a, b, form=form: form(a[:, None], b[None]), x, y)
        for form in (torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.fmin, torch.atan2, torch.hypot)
    ],
}


def _places(x: torch.Tensor, count: int) -> torch.Tensor:
    return torch.arange(count, device=x.device) * 7


for _name, _table in (("differences", _DIFFERENCES), ("terms", _TERMS)):
    for _key, _form in _table.items():
        cases.add(
            f"threshold-{_name}-{_key}",
            _form,
            make=lambda d: (d.normal(66, 17) + 0.03, d.normal(61, 17)),
            terms=1 << 18,  # a gradient of one element adds up those of all products with it
            factor=16.0,
            floor=1.0,
            states=ONCE,
            may_be_missing=True,
            deterministic=False,
        )
