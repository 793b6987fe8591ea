"""Asks rows: the reference in float64 once, the device once, one comparison each."""

from __future__ import annotations

from typing import Any

from engine.calls import float64_by_default, perform
from engine.comparison import judge
from engine.description import Operator, Row
from engine.reference import Gap, drawn, read, truth_of

from ..compare import Error, Mismatch
from ..states import Refused
from .program import program


def ask_rows(spec: Operator, rows: list[Row], bench: Any) -> Error:
    """Return the largest error over some rows of one operator.

    Raises:
        Mismatch: a row is answered wrongly; the message is the program of the first, and the numbers of the others.
        Refused: no row could be asked; the message says why.
    """
    with float64_by_default():
        truths = [truth_of(spec, row, bench) for row in rows]
    asked = [(row, truth, drawn(spec, row, truth)) for row, truth in zip(rows, truths) if not isinstance(truth, str)]
    answers = []
    run = bench.device_run()
    run.seed(bench.seed)
    with run:
        for row, _, placed in asked:
            try:
                answers.append(read(perform(spec, row, run, *placed)))
            except Exception as raised:
                answers.append(raised)
    return _judge_all(spec, bench, [(row, truth, answer) for (row, truth, _), answer in zip(asked, answers)], truths)


def _judge_all(spec: Operator, bench: Any, asked: list[Any], truths: list[Any]) -> Error:
    worst, wrong = Error(), []
    gaps = [truth for truth in truths if isinstance(truth, str)]
    for row, truth, answer in asked:
        try:
            error = judge(spec, row, bench, truth, answer)
            worst = error if error.max_rel_scaled > worst.max_rel_scaled else worst
        except Gap as gap:
            gaps.append(str(gap))
        except Mismatch as mismatch:
            wrong.append((row, mismatch))
    if wrong:
        row, first = wrong[0]
        also = f"\nand rows {', '.join(one.digits for one, _ in wrong[1:])}" if wrong[1:] else ""
        raise Mismatch(f"row {row.digits}: {first}\n{program(spec, row)}{also}", first.error)
    if len(gaps) == len(truths):
        raise Refused(gaps[0] if gaps else "no row")
    return worst
