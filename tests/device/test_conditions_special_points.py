"""Rules 1 and 3: functions at the points where they are special, each point judged by itself; of whole numbers too.

erfcx of infinity, https://github.com/pytorch/pytorch/issues/122426; functions of unsigned numbers of 16 bits said
infinity, https://github.com/pytorch/pytorch/issues/173636; a view of numbers on the host lost where it begins,
https://github.com/pytorch/pytorch/issues/193057
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import HALVES, assigned
from device_suite.near import add_beside

cases = Cases("conditions")
Form = Callable[..., Any]
_INF, _NAN = float("inf"), float("nan")
_POINTS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    2.5,
    -2.5,
    1e-10,
    -1e-10,
    1e-4,
    9.0,
    -9.0,
    30.0,
    -30.0,
    1e4,
    -1e4,
)
_FAR = (1e10, -1e10, _INF, -_INF, _NAN)

_PLAIN = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor lgamma "
    "log log10 log1p log2 logit neg rad2deg reciprocal rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc "
    "i0 isnan isinf isfinite relu selu celu positive frac nan_to_num angle"
).split()
_SPECIAL = (
    "entr erfcx i0e i1 i1e log_ndtr ndtr ndtri bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 "
    "modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
    "spherical_bessel_j0 airy_ai expit psi gammaln"
).split()
# What they are at infinity, and far out, is reckoned in so many ways; where others pass zero, nothing is left of them.
_CLOSE = (
    "sin cos tan sinc angle i0 i1 frac bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 "
    "modified_bessel_i1 airy_ai spherical_bessel_j0"
).split()
_ROUGH = ("digamma", "psi", "lgamma", "gammaln", "erfcx", "airy_ai", "sinc", "tan")
_KNOWN_FAR = ("digamma", "psi", "lgamma", "gammaln", "erfcx")


def _shown(found: torch.Tensor) -> torch.Tensor:
    """Return an answer without what is too small for its dtype, which is open."""
    if not found.is_floating_point():
        return found
    return found.where(~(found.abs() < torch.finfo(found.dtype).tiny), torch.zeros_like(found))


def _leaves(found: Any) -> list[torch.Tensor]:
    return [leaf for one in found for leaf in _leaves(one)] if isinstance(found, (list, tuple)) else [found]


def _homes(name: str) -> list[Form]:
    return [getattr(home, name) for home in (torch, torch.special) if hasattr(home, name)]


def _spelled(name: str, x: torch.Tensor) -> Any:
    """Return what a function answers as it is spelled in each of its places, of steps, and in place."""
    acts = _homes(name)
    found = [act(x) for act in acts] + [acts[0](torch.stack([x, -x], 1)[:, 0])]
    found += [getattr(x, name)()] if hasattr(torch.Tensor, name) else []
    found += [getattr(x.clone(), f"{name}_")()] if hasattr(torch.Tensor, f"{name}_") else []
    return [_shown(one) for one in found]


def _points(name: str) -> tuple[float, ...]:
    if name in _CLOSE or name in _ROUGH:
        low = -1 if name in _ROUGH else -40
        return (*(one for one in _POINTS if low <= one < 40), _NAN, *((_INF, 1e4) if name in _KNOWN_FAR else ()))
    return (*_POINTS, *_FAR)


for _dtype in (torch.float32, *HALVES):
    # The CPU's erf of 1e-10 in half precision is 0.
    for _kind, _floor in (("points", 2.0**-60 if _dtype == torch.float32 else 2.0**-20), ("rough-points", 2.0**-7)):
        add_beside(
            cases,
            f"special-{_kind}-{str(_dtype)[6:]}",
            {
                name: lambda x, name=name: _spelled(name, torch.tensor(_points(name), device=x.device).to(x.dtype))
                for name in (_PLAIN if _dtype != torch.float32 else (*_PLAIN, *_SPECIAL))
                if (name in _ROUGH) == (_kind == "rough-points")
            },
            lambda d, dtype=_dtype: (d.normal(1).to(dtype),),
            share=2.0**-9 if _dtype == torch.float32 else 2.0**-5,
            floor=_floor,
            since="2.1",
        )

# Two numbers: all pairs of some.
_TWO: dict[str, Form] = {
    "xlogy": lambda x, y: [torch.xlogy(x, y), torch.special.xlogy(x, y), x.expand(len(x), y.numel()).xlogy(y)],
    "xlogy-number": lambda x, y: [torch.xlogy(0.0, y[0]), torch.xlogy(x[:, 0], 2.0), torch.xlogy(x[:, 0], 0.0)],
    "xlog1py": lambda x, y: [torch.special.xlog1py(x, y), torch.special.xlog1py(0.0, y[0])],
    "logaddexp": lambda x, y: [torch.logaddexp(x, y), torch.logaddexp2(x, y)],
    "hypot": lambda x, y: torch.hypot(x, y),
    "atan2": lambda x, y: [torch.atan2(x, y), torch.arctan2(x, y)],
    "copysign": lambda x, y: [torch.copysign(x, y), torch.copysign(x, -0.0)],
    "heaviside": lambda x, y: torch.heaviside(x.nan_to_num().expand(-1, y.numel()).contiguous(), y.expand(len(x), -1)),
    "pow": lambda x, y: torch.pow(x, y),
    "pow-numbers": lambda x, y: [[torch.pow(x[:, 0], n) for n in (0, 1, 2, -1, 3, -2)], torch.pow(2, y[0])],
    "pow-bases": lambda x, y: [torch.pow(n, y[0]) for n in (0.0, 1.0, 0.5, 2.0)],
    "div": lambda x, y: [torch.div(x, y), x / y, torch.true_divide(x, y), 1 / y, x / 2.0, torch.reciprocal(x)],
    "mul": lambda x, y: [x * y, torch.multiply(x, y), x * 0.0, 0 * y, x * _INF],
    "add": lambda x, y: [x + y, x - y, x + _INF, torch.add(x, y, alpha=2), torch.rsub(x, y)],
    "fmax": lambda x, y: [torch.fmax(x, y), torch.fmin(x, y), torch.maximum(x, y), torch.minimum(x, y)],
    "lerp": lambda x, y: torch.lerp(x.nan_to_num(0, 1, 1), x.nan_to_num(0, 1, 1) + 1, 0.25),
    "addcmul": lambda x, y: [torch.addcmul(x, x, y, value=0.5), torch.addcdiv(x, x, y, value=2)],
    "clamp": lambda x, y: [x.clamp(-1, 1), x.clamp(min=y), torch.clamp(x, max=y), x.clamp(_NAN, 1), x.clip(0, _INF)],
    "compared": lambda x, y: [x == y, x < y, x >= y, torch.isclose(x, y, equal_nan=True), x != y, x.isclose(y)],
    "logical": lambda x, y: [torch.logical_and(x, y), torch.logical_xor(x, y), x.logical_not(), x.bool()],
    "logit": lambda x, y: [torch.logit(x, 0.25), torch.special.logit(x, eps=0.1), x.logit()],
    "nan_to_num": lambda x, y: [torch.nan_to_num(x), torch.nan_to_num(y, 1.0, 2.0, 3.0), x.nan_to_num(neginf=0.0)],
    "sums": lambda x, y: [x.sum(), x.nansum(), x.amax(), y.logsumexp(1), y.softmax(1), y.nanmean(), x.isnan().sum()],
}
_PAIRED = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, _INF, -_INF, _NAN)
for _dtype in (torch.float32, *HALVES):
    add_beside(
        cases,
        f"special-pairs-{str(_dtype)[6:]}",
        {name: lambda x, y, form=form: [_shown(one) for one in _leaves(form(x, y))] for name, form in _TWO.items()},
        lambda d, dtype=_dtype: (torch.tensor(_PAIRED).to(dtype)[:, None], torch.tensor(_PAIRED).to(dtype)[None]),
        share=2.0**-9 if _dtype == torch.float32 else 2.0**-5,
        floor=2.0**-10,
        since="2.1",
    )

# Whole numbers and truth values, each function that makes fractions of them; also of 16, 32 and 64 bits without sign.
_WHOLE = (
    "acos asin asinh atan cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 i0 lgamma log log10 log1p log2 logit "
    "rad2deg reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh angle"
).split()
_FORMS: dict[str, Form] = {
    **{name: lambda x, name=name: [act(x) for act in _homes(name)] for name in (*_WHOLE, *_SPECIAL)},
    "two": lambda x: [torch.atan2(x, x.flip(0)), x / x.flip(0), x / 2, 2.5 * x],
    "zeta": lambda x: torch.special.zeta(torch.full((len(x),), 2.0, device=x.device), x + (x == 0).to(x.dtype)),
    "zeta-of": lambda x: torch.special.zeta(torch.full((len(x),), 2.0, device=x.device), x),
    "mixed": lambda x: [torch.hypot(x.float(), x), torch.atan2(x.float(), x), x.float() + x, x.float() * x],
    "copied": lambda x: [x.float(), x.clone(), x.to(torch.int64), x.bool(), x.view(2, 3).t().contiguous()],
    "xlogy": lambda x: [torch.xlogy(x, x.flip(0)), torch.special.xlog1py(x, 0.5)],
    "powers": lambda x: [x**0.5, x**2.0, torch.pow(1.5, x)],
    "means": lambda x: [x.float().mean(), x.max(), x.sort()[0]],
    "sum": lambda x: x.sum(),
    "compared": lambda x: [x == 2, x > 1, x.eq(x.flip(0)), x != 0, x.float() == x],
    "through": lambda x: [x.float(), x.to(torch.int64), x.bool(), x.flip(0), x.clone(), torch.cat([x, x])],
    "taken": lambda x: [x[1:3], x[[0, 2]], x.gather(0, torch.tensor([1, 0], device=x.device)), x.repeat(2), x.tolist()],
    "bits": lambda x: [x & x.flip(0), x | x.flip(0), x ^ x.flip(0), ~x],
    "added": lambda x: [x + x.flip(0), x * 2, x + 1, torch.where(x > 1, x, x.flip(0))],
}
# The CPU has not all of these of the wider ones without sign.
_SIGNED = ("two", "zeta", "xlogy", "means", "compared", "through", "taken", "bits", "added")
for _kind in ("uint8", "int8", "int16", "int32", "int64", "bool", "uint16", "uint32", "uint64"):
    if hasattr(torch, _kind):
        add_beside(
            cases,
            f"special-whole-{_kind}",
            {
                name: lambda x, form=form: [
                    _shown(one) if isinstance(one, torch.Tensor) else one for one in _leaves(form(x))
                ]
                for name, form in _FORMS.items()
                if name not in _SIGNED or _kind not in ("uint16", "uint32", "uint64")
            },
            lambda d, kind=_kind: (torch.tensor([1, 2, 0, 3, 1, 7]).to(getattr(torch, kind)),),
            share=2.0**-9,
            floor=2.0**-10,
            since="2.3",
        )

# A number without dimensions on the host, one of several that lie there: on either side of every function of two.
_BINARY = (
    "add sub mul div true_divide floor_divide remainder fmod pow atan2 hypot maximum minimum fmax fmin eq ne lt le gt "
    "ge xlogy copysign heaviside isclose float_power rsub "
    "subtract multiply divide greater less not_equal arctan2"
).split()
# Not what demands one device of both: CUDA refuses nextafter, logical_and, logaddexp, ldexp, addcmul, clamp of such.
_HOSTED: dict[str, Form] = {
    **{f"{name}-right": lambda x, h, name=name: getattr(torch, name)(x, h) for name in _BINARY},
    **{f"{name}-left": lambda x, h, name=name: getattr(torch, name)(h, x) for name in _BINARY},
    **{
        f"{name}_": lambda x, h, name=name: getattr(x.clone(), f"{name}_")(h)
        for name in ("add", "sub", "mul", "div", "pow", "remainder", "fmod", "copysign", "eq", "lt", "hypot", "xlogy")
    },
    "operators": lambda x, h: [x + h, h + x, x - h, h - x, x * h, h * x, x / h, h / x, x**h, h**x, x % h, x // h],
    "compared": lambda x, h: [x == h, x != h, x < h, h < x, x >= h, h >= x],
    "where": lambda x, h: [torch.where(x > 1, x, h), torch.where(x > 1, h, x), x.where(x > 1, h)],
    "fill": lambda x, h: [x.clone().fill_(h), x.masked_fill(x > 1, h), torch.full_like(x, h.item())],
    "written": lambda x, h: [assigned(x, 1, h), assigned(x, slice(1, 3), h), assigned(x, x > 1, h)],
    "out": lambda x, h: [torch.add(x, h, out=torch.empty_like(x)), torch.mul(h, x, out=torch.empty_like(x))],
    "alpha": lambda x, h: [torch.add(x, h, alpha=2), torch.sub(h, x, alpha=3), torch.add(x, x, alpha=h.item())],
    "places": lambda x, h: [x.index_fill(0, torch.tensor([1], device=x.device), h), x.scatter(0, _at(x), h.item())],
    "searched": lambda x, h: [torch.bucketize(h.to(x.device), x.sort()[0]), torch.isin(x, h.to(x.device))],
}


def _host(way: str, dtype: torch.dtype) -> torch.Tensor:
    """Return a number that lies on the host behind others."""
    numbers = torch.tensor([0, 5, 0, 2]).to(dtype)
    return numbers[3] if way == "offset" else numbers.view(2, 2).t()[1, 1]


def _at(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([2], device=x.device)


_FLOATS = ("hypot", "div_", "copysign_", "xlogy_")


def _asked(name: str, dtype: torch.dtype, number: torch.dtype) -> bool:
    """Say whether the CPU has a function of these dtypes."""
    if name.startswith(("heaviside", "isclose")):
        return dtype == number
    if dtype != torch.int64 or (name == "alpha" and number != dtype):
        return dtype != torch.int64
    return not (name.endswith("_") or name == "out") if number == torch.float32 else not name.startswith(_FLOATS)


for _dtype in (torch.float32, torch.float16, torch.int64):
    for _number in (torch.float32, torch.int64):
        add_beside(
            cases,
            f"special-hosted-{str(_dtype)[6:]}-{str(_number)[6:]}",
            {
                f"{name}-{way}": lambda x, form=form, way=way, number=_number: form(x, _host(way, number))
                for name, form in _HOSTED.items()
                for way in ("offset", "stepped")
                if _asked(name, _dtype, _number)
            },
            lambda d, dtype=_dtype: (torch.tensor([1.0, 2.0, 3.0, 6.0]).to(dtype),),
            share=2.0**-9,
            since="2.1",
        )
