"""The result as JSON, and as tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from ...common.errors import OwnFault, RefusedForSafety
from ..execution.examine_large import RANKS
from ..execution.verify_all import FOUND, KernelRow, counts
from ..read.library import BASIC

# Findings in the order of what they mean to a user: ordinary inputs first, then accuracy, then extreme inputs.
# A number is ordinary from a thousandth to ten thousand, and 0; the judge chooses its witness by the same limits.
_ORDINARY = (1e-3, 1e4)
_CLOSE = 0.01  # a result that is off by less than this part of itself is inaccurate, not wrong
_NUMBER = re.compile(r"nan|inf|\d+(?:\.\d*)?(?:e[-+]?\d+)?", re.IGNORECASE)


_HEAVY = 1e299
_GRAVITY = {**dict.fromkeys(FOUND, 0), "misfit": 1, "refused": 2, "known": 3, "overflow_candidate": 4, "passed": 10}
_FAMILIES = 8
_SLOW = 0.5  # processor seconds to run a kernel, worth a look


def verdict_of(rows: Sequence[KernelRow]) -> tuple[str, int]:
    """Return the verdict and the exit status. A misfit is a fault of ours, and never passes for success."""
    outcomes = Counter(row.outcome for row in rows)
    if any(outcomes[each] for each in FOUND):
        return "findings", 10
    if outcomes["misfit"]:
        return "misfit", OwnFault.exit_code
    if outcomes["known"]:
        return "known_issues_only", 11
    if outcomes["passed"]:
        return "verified", 0
    return ("refused", RefusedForSafety.exit_code) if outcomes["refused"] else ("not_verified", 2)


def document_of(rows: Sequence[KernelRow], *, target: str, version: str | None, seed: int) -> dict[str, Any]:
    """Return the JSON document of a run."""
    verdict, _ = verdict_of(rows)
    libraries: dict[str, dict[str, Any]] = {
        name: dict(counts([row for row in rows if row.library == name]))
        for name in dict.fromkeys(row.library for row in rows)
    }
    first = BASIC if BASIC in libraries else next(iter(libraries), "")
    for name in libraries if first == BASIC else ():
        if name != first:
            libraries[name] |= beside_basic([row for row in rows if row.library == name], rows)
    return {
        "target": target,
        "torch": version,
        "verdict": verdict,
        "seed": seed,
        "coverage": libraries.get(first, counts([])),
        "libraries": libraries,
        "kernels": [kernel_row(row) for row in rows],
    }


def beside_basic(members: Sequence[KernelRow], rows: Sequence[KernelRow]) -> dict[str, Any]:
    """Return how many kernels of another library are metal_basic's, and the counts of those that are not.

    `same` have its instructions, `changed` have others under the same name, `new` have a name that it has not.
    """
    names = {row.name for row in rows if row.library == BASIC}
    others = [row for row in members if not row.is_twin]
    return {
        "same": len(members) - len(others),
        "changed": counts([row for row in others if row.name in names]),
        "new": counts([row for row in others if row.name not in names]),
    }


def kernel_row(row: KernelRow) -> dict[str, Any]:
    """Return one kernel's row; what is not known is left out."""
    verdict = row.verdict
    fields: dict[str, Any] = {
        "name": row.name,
        "library": row.library,
        "body": row.body,
        "outcome": row.outcome,
        "family": row.family,
        "operator": row.operator,
        "reason": row.reason,
    }
    if row.issue:
        fields |= {"issue": row.issue, "link": row.link}
    for key in (
        "inputs",
        "max_ulp",
        "bound_ulp",
        "cpu_ulp",
        "where",
        "reference",
        "programs",
        "threads",
        "inactive",
        "profile",
    ):
        if verdict.get(key):
            fields[key] = verdict[key]
    if row.seconds >= _SLOW:
        fields["seconds"] = round(row.seconds, 2)
    if fields.get("max_ulp", 0) >= _HEAVY:
        fields["max_ulp"] = None  # not finite where the reference is
    return fields


def once(rows: Sequence[KernelRow]) -> list[KernelRow]:
    """Return each kernel once, whatever libraries hold it: the row of the one where it came out worst."""
    worst: dict[str, KernelRow] = {}
    for row in rows:
        if row.name not in worst or _GRAVITY.get(row.outcome, 9) < _GRAVITY.get(worst[row.name].outcome, 9):
            worst[row.name] = row
    return list(worst.values())


def family_rows(rows: Sequence[KernelRow], most: int) -> list[list[str]]:
    """Return a table: family, kernels, compiled, bound, run, findings, known issues.

    Families with findings come first, then the largest; what is beyond `most` is one row, and the sum the last.
    """
    families: dict[str, list[KernelRow]] = {}
    for row in rows:
        families.setdefault(row.family or "(no contract)", []).append(row)
    ordered = sorted(families.items(), key=lambda each: (-_findings(each[1]), -_known(each[1]), -len(each[1])))
    table = [_family_row(name, members) for name, members in ordered[:most]]
    if rest := ordered[most:]:
        table.append(_family_row(f"and {len(rest)} families more", [row for _, members in rest for row in members]))
    return [*table, _family_row("all", rows)] if len(ordered) > 1 else table


def _findings(rows: Sequence[KernelRow]) -> int:
    return sum(row.outcome in FOUND for row in rows)


def _known(rows: Sequence[KernelRow]) -> int:
    return sum(row.outcome == "known" for row in rows)


