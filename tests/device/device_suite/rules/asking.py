"""Rules 2, 6 and 7: calls that are answered: special values, arguments in turn, chains in place, half types."""

from __future__ import annotations

import math
from typing import Any, Callable, Iterable, NamedTuple

import torch

from ..answers import says_missing
from ..compare import Error, Mismatch
from ..overloads.asking import attempt_answers, judge, written_to
from ..states import Refused
from .asked import calls_of
from .ways import asked_as

_SHOWN = 5


class Called(NamedTuple):
    """A call to ask: an overload's name, what is called, its operands, and what was changed."""

    name: str
    func: Any
    call: Any
    changes: list[Any]


def ask_answered(overloads: list[tuple[str, list[Any]]], bench: Any) -> Error:
    """Return the largest error over the calls of some overloads, or of chains of them."""
    return ask_calls(
        [
            Called(name, asked_as(func, call, changes), call, changes)
            for name, func, call, changes in calls_of(overloads)
        ],
        bench,
    )


def ask_calls(calls: list[Called], bench: Any) -> Error:
    """Return the largest error over some calls; all are made on the device, one behind the other, before one is judged.

    Raises:
        Mismatch: some are wrong; the message names the first few.
        Refused: none could be asked.
    """
    copies = [_copied(one.call, bench) for one in calls]
    run = bench.device_run()
    run.seed(bench.seed)
    with run:
        answers = [attempt_answers(one.func, one.call, run, copy) for one, copy in zip(calls, copies)]
    worst, wrong, gaps = Error(), [], []
    for one, answer in zip(calls, answers):
        try:
            error = judge(one.func, one.call, answer, bench)
            worst = error if error.max_rel_scaled > worst.max_rel_scaled else worst
        except Refused as gap:
            gaps.append(str(gap))
        except Mismatch as mismatch:
            wrong.append((f"{one.name} {one.changes}: {mismatch}", mismatch.error))
    if wrong:
        more = f"\nand {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise Mismatch("\n".join(text for text, _ in wrong[:_SHOWN]) + more, wrong[0][1])
    if len(gaps) == len(calls):
        raise Refused(gaps[0] if gaps else "no call")
    return worst


def _copied(call: Any, bench: Any) -> Any:
    try:
        return bench.device_run().copy(call.bases)
    except Exception:  # this torch lacks a dtype: asking the call says so
        return None


# Units in the last place of one rounding, and of what sums, products, quotients and roots in float32 add to it. What is
# made of other functions loses digits where its terms cancel, and is not asked.
ONE_ROUNDING = 0.6
ALGEBRAIC = frozenset(
    """add sub rsub mul div addcmul addcdiv lerp neg abs reciprocal square sqrt rsqrt relu leaky_relu threshold hardtanh
    hardswish hardsigmoid clamp clamp_min clamp_max maximum minimum fmax fmin ceil floor trunc round frac sign
    fmod remainder floor_divide heaviside where softshrink hardshrink
    leaky_relu_backward threshold_backward hardtanh_backward hardswish_backward hardsigmoid_backward""".split()
)


# The change of a call whose steps the CPU rounds too: no answer may be further off than the CPU's, by one rounding.
STEPS = ["steps"]


def ask_rounded(overloads: list[Any], bench: Any) -> None:
    """Demand that answers in half precision are rounded once, or once more than the CPU rounds them.

    Raises:
        Mismatch: some are off by more; the message names the first few.
        Refused: none could be asked.
    """
    wrong, gaps, asked = [], [], 0
    for name, plain, call, changes in calls_of(overloads):
        func = asked_as(plain, call, changes)
        truth = attempt_answers(func, call, bench.reference())
        with bench.device_run() as run:
            found = attempt_answers(func, call, run)
        if isinstance(truth, Exception) or isinstance(found, Exception):
            refused = truth if isinstance(truth, Exception) else found
            if refused is found and not (says_missing(found) and bench.device.type != "cpu"):
                wrong.append(f"{name} {changes}: raised {type(found).__name__}: {found}")
            gaps.append(f"refused: {refused}")
            continue
        asked += 1
        if told := written_to(found):
            wrong.append(f"{name} {changes}: {told}")
        off = roundings(found, truth, attempt_answers(func, call, bench.same()) if STEPS in changes else ())
        if off > ONE_ROUNDING:
            wrong.append(f"{name} {changes}: off by {off:.2f} units in the last place, allowed {ONE_ROUNDING}")
    settle(wrong, gaps, asked)


def compare_each(
    calls: Iterable[Called],
    bench: Any,
    ask: Callable[[Called, Any], Any],
    differ: Callable[[Called, Any, Any], str],
) -> None:
    """Ask each call of the CPU, then of the device, and demand that nothing differs.

    Args:
        ask: (call, run) -> what the run answers, or the Exception that it raises.
        differ: (call, the device's, the CPU's) -> what differs, in words; an empty text if nothing does.

    Raises:
        Mismatch: some differ; the message names the first few.
        Refused: none could be asked.
    """
    wrong, gaps, asked = [], [], 0
    for one in calls:
        mine = ask(one, bench.same())
        if isinstance(mine, Exception):
            gaps.append(f"this torch's CPU raises {type(mine).__name__}: {mine}")
            continue
        found = ask(one, bench.device_run())
        if isinstance(found, Exception) and says_missing(found) and bench.device.type != "cpu":
            gaps.append(f"not on this device: {found}")
            continue
        asked += 1
        if isinstance(found, Exception):
            wrong.append(f"{one.name} {one.changes}: raised {type(found).__name__}: {found}")
        elif text := written_to(found) or differ(one, found, mine):
            wrong.append(f"{one.name} {one.changes}: {text}")
    settle(wrong, gaps, asked)


def settle(wrong: list[str], gaps: list[str], asked: int) -> None:
    """Raise what came of some calls: Mismatch with the first few that are wrong, Refused where none could be asked."""
    if wrong:
        more = f"\nand {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise Mismatch("\n".join(wrong[:_SHOWN]) + more)
    if not asked:
        raise Refused(gaps[0] if gaps else "no call")


def roundings(found: list[Any], truth: list[Any], own: Any = ()) -> float:
    """Return by how many units in the last place answers in half precision are off, where the truth is not special.

    An answer that is not there, has another shape or is not finite is off by infinity. By how much the CPU's `own` is
    off counts for each element.
    """
    if len(found) != len(truth):
        return math.inf
    worst = 0.0
    for place, ((got, _), (want, _)) in enumerate(zip(found, truth)):
        if isinstance(got, torch.Tensor) and got.dtype in (torch.float16, torch.bfloat16):
            if got.shape != want.shape:
                return math.inf
            wide, half = want.double(), torch.finfo(got.dtype)
            # One rounding may make an infinity of the largest number.
            usual = (wide.abs() >= half.tiny) & (wide.to(got.dtype).abs() < half.max)
            wide, near, eps = wide[usual], got[usual].double().nan_to_num(math.inf), half.eps
            if wide.numel():
                unit = torch.exp2(torch.floor(torch.log2(wide.abs()))) * eps
                allowed = (own[place][0][usual].double() - wide).abs() if own else 0.0
                worst = max(worst, float((((near - wide).abs() - allowed) / unit).max()))
    return worst
