"""The bits of a bfloat, taken by way of float.

LLVM 22 asks for the sign of a bfloat as for that of a float (TargetLowering::SimplifyDemandedBits makes an FGETSIGN
of 32 bits; float16 is left out there, bfloat is not) and shifts it as 16 bits: where an operation uses nothing but the
sign of `bitcast bfloat to i16`, an assertion ends the process. A bfloat is the upper half of a float.
"""

from __future__ import annotations

import itertools
import re

_BITS = re.compile(r"^ *(%[^ ]+) = bitcast bfloat ([^ ,]+) to i16$", re.MULTILINE)


def widen_bfloat_bits(text: str) -> str:
    """Return the code with the bits of each bfloat taken from a float.

    >>> print(widen_bfloat_bits("  %2 = bitcast bfloat %1 to i16"))
      %bits0.float = fpext bfloat %1 to float
      %bits0.word = bitcast float %bits0.float to i32
      %bits0.upper = lshr i32 %bits0.word, 16
      %2 = trunc i32 %bits0.upper to i16
    """
    numbers = itertools.count()

    def widened(match: re.Match[str]) -> str:
        n, result, value = next(numbers), *match.groups()
        return (
            f"  %bits{n}.float = fpext bfloat {value} to float\n"
            f"  %bits{n}.word = bitcast float %bits{n}.float to i32\n"
            f"  %bits{n}.upper = lshr i32 %bits{n}.word, 16\n"
            f"  {result} = trunc i32 %bits{n}.upper to i16"
        )

    return _BITS.sub(widened, text) if "bitcast bfloat" in text else text
