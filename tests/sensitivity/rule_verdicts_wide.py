"""Whether a changed call may be asked of every device: gradients, windows, written operands, broadcasts, long rows."""

from __future__ import annotations

from typing import Any

from device_suite.overloads.asking import attempt_answers
from device_suite.overloads.forwards import choices_of
from device_suite.rules.beside import is_beside
from device_suite.rules.changes import ChangedCall
from device_suite.rules.ways import asked_as
from device_suite.runs import Bench
from rule_verdicts import CPU, Overload, Verdict, answered
from rule_verdicts_views import lays_anew


def derived(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep special values for which the gradients are one, whoever computes them: all in one operand, or some."""
    words = [one for one in changes if one[0] in ("fill", "put")]
    key = str([one for one in changes if one[0] == "kind"] + [one[1] for one in words])
    if key in told.found:
        return "more values are asked of this operand", changes
    way = Overload(asked_as(told.func, made, changes), told.name, told.call)
    reason, _ = answered(way, made, changes, special=True)
    wide = [one for one in changes if one[:2] != ["kind", "float32"]]
    if not reason and wide != changes:  # what is open in float32 is no less so in a half, whose code has no vectors
        single = ChangedCall(told.func, told.call, wide, choices_of(told.name))
        reason, _ = answered(way, single, wide, special=True)
    if not reason and words[0][2] == "every":
        told.found[key] = True
    return reason, changes


def written(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep layouts of what is written that stay as they are: a result of another size is laid anew."""
    reason, _ = answered(told, made, changes)
    if not reason and lays_anew(told.func, made):
        reason = "the CPU lays a result anew that it was given"
    return reason, changes


def beside(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what the CPU's own answer in another layout does not contradict."""
    way = asked_as(told.func, made, changes)
    reason, _ = answered(Overload(way, told.name, told.call), made, changes)
    if not reason and not is_beside(
        *(attempt_answers(way, made, Bench(CPU).same(), dense=one) for one in (False, True))
    ):
        reason = "the CPU answers another layout otherwise"
    return reason, changes


VERDICTS = {"derived": derived, "windows": answered, "written": written, "broadcast": beside, "rows": beside}
