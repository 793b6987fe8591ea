"""torch.special: functions of one operand, and polynomials."""

from __future__ import annotations

import torch

from engine.description import Table

t = Table()
SPECIAL = {
    "dtypes": "fib",
    "factor": 128.0,
    "sizes": ("small", "four", "none", "empty", "one", "long", "column", "six"),
}
# The CPU has most of them in float32 alone.
SINGLE = {**SPECIAL, "dtypes": "sib"}
t.each("special_entr special_i0e special_i1 special_i1e special_ndtr", "any", **SPECIAL)
t.each("special_erfcx special_bessel_j0 special_bessel_j1 special_log_ndtr", "any", **SINGLE)
t.add("special_ndtri", "inner", **SINGLE)
t.add("special_airy_ai", "unit", **{**SINGLE, "factor": 512.0})
t.each(
    "special_bessel_y0 special_bessel_y1 special_modified_bessel_k0 special_modified_bessel_k1", "positive", **SINGLE
)
t.each("special_modified_bessel_i0 special_modified_bessel_i1 special_spherical_bessel_j0", "positive", **SINGLE)
t.each("special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1", "positive", **SINGLE)
t.each("special_exp2 special_expit special_expm1 special_psi special_log1p special_gammaln", "positive", **SPECIAL)
POLYNOMIAL = {
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
