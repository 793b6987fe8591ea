"""What triage found, as a person reads it."""

from __future__ import annotations

from .device_texts import DeviceText
from .diagnosis import Triage

_VERDICTS = {
    "case": "this case failed",
    "device": "no verdict can be had on this machine or in this process",
    "ours_not": "the environment or the caller, not torch's MPS",
    "noise": "harmless",
    "stop": "end the run: every further case would say the same",
    "unknown": "not MPS, or unknown",
}


def render(triage: Triage, *, explained: bool = False) -> tuple[str, ...]:
    """Return the lines to print under the last lines of a log.

    Args:
        explained: what it means is told elsewhere, by the category of a device's text; no word of an unknown cause.
    """
    lines: list[str] = []
    if triage.cause:
        word = "probably " if triage.certainty == "probable" else ""
        lines += [f"{word}cause {triage.cause}: {triage.title}", f"  why:  {triage.explanation}"]
        lines += [f"  fix:  {triage.fix}", f"  link: {triage.link}"]
    elif explained:
        lines.append("not a build's failure" if not triage.first_error else "what a program on the device wrote")
    elif triage.failed:
        lines.append("no known cause")
    else:
        lines.append("no failure found in this log")
    if triage.runner_up:
        other = triage.runner_up
        lines.append(f"  or:   {f'{other.cause}: ' if other.cause else ''}{other.title}")
    if triage.first_error:
        word = "seen in" if triage.cause else "first error:"
        lines.append(f"  {word} line {triage.first_error.number}: {triage.first_error.text.strip()}")
    elif triage.failed:
        lines.append("  the failing message is not in this text: it begins too late")
    if triage.also:
        lines.append(f"  also matching (a consequence, or a similar cause): {', '.join(triage.also)}")
    lines += [f"  note {note}" for note in triage.notes]
    return tuple(lines)


def render_device_text(text: DeviceText) -> tuple[str, ...]:
    """Return the lines to print for what a process wrote."""
    lines = [f"device text: {text.category} ({_VERDICTS[text.verdict]})"]
    if text.origin:
        lines.append(f"  written by another program on Metal: {text.origin}")
    if text.detail:
        lines.append("  " + ", ".join(f"{name}: {value}" for name, value in text.detail.items()))
    lines.append(f"  what to do: {text.advice}")
    return tuple(lines)
