"""What a record of verify_mps adds to each operator: right, wrong, refused, fell back, as it was measured.

A case's id names the operator that it asks: `addr:gradient:17`; it is one of that operator's overloads, and the record
does not say which. A refusal and a fallback name their overload in PyTorch's own words. What a case that is written by
hand dispatches is not recorded: a model that fails says nothing about one operator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mps_build.common.records.device_record import FAILED, Case, Record

WORDS = ("wrong", "suspect", "refused", "fell back", "right")
_REFUSED = re.compile(r"operator '(?:aten::)?([\w.]+)' is not currently implemented")
_FELL_BACK = re.compile(r"operator '(?:aten::)?([\w.]+)' is not currently supported[^']*fall back")
_WRONG = (*FAILED, "known")
# How ids of older records begin: `layout-addr-grad`.
_NAMED = ("layout", "condition", "overload", "opinfo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One operator on one device: the word, and in how many cases it answered right and wrong."""

    word: str
    passed: int
    failed: int

    def document(self) -> dict[str, Any]:
        """Return the measured outcome of an operator as JSON: the word and the cases."""
        return {"measured": self.word, "passed": self.passed, "failed": self.failed}


def operator_of(case: str) -> str:
    """Return the operator that a case's id names; empty where it names none. Ids of older records are read too.

    >>> operator_of("addr:gradient:17"), operator_of("layout-addr-grad"), operator_of("overload-add.out")
    ('addr', 'addr', 'add')
    >>> operator_of("issue-131750")
    ''
    """
    name, is_drawn, _ = case.partition(":")
    if not is_drawn:
        layer, name = (*case.split("-", 2), "")[:2]
        name = name.partition(".")[0] if layer in _NAMED else ""
    return name.strip("_")


def measure(record: Record, operators: Iterable[str], *, on_cpu: frozenset[str] = frozenset()) -> dict[str, Measured]:
    """Return what the record tells of each operator that one of its cases asks.

    Args:
        operators: the overloads that there are (`add.Tensor`).
        on_cpu: operators registered to fall back unasked: on MPS, their right answers are the CPU's.
    """
    overloads: dict[str, list[str]] = {}
    for name in operators:
        overloads.setdefault(name.partition(".")[0].strip("_").removesuffix("_backward"), []).append(name)
    passed: dict[str, int] = {}
    failed: dict[str, int] = {}
    named: dict[str, str] = dict.fromkeys(on_cpu, "fell back") if record.device == "mps" else {}
    for case in record.cases:
        text = _text(case)
        named |= dict.fromkeys(_REFUSED.findall(text), "refused") | dict.fromkeys(_FELL_BACK.findall(text), "fell back")
        tally = passed if case.outcome in ("passed", "unexpected_pass") else failed if case.outcome in _WRONG else None
        if tally is None or (tally is failed and _REFUSED.search(text)):
            continue  # a refusal is a gap, not a wrong answer
        for name in overloads.get(operator_of(case.id), ()):
            if _is_asked(name, case.id):
                tally[name] = tally.get(name, 0) + 1
    return {
        operator: _measured(named.get(operator, ""), passed.get(operator, 0), failed.get(operator, 0))
        for operator in sorted(passed.keys() | failed.keys() | (named.keys() - on_cpu))
    }


def _is_asked(operator: str, case: str) -> bool:
    """Say whether a case can have asked an overload: a gradient's kernel, an `out=` and a write in place by their form.

    >>> [_is_asked(name, "elu:out:3") for name in ("elu", "elu.out", "elu_", "elu_backward")]
    [False, True, False, False]
    """
    words = set(re.split(r"[:-]", case))
    name, _, overload = operator.partition(".")
    if name.endswith("_backward"):
        return bool(words & {"gradient", "grad", "second_gradient"})
    if "out" in overload.split("_"):
        return "out" in words
    return ("inplace" in words) if name.endswith("_") else not words & {"out", "inplace"}


def _measured(named: str, passed: int, failed: int) -> Measured:
    word = named or ("right" if not failed else "suspect" if passed else "wrong")
    return Measured(word=word, passed=passed, failed=failed)


def _text(case: Case) -> str:
    return f"{case.reason or ''} {json.dumps(case.error) if case.error else ''}"


def totals(measured: Iterable[Measured]) -> dict[str, int]:
    """Return how many operators each word has, in the order of WORDS."""
    words = [each.word for each in measured]
    return {word: words.count(word) for word in WORDS if word in words}
