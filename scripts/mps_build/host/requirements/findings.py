"""One line of the doctor's: what was found, what is wanted, how to fix it; as lines, what stops first comes first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from packaging.version import Version

# `note` is worth knowing and changes nothing; what was not recorded is neither well nor ill.
Level = Literal["ok", "note", "warning", "blocker", "not_recorded", "not_understood"]

NOT_RECORDED = "not recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One requirement and how the host meets it; `stops` says whether a blocker stops building here, or using MPS."""

    id: str
    level: Level
    what: str
    found: str
    wanted: str = ""
    fix: str | None = None
    link: str | None = None
    stops: tuple[Literal["build", "verify"], ...] = ("build", "verify")

    def document(self) -> dict[str, Any]:
        """Return the finding as JSON; a blocker says what it stops (`build`, `verify`)."""
        keys = ("id", "level", "what", "found", "wanted", "fix", "link")
        return {key: getattr(self, key) for key in keys} | (
            {"stops": list(self.stops)} if self.level == "blocker" else {}
        )


def not_recorded(id: str, what: str, wanted: str = "") -> Finding:
    """Return the finding for a fact that the recording does not hold: neither good nor bad."""
    return Finding(id=id, level="not_recorded", what=what, found=NOT_RECORDED, wanted=wanted)


def older(found: str, wanted: str) -> bool:
    """Say whether a dotted version is older than another; a missing part is a zero.

    >>> older("15.10", "15.3"), older("13.3", "13.3.1")
    (False, True)
    """
    return Version(found) < Version(wanted)


def within(found: str, first: str, last: str) -> bool:
    """Say whether a version lies in a range, both ends included; "26.1" as last includes 26.1.1.

    >>> within("26.1.1", "26.0", "26.1"), within("26.2", "26.0", "26.1")
    (True, False)
    """
    release = Version(found).release
    upper = Version(last).release
    return Version(found) >= Version(first) and release[: len(upper)] <= upper


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
