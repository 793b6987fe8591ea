"""Makes one case: draws its call, asks the reference, then the device, and judges."""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple

import torch

from device_suite.compare import Error, Mismatch
from device_suite.states import Refused

from . import exclusions, opinions, reference
from .calls import float64_by_default
from .description import Operator, Row, undefined
from .reference import Gap, Truth, read
from .sampler import Case, draw
from .transformation import Call, Transformation

# How often a case is drawn anew where the CPU refuses the call or leaves it open.
ATTEMPTS = 4
# How many other classes of values a case is made with.
VARIANTS = 3
_KEPT_ELEMENTS = 10_000


class Wrong(Mismatch):
    """A case is answered wrongly; `call` is the call, `others` is what else is wrong: the call with other values."""

    def __init__(self, message: str, error: Error | None, call: Call) -> None:
        super().__init__(message, error)
        self.call = call
        self.others: list[Wrong] = []


Prepared = List[Tuple[Call, Truth]]


def prepared(case: Case, operator: Operator, transformation: Transformation, bench: Any) -> Prepared:
    """Return what a case asks, with the reference's answers: its call, and the same call with other values.

    It is the first call of some attempts that the CPU answers. Other values need no other graph.

    Raises:
        Refused: the CPU answers none of the attempts; the message says why.
    """
    kept = None if reference.KEPT is None else reference.KEPT.get(str(case))
    if kept is not None:
        return kept  # type: ignore[no-any-return]
    why = "no draw is defined"
    for attempt in range(ATTEMPTS):
        call = draw(case, operator, transformation, attempt)
        if call is None:
            continue
        found: Prepared = []
        for one in (call, *(variants(call) if transformation.varied else ())):
            if exclusions.why(one):
                continue
            try:
                found.append((one, asked(one, transformation, bench)))
            except NameError:  # a mistake in a description or a transformation, no refusal
                raise
            except Exception as raised:
                why = f"the CPU raises {type(raised).__name__}: {raised}"
                if not found:
                    break
        if not found:
            continue
        if reference.KEPT is not None and sum(_size(truth) for _, truth in found) < _KEPT_ELEMENTS:
            reference.KEPT[str(case)] = found
        return found
    raise Refused(why)


def variants(call: Call) -> Iterator[Call]:
    """Yield the call with other values, and other data of its own: the graph is the same."""
    others = [one for one in call.operator.values if one != call.levels["@values"]]
    start = call.row.number % max(len(others), 1)
    for place, values in enumerate([*others[start:], *others[:start]][:VARIANTS]):
        row = Row(call.row.digits, call.row.number + 17 * (place + 1), call.levels)
        other = Call(call.operator, row).with_level("@values", values)
        if not undefined(other.row):
            yield other


def asked(call: Call, transformation: Transformation, bench: Any) -> Truth:
    """Return the reference's answers to a call; raise what the CPU raises."""
    with float64_by_default():
        return transformation.truth(call, bench)


def compared(call: Call, truth: Truth, transformation: Transformation, bench: Any) -> Error:
    """Return the error of the device's answer to a call.

    Raises:
        Mismatch: it is wrong. Gap: there is nothing to compare. Refused: the operator leaves the answer open.
    """
    run = bench.device_run()
    run.seed(bench.seed)
    answer: Any
    with run:
        try:
            answer = read(transformation.perform(call, run, truth))
        except NameError:
            raise
        except Exception as raised:
            answer = raised
    try:
        return transformation.judge(call, bench, truth, answer)  # type: ignore[no-any-return]
    except Mismatch:
        if opinions.leave_open(call, truth, transformation, bench, answer):
            raise Refused("the operator leaves the answer open") from None
        raise


def make(case: Case, operator: Operator, transformation: Transformation, bench: Any) -> Error:
    """Return the largest error of one case; raise Refused, or Wrong with the call that is answered wrongly."""
    worst, gap, wrong = None, "", []
    for call, truth in prepared(case, operator, transformation, bench):
        try:
            error = compared(call, truth, transformation, bench)
        except (Gap, Refused) as refused:
            gap = str(refused)
            continue
        except Mismatch as mismatch:
            wrong.append(Wrong(f"values {call.levels['@values']}: {mismatch}", mismatch.error, call))
            continue
        worst = error if worst is None or error.max_rel_scaled > worst.max_rel_scaled else worst
    if wrong:
        wrong[0].others = wrong[1:]
        raise wrong[0]
    if worst is None:
        raise Refused(gap)
    return worst


def _size(truth: Truth) -> int:
    return sum(one.numel() for one in truth.answers if isinstance(one, torch.Tensor))
