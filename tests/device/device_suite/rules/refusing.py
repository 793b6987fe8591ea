"""Rule 1: what the CPU refuses, a device refuses too, and its memory is as it was."""

from __future__ import annotations

import re
from typing import Any

import torch

from ..answers import says_missing
from ..overloads.asking import flat_answers
from ..states import Refused
from .asked import calls_of
from .public import public_of

_SHOWN = 5
# Worded as a gap, and said of a value or of memory that no back end takes.
_NO_GAP = re.compile("single memory location|non-?positive|(non-?)?negative", re.IGNORECASE)
_BESIDE_VALUES = ("side", "rank", "arg", "first", "longer")


def ask_refused(overloads: list[Any], bench: Any) -> None:
    """Ask calls that have no answer; all operands are read again after each.

    Raises:
        AssertionError: a call is answered, or an operand is not what it was.
        Refused: this torch's CPU refuses none of the calls.
    """
    wrong, asked = [], 0
    for name, func, call, changes in calls_of(overloads):
        if bench.device.type == "cuda" and may_stop_cuda(func, call, changes):
            continue
        function = public_of(func)
        mine, kept = attempted(function, call, bench.same(), bench)
        if mine is None or is_gap(mine):
            continue  # another release answers it, or has a gap here
        asked += 1
        found, left = attempted(function, call, bench.device_run(), bench)
        told = f"{name} {changes}"
        if found is None:
            wrong.append(f"{told}: an answer; the CPU says {type(mine).__name__}: {str(mine)[:120]}")
        elif _changed(left, call.bases) and not _changed(kept, call.bases):
            wrong.append(f"{told}: refused, but an operand has changed")
    if not asked:
        raise Refused("no call that this torch's CPU refuses, and that may be asked here")
    more = f"\nand {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    assert not wrong, "\n".join(wrong[:_SHOWN]) + more


def may_stop_cuda(func: Any, call: Any, changes: list[Any]) -> bool:
    """Say whether a kernel of CUDA may find a call wrong by the values in it: that ends the device for all cases.

    Places, counts and masks are such values, where a shape or a number has changed beside them.
    """
    by_value = any(not (one.is_floating_point() or one.is_complex()) for one in call.bases)
    return by_value and changes[-1][0] in _BESIDE_VALUES and torch.Tag.pointwise not in func.tags


def is_gap(raised: Exception) -> bool:
    """Say whether a back end lacks something; that it refuses a value, or to write where places are one, is no gap.

    >>> is_gap(RuntimeError("non-positive stride is not supported"))
    False
    >>> is_gap(RuntimeError("unsupported operation: more than one element refers to a single memory location."))
    False
    """
    return says_missing(raised) and _NO_GAP.search(str(raised)) is None


def attempted(func: Any, call: Any, run: Any, bench: Any) -> tuple[Exception | None, list[torch.Tensor]]:
    """Return what a call raises, at once or when its work is waited for, and its operands' memory after it."""
    copies = run.copy(call.bases)
    raised: Exception | None = None
    with run:
        bases = run.bring(copies)
        try:
            args, kwargs = call.arguments(bases, run.device, run.cast)
            for one in flat_answers(func(*args, **kwargs)):
                if isinstance(one, torch.Tensor):
                    one.detach().cpu()
            bench.synchronise()
        except Exception as refusal:
            raised = refusal
        try:
            return raised, [base.cpu().clone() for base in bases]
        except Exception as late:  # told when memory is read
            return raised or late, [base.cpu().clone() for base in bases]


def _changed(found: list[torch.Tensor], before: list[torch.Tensor]) -> bool:
    return any(one.shape != other.shape or not _equal(one, other) for one, other in zip(found, before))


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype.is_complex:
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    same = one == other
    return bool((same | ((one != one) & (other != other))).all())
