"""Values by formula: every operand is a slice of a pool, so that a failing row can print the data it had."""

from __future__ import annotations

import functools
from typing import Any

import torch

LENGTH = 210_000
# Pools by dtype class, domain and class of values, as text: what a printed program computes is what the suite computed.
# v walks through 65,551 values without repeating one.
_V = "(i * 7919 % 65551)"
_FLOATS = {
    "any": f"({_V} - 32775) / 8192",
    "positive": f"{_V} / 16384 + 0.25",
    "unit": f"({_V} - 32775) / 34000",
    "inner": f"{_V} / 81000 + 0.1",
    "above_one": f"{_V} / 16384 + 1.25",
    "quarters": f"({_V} % 41 - 20) / 4",
    "halves": f"({_V} % 5 + 1) / 2 * (i % 2 * 2 - 1)",
    "whole": f"{_V} % 7 - 3.0",
    "distinct": f"({_V} - 32775) / 8192",
    "few": f"{_V} % 5 - 2.0",
}
_INTEGERS = {
    "any": f"{_V} % 19 - 9",
    "positive": f"{_V} % 9 + 1",
    "above_one": f"{_V} % 9 + 2",
    "halves": f"({_V} % 5 + 1) * (i % 2 * 2 - 1)",
    "few": f"{_V} % 5 - 2",
    "shift": f"{_V} % 7",
    "small": f"{_V} % 4",
    "distinct": f"{_V} - 32775",
}
# Values in order and all alike, as floats and as whole numbers of any dtype.
_ORDERED = {
    "sorted": ("i / 16384 - 6", "i // 2048"),
    "descending": ("6 - i / 16384", "102 - i // 2048"),
    "equal": ("i * 0 + 1.5", "i * 0 + 3"),
    "zero": ("i * 0.0", "i * 0"),
}
# One value that is not finite in each thousand: a draw begins so that a shorter one has it too, past its middle.
SINGLES = {"single": "nan", "single_inf": "inf"}
SINGLE_PERIOD, SINGLE_PLACE = 1009, 500
_MAY_BE_ZERO = ("any", "unit", "distinct")
# Beyond 2**24, both ends of the range: every bit of an integer counts.
_MIXED = "(i * 6364136223846793005 + 1442695040888963407)"


def expression(dtype: torch.dtype, domain: str, values: str) -> str:
    """Return the formula of a pool in `i`, before it is rounded to the dtype.

    >>> expression(torch.bool, "any", "plain")
    'i * 7919 % 65551 % 3 == 0'
    """
    if dtype == torch.bool:
        if values in ("wide", "zero"):  # all of them, none of them
            return "i >= 0" if values == "wide" else "i < 0"
        return "i * 7919 % 65551 % 3 == 0"
    if values == "zero" and domain not in _MAY_BE_ZERO:
        values = "plain"
    if dtype.is_complex:
        real = expression(torch.float32, domain, values)
        return f"torch.complex({real}, ({real}).roll(-5000))"
    if dtype.is_floating_point:
        return _float_expression(dtype, domain, values)
    if values == "wide" and domain in ("any", "distinct"):
        bits = torch.iinfo(dtype).bits
        shifted = f"({_MIXED} >> {64 - bits})" if bits < 64 else _MIXED
        return shifted + (" + 128" if dtype == torch.uint8 else "")
    if values in _ORDERED:
        return _ORDERED[values][1]
    text = _INTEGERS.get(domain, _INTEGERS["any"])
    if values == "wide" and domain == "few" and dtype in (torch.int64, torch.int32):  # neighbours, beyond 2**24
        return f"{text} + 2 ** {40 if dtype == torch.int64 else 25}"
    if dtype == torch.uint8 and domain in ("any", "halves", "few"):
        return f"({text}) % 256" if domain == "any" else f"({text}).abs()"
    return text


def _float_expression(dtype: torch.dtype, domain: str, values: str) -> str:
    plain = _FLOATS.get(domain, _FLOATS["any"])
    if values == "wide" and domain in ("any", "positive", "distinct"):
        size = f"10 ** ({_V} / 8194 - 4)" if dtype == torch.float32 else f"10 ** ({_V} / 13110 - 2)"
        return size if domain == "positive" else f"{size} * (i % 2 * 2 - 1)"
    if values in _ORDERED:
        return _ORDERED[values][0]
    if values == "special":
        plain = f"({plain}).masked_fill(i % 7 == 3, -0.0).masked_fill(i % 13 == 5, float('-inf'))"
        return f"{plain}.masked_fill(i % 11 == 4, float('inf')).masked_fill(i % 17 == 8, float('nan'))"
    if values == "inf":
        return f"({plain}).masked_fill(i % 13 == 5, float('inf')).masked_fill(i % 7 == 3, 0.0)"
    if values in SINGLES:
        return f"({plain}).masked_fill(i % {SINGLE_PERIOD} == {SINGLE_PLACE}, float('{SINGLES[values]}'))"
    if values == "ties":
        return f"{_V} % 5 - 2.0"
    if values == "masked":  # whole rows of seven, and parts of longer ones
        return f"({plain}).masked_fill((i + 2) // 7 % 3 == 1, float('-inf'))"
    return plain


@functools.lru_cache(maxsize=None)
def pool(dtype: torch.dtype, domain: str, values: str) -> torch.Tensor:
    """Return a pool: one dimension, LENGTH values of the dtype."""
    i = torch.arange(LENGTH)
    found: Any = eval(expression(dtype, domain, values), {"torch": torch, "i": i})  # formulas of this file alone
    return found.to(dtype) if isinstance(found, torch.Tensor) else torch.full((LENGTH,), found, dtype=dtype)


@functools.lru_cache(maxsize=None)
def precise_pool(dtype: torch.dtype, domain: str, values: str) -> torch.Tensor:
    """Return the same values in float64, for the reference."""
    wide = torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else dtype
    return pool(dtype, domain, values).to(wide)
