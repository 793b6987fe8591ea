"""Views whose strides multiply past 2**16, kernels longer than 256, and orders among values that repeat."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table

cases = Cases("conditions")


# How 1031 rows of two or three things of 40 numbers lie: the view's shape is (1031, 2, 40).
_VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "swapped": lambda x: x[:, :1031, :40].contiguous().transpose(0, 1),
    "columns": lambda x: x[:, :1031, 3:43].transpose(0, 1),
    "turned": lambda x: x[:, :1031, :40].permute(2, 0, 1).contiguous().permute(2, 1, 0),
    "stepped": lambda x: x[:, ::2, ::2].transpose(0, 1)[:1031, :, :40],
    "expanded": lambda x: x[:1, :1031, :40].expand(2, -1, -1).transpose(0, 1),
}
# x is such a view, w of (40, 40), i some of its rows.
_CONSUMERS: dict[str, Callable[..., Any]] = {
    "linear": lambda x, w, i: [F.linear(x, w), F.linear(x, w, w[0]), F.linear(x[:, 0], w)],
    "products": lambda x, w, i: [
        x @ w,
        torch.bmm(x[:9], w.expand(9, 40, 40)),
        x[:, 1] @ w,
        torch.einsum("abc,cd->bd", x, w),
    ],
    "derived": lambda x, w, i: derived(lambda x, w: F.linear(x, w, w[0]), x, w),
    "norms": lambda x, w, i: [F.layer_norm(x, (40,), w[0], w[1]), F.group_norm(x, 2), F.normalize(x, dim=-1)],
    "norm_derived": lambda x, w, i: derived(lambda x, g, b: F.layer_norm(x, (40,), g, b), x, w[0], w[1]),
    "softmax": lambda x, w, i: [x.softmax(dim) for dim in (0, 1, 2)],
    "sums": lambda x, w, i: [[x.sum(dim), x.mean(dim), x.amax(dim), x.var(dim), x.logsumexp(dim)] for dim in (0, 1, 2)],
    "pointwise": lambda x, w, i: [x + w[0], x * x, x.exp(), F.gelu(x), torch.where(x > 0, x, w[1]), x.clamp(-1, 1)],
    "joined": lambda x, w, i: [
        torch.cat([x, x], 1),
        torch.stack([x, x], 2),
        torch.cat([x, w[:, None].expand(40, 2, 40)]),
    ],
    "copied": lambda x, w, i: [x.contiguous(), x.clone(), x.reshape(-1, 80), x.flatten(1), x.half(), x.flip(0)],
    "picked": lambda x, w, i: [
        x[i],
        x.index_select(0, i),
        x[:, :, i % 40],
        x.gather(0, i[:, None, None].expand(-1, 2, 40)),
    ],
    "written": lambda x, w, i: [x.index_add(0, i, x[:9]), x.index_copy(0, i, x[-9:]), x.masked_fill(x > 1, 0.5)],
    "scanned": lambda x, w, i: [x.cumsum(0), x.cumsum(2), x.diff(dim=0)],
    "sorted": lambda x, w, i: [x.sort(0)[0], x.topk(5, 2)[0], x.argmax(2), x.kthvalue(7, 0)[0]],
    "convolved": lambda x, w, i: [F.conv1d(x, w[:2, :3].expand(-1, -1)[:, None].repeat(1, 2, 1)), F.avg_pool1d(x, 3)],
    "attended": lambda x, w, i: F.scaled_dot_product_attention(*(x.transpose(0, 1)[:, None, :99],) * 3),
    "in_place": lambda x, w, i: [x.clone().add_(w[0]), x.clone().mul_(x), x.contiguous().copy_(x * 2)],
}


def _viewed(cut: Any) -> dict[str, Any]:
    return {name: lambda x, w, i, form=form: form(cut(x), w, i) for name, form in _CONSUMERS.items()}


for _name, _cut in _VIEWS.items():
    add_table(
        cases,
        f"spread-{_name}",
        _viewed(_cut),
        lambda d: (d.distinct(2, 2063, 83) / 131072, d.normal(40, 40, scale=0.3), d.permutation(1031)[:9]),
        terms=2062,
        factor=16.0,
        deterministic=False,
    )

# x of (2, 1, 1500), k of (1, 1, 499).
_LONG: dict[str, Callable[..., Any]] = {
    "one": lambda x, k: F.conv1d(x, k),
    "short": lambda x, k: F.conv1d(x[..., :1024], k[..., :257]),
    "padded": lambda x, k: [F.conv1d(x, k, padding=249), F.conv1d(x, k, padding="same")],
    "stepped": lambda x, k: [F.conv1d(x, k, stride=3), F.conv1d(x, k[..., :300], dilation=3)],
    "grouped": lambda x, k: F.conv1d(x.expand(2, 3, -1), k.repeat(3, 1, 1), groups=3),
    "wide": lambda x, k: F.conv1d(x.repeat(1, 3, 1), k.repeat(4, 3, 1)),
    "transposed": lambda x, k: F.conv_transpose1d(x[..., :1030], k),
    "lines": lambda x, k: F.conv2d(x[:, :, None], k[:, :, None]),
    "columns": lambda x, k: F.conv2d(x[..., None], k[..., None]),
    "whole": lambda x, k: F.conv1d(x[..., :499], k),
    "derived": lambda x, k: derived(F.conv1d, x, k),
    "grouped_derived": lambda x, k: derived(
        lambda x, k: F.conv1d(x.repeat(1, 2, 1), k.repeat(2, 1, 1), groups=2), x, k
    ),
    "pooled": lambda x, k: [F.avg_pool1d(x, 499), F.max_pool1d(x, 499, 7), F.lp_pool1d(x.abs() + 1, 2, 300)],
    "unfolded": lambda x, k: x.unfold(2, 499, 100) * 2,
}
add_table(
    cases,
    "spread-kernels",
    _LONG,
    lambda d: (d.normal(2, 1, 1500), d.normal(1, 1, 499)),
    terms=1500,
    factor=16.0,
    deterministic=False,
)

# x repeats its values: which place is found is open, the value is not.
_RANKED: dict[str, Callable[..., Any]] = {
    "least": lambda x: [[x.min(dim)[0], x.amin(dim)] for dim in (0, 1)],
    "greatest": lambda x: [[x.max(dim)[0], x.amax(dim)] for dim in (0, 1)],
    "all": lambda x: [x.min(), x.max(), x.amin(), x.amax(), *x.aminmax()],
    "ends": lambda x: [torch.aminmax(x, dim=dim) for dim in (0, 1)],
    "so_far": lambda x: [[x.cummax(dim)[0], x.cummin(dim)[0]] for dim in (0, 1)],
    "sorted": lambda x: [[x.sort(dim)[0], x.sort(dim, descending=True)[0], x.msort()] for dim in (0, 1)],
    "stable": lambda x: [x.sort(stable=True, dim=dim) for dim in (0, 1)],
    "first": lambda x: [[x.topk(3, dim)[0], x.topk(3, dim, largest=False)[0]] for dim in (0, 1)],
    "middle": lambda x: [[x.median(dim)[0], x.kthvalue(2, dim)[0]] for dim in (0, 1)],
    "found": lambda x: [x.unique(), *x.unique(return_inverse=True, return_counts=True), x.unique_consecutive()],
    "counted": lambda x: [x.count_nonzero(), x.nonzero(), x.any(0), x.all(1), x.sum(0), x.flatten().sum(), x.prod(0)],
    "pairs": lambda x: [torch.maximum(x, x.flip(0)), torch.minimum(x, x.flip(0)), x.eq(x.flip(0)), x.ne(x.flip(1))],
}


def _repeating(d: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return a few values many times; one column and one row have no zero."""
    drawn = d.integers(0, 2 if dtype == torch.bool else 4, 6, 7)
    return drawn.index_fill_(1, torch.tensor([2]), 1).index_fill_(0, torch.tensor([3]), 1).to(dtype)


for _dtype in (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float32,
    torch.float16,
):
    add_table(
        cases,
        f"spread-ranked-{str(_dtype)[6:]}",
        _RANKED,
        lambda d, dtype=_dtype: (_repeating(d, dtype),),
    )
