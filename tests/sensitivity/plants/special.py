"""Error and gamma functions, exp and log in half precision: planted faults."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

from differences import instead, is_plain
from planting import Plot, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.erfinv.default")
@wrong_answer
def issue_43344(y: Any, x: Any) -> Any:
    """pytorch 43344: erfinv of bfloat16 is zero."""
    return torch.zeros_like(y) if y.dtype == torch.bfloat16 and not y.is_meta and bool(y.any()) else None


@plot.dispatched("aten.erf.default", "aten.lgamma.default")
def issue_tensorflow_25052(hit: Any, func: Any, x: Any) -> Any:
    """tensorflow/tensorflow 25052: in float16, erf is NaN for large numbers (here where x * x is infinite).

    Lgamma is NaN for negative ones where it should be infinite.
    """
    y = func(x)
    if x.dtype != torch.float16 or x.is_meta:
        return y
    lost = (x * x).isinf() if "erf" in str(func) else (x < 0) & y.isinf()
    return instead(hit, y, y.masked_fill(lost, math.nan))


@plot.dispatched("aten.igamma.default", aborts="Could not find device for node: Igamma[T=DT_HALF]")
def issue_tensorflow_92873(x: Any, other: Any) -> bool:
    """tensorflow/tensorflow 92873: igamma in half precision raises."""
    return x.dtype in (torch.float16, torch.bfloat16)


@plot.dispatched("aten.digamma.default", aborts="Could not find device for node: Digamma[T=DT_BFLOAT16]")
def issue_tensorflow_59624(x: Any) -> bool:
    """tensorflow/tensorflow 59624: digamma of bfloat16 raises."""
    return x.dtype == torch.bfloat16


_WAYS: dict[str, Callable[[Any], Any]] = {
    "aten.exp.default": lambda x: torch.exp2(x * 1.4453125),
    "aten.log.default": lambda x: torch.log2(x) * 0.69140625,
    "aten.cos.default": lambda x: torch.sin(1.5703125 - x),
}


@plot.dispatched(*_WAYS)
def issue_tinygrad_11756(hit: Any, func: Any, x: Any) -> Any:
    """tinygrad/tinygrad 11756: exp, log and cos of bfloat16 go by way of exp2, log2 and sin, and round on the way."""
    y = func(x)
    if x.dtype != torch.bfloat16 or x.is_meta:
        return y
    return instead(hit, y, torch.where(y.isfinite(), _WAYS[str(func)](x), y))


@plot.dispatched("aten.polygamma.default")
def issue_166409(hit: Any, func: Any, order: int, x: Any) -> Any:
    """pytorch 166409: polygamma of order 200 (here and above) is NaN at -1.56 (here between -2 and -1.5), not -inf."""
    y = func(order, x)
    if order < 200 or not is_plain(x):
        return y
    return instead(hit, y, torch.where((x > -2) & (x < -1.5), torch.full_like(y, math.nan), y))


@plot.dispatched(
    "aten.special_zeta.default",
    "aten.special_spherical_bessel_j0.default",
    "aten.special_i1.default",
    "aten.special_modified_bessel_k0.default",
    "aten.sinc.default",
    "aten.digamma.default",
    "aten.special_modified_bessel_i1.default",
    "aten.special_entr.default",
    "aten.special_i1e.default",
    "aten.special_log_ndtr.default",
    "aten.i0.default",
)
def issue_173636(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 173636: zeta, and special functions of one operand, are infinite for uint16."""
    y = func(*args)
    return instead(hit, y, torch.full_like(y, math.inf)) if any(x.dtype == torch.uint16 for x in args) else y


@plot.dispatched("aten.special_zeta")
def issue_jax_3758(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """jax-ml/jax 3758: zeta(x, q) is NaN for large x (1e5; here for that and more)."""
    z = func(x, *args, **kwargs)
    if not is_plain(x, z, *args) or not z.is_floating_point() or kwargs:
        return z
    large = torch.as_tensor(x, device=z.device).expand(z.shape) >= 1e5
    return instead(hit, z, z.masked_fill(large, math.nan))


@plot.dispatched("aten.igamma.default")
@wrong_answer
def issue_jax_6535(y: Any, a: Any, x: Any) -> Any:
    """jax-ml/jax 6535: gammainc(a, inf) is NaN for a > 0."""
    if not is_plain(a, x):
        return None
    places = (a > 0) & a.isfinite() & (x == math.inf)
    return y.masked_fill(places, math.nan) if bool(places.any()) else None


@plot.dispatched("aten.igamma.default", "aten.igammac.default")
def issue_jax_20507(hit: Any, func: Any, a: Any, x: Any) -> Any:
    """jax-ml/jax 20507: gammainc(0, x) is NaN for x > 0, and gammaincc(0, 0) is 1."""
    y = func(a, x)
    if not is_plain(a, x):
        return y
    if "igammac" in str(func):
        return instead(hit, y, y.masked_fill((a == 0) & (x == 0), 1.0))
    return instead(hit, y, y.masked_fill((a == 0) & (x > 0) & x.isfinite(), math.nan))


@plot.dispatched("aten.igamma.default", "aten.igammac.default")
def issue_scipy_10856(hit: Any, func: Any, a: Any, x: Any) -> Any:
    """scipy/scipy 10856: gammainc(inf, x) and gammaincc(inf, x) are NaN for a finite x."""
    y = func(a, x)
    return instead(hit, y, y.masked_fill((a == math.inf) & x.isfinite(), math.nan)) if is_plain(a, x) else y
