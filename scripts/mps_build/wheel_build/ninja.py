"""ninja: a build run under it (its counters become progress, its failure a CompileError), and how it names objects."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from mps_build.common.errors import CompileError
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.reporting import Reporter

_CHOSEN = re.compile(r"^CMAKE_MAKE_PROGRAM:\w+=(.*/ninja[^/\n]*)$", re.MULTILINE)
_NINJA = re.compile(r"^\[(\d+)/(\d+)\] ?(.*)")
_FAILED = re.compile(r"^FAILED: (?:\[code=\d+\] )?(\S+)", re.MULTILINE)
_QUOTES = re.compile(r"[\"'\\]")


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
    try:
        return _run_watched(command, log=log, reporter=reporter, title=title)
    except CommandFailed as failure:
        raise CompileError(f"the build failed ({_reason(failure)})", hint=f"the whole output is in {log}") from failure


def run_logged_or_fail(command: Command, log: Path) -> None:
    """Run a command; raise a CompileError with its last lines if it fails."""
    try:
        run_logged(command, log=log)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        raise CompileError(f"{failure}:\n{text}", hint=f"the whole output is in {log}") from failure


def _reason(failure: CommandFailed) -> str:
    return f"exit {failure.exit_code}" if failure.exit_code >= 0 else f"signal {-failure.exit_code}"


def compile_objects(command: Command, *, what: str, log: Path, reporter: Reporter) -> None:
    """Run a ninja that makes the named objects and continues after a failure.

    Raises:
        CompileError: naming every object that failed; the log holds why.
    """
    try:
        _run_watched(command, log=log, reporter=reporter, title=f"Compile {what}")
    except CommandFailed as failure:
        failed = parse_failed(log.read_text(encoding="utf-8", errors="replace"))
        names = ", ".join(name.rsplit("/", 1)[-1] for name in failed[:12]) or str(failure.exit_code)
        raise CompileError(
            f"{len(failed) or 'some'} of the {what} do not compile: {names}",
            hint=f"the whole output is in {log}; nox -s triage -- {log}",
            document={"failed": list(failed)},
        ) from failure


def _run_watched(command: Command, *, log: Path, reporter: Reporter, title: str) -> int:
    log.unlink(missing_ok=True)
    reporter.started(title)
    steps = 0

    def watch(line: str) -> None:
        nonlocal steps
        if match := _NINJA.match(line.strip()):
            done, total, what = match.groups()
            steps = int(total)
            reporter.advanced(int(done), total=steps, note=what.rsplit("/", 1)[-1][:48])

    run_logged(command, log=log, on_line=watch)
    reporter.done()
    return steps


def parse_failed(log: str) -> tuple[str, ...]:
    """Return the outputs that ninja says failed.

    >>> parse_failed("[1/2] x\\nFAILED: [code=1] a/b.cpp.o \\nFAILED: c.o\\n")
    ('a/b.cpp.o', 'c.o')
    """
    return tuple(dict.fromkeys(_FAILED.findall(log)))


def words_of(command: str) -> list[str]:
    r"""Return a command's words as a shell splits it.

    >>> words_of("c++ -DA=1 -c a.cpp"), words_of(r"c++ '-DA=x y' -DB=\"s\"")
    (['c++', '-DA=1', '-c', 'a.cpp'], ['c++', '-DA=x y', '-DB="s"'])

    Raises:
        ValueError: a quotation has no end.
    """
    # shlex reads character by character, 5 ms a command of CMake's; next to none of them quotes anything.
    return shlex.split(command) if _QUOTES.search(command) else command.split()


def object_of(entry: Mapping[str, str]) -> str:
    """Return the object that an entry compiles, as ninja names it: relative to the build folder.

    That is the command's own `-o`. The key `output` came with CMake 3.26, and CMake 4.4 writes a whole path there.

    >>> object_of({"command": "c++ -o d/a.o -c a.cpp", "output": "/b/d/a.o"})
    'd/a.o'

    Raises:
        LookupError: the entry names no object.
    """
    words = words_of(entry.get("command", ""))
    return words[words.index("-o") + 1] if "-o" in words[:-1] else entry["output"]
