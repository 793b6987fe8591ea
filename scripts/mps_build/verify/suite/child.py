"""One child of the suite under the watchdog: reads its outcomes as they come, ends it when a case hangs."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import psutil

from mps_build.common.json_text import parse_json
from mps_build.common.process import Command, watched

from .request import Limits, SuiteRequest, suite_command

Cut = Literal["", "timeout", "memory", "stopped"]
SUMMARY = "::summary"  # what pytest writes behind the last case: it quotes, it does not tell
_BEAT_SECONDS = 0.05
_MEMORY_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How a child ended.

    `running` is the case it left without an outcome, `finished` that it said it was done, `left_after` the case
    after which it left the rest to another process of its own accord. `slices` is what it wrote last, beyond what
    `on_output` saw.
    """

    exit: int | None
    cut: Cut
    running: str | None
    running_since: float
    finished: bool
    left_after: str | None
    cases: int
    output: str
    slices: tuple[tuple[str | None, str], ...]


class _Watch:
    """What a child has reported so far, and what it is allowed next."""

    def __init__(self, limits: Limits, log: Path, on_event: Callable[[Mapping[str, Any]], None]) -> None:
        self._limits, self._log, self._on_event = limits, log, on_event
        self.began_output = log.stat().st_size if log.exists() else 0
        self.running: str | None = None
        self.running_since = 0.0
        self.finished = False
        self.left_after: str | None = None
        self.cases = 0
        self.marks: list[tuple[int, str | None]] = [(self.began_output, None)]
        self._judged = 0
        self.deadline = time.monotonic() + limits.start_seconds

    def take(self, event: Mapping[str, Any], on_output: Callable[[str | None, str], bool] | None) -> bool:
        """Take one line of the child in, and hand on what was written up to it; False: that was enough."""
        kind, now = event.get("event"), time.monotonic()
        if kind == "started":
            self.running, self.running_since = str(event.get("id")), now
            self.deadline = now + max(self._limits.case_seconds, float(event.get("limit_seconds") or 0.0))
            self._mark(event, self.running)
        elif kind == "finished":
            self.running, self.cases = None, self.cases + 1
            self.deadline = now + self._limits.case_seconds
            self._mark(event, None)
        elif kind == "leave":
            self.left_after = str(event.get("after"))
        elif kind == "end":
            self.finished = True
            self.deadline = now + self._limits.end_seconds
            self._mark(event, SUMMARY)
        self._on_event(event)
        if on_output is None:  # all of it is handed over at the end
            return True
        enough = False
        for case, text in self.slices(whole=False):
            enough = on_output(case, text) or enough
        return not enough

    def slices(self, *, whole: bool) -> tuple[tuple[str | None, str], ...]:
        """Return what was written since the last call: during each case, between cases (None), in pytest's summary.

        Without `whole` the last part, which still grows, is kept for later.
        """
        marks = self.marks[self._judged :]
        ends = [position for position, _ in marks[1:]] + ([self._log.stat().st_size] if whole else [])
        self._judged += len(ends)
        found = []
        with self._log.open("rb") as file:
            for (begin, case), end in zip(marks, ends, strict=False):
                if end > begin:
                    file.seek(begin)
                    found.append((case, file.read(end - begin).decode("utf-8", "replace")))
        return tuple((case, text) for case, text in found if text.strip())

    def last_words(self) -> str:
        """Return what was written since the last case began, all of it where none did."""
        begins = [position for position, part in self.marks if part not in (None, SUMMARY)]
        with self._log.open("rb") as file:
            file.seek(begins[-1] if begins else self.began_output)
            return file.read().decode("utf-8", "replace")

    def _mark(self, event: Mapping[str, Any], part: str | None) -> None:
        # Only the child knows exactly how much it had written by then; where it does not say, nothing is ascribed.
        if isinstance(offset := event.get("output_bytes"), int):
            self.marks.append((offset, part))


