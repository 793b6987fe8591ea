"""What triage found, as a person reads it and as JSON."""

from __future__ import annotations

from typing import Any

from .diagnosis import Triage


def render(triage: Triage) -> tuple[str, ...]:
    """Return the lines to print under the last lines of a log."""
    lines: list[str] = []
    if triage.cause:
        lines += [f"cause {triage.cause}: {triage.title}", f"  why:  {triage.explanation}"]
        lines += [f"  fix:  {triage.fix}", f"  link: {triage.link}"]
    elif triage.failed:
        lines.append("no known cause")
    else:
        lines.append("no failure found in this log")
    if triage.first_error:
        word = "seen in" if triage.cause else "first error:"
        lines.append(f"  {word} line {triage.first_error.number}: {triage.first_error.text.strip()}")
    elif triage.failed:
        lines.append("  the failure is there, its first message is not: look at an earlier part of the log")
    if triage.also:
        lines.append(f"  also matching (an effect, or a twin): {', '.join(triage.also)}")
    lines += [f"  note {note}" for note in triage.notes]
    return tuple(lines)


def as_document(triage: Triage) -> dict[str, Any]:
    """Return the JSON form."""
    error = triage.first_error
    return {
        "cause": triage.cause,
        "title": triage.title,
        "explanation": triage.explanation,
        "fix": triage.fix,
        "link": triage.link,
        "also": list(triage.also),
        "notes": list(triage.notes),
        "first_error": {"line": error.number, "text": error.text.strip()} if error else None,
        "failed": triage.failed,
    }
