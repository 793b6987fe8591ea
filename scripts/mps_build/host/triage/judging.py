"""A text judged as a build's log and as what one process wrote: which answer stands, and as a person reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.version import Version

from mps_build.common.logs.text import clean_line

from .device_texts import DeviceText, classify_device_text
from .diagnosis import Triage, explain
from .rules import CAUSES, Cause, load_catalogue, neighbours, parts_of

_BUILD_LINE = re.compile(
    r"""^\s*(?:\[\s*\d+(?:/\d+|%)[^\]]*\]\ | --\  | CMake\ | ninja:\ | FAILED:\ | make(?:\[\d+\])?:\  | ld:\s
    | (?:Collecting|Processing|Installing\ collected|Successfully\ (?:built|installed)|Building\ wheel)\b
    | running\ (?:bdist|build|install) | \*\ (?:Getting\ build|Building\ wheel) | Fixing:\ | \#\#\[ | \+\ \S | \$\ \S
    | (?:xcrun|xcode-select|xcodebuild|clang(?:\+\+)?|sccache|error:\ subprocess)\b)""",
    re.VERBOSE,
)
_LOOKED_AT = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBy:
    """What the caller knows of the process that wrote a text; `host`: macos, torch, virtual."""

    exit: int | None = None
    signal: str | None = None
    host: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_named(self) -> bool:
        """True if anything of it is known."""
        return self.exit is not None or self.signal is not None or bool(self.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The cause in a log; and what the text says of a device, None where nobody queried and it says nothing."""

    log: Triage
    device: DeviceText | None


def judge(text: str, *, release: Version | None, written_by: WrittenBy) -> Explained:
    """Return both answers; a known cause of builds stands for a process's text only where that is a build's.

    A cause that programs meet when they run or load (`runs` in the catalogue) stands for any text.

    Args:
        release: of torch; causes of other releases are left out.
        written_by: if anything of it is known, the device's answer is given whatever it is.
    """
    host = written_by.host
    found = explain(text, release=release, exit=written_by.exit)
    device = classify_device_text(
        text,
        exit=written_by.exit,
        signal=written_by.signal,
        host={"torch": str(release), **host} if release and "torch" not in host else host,
    )
    if written_by.is_named and not is_of_a_build(text) and not _meets_programs(found.cause):
        found = found.without_cause()
    is_answer = written_by.is_named or device.category not in ("unknown", "noise")
    return Explained(log=found, device=device if is_answer else None)


def _meets_programs(cause: str | None) -> bool:
    return any(row.id == cause and row.runs for row in load_catalogue().causes)


def is_of_a_build(text: str) -> bool:
    """Whether a line at the beginning of the text is one that builds, installers or compilers print."""
    return any(_BUILD_LINE.match(clean_line(line)) for line in text[:_LOOKED_AT].split("\n"))


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
        explained: what it means is reported elsewhere, by the category of a device's text; no word of an unknown cause.
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


def render_causes(words: str = "") -> tuple[str, ...]:
    """Return the known causes by where a build fails; given an id or words, those that have all of them, explained."""
    known = load_catalogue()
    rows = {row.id: row for row in known.causes}
    if not words.strip():
        lines = []
        for part, ids in parts_of(CAUSES.read_text(encoding="utf-8")).items():
            lines += ["", part, *(f"  {name:<5} {rows[name].title}" for name in ids)]
        return tuple(lines[1:])
    near, lines = neighbours(known), []
    for row in known.causes:
        if words.strip().lower() == row.id.lower() or _holds(row, words):
            lines += ["", f"{row.id}: {row.title}", f"  why:  {row.cause}", f"  fix:  {row.fix}", f"  link: {row.link}"]
            lines += [f"  near: {each.cause}: {rows[each.cause].title}" for each in near[row.id]]
    return tuple(lines[1:])


def _holds(row: Cause, words: str) -> bool:
    patterns = (part for matcher in row.any for part in matcher.all)
    text = " ".join((row.title, row.cause, row.fix, *patterns)).lower()
    return all(word in text for word in words.lower().split())
