"""A compiled kernel: what the compiler leaves, and all that a launch needs of it. Imports nothing of LLVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..read.metadata import Metadata

ENTRY = "rt_entry"
ROW = "rt_row"
# Where threadgroup variables lie: the end of each at a page nobody may touch, far from everything else.
ARENA_BASE, ARENA_STEP, PAGE = 0x5A00_0000_0000, 1 << 24, 4096

Injection = Callable[[str], str]
Fault = Literal["refused", "not_compiled", "beyond"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A threadgroup variable: where it lies, its size in bytes, and whether it begins as zero."""

    address: int
    size: int
    is_zero: bool

    @property
    def is_possible(self) -> bool:
        """True if it lies in its part of the arena."""
        offset = self.address - ARENA_BASE
        return 0 <= offset < 64 * ARENA_STEP and 0 <= self.size <= ARENA_STEP // 2 - offset % ARENA_STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One compiled kernel: an object file, and what a launch must know of it."""

    metadata: Metadata
    body: str
    variables: tuple[Variable, ...]
    is_cooperative: bool
    objectcode: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A kernel that is not compiled, and why; what was read of it before stands.

    Args:
        fault: it holds what no Metal kernel has (refused), cannot be read or translated (not_compiled), or needs
            operations that are known and not run here (beyond: tensor operations of Metal 4).
    """

    reason: str
    fault: Fault = "not_compiled"
    metadata: Metadata | None = None
    body: str = ""


# What compiled code may call: the C runtime's functions (machine/c/*.c), by the names that the compiler uses.

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
