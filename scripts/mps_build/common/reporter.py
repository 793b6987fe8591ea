"""What a step that works long says of its progress; the console shows it, tests record it."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from .files import write_whole

_KEPT_SECONDS = 0.5  # a step may advance thousands of times a second
_MOST_BYTES = 4096


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


class KeptReporter:
    """Passes on what a step says, and keeps how far it is in a file, for processes that wait for this one."""

    def __init__(self, inner: Reporter, path: Path) -> None:
        self._inner, self._path = inner, path
        self._state: dict[str, Any] = {}
        self._kept = 0.0

    def started(self, title: str, *, total: int | None = None, unit: str = "steps") -> None:
        """A long step begins."""
        self._state = {"title": title, "total": total, "unit": unit, "done": 0, "note": ""}
        self._keep()
        self._inner.started(title, total=total, unit=unit)

    def advanced(self, done: int, *, total: int | None = None, note: str = "") -> None:
        """So many units are done since the step began."""
        self._state |= {"done": done, "note": note, **({} if total is None else {"total": total})}
        if time.monotonic() - self._kept >= _KEPT_SECONDS:
            self._keep()
        self._inner.advanced(done, total=total, note=note)

    def line(self, text: str) -> None:
        """A detail worth a line of its own."""
        self._inner.line(text)

    def done(self, note: str = "") -> None:
        """The step ends."""
        self._inner.done(note)

    def _keep(self) -> None:
        self._kept = time.monotonic()
        with suppress(OSError):  # nobody's work fails because another cannot watch it
            write_whole(self._path, json.dumps(self._state))


class Follower:
    """Shows what the `KeptReporter` of another process keeps; a file that cannot be read shows nothing."""

    def __init__(self, path: Path, reporter: Reporter) -> None:
        self._path, self._reporter = path, reporter
        self._title = ""

    def look(self) -> None:
        """Show how far the other process is now."""
        try:
            with self._path.open("rb") as file:
                state = json.loads(file.read(_MOST_BYTES))
            title, done, total = str(state["title"]), int(state["done"]), state["total"]
            unit, note = str(state["unit"]), str(state["note"])
            total = None if total is None else int(total)
        except (OSError, ValueError, TypeError, KeyError):
            return
        if title != self._title:
            self.end()
            self._title = title
            self._reporter.started(title, total=total, unit=unit)
        self._reporter.advanced(done, total=total, note=note)

    def end(self) -> None:
        """The wait is over, or another step has begun."""
        if self._title:
            self._reporter.done()
        self._title = ""
