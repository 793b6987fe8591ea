"""An audit in the forms that other tools read: SARIF and JUnit XML."""

from __future__ import annotations

from ...common.exchange import JunitCase, SarifResult, junit, sarif
from .model import Audit
from .rules import ALL


def as_sarif(audit: Audit, *, exit_code: int) -> str:
    """Return the findings as SARIF; a member of the wheel is a path below the wheel's name."""
    file = str(audit.facts_document["file"])
    results = [
        SarifResult(
            rule=each.rule,
            level=each.level,
            text=f"{each.reason}: {each.evidence}",
            place=f"{file}/{each.member}" if each.member else file,
        )
        for each in audit.findings
    ]
    return sarif(results, {rule.id: rule.reason for rule in ALL}, command="audit_wheel", exit_code=exit_code)


def as_junit(audit: Audit) -> str:
    """Return a testcase for each rule that found something, and for the verdict: warnings alone fail none."""
    cases = []
    for rule in dict.fromkeys(each.rule for each in audit.findings):
        hits = [each for each in audit.findings if each.rule == rule]
        text = "\n".join([hits[0].reason, *(f"{each.member or ''}: {each.evidence}" for each in hits)])
        is_error = any(each.level == "error" for each in hits)
        cases.append(
            JunitCase(suite=f"profile {audit.profile}", name=rule, outcome="failed", text=text)
            if is_error
            else JunitCase(suite=f"profile {audit.profile}", name=rule, note=text)
        )
    rejected = audit.verdict != "accepted"
    verdict = JunitCase(
        suite="verdict",
        name="verdict",
        outcome="failed" if rejected else "passed",
        kind="audit_rejected",
        text=f"{audit.facts_document['file']}: {audit.verdict}" if rejected else "",
    )
    return junit("audit_wheel", [*cases, verdict])
