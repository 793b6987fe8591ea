"""Findings as lines for a person: what stops first, each with how to fix it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from .findings import Finding, Level

_MARKS: dict[Level, str] = {
    "blocker": "STOP", "warning": "warn", "not_understood": "??", "not_recorded": "?", "note": "note", "ok": "ok",
}  # fmt: skip
_STYLES: dict[Level, str] = {
    "blocker": "red", "warning": "yellow", "not_understood": "yellow", "not_recorded": "dim", "note": "dim", "ok": "",
}  # fmt: skip
_WIDTH = 79  # a terminal of 80 folds nothing again
_INDENT = " " * 22


def level_style(level: Level) -> str:
    """Return the console's style of a finding's level."""
    return _STYLES[level]


def lines_of(findings: Sequence[Finding]) -> Iterator[tuple[str, Level]]:
    """Yield each line and its level, in the order of the rules, which is that of the machine: from chip to tools."""
    for finding in findings:
        wanted = f"; required: {finding.wanted}" if finding.wanted and finding.level != "ok" else ""
        head = f"{_MARKS[finding.level]:<5}{finding.what:<17}"
        yield _wrapped(f"{head}{finding.found}{wanted}"), finding.level
        if finding.level not in ("ok", "not_recorded"):
            if finding.fix:
                yield _wrapped(f"{_INDENT}fix: {finding.fix}"), finding.level
            if finding.link:
                yield f"{_INDENT}see {finding.link}", finding.level


def _wrapped(text: str) -> str:
    # A command is never broken inside a word, so that it can be copied.
    return "\n".join(
        textwrap.wrap(text, _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)
    )
