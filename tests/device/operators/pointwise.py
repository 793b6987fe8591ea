"""Pointwise operators with one operand; special functions and polynomials."""

from __future__ import annotations

import torch

from engine.description import ABSENT, POINTWISE, Table

t = Table()
# What takes long in float64 is not computed at tens of thousands of elements in every dtype.
SHORT = tuple(size for size in POINTWISE if size not in ("tall", "wide"))
SMOOTH = {"dtypes": "fibc", "factor": 32.0}
INF = float("inf")
# Other names of the same operators.
ALIASES = {
    **{
        one: (f"torch.arc{one[1:]}", f"Tensor.arc{one[1:]}")
        for one in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
    },
    "abs": ("torch.absolute", "Tensor.absolute"),
    "trunc": ("torch.fix", "Tensor.fix"),
    "neg": ("torch.negative", "Tensor.negative"),
    **{one: (f"special.{one}",) for one in ("expm1", "exp2", "log1p", "erf", "erfc", "erfinv", "sinc", "i0", "round")},
    "digamma": ("special.digamma", "special.psi"),
    "lgamma": ("special.gammaln",),
    "sigmoid": ("special.expit", "F.sigmoid"),
    "tanh": ("F.tanh",),
    "logit": ("special.logit",),
}


def _each(names, *operands, **fields):
    for name in names.split():
        paths = (f"torch.{name}", f"Tensor.{name}", *ALIASES.get(name, ()))
        t.add(name, *operands, **{"paths": paths, **fields})


_each("exp expm1 sin cos atan tanh asinh sigmoid", **SMOOTH)
_each("deg2rad rad2deg", dtypes="fib", factor=32.0)
_each("exp2 erf sinc", dtypes="fib", factor=32.0)
_each("tan sinh cosh", "unit", **SMOOTH)
_each("asin acos atanh", "unit", **SMOOTH)
_each("erfinv erfc", "unit", dtypes="fib", factor=32.0)
_each("log log2 log10 log1p sqrt rsqrt reciprocal", "positive", **SMOOTH)
_each("acosh", "above_one", **SMOOTH)
_each("lgamma digamma", "positive", dtypes="fib", factor=64.0, sizes=SHORT)
_each("i0", "any", dtypes="fib", factor=64.0, sizes=SHORT)
_each("logit", "inner", dtypes="fib", factor=64.0, eps=(ABSENT, None, 0.25, 0.0, 1e-6, 1e-12, 0.5))
# Outside of (0, 1) without eps it is NaN, with eps an end.
t.add("logit_clamped", "unit", dtypes="f", factor=64.0, eps=(None, 0.25, 1e-3), paths=("torch.logit", "Tensor.logit"))
_each("square", "any", dtypes="fibc", factor=16.0)
_each("ceil floor trunc", "quarters", dtypes="fi")
_each("frac", "quarters", dtypes="f")
_each("round", "quarters", dtypes="fi", decimals=(ABSENT, 0, 1, 2, -1, 3))
_each("abs", dtypes="fic")
_each("neg", dtypes="fic")
_each("sign", dtypes="fib", values=("plain", "wide", "special", "inf", "ties"))
_each("sgn", dtypes="fibc", values=("plain", "wide", "special", "inf", "ties"))
_each("positive", dtypes="fic", forms=("call", "grad"))
_each("angle", dtypes="fibc", factor=32.0)
for name in ("real", "imag"):
    t.add(name, dtypes="c", forms=("call", "grad"), paths=(f"torch.{name}",), values=("plain", "wide"))
