"""What work says: its progress to a reporter, a command's result to the command line, a job's summary to GitHub."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from .plain_text import plain
from .scrubbing.scrubber import without_secrets


class Reporter(Protocol):
    """What a step that works long tells about itself; the console shows it, tests record it."""

    def started(self, title: str, *, total: int | None = None, unit: str = "steps") -> None:
        """A long step begins; `total` counts its `unit`s, if that is known."""

    def advanced(self, done: int, *, total: int | None = None, note: str = "") -> None:
        """So many units are done since the step began."""

    def line(self, text: str) -> None:
        """A detail worth a line of its own."""

    def done(self, note: str = "") -> None:
        """The step ends; `note` says what came of it."""


class SilentReporter:
    """A reporter for work nobody watches."""

    def started(self, title: str, *, total: int | None = None, unit: str = "steps") -> None:
        """Nothing is shown."""

    def advanced(self, done: int, *, total: int | None = None, note: str = "") -> None:
        """Nothing is shown."""

    def line(self, text: str) -> None:
        """Nothing is shown."""

    def done(self, note: str = "") -> None:
        """Nothing is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a command ended without an exception: its JSON document and, if the status is not 0, its cause."""

    document: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    cause: str | None = None
    hint: str | None = None


def job_summary(text: str) -> None:
    """Append Markdown to the summary that GitHub shows of this job; outside of GitHub nothing is written."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(without_secrets(plain(text)))
