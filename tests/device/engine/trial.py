"""Makes one case: draws its call, asks the reference, then the device, and judges."""

from __future__ import annotations

from typing import Any

import torch

from device_suite.compare import Error, Mismatch
from device_suite.states import Refused

from . import exclusions, opinions, reference
from .calls import float64_by_default
from .description import Operator
from .reference import Gap, Truth, read
from .sampler import Case, draw
from .transformation import Call, Transformation

# How often a case is drawn anew where the CPU refuses the call or leaves it open.
ATTEMPTS = 4
_KEPT_ELEMENTS = 5_000


def prepared(case: Case, operator: Operator, transformation: Transformation, bench: Any) -> tuple[Call, Truth]:
    """Return the first call of a case that the CPU answers, and the reference's answers.

    Raises:
        Refused: it answers none of the attempts; the message says why.
    """
    kept = None if reference.KEPT is None else reference.KEPT.get(str(case))
    if kept is not None:
        return kept  # type: ignore[no-any-return]
    why = "no draw is defined"
    for attempt in range(ATTEMPTS):
        call = draw(case, operator, transformation, attempt)
        if call is None or exclusions.why(call, case.transformation):
            continue
        try:
            truth = asked(call, transformation, bench)
        except NameError:  # a mistake in a description or a transformation, no refusal
            raise
        except Exception as raised:
            why = f"the CPU raises {type(raised).__name__}: {raised}"
            continue
        if reference.KEPT is not None and _size(truth) < _KEPT_ELEMENTS:
            reference.KEPT[str(case)] = call, truth
        return call, truth
    raise Refused(why)


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
    """Return the error of one case; raise Mismatch or Refused."""
    call, truth = prepared(case, operator, transformation, bench)
    try:
        return compared(call, truth, transformation, bench)
    except Gap as gap:
        raise Refused(str(gap)) from gap


def _size(truth: Truth) -> int:
    return sum(one.numel() for one in truth.answers if isinstance(one, torch.Tensor))
