"""What ninja tells while it runs, and the log it keeps of every step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mps_build.common.logs.text import clean_lines

_PROGRESS = re.compile(r"^\s*\[\s*(\d{1,9})/(\d{1,9})(?:[ ,:;|][^\]]*)?\] ?")
_FAILED = re.compile(r"^FAILED: (?:\[code=(-?\d{1,9})\] )?(\S.*)$")
_STOPPED = re.compile(r"^ninja: build stopped: ")
_ERROR = re.compile(r"^ninja: (?:error|fatal): (.+)$")
_LOG_HEAD = re.compile(r"^# ninja log v(\d{1,3})$")
# v5 holds the output's mtime, v6 and v7 the time at which the step began; the columns are the same.
_LOG_VERSIONS = range(5, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStep:
    """Outputs of a step that failed; the code since ninja 1.13."""

    outputs: tuple[str, ...]
    code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NinjaRun:
    """Where a run stands: the last progress line counts, since totals change on the way."""

    done: int | None
    total: int | None
    failed: tuple[FailedStep, ...]
    stopped: bool
    no_work: bool
    error: str | None

    def facts(self) -> dict[str, Any]:
        """Return what was printed, by the names of README-logs."""
        failed = [{"outputs": list(step.outputs), "code": step.code} for step in self.failed]
        facts: dict[str, Any] = {"done": self.done, "total": self.total, "failed": failed}
        facts |= {"stopped": True} if self.stopped else {}
        facts |= {"no_work": True} if self.no_work else {}
        return facts | ({"error": self.error} if self.error else {})


def parse_ninja(text: str) -> NinjaRun | None:
    """Return what ninja reported; None if the text holds nothing of ninja."""
    done = total = None
    failed: list[FailedStep] = []
    stopped = no_work = False
    error = None
    for line in clean_lines(text):
        if match := _PROGRESS.match(line.text):
            done, total = int(match[1]), int(match[2])
        elif match := _FAILED.match(line.text):
            code = int(match[1]) if match[1] else None
            failed.append(FailedStep(outputs=tuple(match[2].split()), code=code))
        elif _STOPPED.match(line.text):
            stopped = True
        elif line.text.startswith("ninja: no work to do."):
            no_work = True
        elif match := _ERROR.match(line.text):
            error = match[1].strip()
    if done is None and not (failed or stopped or no_work or error):
        return None
    return NinjaRun(done=done, total=total, failed=tuple(failed), stopped=stopped, no_work=no_work, error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class NinjaLog:
    """The steps in a .ninja_log; of an output built more than once the last entry counts."""

    version: int
    entries: int
    seconds: tuple[tuple[str, float], ...]

    @property
    def duplicates(self) -> int:
        """Steps that the log holds more than once: they were run again."""
        return self.entries - len(self.seconds)

    def slowest(self, count: int) -> tuple[tuple[str, float], ...]:
        """Return the outputs that took longest, with their seconds, longest first."""
        return tuple(sorted(self.seconds, key=lambda entry: -entry[1])[:count])

    def facts(self) -> dict[str, Any]:
        """Return what was read, by the names of README-logs."""
        facts: dict[str, Any] = {"version": self.version, "entries": self.entries}
        facts |= {"outputs": len(self.seconds), "duplicates": self.duplicates}
        if self.seconds:
            output, seconds = self.slowest(1)[0]
            facts["longest"] = {"output": output, "ms": round(seconds * 1000)}
        return facts


def parse_ninja_log(text: str) -> NinjaLog | None:
    """Return a .ninja_log of version 5 to 7; None if it is none of them. A last line cut short is left out."""
    version = None
    entries = 0
    last: dict[str, float] = {}
    for line in clean_lines(text):
        if head := _LOG_HEAD.match(line.text.strip()):
            version = int(head[1])
            continue
        columns = line.text.split("\t")
        if version is None or len(columns) != 5 or not all(_is_a_count(each) for each in columns[:3]):
            continue
        entries += 1
        last.pop(columns[3], None)
        last[columns[3]] = (int(columns[1]) - int(columns[0])) / 1000
    if version not in _LOG_VERSIONS:
        return None
    return NinjaLog(version=version or 0, entries=entries, seconds=tuple(last.items()))


def _is_a_count(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= 20
