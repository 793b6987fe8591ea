"""A log as its reader meant it: no colours, no prefixes of whoever relayed it, one numbered line after another."""

from __future__ import annotations

import re
from dataclasses import dataclass

# ECMA-48: CSI, OSC (titles, hyperlinks), and the two-byte escapes.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")

# What relays put before a line; taken off again and again, since they nest (`gh run view --log`, GitHub's own stamp).
_PREFIXES = re.compile(
    r"""
      \[? \d{4}-\d\d-\d\d [T ] \d\d:\d\d:\d\d (?:[.,]\d+)? (?:Z|\s?[+-]\d\d:?\d\d)? \]? [ ]?  # 2026-10-16T09:12:24.39Z
    | \[ \d\d:\d\d:\d\d (?:[.,]\d+)? \] [ ]                                   # [09:12:24]
    | \d\d:\d\d:\d\d (?:[.,]\d+)? [ ]+ (?=\S)                                 # 09:12:24
    | \#\d+ [ ] \d+\.\d+ [ ]?                                                 # BuildKit: #21 5.532
    | \#\d+ [ ] (?=\[)                                                        # BuildKit: #21 [4/9] RUN ...
    | \[ (?!end\ of|notice|code|ok|warn|fail|error|info|debug|system|missing|-)
         [a-z][a-z0-9_.-]* \] (?:[ ]|$)                                       # [build]
    | (?!ld|xcrun|ninja|error|fatal|clang|warning|note|usage)
         [A-Za-z][\w.+-]* > (?:[ ]|$)                                         # nix: pkg>
    | [^\t\n]{1,80} \t [^\t\n]{1,80} \t (?=\d{4}-\d\d-\d\dT)                  # gh run view --log: job, step
    | [│┃|] [ ]?                                                              # pip's and rich's gutters
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line as meant, and the number (from 1) of the line it stands in."""

    number: int
    text: str


def clean_lines(text: str) -> tuple[Line, ...]:
    """Return the lines without escapes, prefixes and trailing blanks; a redrawn line (`\\r`) counts as several."""
    lines: list[Line] = []
    for number, raw in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        lines.extend(Line(number=number, text=clean_line(part)) for part in raw.split("\r"))
    return tuple(lines)


def clean_line(raw: str) -> str:
    """Return one line without escapes, prefixes and trailing blanks (its indent stays).

    >>> clean_line("2026-10-16T09:12:24.3990503Z \\x1b[31mFAILED: \\x1b[0mlib/libc10.dylib ")
    'FAILED: lib/libc10.dylib'
    """
    line = raw
    if "\x1b" in line:
        line = _ESCAPES.sub("", line)
    line = _CONTROLS.sub("", line).rstrip()
    while True:
        stripped = line.lstrip()
        match = _PREFIXES.match(stripped)
        if not match or not match.end():
            return line
        line = stripped[match.end() :]


def squeeze(text: str) -> str:
    """Return the text with every run of white space as one blank: wrapped sentences become whole."""
    return " ".join(text.split())
