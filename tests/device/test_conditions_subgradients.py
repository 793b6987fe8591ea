"""Where a derivative jumps, ends or is shared: at zero, at a bound, between equals; and each value by its own scale."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf
from device_suite.limits import add_table

cases = Cases("conditions")


def _derived(form: Any, *operands: torch.Tensor) -> Any:
    starts = [leaf(one) for one in operands]
    y = form(*starts)
    ramp = torch.arange(y.numel(), device=y.device).reshape(y.shape).to(y.dtype) % 5 + 1
    return backward(y, *starts, grad=ramp)


# x holds -3, -1, -1/2, -0, 0, 1/2, 1, 3 and 6 in every row.
_POINTS = (-3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0)
_BENT: dict[str, Any] = {
    "abs": torch.abs,
    "sign": torch.sign,
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.25),
    "elu": F.elu,
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 0.5),
    "prelu": lambda x: F.prelu(x, x.new_full((1,), 0.25)),
    "hardtanh": F.hardtanh,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.5, -2.0),
    "clamp": lambda x: x.clamp(-1, 1),
    "clamp_min": lambda x: x.clamp_min(0),
    "clamp_tensors": lambda x: x.clamp(x.new_full(x.shape, -1), x.new_full(x.shape, 0.5)),
    "round": torch.round,
    "floor": torch.floor,
    "frac": torch.frac,
    "remainder": lambda x: torch.remainder(x, 0.5),
    "fmod": lambda x: torch.fmod(x, 1.0),
    "maximum": lambda x: torch.maximum(x, x.new_full(x.shape, 0.5)),
    "minimum": lambda x: torch.minimum(x, x.flip(0)),
    "fmax": lambda x: torch.fmax(x, x.roll(1, 0)),
    "amax": lambda x: x.amax(0),
    "amin": lambda x: x.amin((0, 1)),
    "max": lambda x: x.max(),
    "norm-1": lambda x: torch.linalg.vector_norm(x, 1, 1),
    "norm-inf": lambda x: torch.linalg.vector_norm(x, float("inf"), 1),
    "square": torch.square,
    "power-2": lambda x: x**2,
    "power-1": lambda x: x**1,
    "power-0": lambda x: x**0,
    "power-3": lambda x: torch.pow(x, 3.0),
    "power-tensor": lambda x: torch.pow(x.abs(), torch.tensor(2.0, device=x.device)),
    "number-power": lambda x: torch.pow(0.0, x.abs()),
    "prod": lambda x: x.prod(1),
    "prod-one-zero": lambda x: x[:, 4:].prod(1),
    "prod-all": lambda x: x[:, 5:].prod(),
    "cumprod": lambda x: x.cumprod(1),
    "cumprod-one-zero": lambda x: x[:, 4:].cumprod(1),
    "xlogy": lambda x: torch.xlogy(x.clamp_min(0), x.detach().abs() + 1),
    "huber": lambda x: F.huber_loss(x, x.new_zeros(x.shape), reduction="none"),
    "smooth_l1": lambda x: F.smooth_l1_loss(x, x.new_zeros(x.shape), reduction="none", beta=0.5),
    "l1": lambda x: F.l1_loss(x, x.new_zeros(x.shape), reduction="none"),
    "hinge": lambda x: F.hinge_embedding_loss(x, x.new_full(x.shape, -1), reduction="none"),
    "margin": lambda x: F.margin_ranking_loss(x, x.new_zeros(x.shape), torch.ones_like(x), reduction="none"),
    "where": lambda x: torch.where(x > 0, x * 2, x.abs()),
    "masked": lambda x: x.masked_fill(x == 0, 7.0) * x,
    "hypot": lambda x: torch.hypot(x[:, 4:] + 1, x[:, 4:]),
    "atan2": lambda x: torch.atan2(x[:, 5:], x[:, 5:] * 0),
    "copysign": lambda x: torch.copysign(x[:, 5:], x[:, :4].detach()),
    "max_pool": lambda x: F.max_pool1d(x[:, None], 2),
    "median": lambda x: x[:, [0, 2, 4, 6, 8]].median(1)[0],
    "diff": lambda x: x.diff(dim=1).abs(),
    "layer_norm": lambda x: F.layer_norm(x * 0 + 2, (9,)),
    "normalize": lambda x: F.normalize(x * 0 + x.detach().sign().abs() - 1, dim=1, eps=0.5),
    "logsumexp": lambda x: torch.logsumexp(x.masked_fill(x > 0, float("-inf")), 1),
    "softmax": lambda x: x.masked_fill(x > 0, float("-inf")).softmax(1),
}
for _dtype in (torch.float32, torch.bfloat16):
    add_table(
        cases,
        f"kinks-{str(_dtype)[6:]}",
        {name: lambda x, form=form: _derived(form, x) for name, form in _BENT.items()},
        lambda d, dtype=_dtype: (torch.tensor(_POINTS).repeat(3, 1).to(dtype),),
        factor=16.0,
        deterministic=False,
    )

# Each value on its own: what is small beside others is as exact as they are.
_SMALL = (1e-6, 3e-4, 0.02, 0.3)
_EVERY = (-40.0, -9.0, -1.7, *(-one for one in _SMALL), *_SMALL, 1.7, 9.0, 40.0)
_UNIT = (*(-one for one in _SMALL), -0.999, *_SMALL, 0.999)
_POSITIVE = (*_SMALL, 0.9999, 1.0001, 1.7, 9.0, 300.0)
# Between the poles of the gamma function, where its sign and that of sin(pi x) change, and away from its zeros.
_REFLECTED = (-0.25, -0.6, -1.25, -1.75, -2.25, -2.9, -3.5, -4.5, -5.25, -6.75, -33.25, -100.5)
_EACH: dict[str, tuple[Any, tuple[float, ...]]] = {
    **{
        name: (getattr(torch, name), _EVERY)
        for name in ("exp", "exp2", "expm1", "tanh", "sigmoid", "erf", "atan", "asinh", "sinh", "abs", "square", "neg")
    },
    **{
        name: (getattr(torch, name), _UNIT) for name in ("asin", "acos", "atanh", "erfinv", "sin", "cos", "tan", "sinc")
    },
    **{
        name: (getattr(torch, name), _POSITIVE)
        for name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "lgamma", "digamma", "erfc")
    },
    "gamma": (lambda x: [torch.lgamma(x), torch.special.gammaln(x)], _REFLECTED),
    "digamma-negative": (lambda x: [torch.digamma(x), torch.special.psi(x)], _REFLECTED[:-2]),
    "trigamma": (lambda x: torch.polygamma(1, x), _REFLECTED[:-2]),
    "large": (lambda x: [torch.sin(x), torch.cos(x)], (10.0, 100.5, 1000.25, -333.0)),
    "acosh": (torch.acosh, (1.001, 1.5, 9.0, 1e4)),
    "logaddexp": (lambda x: torch.logaddexp(x, -x), _EVERY),
    "softplus": (F.softplus, _EVERY[1:-1]),
    "logsigmoid": (F.logsigmoid, _EVERY),
    "silu": (F.silu, _EVERY),
    "gelu": (F.gelu, _EVERY[2:]),
    "mish": (F.mish, _EVERY[1:]),
    "elu": (F.elu, _EVERY),
    "selu": (F.selu, _EVERY),
    "tanhshrink": (F.tanhshrink, _EVERY[:3] + _EVERY[-4:]),
    "logit": (torch.logit, (1e-6, 3e-4, 0.02, 0.3, 0.9)),
    "pow": (lambda x: [x.abs() ** 0.5, x.abs() ** 1.5, x.abs() ** -1, x**3, 2.0**x], _EVERY[1:-1]),
    "quotients": (lambda x: [x / 3, 1 / x, x / 1e6, torch.div(x, 7)], _EVERY),
    "xlog1py": (lambda x: torch.special.xlog1py(x, x.abs()), _EVERY),
    "entr": (torch.special.entr, _POSITIVE),
    "i0": (lambda x: [torch.i0(x), torch.special.i0e(x), torch.special.i1(x), torch.special.i1e(x)], _EVERY[1:-1]),
    "log_ndtr": (lambda x: [torch.special.log_ndtr(x), torch.special.ndtr(x)], _EVERY[1:-1]),
    "zeta": (lambda x: torch.special.zeta(x + 2, 1.5), _POSITIVE[:-1]),
}
add_table(
    cases,
    "each-value",
    {
        name: lambda x, form=form, points=points: [
            list(one.unbind(0)) for one in _listed(form(torch.tensor(points, device=x.device, dtype=x.dtype)))
        ]
        for name, (form, points) in _EACH.items()
    },
    lambda d: (d.normal(1),),
    factor=64.0,
    floor=0.0,
    terms=1,
)


def _listed(answer: Any) -> list[torch.Tensor]:
    return answer if isinstance(answer, list) else [answer]
