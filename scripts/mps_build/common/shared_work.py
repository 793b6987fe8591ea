"""One process makes a thing; another that wants it meanwhile waits, and shows how far the first is."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .files import locked, write_whole
from .reporting import Reporter

_KEPT_SECONDS = 0.5  # a step may advance thousands of times a second
_MOST_BYTES = 4096


@contextmanager
def made_by_one(path: Path, reporter: Reporter, *, what: str) -> Iterator[Reporter]:
    """Hold a lock file while something is made; another process that comes meanwhile waits, and shows how far it is.

    Args:
        what: what the holder does, for the line "process 123 ...: waiting for it".

    Yields:
        The reporter to work with: what it is given, others are shown too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = path.with_name(f"{path.name}.progress")
    follower = Follower(kept, reporter)

    def say(holder: str) -> None:
        reporter.line(f"process {holder} {what}: waiting for it")

    with locked(path, on_wait=say, meanwhile=follower.look):
        follower.end()
        try:
            yield KeptReporter(reporter, kept)
        finally:
            kept.unlink(missing_ok=True)


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
