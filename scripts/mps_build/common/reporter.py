"""What a step that works long says of its progress; the console shows it, tests record it."""

from __future__ import annotations

from typing import Protocol


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
