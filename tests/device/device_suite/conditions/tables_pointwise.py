"""Pointwise operators with one operand, and activations."""

from __future__ import annotations

import torch

from .spec import ABSENT, POINTWISE, Table

t = Table()
# What takes long in float64 is not asked at 65,543 elements in every dtype.
SHORT = tuple(size for size in POINTWISE if size != "tall")
SMOOTH = {"dtypes": "fibc", "factor": 32.0}

t.each("exp expm1 sin cos atan tanh asinh sigmoid deg2rad rad2deg", **SMOOTH)
t.each("exp2 erf sinc", dtypes="fib", factor=32.0)
t.each("tan sinh cosh", "unit", **SMOOTH)
t.each("asin acos atanh", "unit", **SMOOTH)
t.each("erfinv erfc", "unit", dtypes="fib", factor=32.0)
t.each("log log2 log10 log1p sqrt rsqrt reciprocal", "positive", **SMOOTH)
t.add("acosh", "above_one", **SMOOTH)
t.each("lgamma digamma", "positive", dtypes="fib", factor=64.0, sizes=SHORT)
t.add("i0", "any", dtypes="fib", factor=64.0, sizes=SHORT)
t.add("logit", "inner", dtypes="fib", factor=64.0, eps=(ABSENT, 0.25))
t.add("square", "any", dtypes="fibc", factor=16.0)
t.each("ceil floor trunc", "quarters", dtypes="fi")
t.add("frac", "quarters", dtypes="f")
t.add("round", "quarters", dtypes="fi")
t.each("abs", dtypes="fibc")
t.each("neg", dtypes="fic")
t.each("sign sgn", dtypes="fib", values=("plain", "wide", "special", "inf", "ties"))
t.each("positive", dtypes="fic", forms=("call", "grad"))
t.each("angle", dtypes="fibc", factor=32.0)
for name in ("real", "imag"):
    t.add(name, dtypes="c", forms=("call", "grad"), paths=(f"torch.{name}",))
t.each("conj_physical conj resolve_conj", dtypes="fc")
t.add("isnan", dtypes="fibc", forms=("call",))
t.each("isinf isfinite", dtypes="fibc", forms=("call",))
t.each("isreal", dtypes="fibc", forms=("call",))
t.each("isposinf isneginf signbit", dtypes="fib", forms=("call", "out"))
t.add("logical_not", dtypes="fibc", values=("plain", "wide", "special", "ties"), forms=("call", "inplace", "out"))
t.add("bitwise_not", dtypes="ib", forms=("call", "inplace", "out"))
t.add("nan_to_num", dtypes="fib", nan=(ABSENT, 1.5), posinf=(ABSENT, 7.0), neginf=(ABSENT, -2.0))
t.add("clamp", dtypes="fi", min=(ABSENT, -1, 0), max=(ABSENT, 2, -3), values=("plain", "wide", "special", "inf"))
t.add("clamp_min", dtypes="fi", _min=(0, -2))
t.add("clamp_max", dtypes="fi", _max=(0, 2))
t.add("clip", dtypes="fi", min=(ABSENT, -1), max=(ABSENT, 2))
t.add("mvlgamma", "above_one", dtypes="f", p=(1, 2), sizes=("small", "four", "empty"), factor=256.0, values=("plain",))

# Activations: F.f, torch.f, or the operator itself for its in-place and out= forms.
ACT = {"dtypes": "f", "factor": 32.0}
t.each("gelu", approximate=(ABSENT, "none", "tanh"), **ACT)
t.each("silu mish softsign logsigmoid tanhshrink selu relu6 hardswish hardsigmoid", **ACT)
t.add("log_sigmoid", dtypes="f", factor=32.0, paths=("aten.log_sigmoid",))
t.add("relu", dtypes="fi")
t.add("elu", alpha=(ABSENT, 0.5, 2.0), **ACT)
t.add("elu_scaled", alpha=(1.0, 0.5), scale=(ABSENT, 2.0), input_scale=(ABSENT, 0.5), paths=("aten.elu",), **ACT)
t.add("celu", alpha=(ABSENT, 0.5, 2.0), **ACT)
t.add("leaky_relu", negative_slope=(ABSENT, 0.2, 0.0), **ACT)
t.add("hardtanh", min_val=(ABSENT, -2.0), max_val=(ABSENT, 0.5), dtypes="fi")
t.add("threshold", _threshold=(0.125, -1.0), _value=(-2.0, 0.0, 20.0), dtypes="f")
t.add("hardshrink", lambd=(ABSENT, 1.0), dtypes="f")
t.add("softshrink", lambd=(ABSENT, 1.0), paths=("F.softshrink", "aten.softshrink"), dtypes="f")
t.add("softplus", beta=(ABSENT, 2, 0.5), threshold=(ABSENT, 1.0), dtypes="f", factor=32.0)
t.add(
    "glu",
    dim=(ABSENT, -1, 0, 1),
    dtypes="f",
    factor=32.0,
    sizes={"even": (6, 8), "images": (2, 6, 4, 4), "long": (2, 2062), "line": (16,)},
)
t.add(
    "prelu",
    "any",
    lambda c: c.draw("inner", (c.shape[1] if len(c.shape) > 1 and c.row.number % 2 else 1,)),
    dtypes="f",
    terms="all",
    sizes=("small", "four", "line", "high", "five"),
    laid=(0,),
)
t.add("rrelu", dtypes="f", training=(False,), lower=(ABSENT, 0.1), upper=(ABSENT, 0.5))
t.add(
    "dropout_off",
    "any",
    act=lambda x, p: torch.nn.functional.dropout(x, p, training=False),
    _p=(0.1, 0.9),
    forms=("call", "grad"),
    dtypes="f",
)

# torch.special.
SPECIAL = {"dtypes": "fib", "factor": 128.0, "sizes": ("small", "four", "none", "empty", "one", "long")}
t.each("special_entr special_i0e special_i1 special_i1e special_ndtr", "any", **SPECIAL)
t.each("special_erfcx special_bessel_j0 special_bessel_j1", "any", **SPECIAL)
t.each(
    "special_bessel_y0 special_bessel_y1 special_modified_bessel_k0 special_modified_bessel_k1", "positive", **SPECIAL
)
t.each("special_modified_bessel_i0 special_modified_bessel_i1 special_spherical_bessel_j0", "positive", **SPECIAL)
t.each("special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1", "positive", **SPECIAL)
t.each("special_exp2 special_expit special_expm1 special_psi special_log1p special_gammaln", "positive", **SPECIAL)
POLYNOMIAL = {
    "dtypes": "s",
    "values": ("plain",),
    "factor": 512.0,
    "forms": ("call", "out"),
    "sizes": ("small", "four", "empty", "long"),
}
for name in "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w".split():
    t.add(
        f"special_{name}",
        "unit",
        lambda c: (torch.arange(c.draw("any", c.shape).numel()) % 6).reshape(c.shape).to(c.dtype),
        **POLYNOMIAL,
    )
    t.add(
        f"special_shifted_{name}",
        "inner",
        lambda c: (torch.arange(c.draw("any", c.shape).numel()) % 6).reshape(c.shape).to(c.dtype),
        **POLYNOMIAL,
    )
for name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l"):
    t.add(
        f"special_{name}",
        "unit",
        lambda c: (torch.arange(c.draw("any", c.shape).numel()) % 6).reshape(c.shape).to(c.dtype),
        **POLYNOMIAL,
    )
