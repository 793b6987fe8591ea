"""The same operator called again: with other data, with another layout, with another option, and as at first.

A back end that keeps what it has compiled, or what it has copied, under too short a key answers from the other call.
"""

from __future__ import annotations

from typing import Any

from engine.description import Operator, undefined
from engine.reference import Truth
from engine.transformation import Call, Factor, Transformation


class _Repeated(Transformation):
    name, graphs, share = "repeated", 2.7, 0.8

    def factors(self, operator: Operator) -> list[Factor]:
        options = [name for name, levels in operator.args.items() if len(levels) > 1]
        layouts = ["layout"] if operator.layout_operands and len(operator.layouts) > 1 else []
        return [("@turn", ("data", *layouts, *(["dtype"] if len(operator.kinds) > 1 else []), *options))]

    def perform(self, call: Call, run: Any, truth: Truth | None) -> list[Any]:
        other = _other(call)
        return [one for each in (call, other, call) for one in each.perform(run, each.bases(run))]

    def chosen_from(self, call: Call, run: Any) -> list[Any]:
        return [x for each in (call, _other(call)) for x in super(_Repeated, self).chosen_from(each, run)]


def _other(call: Call) -> Call:
    """Return the call between: one thing is another level of it."""
    turn, every = call.levels["@turn"], dict(call.operator.factors)
    if turn == "data":
        return call.numbered(call.row.number + 31)
    for name in (
        ("@layout0", "@layout1", "@layout2") if turn == "layout" else (f"@{turn}" if turn == "dtype" else turn,)
    ):
        if name in every:
            place, levels = every[name].index(call.levels[name]), every[name]
            others = (call.with_level(name, one) for one in (*levels[place + 1 :], *levels[:place]))
            call = next((one for one in others if not undefined(one.row)), call)
    return call


transformation = _Repeated()
