"""Whether a changed call may be asked of every device: gradients, windows, written operands, broadcasts, long rows."""

from __future__ import annotations

from typing import Any

from device_suite.overloads.asking import attempt_answers
from device_suite.rules.beside import is_beside
from device_suite.rules.changes import ChangedCall
from device_suite.rules.ways import asked_as
from device_suite.runs import Bench
from rule_verdicts import CPU, Overload, Verdict, answered


def derived(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep special values for which the gradients are one, whoever computes them: all in one operand, or some."""
    words = [one for one in changes if one[0] in ("fill", "put")]
    key = str([one for one in changes if one[0] == "kind"] + [one[1] for one in words])
    if key in told.found:
        return "more values are asked of this operand", changes
    way = asked_as(told.func, made, changes)
    reason, _ = answered(Overload(way, told.name, told.call), made, changes, special=True)
    if not reason and words[0][2] == "every":
        told.found[key] = True
    return reason, changes


def beside(told: Overload, made: ChangedCall, changes: list[Any]) -> Verdict:
    """Keep what the CPU's own answer in another layout does not contradict."""
    reason, _ = answered(told, made, changes)
    own = attempt_answers(told.func, made, Bench(CPU).same())
    if not reason and not is_beside(own, attempt_answers(told.func, made, Bench(CPU).same(), dense=True)):
        reason = "the CPU answers another layout otherwise"
    return reason, changes


VERDICTS = {"derived": derived, "windows": answered, "written": answered, "broadcast": beside, "rows": beside}
