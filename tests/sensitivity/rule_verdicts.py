"""Whether a changed call may be asked of every device: why not, or nothing. Of views: rule_verdicts_views.py."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable

import torch

from conditions_reach import has_dtype
from device_suite.compare import Mismatch
from device_suite.overloads.asking import attempt_answers, judge, kept_places, wanted_answers
from device_suite.overloads.described import dtype_of, texts
from device_suite.overloads.forwards import choices_of
from device_suite.rules.asking import ONE_ROUNDING, STEPS, roundings
from device_suite.rules.changes import ChangedCall
from device_suite.rules.public import public_of
from device_suite.rules.refusing import attempted, is_gap
from device_suite.rules.ways import DERIVE, asked_as
from device_suite.runs import Bench
from device_suite.states import Refused
from free_choice import ChoosesOtherwise
from generic_plants import UNDEFINED
from rounding import RoundsOtherwise
from rule_candidates import is_written
from rule_depth import rounds_once, tensors
from rule_kinds import is_backward, is_structured, refused_on_meta

CPU = torch.device("cpu")


class Candidate(list[Any]):
    """Changes of a kind of which the first that is kept is enough."""

    kind = ""


Verdict = tuple[str, Any]
_NOT_OURS = "the binding refuses it, before any device"
_SHARED = "code that all devices share refuses it"
_ANSWERED = "the CPU answers it"
_OF_NO_FORWARD = "operands of a gradient that no forward leaves: nobody says what comes of them"
_CHOSEN = "indices that no forward chose: nobody says what comes of them"


@dataclass
class Overload:
    """An overload with its call, and what was found of it so far."""

    func: Any
    name: str
    call: Any
    found: dict[str, Any] = field(default_factory=dict)


def refused(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what the CPU refuses by a check of its own."""
    # Met with 2.6.0's CPU: it has no check of these sizes yet, and reads and writes anywhere.
    if changes[-1][0] in ("side", "rank") and choices_of(told.name) is not None:
        return _CHOSEN, changes
    shapes = is_backward(told.func) and changes[-1][0] in ("side", "rank", "dtype")
    if shapes and not is_written(told.func, told.call)[changes[-1][1]]:
        return _OF_NO_FORWARD, changes
    reason = _why_refused(told, made, changes)
    return reason, changes


# What is found in a table's values, not in shapes: `places` asks it, where a GPU may stop at it.
_BY_VALUE = re.compile(r"(index|target|class) .*out of (bounds|range)", re.IGNORECASE)


def _why_refused(told: Overload, made: ChangedCall, changes: list[Any]) -> str:
    bench = Bench(CPU)
    for _ in range(3):  # a check refuses always; what reads or writes anywhere may do so once
        raised, _ = attempted(public_of(told.func), made, bench.same(), bench)
        if raised is None:
            return _ANSWERED
    if is_gap(raised) or "allocate memory" in str(raised):
        return "the CPU has a gap there"
    if isinstance(raised, TypeError) or "Expected a value of type" in str(raised) or "aten::" in str(raised)[:40]:
        return _NOT_OURS
    kind = changes[-1][0]
    if kind in ("side", "rank", "dtype") and _BY_VALUE.search(str(raised)):
        return "a place, which another case asks"
    if kind in ("side", "rank", "dtype", "arg", "first", "longer", "grown"):
        on_meta = refused_on_meta(told.func, made)
        if kind == "dtype" and not on_meta and not _are_places(told, changes[-1]):
            return "a dtype that this CPU alone refuses"
        if on_meta and is_structured(told.func):
            return _SHARED
    return ""


def _are_places(told: Overload, change: Any) -> bool:
    """Say whether a change makes fractions of whole numbers that stand beside fractions: no device has such places."""
    _, number, dtype = change
    every = [dtype_of(text) for text in texts(told.call)]
    whole = not every[number].is_floating_point and every[number] != torch.bool
    beside = any(one.is_floating_point for place, one in enumerate(every) if place != number)
    return whole and beside and getattr(torch, dtype).is_floating_point


def is_settled(told: Overload, changes: list[Any]) -> bool:
    """Say whether a place past a table's end, or below it, is found already, or another change of the same kind."""
    if isinstance(changes, Candidate):
        return changes.kind in told.found
    return bool(changes) and changes[-1][0] == "place" and place_key(changes[-1]) in told.found


def place_key(change: Any) -> str:
    return f"{change[0]} {change[1]} {change[-1] > 0}"


