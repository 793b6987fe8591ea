"""What compiled code may call: the C runtime's functions (machine/c/*.c), by the names that the compiler uses."""

from __future__ import annotations

MATH = ("exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
        "tanh", "asinh", "acosh", "atanh", "sinpi", "cospi", "tanpi", "rsqrt", "pow", "powr", "atan2", "fmod",
        "nextafter")  # fmt: skip
# What compiled code may call: our names, and those that a compiler makes up for conversions.
SYMBOLS = {
    **{f"rt_{name}": f"rt_{name}" for name in MATH},
    **{name: name for name in ("rt_barrier", "rt_simd", "rt_lane", "rt_matrix_row", "rt_matrix_column")},
    **{f"rt_access{space}": "rt_access" for space in (1, 2, 3)},
    "__truncsfhf2": "rt_truncsfhf2",
    "__truncdfhf2": "rt_truncdfhf2",
    "__gnu_f2h_ieee": "rt_truncsfhf2",
    "__truncsfbf2": "rt_truncsfbf2",
    "__truncdfbf2": "rt_truncdfbf2",
    "__extendhfsf2": "rt_extendhfsf2",
}
# What LLVM's code generation calls by itself where the processor has no instruction: C's own, found in libm and libc.
LIBRARY_CALLS = (
    "memcpy", "memmove", "memset", "ldexp", "ldexpf", "fmod", "fmodf", "fma", "fmaf", "fmax", "fmaxf", "fmin", "fminf",
    "floor", "floorf", "ceil", "ceilf", "trunc", "truncf", "rint", "rintf", "round", "roundf", "sqrt", "sqrtf",
    "copysign", "copysignf",
)  # fmt: skip
