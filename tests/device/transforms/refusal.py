"""Calls that the CPU refuses: the device must refuse them too, and the process must live.

One thing of a right call is made wrong: an operand's rank, a side, its dtype, or an argument. Where the CPU answers all
the same, its answer is compared as any other.
"""

from __future__ import annotations

from typing import Any

import torch

from engine.calls import bring, cut, flatten, operands_of, target
from engine.compare import Error, Mismatch
from engine.description import Operator
from engine.pools import SINGLES
from engine.reference import Truth
from engine.states import Refused
from engine.transformation import Call, Factor, Transformation

_OPERANDS = {
    "rank": lambda x: x.unsqueeze(0),
    "flat": lambda x: x.reshape(-1),
    "side": lambda x: torch.cat([x, x[..., :1]], -1) if x.dim() else x.expand(3),
    "short": lambda x: x[..., 1:] if x.dim() else x,
    "dtype": lambda x: x.to(torch.int64 if x.is_floating_point() else torch.float32),
    "bool": lambda x: x.bool(),
    "empty": lambda x: x[:0] if x.dim() else x,
}
_WRONG_ARGUMENTS = ("far", "negative", "none", "text", "more")


class _Refusal(Transformation):
    name, varied = "refusal", False

    def applies(self, operator: Operator) -> bool:
        return super().applies(operator) and not operator.dense_on_cpu

    def factors(self, operator: Operator) -> list[Factor]:
        changes = [f"{kind}{number}" for number in range(min(len(operator.operands), 3)) for kind in _OPERANDS]
        changes += [
            f"{kind}:{name}"
            for name in operator.args
            if name not in ("_cast", "_with", "_at")
            for kind in _WRONG_ARGUMENTS
        ]
        return [("@wrong", tuple(changes))]

    def chosen_from(self, call: Call, run: Any) -> list[Any]:
        kind = call.levels["@wrong"]
        return [_OPERANDS[kind[:-1]](x) if kind[-1] == "0" else x for x in super().chosen_from(call, run)]

    def truth(self, call: Call, bench: Any) -> Truth:
        if call.levels["@wrong"].startswith("dtype") and call.levels["@values"] in ("special", "inf", *SINGLES):
            raise ValueError("which whole number NaN and infinity are is open")
        try:
            return super().truth(call, bench)
        except NameError:
            raise
        except Exception as raised:
            return Truth([raised], [])

    def perform(self, call: Call, run: Any, truth: Truth | None) -> list[Any]:
        wrong = call.levels["@wrong"]
        kind, _, name = wrong.partition(":")
        levels, views = call.levels, [cut(one) for one in bring(run, call.bases(run))]
        if not name:
            number = int(kind[-1])
            if not isinstance(views[number], torch.Tensor):
                raise TypeError("no tensor")
            views[number] = _OPERANDS[kind[:-1]](views[number])
        operands, args = operands_of(call.row, run, views, {name: _wrong(kind, levels[name])} if name else {})
        return flatten(target(call.operator, call.row)(*operands, **args))

    def judge(self, call: Call, bench: Any, truth: Truth, answer: Any) -> Error:
        refused = truth.answers and isinstance(truth.answers[0], Exception)
        if not refused:
            return super().judge(call, bench, truth, answer)  # type: ignore[no-any-return]
        if isinstance(answer, Exception):
            return Error()
        if "ZeroDivisionError" in str(truth.answers[0]):  # of whole numbers: no GPU notices it
            raise Refused("what a whole number divided by 0 is, is open")
        try:
            self.own(call, bench, truth)  # float64 alone is refused
        except Exception:
            raise Mismatch(
                f"answered what the CPU refuses with {type(truth.answers[0]).__name__}: {truth.answers[0]}"
            ) from None
        return Error()


def _wrong(kind: str, value: Any) -> Any:
    if kind == "none":
        return None
    if kind == "text":
        return "no such"
    if isinstance(value, (tuple, list)):
        return (*value, *value[-1:]) if kind == "more" else tuple(_wrong(kind, one) for one in value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return type(value)(77 if kind == "far" else -77)
    return (1, 2, 3) if kind == "more" else -77


transformation = _Refusal()