def _family_row(name: str, rows: Sequence[KernelRow]) -> list[str]:
    found = counts(rows)
    numbers = [str(found[each]) for each in ("kernels", "compiled", "bound", "run")]
    return [name, *numbers, str(_findings(rows) or ""), str(_known(rows) or "")]


def finding_lines(rows: Sequence[KernelRow]) -> list[str]:
    """Return one text for each finding, the gravest first; kernels of a family, wrong in one way, are one finding."""
    groups: dict[tuple[str, str, str], list[KernelRow]] = {}
    for row in rows:
        if row.outcome in (*FOUND, "misfit", "refused"):
            groups.setdefault((row.outcome, row.family, row.operator or row.name), []).append(row)
    lines = []
    gravest = {key: min(importance(row.outcome, row.verdict) for row in members) for key, members in groups.items()}
    smallest = {
        key: min(row.verdict.get("where", {}).get("bytes", 0) for row in members) for key, members in groups.items()
    }
    for (outcome, _, _), members in sorted(groups.items(), key=lambda each: (gravest[each[0]], smallest[each[0]])):
        members.sort(key=lambda row: importance(row.outcome, row.verdict))
        first = members[0]
        libraries = ", ".join(dict.fromkeys(row.library for row in members if row.name == first.name))
        others = len({row.name for row in members}) - 1
        alike = f" and {others} more of its operator and family" if others else ""
        shown = ", ".join(f"{key} {value}" for key, value in first.verdict.get("inputs", {}).items())
        text = f"{outcome}: {first.name} ({libraries}){alike}\n    {first.reason}"
        lines.append(text + (f"\n    inputs: {shown}" if shown else ""))
    return lines


CANDIDATE_COLUMNS = ("candidates: why nothing was shown", "kernels", "families")


def candidate_rows(rows: Sequence[KernelRow]) -> list[list[str]]:
    """Return a table of the candidates of `--large`: why nothing was shown of them, the most telling reason first."""
    ranks: dict[str, list[KernelRow]] = {}
    for row in once(rows):
        if row.outcome == "overflow_candidate":
            ranks.setdefault(row.verdict.get("where", {}).get("rank", ""), []).append(row)
    table = []
    for rank, members in sorted(ranks.items(), key=lambda each: RANKS.index(each[0]) if each[0] in RANKS else -1):
        families = Counter(row.family or row.name for row in members)
        shown = ", ".join(f"{family} {count}" for family, count in families.most_common(_FAMILIES))
        more = f" and {len(families) - _FAMILIES} more" if len(families) > _FAMILIES else ""
        table.append([rank, str(len(members)), shown + more])
    return table


KNOWN_COLUMNS = ("kernel", "input", "got", "expected", "issue")


def known_rows(rows: Sequence[KernelRow]) -> list[list[str]]:
    """Return a table of the kernels with known issues, each once, whatever libraries hold it."""
    known: dict[str, KernelRow] = {}
    for row in rows:
        if row.outcome == "known":
            known.setdefault(row.name, row)
    return [
        [
            name,
            witness(row.verdict),
            *(str(row.verdict.get("where", {}).get(key, "")) for key in ("got", "want")),
            row.issue,
        ]
        for name, row in known.items()
    ]


def known_links(rows: Sequence[KernelRow]) -> dict[str, str]:
    """Return where each known issue that was met is written up, by its id."""
    return {row.issue: row.link for row in rows if row.outcome == "known"}


def witness(fields: Mapping[str, Any]) -> str:
    """Return the input at which a kernel is wrong; where a value alone says nothing, the case, or what was seen.

    >>> witness({"inputs": {"case": "4099 elements", "x": "-3", "y": "-inf"}}), witness({"inputs": {"case": "(5, 3)"}})
    ('x -3, y -inf', '(5, 3)')
    """
    inputs = fields.get("inputs", {})
    values = ", ".join(f"{name} {value}" for name, value in inputs.items() if name != "case")
    return values or str(inputs.get("case", ""))


class Importance(IntEnum):
    """What a finding means to a user, the gravest first."""

    SAFETY = 0
    ORDINARY = 1
    ACCURACY = 2
    EXTREME = 3


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def importance(outcome: str, verdict: Mapping[str, Any]) -> Importance:
    """Return how much a finding matters, by its outcome and its witness.

    >>> importance("wrong", {"inputs": {"x": "1000.0", "y": "0.1"}, "where": {"got": "-1e-05", "want": "0.0999"}}).name
    'ORDINARY'
    >>> importance("wrong", {"inputs": {"x": "-3.0", "y": "-inf"}}).name
    'EXTREME'
    >>> importance("wrong", {"inputs": {"x": "0.25"}, "where": {"got": "0.9990", "want": "0.9989"}}).name
    'ACCURACY'
    """
    reason = str(verdict.get("reason", ""))
    if outcome in ("race", "out_of_bounds", "crashed", "timeout") or (outcome == "known" and "race" in reason):
        return Importance.SAFETY
    numbers = [float(each) for value in verdict.get("inputs", {}).values() for each in _NUMBER.findall(str(value))]
    if not all(each == 0 or _ORDINARY[0] <= each <= _ORDINARY[1] for each in numbers):
        return Importance.EXTREME
    where = verdict.get("where", {})
    got, want = (_float(where.get(key)) for key in ("got", "want"))
    if got is not None and want is not None and abs(got - want) <= _CLOSE * abs(want):
        return Importance.ACCURACY
    return Importance.ORDINARY