def places(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep the first place past a table's end that the CPU refuses, the first below it, and the wrong order."""
    if choices_of(told.name) is not None:  # met with max_pool2d_with_indices_backward: the CPU writes anywhere
        if changes[-1][0] == "place":  # one condition, not one for each step
            told.found[place_key(changes[-1])] = True
        return _CHOSEN, changes
    reason = _why_refused(told, made, changes)
    if changes[-1][0] == "order":
        return reason, changes
    if not reason:
        told.found[place_key(changes[-1])] = True
    return "a place inside" if reason == _ANSWERED else reason, changes


def answered(told: Overload, made: ChangedCall, changes: list[Any], *, special: bool = False) -> Verdict:
    """Keep what a device that is right is called right for."""
    for text in texts(made.call):
        if not has_dtype(told.func, text.split(" ")[0][1:]):
            return "upstream lists the dtype as failing on MPS", changes
    if told.name.split(".")[0] in (*UNDEFINED, "resize_", "resize_as_"):
        return "its answer is not defined", changes
    if reads_beyond(told.func, made):
        return "the CPU reads beyond an operand", changes
    own = attempt_answers(told.func, made, Bench(CPU).same())
    if isinstance(own, Exception):
        return "the CPU refuses it with these operands", changes
    reason = (_one_answer(told, made, own) if special else "") or _judged(told, made)
    return reason, changes


def reads_beyond(func: Any, made: ChangedCall) -> bool:
    """Say whether the CPU's answer depends on what lies behind an operand, or is memory that nobody wrote."""
    first, second = (_beside(func, made, other) for other in (19, -23))
    return len(first) != len(second) or not all(_is_near(one, two) for one, two in zip(first, second))


def _beside(func: Any, made: ChangedCall, other: int) -> list[torch.Tensor]:
    """Return a call's answers, each operand with another number behind it; nothing where it raises."""
    bases = []
    for base in made.bases:
        memory = torch.full((base.numel() + 4096,), other, dtype=torch.float64).to(base.dtype)
        memory[: base.numel()] = base.reshape(-1)
        bases.append(memory[: base.numel()].view(base.shape))
    args, kwargs = made.arguments(bases, CPU, lambda dtype: dtype)
    try:
        answers = wanted_answers(func, args, kwargs)
    except Exception:
        return []
    kept = kept_places(func, len(answers))
    return [one for place, one in enumerate(answers) if isinstance(one, torch.Tensor) and place not in kept]


def _is_near(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.layout != torch.strided:
        return True
    if one.shape != two.shape or not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, two)
    return torch.allclose(one, two, rtol=1e-2, atol=1e-2, equal_nan=True)


def _judged(told: Overload, made: ChangedCall) -> str:
    judges: list[tuple[str, Callable[[], Any] | None]] = [
        ("another rounding changes its answer altogether", lambda: RoundsOtherwise(2.0)),
        ("a device may choose its answer", ChoosesOtherwise),
    ]
    for reason, around in judges:
        try:
            run = Bench(CPU, around=around).device_run()
            copies = run.copy(made.bases)
            with run:
                answers = attempt_answers(told.func, made, run, copies)
            judge(told.func, made, answers, Bench(CPU))
        except Refused:
            return "the CPU refuses it with these operands"
        except Mismatch:
            return reason
        except Exception:
            return "it cannot be compared"
    return ""


def _one_answer(told: Overload, made: ChangedCall, own: Any) -> str:
    """Return why special values have no one answer: the CPU's differs in float64, or beside gaps in memory."""
    truth = attempt_answers(told.func, made, Bench(CPU).reference())
    scalar = _beside_gaps(told, made)
    plain = ChangedCall(told.func, told.call, [], choices_of(told.name))
    ordinary = attempt_answers(told.func, plain, Bench(CPU).same())
    # Where it reads the memory, not the operand, other numbers are no other answer.
    by_value = _agree(ordinary, _beside_gaps(told, plain), by_value=True)
    if _agree(own, truth) and _agree(own, scalar, by_value=by_value):
        return ""
    return "an answer of the CPU depends on the width, or on how its code is vectorised"


def _beside_gaps(told: Overload, made: ChangedCall) -> Any:
    """Return the CPU's answers where every operand has gaps in memory: one number after the other is computed."""
    laid = [["layout", number, "step"] for number in range(len(texts(made.call)))]
    other = ChangedCall(told.func, made.call, laid)
    other.__dict__["bases"] = _spread(made, other)
    return attempt_answers(told.func, other, Bench(CPU).same())


def _agree(own: Any, beside: Any, *, by_value: bool = False) -> bool:
    """Say whether answers have NaN and infinities at the same places, and about the same values; or are refused."""
    if isinstance(own, Exception) or isinstance(beside, Exception):
        return True
    pairs = [(mine, its) for (mine, _), (its, _) in zip(own, beside) if isinstance(mine, torch.Tensor)]
    return all(_same_class(mine, its) and (not by_value or _near(mine, its)) for mine, its in pairs)


def _spread(made: ChangedCall, other: ChangedCall) -> list[torch.Tensor]:
    """Return bases for another layout with the values of a call's own."""
    args, kwargs = made.arguments(made.bases, CPU, lambda dtype: dtype)
    mine = tensors([args, kwargs])
    bases = ChangedCall.bases.func(other)  # type: ignore[attr-defined]
    args, kwargs = other.arguments(bases, CPU, lambda dtype: dtype)
    for view, value in zip(tensors([args, kwargs]), mine):
        view.copy_(value)
    return bases  # type: ignore[no-any-return]


def _same_class(one: torch.Tensor, other: Any) -> bool:
    if not isinstance(other, torch.Tensor) or one.shape != other.shape:
        return False
    if one.dtype.is_complex:
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    if not one.dtype.is_floating_point:
        return torch.equal(one, other)
    rounded = other.to(one.dtype)
    return all(torch.equal(test(one), test(rounded)) for test in (torch.isnan, torch.isposinf, torch.isneginf))


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not one.dtype.is_floating_point or one.shape != other.shape:
        return True
    mine, its = (each.double().nan_to_num(0.0, 0.0, 0.0) for each in (one, other))
    most = float(its.abs().max()) if its.numel() else 0.0
    return torch.allclose(mine, its, rtol=0.05, atol=0.05 * most)


def special(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep special values whose answer is one."""
    return answered(told, made, changes, special=True)


def turns(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep the call itself first, then those changes whose answer is another: one change of each argument."""
    key = f"{changes[0][0]} {changes[0][1]}" if changes[0][0] in ("arg", "swap") else str(changes)
    if key in told.found or (changes[0][0] == "swap" and "swap" in told.found):
        return "another value of the argument is asked", changes
    plain = ChangedCall(told.func, told.call, [])
    if "plain" not in told.found:
        told.found["plain"] = answered(told, plain, [])[0]
    if told.found["plain"]:
        return str(told.found["plain"]), changes
    reason, _ = answered(told, made, changes)
    if not reason and _equal_answers(told.func, plain, made):
        reason = "the change does not show"
    if not reason:
        told.found[key] = True
        if changes[0][0] == "swap":
            told.found["swap"] = True
    return reason, changes


def _equal_answers(func: Any, one: ChangedCall, other: ChangedCall) -> bool:
    first, second = (attempt_answers(func, each, Bench(CPU).same()) for each in (one, other))
    if isinstance(first, Exception) or isinstance(second, Exception) or len(first) != len(second):
        return False
    return all(is_equal(mine, its) for (mine, _), (its, _) in zip(first, second))


def is_equal(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    return one.dtype == other.dtype and one.shape == other.shape and torch.allclose(one, other, equal_nan=True)


def rounding(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what the CPU itself rounds once."""
    told = Overload(asked_as(told.func, made, changes), told.name, told.call)
    reason, _ = answered(told, made, changes)
    if reason:
        return reason, changes
    truth, own = (attempt_answers(told.func, made, run) for run in (Bench(CPU).reference(), Bench(CPU).same()))
    if isinstance(truth, Exception) or isinstance(own, Exception):
        return "the CPU refuses it with these operands", changes
    if not any(isinstance(one, torch.Tensor) and one.dtype in (torch.float16, torch.bfloat16) for one, _ in own):
        return "its answer is not in half precision", changes
    args, kwargs = made.arguments(Bench(CPU).same().copy(made.bases), CPU, lambda dtype: dtype)
    if DERIVE in changes and not rounds_once(told.func, args, kwargs):
        return "its gradient is made in several steps", changes
    if roundings(own, truth) <= ONE_ROUNDING:
        return "", changes
    # What a chain of functions rounds on its way is nobody's one expression.
    return ("", [STEPS, *changes]) if is_backward(told.func) else ("the CPU rounds more than once", changes)


VERDICTS = {
    "refused": refused,
    "places": places,
    "special": special,
    "turns": turns,
    "rounding": rounding,
}
