"""Rule 3: calls of 2**16 elements and more, beside the CPU's own answers: what is lost or moved shows."""

from __future__ import annotations

from typing import Any

import torch

from ..overloads.asking import attempt_answers, kept_places, only_reads
from .asked import calls_of
from .asking import Called, compare_each
from .ways import asked_as

# A share of an element, and of their mean: what a function makes of rounding, and no element that is another one.
_SHARE = {torch.float16: 2.0**-6, torch.bfloat16: 2.0**-4}
_USUAL = 2.0**-8


def ask_beside(overloads: list[Any], bench: Any) -> None:
    """Demand the CPU's answers: whole numbers exactly, others within a small share of themselves.

    Raises:
        Mismatch: some differ; the message names the first few.
        Refused: none could be asked.
    """

    def ask(one: Called, run: Any) -> Any:
        bases = one.call.bases
        copies = bases if only_reads(one.func, run) else run.copy(bases)
        with run:
            return attempt_answers(one.func, one.call, run, copies)

    def differ(one: Called, found: Any, mine: Any) -> str:
        return "" if is_beside(found, mine, kept_places(one.func, len(mine))) else _first(found, mine)

    calls = (
        Called(name, asked_as(func, call, changes), call, changes) for name, func, call, changes in calls_of(overloads)
    )
    compare_each(calls, bench, ask, differ)


def is_beside(found: Any, mine: Any, kept: Any = ()) -> bool:
    """Say whether answers are the CPU's, but for what is `kept` for a gradient."""
    return len(found) == len(mine) and all(
        place in kept or _is_near(got, want) for place, ((got, _), (want, _)) in enumerate(zip(found, mine))
    )


def _is_near(got: Any, want: Any) -> bool:
    if not isinstance(got, torch.Tensor) or not isinstance(want, torch.Tensor):
        return bool(got == want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if torch.equal(got, want):
        return True
    return bool((want.is_floating_point() or want.is_complex()) and not bool(_far(got, want).any()))


def _far(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    share = _SHARE.get(want.dtype, _USUAL)
    if want.dtype in _SHARE:
        got, want = got.float(), want.float()
    usual = want.abs()
    usual = usual[usual.isfinite()]
    mean = float(usual.double().mean()) if usual.numel() else 0.0
    return ~torch.isclose(got, want, rtol=share, atol=share * mean, equal_nan=True)


def _first(found: Any, mine: Any) -> str:
    """Return the first element that differs."""
    for number, ((got, _), (want, _)) in enumerate(zip(found, mine)):
        if isinstance(got, torch.Tensor) and isinstance(want, torch.Tensor) and not _is_near(got, want):
            if got.shape != want.shape or got.dtype != want.dtype:
                return f"answer {number}: {got.dtype} {tuple(got.shape)}, the CPU has {want.dtype} {tuple(want.shape)}"
            exact = not (want.is_floating_point() or want.is_complex())
            differ = (got != want if exact else _far(got, want)).nonzero()
            place = tuple(differ[0].tolist())
            return f"answer {number}: {len(differ)} differ, first at {place}: {got[place]}, the CPU has {want[place]}"
    return f"{len(found)} answers, the CPU has {len(mine)}"
