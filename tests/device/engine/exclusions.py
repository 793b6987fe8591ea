"""Calls that are not made: what the CPU itself crashes at, and what has no one answer. Each rule has its reason.

Rules of Python, no YAML: each is a condition over levels, and the suite imports nothing that reads YAML.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

# Reason: whether it holds for a call.
RULES: dict[str, Callable[[Any], bool]] = {
    "which whole number NaN and infinity are is open": lambda call: (
        call.operator.name in ("truncated", "truncated_signed") and call.levels["@values"] in _NOT_FINITE
    ),
    # 2.13.0: free() of a damaged heap, or a division by zero that ends the process.
    "torch._weight_norm checks no shape on the CPU: it writes past its memory": lambda call: (
        call.operator.name == "weight_norm" and "@wrong" in call.levels
    ),
    # 2.13.0: a damaged heap. For the same reason tril and triu have no such out= (operators/movement.py).
    "torch.linalg.lu writes past an out= that is not dense on the CPU": lambda call: (
        call.operator.name == "linalg_lu" and call.levels["@form"] == "out" and call.levels["@layout0"] != "dense"
    ),
    # 2.13.0, bfloat16 where AVX-512 has it: convolution_backward1d:memory:4000001 ends the process.
    "oneDNN's convolution_backward of half precision ends the process where one place is left": lambda call: (
        call.operator.name.startswith("convolution_backward")
        and call.levels["@dtype"] in (torch.float16, torch.bfloat16)
        and call.levels["@size"] == "point"
    ),
    "where nothing varies a variance has no gradient, or any": lambda call: (
        call.levels["@form"] == "grad"
        and call.operator.name.startswith(("var", "std"))
        and call.levels["@values"] in ("equal", "zero")
    ),
    # Beside a variance of 0, as a group of one number has it: group_norm:special:7000001 on CUDA.
    "whether an eps is rounded to float16, where it is 0, is open": lambda call: (
        call.levels["@dtype"] == torch.float16
        and isinstance(call.levels.get("eps"), float)
        and call.levels["eps"] < 2.0**-25
    ),
    # As CUDA's product of 65,000 whole numbers is 0, where the CPU meets infinity first: prod_all:size:4.
    "whether a product of whole numbers passes a float's range before it meets a 0 is open": lambda call: (
        call.operator.name in ("prod_all", "cumprod")
        and not _has_fraction(call.levels["@dtype"])
        and _has_fraction(call.levels.get("dtype"))
        and call.levels["@size"] not in ("small", "four", "none", "empty", "hollow", "one", "three", "line")
        and call.levels["@values"] != "zero"
    ),
    # lerp has a formula for each half: b - (b - a) * (1 - w) is NaN where a + w * (b - a) is infinite.
    "between a number and infinity a quantile is infinite or NaN": lambda call: (
        call.operator.name.startswith(("quantile", "nanquantile"))
        and call.levels["@values"] in ("special", "inf", "single_inf")
        and call.levels["interpolation"] not in ("lower", "higher", "nearest")
    ),
    # 2.13.0, as float32 and half precision (MaxPoolKernel.cpp): the place is one of the first plane.
    "the CPU's max_pool3d of channels last answers a place beside a window of -infinity": lambda call: (
        call.operator.name == "max_pool3d_with_indices"
        and call.levels["@layout0"] == "channels_last"
        and call.levels["@values"] in _NOT_FINITE
    ),
    "among equal numbers an operator chooses whose gradient it is": lambda call: (
        call.levels["@form"] == "grad"
        and call.operator.name.startswith(_CHOOSING)
        and call.levels["@values"] in ("inf", "ties", "equal", "zero", "masked", "sorted", "descending")
    ),
}
# Those whose results are some of their operands' elements.
_CHOOSING = (
    *(
        "sort",
        "msort",
        "topk",
        "kthvalue",
        "median",
        "nanmedian",
        "mode",
        "quantile",
        "nanquantile",
        "cummax",
        "cummin",
    ),
    *("max_pool", "adaptive_max_pool", "fractional_max_pool"),
)
_NOT_FINITE = ("special", "inf", "single", "single_inf")


def _has_fraction(dtype: Any) -> bool:
    return isinstance(dtype, torch.dtype) and (dtype.is_floating_point or dtype.is_complex)


def chooses(call: Any) -> bool:
    """Say whether the results of a call are some of its operands' elements."""
    return bool(call.operator.name.startswith(_CHOOSING))


def why(call: Any) -> str:
    """Return why a call must not be made, or an empty text."""
    return next((reason for reason, holds in RULES.items() if holds(call)), "")
