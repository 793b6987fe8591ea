"""Run with an official wheel: calls that reach kernels whose results are known to be wrong. A line `ID wrong …` each.

FILE has the calls by the ids of their rows, as JSON. A call is evaluated on mps, on the CPU, and there in double, which
is what is right; a race shows itself in some orders of the threads only, so a call is made up to eight times.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

NAMES = {"torch": torch, "F": torch.nn.functional}


class _Double(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
    """Makes tensors in double: of the number that the call's own type has for it."""

    def __torch_function__(
        self, func: Callable[..., Any], _: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not isinstance(result, torch.Tensor) or not (result.is_floating_point() or result.is_complex()):
            return result
        return result.to(torch.complex128 if result.is_complex() else torch.float64)


def on(device: str, call: str) -> torch.Tensor:
    with torch.device(device):
        return eval(call, dict(NAMES)).cpu().flatten()


def right(call: str, dtype: torch.dtype) -> torch.Tensor:
    """Return the answer in double, rounded to the type of the result; the CPU's own where it has none in double."""
    try:
        with _Double():
            return on("cpu", call).to(dtype)
    except RuntimeError:
        return on("cpu", call)


def is_wrong(call: str, got: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether mps is off by four units in the last place, and eight times as far as the CPU's own in this type."""
    try:
        theirs = off(on("cpu", call), want)
    except NotImplementedError:  # the CPU has no such function in 16 bits
        theirs = torch.zeros(want.shape, dtype=torch.float64)
    return bool((off(got, want) > 8 * theirs + 4 * torch.finfo(got.dtype).eps).any())


def off(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """Return the error over what is right; infinite where just one of both is finite."""
    wide = torch.complex128 if want.is_complex() else torch.float64
    got, want = got.to(wide), want.to(wide)
    same = (got == want) | (got.isnan() & want.isnan())
    error = ((got - want).abs() / want.abs().clamp(min=1e-300)).nan_to_num(torch.inf, torch.inf)
    return torch.where(same, 0.0, error)


for name, call in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")).items():
    for _ in range(8):
        result = on("mps", call)
        answer = right(call, result.dtype)
        if wrong := is_wrong(call, result, answer):
            break
    print(name, "wrong" if wrong else "right", result[:2].tolist(), answer[:2].tolist(), flush=True)
