"""Gradients at single points: zeros of products and norms, values that are equal, ends of domains and of bounds."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table

cases = Cases("conditions")
NAN, INF = float("nan"), float("inf")
# Rows that have something in common with a function's edge, each also as a vector and as a column.
_ROWS: dict[str, list[float]] = {
    "zero": [0.0],
    "minus-zero": [-0.0],
    "one": [1.0],
    "zeros": [0.0, 0.0, 0.0],
    "one-zero": [2.0, 0.0, -3.0, 0.5],
    "two-zeros": [2.0, 0.0, 0.0, -1.5],
    "equal": [1.5, 1.5, 1.5, 1.5],
    "ties": [1.0, 3.0, 3.0, -2.0, 1.0, -2.0],
    "two-nan": [1.0, NAN, 2.0, NAN],
    "minus-inf": [-INF, -INF],
    "ends": [-1.0, 1.0, 0.0, -0.0],
}
_ORDERS = (0, 0.5, 1, 2, 3, INF, -INF)
_MADE: dict[str, Any] = {
    "prod": lambda x: x.prod(),
    "prod-dim": lambda x: x.prod(-1),
    "prod-kept": lambda x: x.prod(0, keepdim=True),
    "cumprod": lambda x: x.cumprod(-1),
    "sum": lambda x: x.nansum() + x.nansum(-1).sum(),
    "mean": lambda x: x.nanmean(-1),
    **{f"norm-{order}": lambda x, order=order: torch.linalg.vector_norm(x, order) for order in _ORDERS},
    **{f"norm-dim-{order}": lambda x, order=order: torch.linalg.vector_norm(x, order, -1) for order in _ORDERS},
    "norm-old": lambda x: x.norm(),
    "norm-old-dim": lambda x: x.norm(2, -1, keepdim=True),
    "frobenius": lambda x: torch.linalg.matrix_norm(torch.atleast_2d(x)),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "cosine": lambda x: F.cosine_similarity(x, x.detach() + 1, dim=-1),
    "renorm": lambda x: torch.renorm(torch.atleast_2d(x), 2, 0, 1.0),
    "dist": lambda x: torch.dist(x, x.detach()),
    "std": lambda x: torch.std(x, correction=0),
    "std-dim": lambda x: x.std(-1, correction=0),
    "var": lambda x: x.var(-1, correction=0),
    "var_mean": lambda x: sum(torch.var_mean(x, -1, correction=0)),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "amax": lambda x: x.amax(),
    "amin": lambda x: x.amin(-1),
    "amax-kept": lambda x: x.amax((0, -1) if x.dim() > 1 else 0, keepdim=True),
    "median": lambda x: x.median(),
    "nanmedian": lambda x: x.nanmedian(),
    "logsumexp": lambda x: x.logsumexp(-1),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "maximum": lambda x: torch.maximum(x, x.flip(0)) + torch.minimum(x, x.roll(1)),
    "fmax": lambda x: torch.fmax(x, x.flip(0)) + torch.fmin(x, torch.zeros_like(x)),
    "maximum-itself": lambda x: torch.maximum(x, x.detach()),
    "clamp": lambda x: x.clamp(-1, 1) + x.clamp(min=0) + x.clamp(max=1.5),
    "clamp-crossed": lambda x: x.clamp(2, 1),
    "clamp-equal": lambda x: x.clamp(1.5, 1.5),
    "clamp-tensors": lambda x: torch.clamp(x, torch.zeros_like(x), torch.ones_like(x)),
    "sqrt": lambda x: x.abs().sqrt(),
    "rsqrt": lambda x: x.rsqrt(),
    "reciprocal": lambda x: 1 / x,
    "log": lambda x: x.log(),
    "log1p": lambda x: x.log1p(),
    "xlogy": lambda x: torch.xlogy(x, x.detach().abs()),
    "sinc": lambda x: torch.sinc(x),
    "acos": lambda x: torch.acos(x) + torch.asin(x) + torch.atanh(x),
    "acosh": lambda x: torch.acosh(x),
    "erfinv": lambda x: torch.erfinv(x),
    "logit": lambda x: torch.logit(x, 0.25),
    "atan2": lambda x: torch.atan2(x, torch.zeros_like(x)),
    "hypot": lambda x: torch.hypot(x, torch.zeros_like(x)),
    "logaddexp": lambda x: torch.logaddexp(x, x.detach()),
    "copysign": lambda x: torch.copysign(x, torch.full_like(x, -0.0)),
    "pow-0": lambda x: x**0 + x**1,
    "pow-half": lambda x: x.abs() ** 0.5,
    "pow-2": lambda x: x**2 + x**3.0,
    "pow-tensor": lambda x: torch.pow(x.detach().abs(), x),
    "pow-number": lambda x: torch.pow(0.0, x.abs()) + torch.pow(1.0, x),
    "relu": lambda x: F.relu(x) + F.relu6(x) + F.leaky_relu(x, 0.25) + F.threshold(x, 1.0, -7.0),
    "bent": lambda x: F.elu(x) + F.hardtanh(x) + F.hardsigmoid(x) + F.softshrink(x, 1.0),
    "smooth": lambda x: F.gelu(x) + F.silu(x) + F.mish(x) + F.softplus(x) + F.logsigmoid(x),
    "prelu": lambda x: F.prelu(x, torch.zeros((1,), device=x.device, dtype=x.dtype)),
    "abs": lambda x: x.abs() + x.sgn() * x,
    "losses": lambda x: (
        F.l1_loss(x, x.detach()) + F.huber_loss(x, x.detach() + 1) + F.smooth_l1_loss(x, x.detach() - 1)
    ),
    "bce": lambda x: F.binary_cross_entropy(x.clamp(0, 1), torch.ones_like(x)),
    "bce-logits": lambda x: F.binary_cross_entropy_with_logits(x, torch.zeros_like(x), reduction="none"),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:], eps=0.5),
    "masked": lambda x: torch.where(x > 0, x.log(), x * 0),
    "nan_to_num": lambda x: x.nan_to_num(nan=2.0),
    "frac": lambda x: x.frac() + x.remainder(1.0) + x.fmod(1.0),
    "det": lambda x: torch.linalg.det(torch.diag(x.reshape(-1))),
    "dot": lambda x: torch.dot(x.reshape(-1), x.reshape(-1)),
}
# Of values that are equal and have one place each, which is chosen is open; of these a place is asked for.
_PLACED: dict[str, Any] = {
    "max-dim": lambda x: x.max(-1)[0],
    "min-dim": lambda x: x.min(0)[0],
    "median-dim": lambda x: x.median(-1)[0],
    "kthvalue": lambda x: x.kthvalue(1, -1)[0],
    "sort": lambda x: x.sort(dim=-1, stable=True)[0],
    "topk": lambda x: x.topk(1, -1)[0],
    "cummax": lambda x: x.cummax(-1)[0],
    "max_pool": lambda x: F.max_pool1d(x.reshape(1, 1, -1), 2, 1, 1),
    "adaptive_max": lambda x: F.adaptive_max_pool1d(x.reshape(1, 1, -1), 1),
    "mode": lambda x: x.mode(-1)[0],
}
_UNLIKE = ("zero", "one", "one-zero", "minus-zero")
# What has an answer for numbers that are none, and for what is below every number.
_OF_ROW = {
    "two-nan": ("sum", "mean", "nanmedian", "nan_to_num"),
    "minus-inf": ("logsumexp", "logaddexp", "softmax", "log_softmax", "amax", "logcumsumexp"),
}
# In half precision their least number is 0, or beyond all.
_FLOAT_ALONE = ("normalize", "bce", "det", "cosine", "logcumsumexp")
_SHAPED: dict[str, Any] = {
    "vector": lambda x: x,
    "row": lambda x: x[None],
    "column": lambda x: x[:, None],
    "rows": lambda x: torch.stack([x, x.flip(0), x]),
    "none": lambda x: x[0],
}


def _allowed(row: str, name: str, shape: str, dtype: torch.dtype) -> bool:
    if name not in _OF_ROW.get(row, (name,)) or (name, shape) in (("layer_norm", "none"), ("topk", "none")):
        return False
    if dtype == torch.float16:
        return shape == "vector" and name not in _FLOAT_ALONE
    return row in ("zero", "one", "two-zeros", "ends") or shape in ("vector", "rows")


for _dtype in (torch.float32, torch.float16):
    for _row, _values in _ROWS.items():
        add_table(
            cases,
            f"points-{_row}-{str(_dtype)[6:]}",
            {
                f"{name}-{shape}": lambda x, form=form, cut=cut: derived(form, cut(x))
                for name, form in {**_MADE, **(_PLACED if _row in _UNLIKE else {})}.items()
                for shape, cut in _SHAPED.items()
                if _allowed(_row, name, shape, _dtype)
            },
            lambda d, values=_values, dtype=_dtype: (torch.tensor(values, dtype=dtype),),
            factor=16.0,
        )
# Complex numbers at 0, where an absolute value has a corner.
add_table(
    cases,
    "points-complex",
    {
        "abs": lambda x: derived(torch.abs, x),
        "sgn": lambda x: derived(torch.sgn, x),
        "square": lambda x: derived(lambda y: (y * y.conj()).real, x),
        "norm": lambda x: derived(lambda y: torch.linalg.vector_norm(y), x),
        "norm-zeros": lambda x: derived(lambda y: torch.linalg.vector_norm(y), x[:2]),
        "prod": lambda x: derived(lambda y: y.prod(), x),
        "prod-one-zero": lambda x: derived(lambda y: y.prod(0), x[1:]),
        "cumprod": lambda x: derived(lambda y: y.cumprod(0), x[1:]),
        "real": lambda x: derived(lambda y: y.real.abs() + y.imag.relu(), x),
    },
    lambda d: (torch.tensor([0, 0, 1 + 2j, -1j, 3], dtype=torch.complex64),),
    factor=16.0,
)
