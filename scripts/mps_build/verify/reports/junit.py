"""A record as JUnit XML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mps_build.common.exchange import JunitCase, junit
from mps_build.common.records.device_record import Case, Record

from .words import by_layer, headline, sentence


def render(record: Record) -> str:
    """Return the record as JUnit XML: known issues are skipped tests, and "not verified" is an error."""
    known = {row.id: row.reason for row in record.known_issues}
    cases = [_case(case, known) for members in by_layer(record.cases).values() for case in members]
    return junit(
        "verify_mps",
        [*cases, _verdict(record)],
        seconds=record.seconds,
        started=record.started,
        properties=_properties(record),
    )


def _case(case: Case, known: Mapping[str, str]) -> JunitCase:
    whole = JunitCase(suite=case.layer, name=case.id, seconds=case.seconds or 0.0)
    reason = case.reason or ""
    if case.outcome == "failed":
        return replace(whole, outcome="failed", text=reason)
    if case.outcome in ("crashed", "timeout", "own_fault"):
        return replace(whole, outcome="error", kind=case.outcome, text=reason)
    if case.outcome == "known":
        why = f"{case.known_issue or ''}: {known.get(case.known_issue or '', '')}"
        return replace(whole, outcome="skipped", text=f"known issue {why}: {reason}")
    if case.outcome == "skipped":
        return replace(whole, outcome="skipped", text=reason)
    note = f"passed, though {case.known_issue} is a known issue" if case.outcome == "unexpected_pass" else ""
    return replace(whole, note=note)


def _verdict(record: Record) -> JunitCase:
    """Return a testcase that fails when the verdict does: a run without one is never green."""
    whole = JunitCase(suite="verdict", name="verdict", kind=record.cause or record.verdict)
    text = f"{headline(record)}: {sentence(record)}"
    if record.verdict == "not_verified":
        return replace(whole, outcome="error", text=text)
    return replace(whole, outcome="failed", text=text) if record.verdict == "regressed" else whole


def _properties(record: Record) -> list[tuple[str, str]]:
    facts = (
        ("statement", record.statement),
        ("verdict", record.verdict),
        ("partial", str(record.partial).lower()),
        ("torch", record.torch.version),
        ("commit", record.torch.commit),
        ("device", record.device),
        ("simulated", f"as on macOS {record.simulated.macos}" if record.simulated else None),
        ("macos", record.host.get("macos")),
        ("chip", record.host.get("chip")),
    )
    return [(name, str(value)) for name, value in facts if value]
