"""Makes one case: draws its call, asks the reference, then the device, and judges."""

from __future__ import annotations

from typing import Any, Iterator, List, Tuple

import torch

from . import exclusions, opinions, reference
from .calls import float64_by_default
from .compare import Error, Mismatch
from .description import Operator, Row, undefined
from .reference import Gap, Truth, read
from .sampler import Case, draw
from .states import Refused
from .transformation import Call, Transformation

# How often a case is drawn anew where the CPU refuses the call or leaves it open.
ATTEMPTS = 4
# How many calls besides its own a case makes that need no other graph.
VARIANTS = 5
# Layouts of tensors that are contiguous, some behind an offset.
CONTIGUOUS = ("dense", "offset")
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
        for one in (call, *(variants(call, transformation) if transformation.varied else ())):
            if exclusions.why(one):
                continue
            try:
                found.append((one, reference_of(one, transformation, bench)))
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


def variants(call: Call, transformation: Transformation) -> Iterator[Call]:
    """Yield calls that need no other graph: other values and data, other layouts of the same kind, other forms.

    Of tensors that are contiguous, some lie behind an offset; of the others each lies another way. A plain call is
    made in place and with out= too.
    """
    others = [one for one in call.operator.values if one != call.levels["@values"]] or [call.levels["@values"]]
    form = call.levels["@form"]
    forms = (
        [one for one in transformation.beside if one in call.operator.forms] if form in transformation.beside else []
    )
    free = dict(transformation.factors(call.operator))
    for place in range(VARIANTS):
        turn = call.row.number + place
        levels = {
            **call.levels,
            "@values": others[turn % len(others)],
            "@form": forms[(place + 1) % len(forms)] if forms else form,
        }
        for name, level in call.levels.items():
            if name.startswith("@layout") and transformation.relayout:
                alike = [one for one in call.operator.layouts if (one in CONTIGUOUS) == (level in CONTIGUOUS)]
                levels[name] = alike[(alike.index(level) + turn + 1) % len(alike)]
            elif name in transformation.free:
                levels[name] = free[name][turn % len(free[name])]
        other = Call(call.operator, Row(call.row.digits, call.row.number + 17 * (place + 1), levels))
        if not undefined(other.row):
            yield other


def reference_of(call: Call, transformation: Transformation, bench: Any) -> Truth:
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
    try:
        with run:
            try:
                answer = read(transformation.perform(call, run, truth))
            except NameError:
                raise
            except Exception as raised:
                answer = raised
    except RuntimeError as raised:  # of a device that is found out later, when it is waited for
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
