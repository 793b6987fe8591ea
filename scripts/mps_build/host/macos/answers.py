"""What a program answered, made readable: no colours, no relays' prefixes, one form of line end and of quote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mps_build.common.logs.text import clean_line

# What an answer tells: keys and values as docs/host/recorded_macs.md lists them.
Facts = dict[str, Any]

# What log_text leaves: npm's and language servers' prefixes, and a viewer's numbered gutter.
_RELAYS = re.compile(r"^\s*(?:npm (?:ERR!|error|WARN)\s|\([\w .-]+\) std(?:err|out):\s?|(?:remote|stderr|stdout):\s)")
# No answer that we read is nearly that long; a log that somebody put in one's place may be.
_LONGEST = 1_000_000
_GUTTER = re.compile(r"^\s*\d*\s*[│┃|]\s?")
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "—": "-", "–": "-", "\u00a0": " "})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One program's two streams as meant, and its exit status (None: not known).

    `ends_whole` says whether the last line of stdout was ended: a number at the very end of
    a text that was not may have lost its tail.
    """

    stdout: str
    stderr: str
    exit: int | None
    ends_whole: bool

    @classmethod
    def of(cls, stdout: str, stderr: str, exit: int | None) -> Answer:
        """Return the answer with terminal controls removed; `ends_whole` is false for a cut-off text."""
        return cls(
            stdout=_clean(stdout),
            stderr=_clean(stderr),
            exit=exit,
            ends_whole=_unescaped(stdout).endswith(("\n", "\r")),
        )

    @property
    def text(self) -> str:
        """Both streams, one after the other: which one an answer takes differs by tool and option."""
        return f"{self.stdout}\n{self.stderr}"

    @property
    def last_line(self) -> str:
        """The last line of stdout that says anything."""
        return next((line.strip() for line in reversed(self.stdout.splitlines()) if line.strip()), "")


def as_sentences(text: str) -> str:
    """Return the text with plain quotes and without gutters, its lines kept: for reading values out of messages."""
    lines = (_GUTTER.sub("", line) for line in text.translate(_QUOTES).splitlines())
    return "\n".join(lines)


def unwrapped(text: str) -> str:
    """Return the text without any white space: a phrase is found however its message was wrapped.

    >>> unwrapped("requires Xcode, but\\nactive devel\\noper directory")
    'requiresXcode,butactivedeveloperdirectory'
    """
    return "".join(text.split())


def first(pattern: str, text: str, flags: int = re.MULTILINE) -> str | None:
    """Return the first group of the first match, if there is one."""
    match = re.search(pattern, text, flags)
    return match.group(1) if match else None


def _clean(text: str) -> str:
    lines = text[:_LONGEST].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(_RELAYS.sub("", clean_line(line)) for line in lines)


def _unescaped(text: str) -> str:
    return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text).rstrip(" \t")