def run_child(
    command: Command,
    *,
    log: Path,
    outcomes: Path,
    limits: Limits,
    on_event: Callable[[Mapping[str, Any]], None],
    on_output: Callable[[str | None, str], bool] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> ChildEnd:
    """Run one child to its end, or to the end that the watchdog makes.

    Args:
        outcomes: the file to which the child appends its JSON lines.
        on_event: sees each line.
        on_output: sees what was written during a case, or between two (None), once that is over; True ends the
            child. Without it `slices` of the result holds everything.
        is_stopped: called again and again; True ends the child.
    """
    watch = _Watch(limits, log, on_event)
    lines = _Lines(outcomes)
    cut: Cut = ""
    next_look = time.monotonic() + _MEMORY_SECONDS
    with watched(command, log=log) as child:
        while True:
            code = child.poll()  # before reading: what it wrote before its end is then always read
            if not all(watch.take(event, on_output) for event in lines.fresh()):
                cut = "stopped"
            if not cut and code is None and is_stopped():
                cut = "stopped"
            now = time.monotonic()
            if not cut and code is None and now > watch.deadline:
                cut = "timeout"
            elif not cut and code is None and now > next_look:
                next_look = now + _MEMORY_SECONDS
                if group_memory_bytes(child.pid) > limits.memory_bytes:
                    cut = "memory"
            if cut or code is not None:
                break
            time.sleep(_BEAT_SECONDS)
    slices = watch.slices(whole=True)
    return ChildEnd(
        exit=code,
        cut=cut,
        running=watch.running,
        running_since=watch.running_since,
        finished=watch.finished,
        left_after=watch.left_after,
        cases=watch.cases,
        output=watch.last_words(),
        slices=slices,
    )


class _Lines:
    """Reads whole new lines of a growing file; a line that is not a JSON object (cut by a crash) is passed over."""

    def __init__(self, path: Path) -> None:
        self._path, self._position, self._rest = path, 0, b""

    def fresh(self) -> list[Mapping[str, Any]]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            chunk = file.read()
        self._position += len(chunk)
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        events: list[Mapping[str, Any]] = []
        for line in whole:
            try:
                event = parse_json(line, finite=False)
            except ValueError:
                continue
            if isinstance(event, dict):
                events.append(event)
        return events


def group_memory_bytes(group: int) -> int:
    """Return the resident bytes of all processes in a process group; one that ends meanwhile counts as 0."""
    total = 0
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError, psutil.Error):
            if os.getpgid(process.pid) == group:
                total += process.memory_info().rss
    return total


@dataclass(frozen=True, slots=True)
class Alone:
    """What came of the case: the outcome that the suite wrote, None where the process died before."""

    outcome: str | None
    end: ChildEnd

    @property
    def died(self) -> bool:
        """Whether the process ended in the case, or had to be ended there."""
        return self.end.running is not None

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong with the case."""
        return self.outcome in ("passed", "unexpected_pass")


def run_alone(
    request: SuiteRequest,
    case_id: str,
    file: Path,
    *,
    device: str,
    known: Path,
    name: str,
    is_stopped: Callable[[], bool],
) -> Alone:
    """Run one case on a device, without an injected fault and with nothing before it.

    Args:
        name: of the files that the process leaves in the folder of the run; a number is added to it.
    """
    whole = replace(request, op=None, quick=False, shard="", layers=(), cases=0, keys=0, seconds=0.0)
    chosen = replace(whole, device=device, fault=None, only=(glob.escape(case_id),))
    name = f"{name}.{1 + len(list(request.folder.glob(f'{name}.*.outcomes.jsonl')))}"
    outcomes, found = request.folder / f"{name}.outcomes.jsonl", dict[str, str]()

    def on_event(event: Mapping[str, Any]) -> None:
        if event.get("event") == "finished":
            found[str(event.get("id"))] = str(event.get("outcome"))

    end = run_child(
        suite_command(chosen, (file,), known=known, outcomes=outcomes),
        log=request.folder / f"{name}.log",
        outcomes=outcomes,
        limits=request.limits,
        on_event=on_event,
        is_stopped=is_stopped,
    )
    return Alone(found.get(case_id), end)
