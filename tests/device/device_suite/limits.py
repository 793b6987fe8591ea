"""Tables of forms at a limit: one case asks each form, and what each says or refuses is compared."""

from __future__ import annotations

from typing import Any

import torch

from . import Cases
from .answers import attempt

ONCE = ("fresh",)
HALVES = (torch.float16, torch.bfloat16)
ENDS = {dtype: torch.iinfo(dtype) for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)}


def each(forms: dict[str, Any], *operands: Any) -> Any:
    """Return what each form answers, or the kind of its refusal."""
    return {name: attempt(lambda form=form: form(*operands)) for name, form in forms.items()}


def add_table(cases: Cases, name: str, forms: dict[str, Any], make: Any, **fields: Any) -> None:
    """Add one case that asks every form of a table of the same operands.

    Args:
        make: operands from a source of numbers.
        fields: of the case, in place of the usual (64 terms, a floor of 1, fresh operands alone).
    """
    options = {"terms": 64, "floor": 1.0, "states": ONCE, "may_be_missing": True, **fields}
    cases.add(f"condition-limit-{name}", lambda *operands: each(forms, *operands), make=make, **options)


def shown(y: torch.Tensor, step: int = 1021) -> Any:
    """Return both ends of a long answer, and every so many elements of it; a short one as it is."""
    y = y.flatten()
    return y if len(y) < 5000 else [y[:99], y[::step], y[-99:]]


def each_shown(answer: Any) -> Any:
    """Return the parts of an answer, however it is nested, each as `shown` gives it."""
    if isinstance(answer, (tuple, list)):
        return [each_shown(one) for one in answer]
    return shown(answer) if isinstance(answer, torch.Tensor) else answer


def assigned(x: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
    """Return a copy of x with a value written to a place."""
    target = x.clone()
    target[index] = value
    return target
