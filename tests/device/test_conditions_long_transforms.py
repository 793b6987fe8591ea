"""Rule 3: transforms of one long line, at each power of two and one beside it; places of the result are compared.

A library takes another algorithm at each length: a first imaginary part, which is none of a real line, was read as the
last real one at two of them, https://github.com/pytorch/pytorch/issues/154496
"""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.limits import add_table, shown

cases = Cases("conditions")
_SHOWN = 3000


def _line(x: torch.Tensor, n: int) -> torch.Tensor:
    """Return `n` numbers that repeat late: the product of two lines whose lengths have no common divisor."""
    if n < len(x):
        return x[:n].clone()
    other = x[: len(x) - 1].abs() - 1
    return x.repeat(-(-n // len(x)))[:n] * other.repeat(-(-n // len(other)))[:n]


def _places(y: torch.Tensor) -> Any:
    return shown(y, max(1, len(y) // _SHOWN))


def _transformed(name: str, n: int, x: torch.Tensor) -> Any:
    if name == "irfft":  # n numbers of a half: its last one is real where n is even
        half = _line(x, n // 2 + 1)
        half[0].imag.zero_()
        if n % 2 == 0:
            half[-1].imag.zero_()
        return _places(torch.fft.irfft(half, n=n))
    return _places(getattr(torch.fft, name)(_line(x.real if name == "rfft" else x, n)))


_LENGTHS = (*((1 << power) + step for power in range(13, 17) for step in (-1, 0, 1)), (1 << 17) - 2, 1 << 17, 1 << 18)
_VAST = tuple(1 << power for power in (20, 21, 22))
for _name, _lengths in (
    *((name, _LENGTHS) for name in ("fft", "ifft", "rfft", "irfft")),
    *(("fft", _VAST), ("rfft", _VAST)),
):
    add_table(
        cases,
        f"transforms-{_name}{'-vast' * (_lengths is _VAST)}",
        {str(n): lambda x, name=_name, n=n: _transformed(name, n, x) for n in _lengths},
        lambda d: (d.of(torch.complex64, 65_538),),
        terms=1 << 14,
        full=_lengths is _VAST,
    )
