"""Rows, windows and batches of very unlike size in one tensor: each is judged by its own scale, and none by another's.

A sum that runs over all of them (a prefix sum, one scale for all, a shared exponent) loses the small ones.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf
from device_suite.limits import add_table

cases = Cases("conditions")
_SCALES = (1e7, 1e-3, 1.0, 0.0, 1e4, 1e-6)
_HALF_SCALES = (1e3, 2e-2, 1.0, 0.0, 30.0, 0.1)


def _scaled(d: Any, scales: tuple[float, ...], *shape: int) -> torch.Tensor:
    """Draw positive values, times one scale for each first place: what is added does not cancel."""
    return d.uniform(0.5, 1.5, len(scales), *shape) * torch.tensor(scales).reshape(-1, *(1,) * len(shape))


def _blocks(x: torch.Tensor) -> torch.Tensor:
    """Return rows one after the other in one line: (rows, width) as (1, 1, rows * width)."""
    return x.reshape(1, 1, -1)


# x of (6, 16): each answer has the six rows first.
_ROWS: dict[str, Any] = {
    "sums": lambda x: [x.sum(1), x.mean(1), x.nansum(1), x.cumsum(1), x.mT.sum(0), x.mT.cumsum(0).mT],
    "spread": lambda x: [x.std(1), x.var(1), x.diff(dim=1), x.amax(1) - x.amin(1), x.median(1)[0]],
    "norms": lambda x: [torch.linalg.vector_norm(x, p, 1) for p in (1, 2, 3, float("inf"))],
    "normed": lambda x: [
        F.layer_norm(x, (16,)),
        F.rms_norm(x, (16,)),
        F.normalize(x, dim=1, eps=1e-4),
        F.group_norm(x, 2),
    ],
    "per_batch": lambda x: [F.instance_norm(x[:, None]), F.local_response_norm(x[:, :, None], 3)],
    "soft": lambda x: [x.softmax(1), x.log_softmax(1), x.logsumexp(1), F.softmin(x, 1)],
    "ordered": lambda x: [x.sort(1)[0], x.topk(3, 1)[0], x.cummax(1)[0], x.mT.sort(0)[0].mT, x.kthvalue(2, 1)[0]],
    "products": lambda x: [x @ x[2], x @ x[2:3].mT, F.linear(x, x[2].expand(3, 16)), x[:, None] @ x[:, :, None]],
    "batched": lambda x: [torch.bmm(x.reshape(6, 4, 4), x.reshape(6, 4, 4)), torch.einsum("bi,bi->b", x, x)],
    "attended": lambda x: F.scaled_dot_product_attention(
        x.clamp(max=1).reshape(6, 4, 4), x.clamp(max=1).reshape(6, 4, 4), x.reshape(6, 4, 4)
    ),
    "averaged": lambda x: [
        F.avg_pool1d(x[:, None], 4),
        F.avg_pool1d(x[:, None], 3, 1, 1),
        F.avg_pool2d(x.reshape(6, 1, 4, 4), 2),
        F.adaptive_avg_pool1d(x[:, None], 5),
    ],
    "convolved": lambda x: [
        F.conv1d(x[:, None], torch.ones_like(x[:1, None, :3])),
        F.conv2d(x.reshape(6, 1, 4, 4), torch.ones_like(x[:1, :9]).reshape(1, 1, 3, 3), padding=1),
        F.conv1d(x[None], torch.ones_like(x[:, None, :3]), groups=6)[0],
        F.conv_transpose1d(x[:, None], torch.ones_like(x[:1, None, :3]), stride=2),
    ],
    "resized": lambda x: [
        F.interpolate(x[:, None], 29, mode="linear"),
        F.interpolate(x.reshape(6, 1, 4, 4), (7, 3), mode="bilinear"),
        F.interpolate(x.reshape(6, 1, 4, 4), (7, 5), mode="area"),
    ],
    "distances": lambda x: F.pairwise_distance(x, x * 3),
    "distances-each": lambda x: torch.cdist(x[:, None], x[:, None] * 3),
    "quantiles": lambda x: [x.quantile(0.5, 1), x.nanquantile(0.25, 1)],
    "integrated": lambda x: [torch.trapezoid(x, dim=1), torch.cumulative_trapezoid(x, dim=1)],
    "fourier": lambda x: torch.view_as_real(torch.fft.rfft(x, dim=1)),
    "losses": lambda x: [F.smooth_l1_loss(x, x * 3, reduction="none"), F.l1_loss(x, x * 3, reduction="none")],
}
# x of (6, 16) again; the answers have the six blocks first, which lay beside one another in one line or one table.
_BLOCKS: dict[str, Any] = {
    "averaged": lambda x: [
        F.avg_pool1d(_blocks(x), 16).reshape(6),
        F.avg_pool1d(_blocks(x), 4).reshape(6, 4),
        F.avg_pool2d(x[None, None], (1, 16)).reshape(6),
        F.avg_pool2d(x.mT[None, None], (8, 1)).reshape(2, 6).mT,
        F.adaptive_avg_pool1d(_blocks(x), 6).reshape(6),
        F.interpolate(_blocks(x), 6, mode="area").reshape(6),
    ],
    "windows": lambda x: [x.flatten().unfold(0, 16, 16).sum(1), F.unfold(x[None, None], (1, 16)).sum(1).reshape(6)],
    "gathered": lambda x: [
        torch.zeros_like(x[:, 0]).index_add(0, _owner(x), x.flatten()),
        torch.zeros_like(x[:, 0]).scatter_add(0, _owner(x), x.flatten()),
        torch.zeros_like(x[:, 0]).scatter_reduce(0, _owner(x), x.flatten(), "mean", include_self=False),
        torch.zeros_like(x[:, 0]).index_put((_owner(x),), x.flatten(), accumulate=True),
        torch.bincount(_owner(x), x.flatten()),
    ],
    "bags": lambda x: [
        F.embedding_bag(
            torch.arange(96, device=x.device),
            x.reshape(96, 1).expand(96, 4).contiguous(),
            torch.arange(0, 96, 16, device=x.device),
            mode=mode,
        )
        for mode in ("sum", "mean", "max")
    ],
    "segments": lambda x: torch.segment_reduce(
        x.flatten(), "sum", lengths=torch.full((6,), 16, device=x.device), unsafe=True
    ),
    "derived": lambda x: _derived_weights(x),
}


def _owner(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(6, device=x.device).repeat_interleave(16)


def _derived_weights(x: torch.Tensor) -> Any:
    """Return the gradients of a table and of a linear layer, which add over places that lie apart."""
    table = leaf(torch.zeros(6, 1, dtype=x.dtype, device=x.device))
    weight = leaf(torch.zeros(6, 16, dtype=x.dtype, device=x.device))
    backward(F.embedding(_owner(x), table), table, grad=x.reshape(96, 1))
    backward(F.linear(x[2:3], weight), weight, grad=x.sum(1)[None])
    return [table.grad, weight.grad]


def _apart(forms: dict[str, Any]) -> dict[str, Any]:
    """Return the forms, their answers cut into rows, each a leaf of its own."""

    def cut(form: Any) -> Any:
        def answer(x: torch.Tensor) -> Any:
            answers = form(x)
            return [list(one.unbind(0)) for one in (answers if isinstance(answers, list) else [answers])]

        return answer

    return {name: cut(form) for name, form in forms.items()}


for _name, _forms in (("rows", _ROWS), ("blocks", _BLOCKS)):
    for _dtype in (torch.float32, torch.float16, torch.bfloat16):
        add_table(
            cases,
            f"apart-{_name}-{str(_dtype)[6:]}",
            _apart(_forms),
            lambda d, dtype=_dtype: (
                _scaled(d, _SCALES if dtype == torch.float32 else _HALF_SCALES, 16).roll(d.k, 0).to(dtype),
            ),
            terms=16,
            factor=16.0,
            floor=0.0,
            deterministic=False,
        )
