"""A run of verify_kernels in the forms that other tools read: SARIF and JUnit XML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...common.exchange import JunitCase, SarifResult, junit, sarif
from ..execution.verify_all import FOUND
from .document import witness

_RULES = {
    "wrong": "A kernel gives another result than float64, or than the dense form of its operator",
    "out_of_bounds": "A kernel reads or writes beyond its buffers",
    "race": "Two threads of a kernel meet at one address without a barrier",
    "timeout": "A kernel does not end",
    "crashed": "A kernel ends its process",
    "misfit": "A part of mps-build failed on a kernel: nothing is said of it",
    "refused": "A kernel holds what may not run here",
    "known": "A kernel is wrong, and that is a known issue",
}
_ERRORS = ("misfit", "refused")


def _once(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return each kernel once: another library's copy is the same finding."""
    rows: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in document["kernels"]:
        rows.setdefault((row["name"], row["outcome"]), row)
    return list(rows.values())


def _text(row: Mapping[str, Any]) -> str:
    seen = witness(row)
    return f"{row['outcome'].replace('_', ' ')}: {row['reason']}" + (f" (input: {seen})" if seen else "")


def as_sarif(document: Mapping[str, Any], *, exit_code: int) -> str:
    """Return the findings as SARIF; the wheel is the file, the kernel the thing in it. Known issues are suppressed."""
    results = [
        SarifResult(
            rule=row["outcome"],
            level="error" if row["outcome"] in FOUND else "note" if row["outcome"] == "known" else "warning",
            text=_text(row),
            place=str(document["target"]),
            name=row["name"],
            known=str(row.get("link", "")) if row["outcome"] == "known" else "",
        )
        for row in _once(document)
        if row["outcome"] in _RULES
    ]
    return sarif(results, _RULES, command="verify_kernels", exit_code=exit_code)


def as_junit(document: Mapping[str, Any]) -> str:
    """Return a testcase for each kernel that was run, and for the verdict; known issues are skipped tests."""
    cases = [_case(row) for row in _once(document)]
    verdict = str(document["verdict"])
    last = JunitCase(suite="verdict", name="verdict", kind=verdict, text=verdict)
    if verdict == "findings":
        last = replace(last, outcome="failed")
    elif verdict in ("misfit", "refused", "not_verified"):
        last = replace(last, outcome="error")
    return junit("verify_kernels", [*cases, last])


def _case(row: Mapping[str, Any]) -> JunitCase:
    outcome, suite = row["outcome"], row.get("family") or "no contract"
    if outcome == "passed":
        return JunitCase(suite=suite, name=row["name"])
    if outcome in FOUND:
        return JunitCase(suite=suite, name=row["name"], outcome="failed", kind=outcome, text=_text(row))
    if outcome in _ERRORS:
        return JunitCase(suite=suite, name=row["name"], outcome="error", kind=outcome, text=_text(row))
    return JunitCase(suite=suite, name=row["name"], outcome="skipped", text=_text(row))