t.each("conj_physical conj resolve_conj", dtypes="fc")
t.add(
    "conj_used",
    act=lambda x: (x.conj() * x, x.mH + 1 if x.dim() > 1 else x.conj() + 1, x.conj().real),
    dtypes="c",
    forms=("call", "grad"),
    values=("plain", "wide"),
)
t.add("isnan", dtypes="fibc", forms=("call",))
t.each("isinf isfinite", dtypes="fibc", forms=("call",))
t.each("isreal", dtypes="fibc", forms=("call",))
t.each("isposinf isneginf signbit", dtypes="fib", forms=("call", "out"))
t.add("logical_not", dtypes="fibc", values=("plain", "wide", "special", "ties"), forms=("call", "inplace", "out"))
t.add("bitwise_not", dtypes="ib", forms=("call", "inplace", "out"), values=("plain", "wide"))
t.add(
    "nan_to_num",
    dtypes="fibc",
    nan=(ABSENT, 1.5, None, 0.0, -3.0),
    posinf=(ABSENT, 7.0, None, 0.0),
    neginf=(ABSENT, -2.0, None, 0.0),
)
LIMITED = ("plain", "wide", "special", "inf", "ties")
t.add(
    "clamp",
    dtypes="fi",
    min=(ABSENT, None, -1, 0, 0.5, -INF, 3),
    max=(ABSENT, 2, -3, 0.25, INF),
    values=LIMITED,
)
t.add("clip", dtypes="fi", min=(ABSENT, -1, 0.5), max=(ABSENT, 2, -INF), values=LIMITED)
t.add("clamp_min", dtypes="fi", _min=(0, -2, 0.5, INF, -INF), values=LIMITED)
t.add("clamp_max", dtypes="fi", _max=(0, 2, -0.5, INF, -INF), values=LIMITED)
t.add(
    "mvlgamma",
    "above_one",
    dtypes="f",
    p=(1, 2, 3),
    sizes=("small", "four", "empty", "none"),
    factor=256.0,
    values=("plain",),
    paths=("torch.mvlgamma", "Tensor.mvlgamma", "special.multigammaln"),
)
t.add(
    "polygamma",
    "positive",
    act=lambda x, n, **k: torch.polygamma(n, x, **k),
    _n=(0, 1, 2, 3, 4),
    dtypes="fi",
    factor=256.0,
    sizes=("small", "four", "none", "empty", "long"),
    values=("plain", "wide"),
    forms=("call", "out", "grad"),
)
t.add("frexp", dtypes="f", forms=("call", "out", "grad"), values=("plain", "wide"))

SPECIAL = {
    "dtypes": "fib",
    "factor": 128.0,
    "sizes": ("small", "four", "none", "empty", "one", "long", "column", "six"),
}
# The CPU has most of them in float32 alone.
SINGLE = {**SPECIAL, "dtypes": "sib", "share": 0.5}
t.each("special_entr special_i0e special_i1 special_i1e", "any", **SPECIAL)
t.add("special_ndtr", "any", floor=1.0, **SPECIAL)  # 1 + erf: a small result has the error of 1
t.each("special_erfcx special_bessel_j0 special_bessel_j1 special_log_ndtr", "any", **SINGLE)
t.add("special_ndtri", "inner", **SINGLE)
t.add("special_airy_ai", "unit", **{**SINGLE, "factor": 512.0})
t.each(
    "special_bessel_y0 special_bessel_y1 special_modified_bessel_k0 special_modified_bessel_k1", "positive", **SINGLE
)
t.each("special_modified_bessel_i0 special_modified_bessel_i1 special_spherical_bessel_j0", "positive", **SINGLE)
t.each("special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1", "positive", **SINGLE)
t.each("special_exp2 special_expit special_expm1 special_psi special_log1p special_gammaln", "positive", **SPECIAL)
# CUDA compiles each of them when it is first called, for a second; few programs do.
POLYNOMIAL = {
    "share": 0.3,
    "dtypes": "s",
    "values": ("plain",),
    "factor": 512.0,
    "forms": ("call", "out"),
    "sizes": ("small", "four", "empty", "long", "none", "column"),
}


def _degrees(c):
    return (torch.arange(c.draw("any", c.shape).numel()) % 6).reshape(c.shape).to(c.dtype)


POLYNOMIALS = {
    **{
        f"{shifted}chebyshev_polynomial_{one}": "inner" if shifted else "unit"
        for one in "tuvw"
        for shifted in ("", "shifted_")
    },
    **dict.fromkeys(("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l"), "unit"),
    "legendre_polynomial_p": "unit",
}
for name, domain in POLYNOMIALS.items():
    t.add(f"special_{name}", domain, _degrees, **POLYNOMIAL)
    # One degree for all: a number, also below 0 and beyond where the recurrence begins.
    t.add(f"special_{name}_scalar", domain, _degree=(0, 1, 2, 5, 9, -1), paths=(f"special.{name}",), **POLYNOMIAL)
    t.add(
        f"special_{name}_of",
        _degrees,
        act=lambda n, x, name=name: getattr(torch.special, name)(x, n),
        _x=(0.5, 0.0, 1.0, -0.25),
        **{**POLYNOMIAL, "forms": ("call",)},
    )
