"""A build run under ninja: its counters become progress, its failure a CompileError."""

from __future__ import annotations

import re
from pathlib import Path

from mps_build.common.errors import CompileError
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.reporter import Reporter

_NINJA = re.compile(r"^\[(\d+)/(\d+)\] ?(.*)")
_CHOSEN = re.compile(r"^CMAKE_MAKE_PROGRAM:\w+=(.*/ninja[^/\n]*)$", re.MULTILINE)


def ninja_of(build: Path) -> str:
    """Return the ninja that configure chose for a build folder.

    PATH may have another one, whose log the first cannot read: each would then build everything anew.
    """
    try:
        chosen = _CHOSEN.search((build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        chosen = None
    return chosen[1] if chosen else "ninja"


def run_build(command: Command, *, log: Path, reporter: Reporter, title: str = "Compile") -> int:
    """Run a build, its progress read from ninja's counters; return how many steps ninja had.

    Raises:
        CompileError: it failed. `log` holds all of its output.
    """
    log.unlink(missing_ok=True)
    reporter.started(title)
    steps = 0

    def watch(line: str) -> None:
        nonlocal steps
        if match := _NINJA.match(line.strip()):
            done, total, what = match.groups()
            steps = int(total)
            reporter.advanced(int(done), total=steps, note=_short(what))

    try:
        run_logged(command, log=log, on_line=watch)
    except CommandFailed as failure:
        raise CompileError(f"the build failed ({_reason(failure)})", hint=f"the whole output is in {log}") from failure
    reporter.done()
    return steps


def run_logged_or_fail(command: Command, log: Path) -> None:
    """Run a command; raise a CompileError with its last lines if it fails."""
    try:
        run_logged(command, log=log)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        raise CompileError(f"{failure}:\n{text}", hint=f"the whole output is in {log}") from failure


def _short(what: str) -> str:
    """Return the file a ninja line speaks of, without its folders."""
    return what.rsplit("/", 1)[-1][:48]


def _reason(failure: CommandFailed) -> str:
    return f"exit {failure.exit_code}" if failure.exit_code >= 0 else f"signal {-failure.exit_code}"
