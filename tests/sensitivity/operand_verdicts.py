"""Whether a change of the rules on operands may be asked of every device: why not, or nothing."""

from __future__ import annotations

import math
import time
from typing import Any

import torch

from device_suite.overloads.asking import attempt_answers
from device_suite.overloads.described import shape_of, texts
from device_suite.rules.changes import ChangedCall
from device_suite.rules.ways import Twice, Wanting, asked_as
from device_suite.runs import Bench
from little_memory import little_memory
from operand_candidates import MANY
from rule_verdicts import CPU, Overload, Verdict, answered, is_equal, refused
from rule_verdicts_wide import beside

_MOST = 4 << 20  # elements of all operands and answers
_SECONDS = 0.012


def sizes(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what the CPU answers soon."""
    if not _is_called(told, ChangedCall(told.func, told.call, [])):
        return "its own call is refused: other values are drawn than it needs", changes
    if sum(math.prod(shape_of(text)) for text in texts(made.call)) > _MOST:
        return "it has too many elements", changes
    seconds = math.inf
    for _ in range(2):  # the first call may load what the second finds
        begun = time.process_time()
        with little_memory():
            own = attempt_answers(told.func, made, Bench(CPU).same())
        if isinstance(own, Exception):
            return "the CPU refuses it with these operands", changes
        seconds = min(seconds, time.process_time() - begun)
        if not _SECONDS < seconds < 10 * _SECONDS:
            break
    if seconds > _SECONDS:
        return "it takes longer than a few milliseconds", changes
    counts = [base.numel() for base in made.bases] + [getattr(one, "numel", int)() for one, _ in own]
    if sum(counts) > _MOST:
        return "it has too many elements", changes
    if not all(_is_moderate(one) for one, _ in own):
        return "it comes near the end of the dtype's range", changes
    if getattr(changes, "kind", "") == "many" and max(counts) < MANY:
        return "it has too few elements", changes
    return beside(told, made, changes)


def _is_moderate(x: Any) -> bool:
    """Say whether all numbers are far below the end of their dtype: so in no order a sum or a product passes it."""
    if not isinstance(x, torch.Tensor) or not (x.is_floating_point() or x.is_complex()) or x.numel() == 0:
        return True
    return bool(x.isfinite().all()) and float(x.abs().max()) < float(torch.finfo(x.dtype).max) ** 0.75


def _is_called(told: Overload, plain: ChangedCall) -> bool:
    if "called" not in told.found:
        told.found["called"] = not isinstance(attempt_answers(told.func, plain, Bench(CPU).same()), Exception)
    return bool(told.found["called"])


def numbers(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep numbers for which the CPU has one answer, in float64 and beside gaps in memory too."""
    return answered(told, made, changes, special=True)


def lazy(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep views that the CPU answers as it answers copies of them."""
    reason, _ = answered(told, made, changes)
    if not reason:
        run = Bench(CPU).same()
        own, copied = (attempt_answers(told.func, made, run, dense=dense) for dense in (False, True))
        if isinstance(copied, Exception) or not all(is_equal(one, two) for (one, _), (two, _) in zip(own, copied)):
            reason = "the CPU answers a copy otherwise"
    return reason, changes


def wanting(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what is answered."""
    return answered(Overload(Wanting(told.func), told.name, told.call), made, changes)


def twice(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what has a second gradient."""
    return answered(Overload(Twice(told.func), told.name, made.call), made, changes)


def halves(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what has a gradient."""
    return answered(Overload(asked_as(told.func, made.call, changes), told.name, made.call), made, changes)


def emptied(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what is answered, and what the change shows in."""
    if all(0 not in shape_of(text) for text in texts(made.call)):
        return "nothing is empty", changes
    return answered(told, made, changes)


def emptied_refused(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what the CPU refuses by a check of its own, of calls that are answered with something."""
    if not _is_called(told, ChangedCall(told.func, told.call, [])):
        return "its own call is refused: other values are drawn than it needs", changes
    return refused(told, made, changes)


VERDICTS = {one.__name__: one for one in (sizes, numbers, lazy, wanting, twice, halves, emptied, emptied_refused)}
VERDICTS.update(dict.fromkeys(("typed", "dims", "amid", "vast", "stray"), answered), cuts=numbers)
