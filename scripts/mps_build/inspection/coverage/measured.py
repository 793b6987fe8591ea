"""What a record of verify_mps adds to each operator: right, wrong, refused, fell back, as it was measured.

The suite's map (touch_map.json) tells which operators each case dispatches. A refusal and a fallback name their
operator in PyTorch's own words; a wrong answer names none, so that an operator is *wrong* only where nothing else
can be: every case that dispatches it fails, or the failing case is named for it. Else it is *suspect*.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.errors import UsageError
from mps_build.common.json_text import read_json
from mps_build.common.records.device_record import FAILED, Case, Record

WORDS = ("wrong", "suspect", "refused", "fell back", "right")
_REFUSED = re.compile(r"operator '(?:aten::)?([\w.]+)' is not currently implemented")
_FELL_BACK = re.compile(r"operator '(?:aten::)?([\w.]+)' is not currently supported[^']*fall back")
_WRONG = (*FAILED, "known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One operator on one device: the word, and in how many cases it answered right and wrong."""

    word: str
    passed: int
    failed: int

    def document(self) -> dict[str, Any]:
        """Return the measured outcome of an operator as JSON: the word and the cases."""
        return {"measured": self.word, "passed": self.passed, "failed": self.failed}


def load_touch_map(path: Path) -> dict[str, frozenset[str]]:
    """Return case id to operators (`add.Tensor`).

    Raises:
        UsageError: the suite has no such map.
    """
    try:
        document = read_json(path)
        names = [_plain(name) for name in document["operators"]]
        return {case: frozenset(names[index] for index in touched) for case, touched in document["cases"].items()}
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise UsageError(f"{path}: is not a map of cases to operators: {error!r}") from error


def measure(
    record: Record, touches: Mapping[str, frozenset[str]], *, on_cpu: frozenset[str] = frozenset()
) -> dict[str, Measured]:
    """Return what the record tells of each operator that one of its cases dispatched.

    Args:
        on_cpu: operators registered to fall back unasked: on MPS, their right answers are the CPU's.
    """
    passed: dict[str, int] = {}
    failed: dict[str, int] = {}
    named: dict[str, str] = dict.fromkeys(on_cpu, "fell back") if record.device == "mps" else {}
    for case in record.cases:
        text = _text(case)
        named |= dict.fromkeys(_REFUSED.findall(text), "refused") | dict.fromkeys(_FELL_BACK.findall(text), "fell back")
        tally = passed if case.outcome in ("passed", "unexpected_pass") else failed if case.outcome in _WRONG else None
        if tally is None:
            continue
        blamed = touches.get(case.id, frozenset())
        if tally is failed and _REFUSED.search(text):
            continue  # that is a gap, not a wrong answer of all that the case dispatched
        for operator in blamed:
            tally[operator] = tally.get(operator, 0) + 1
            if tally is failed and _is_named_for(case.id, operator):
                named[operator] = "wrong"
    return {
        operator: _measured(named.get(operator, ""), passed.get(operator, 0), failed.get(operator, 0))
        for operator in sorted(passed.keys() | failed.keys() | (named.keys() - on_cpu))
    }


def _measured(named: str, passed: int, failed: int) -> Measured:
    word = named or ("right" if not failed else "suspect" if passed else "wrong")
    return Measured(word=word, passed=passed, failed=failed)


def _is_named_for(case: str, operator: str) -> bool:
    """Tell whether a case's id has the operator's name among its words: `layout-addr-grad` has addr."""
    family = operator.partition(".")[0].strip("_").removesuffix("_backward").replace("_", "-")
    return len(family) > 1 and f"-{family}-" in f"-{case.replace('_', '-')}-"


def _text(case: Case) -> str:
    return f"{case.reason or ''} {json.dumps(case.error) if case.error else ''}"


def _plain(name: str) -> str:
    """Return an overload as native_functions.yaml spells it.

    >>> _plain("aten.add.Tensor"), _plain("aten.relu.default")
    ('add.Tensor', 'relu')
    """
    return name.removeprefix("aten.").removesuffix(".default")


def totals(measured: Iterable[Measured]) -> dict[str, int]:
    """Return how many operators each word has, in the order of WORDS."""
    words = [each.word for each in measured]
    return {word: words.count(word) for word in WORDS if word in words}
