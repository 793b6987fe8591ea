"""Configured tree -> objects: some of its files compiled, watched through ninja's counters."""

from __future__ import annotations

import re
from pathlib import Path

from mps_build.common.errors import CompileError
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.reporter import Reporter

_NINJA = re.compile(r"^\[(\d+)/(\d+)\] ?(.*)")
_FAILED = re.compile(r"^FAILED: (?:\[code=\d+\] )?(\S+)", re.MULTILINE)


def compile_objects(command: Command, *, what: str, log: Path, reporter: Reporter) -> None:
    """Run a ninja that makes the named objects and continues after a failure.

    Raises:
        CompileError: naming every object that failed; the log holds why.
    """
    log.unlink(missing_ok=True)
    reporter.started(f"Compile {what}")

    def watch(line: str) -> None:
        if match := _NINJA.match(line.strip()):
            done, total, step = match.groups()
            reporter.advanced(int(done), total=int(total), note=step.rsplit("/", 1)[-1][:48])

    try:
        run_logged(command, log=log, on_line=watch)
    except CommandFailed as failure:
        failed = parse_failed(log.read_text(encoding="utf-8", errors="replace"))
        names = ", ".join(name.rsplit("/", 1)[-1] for name in failed[:12]) or str(failure.exit_code)
        raise CompileError(
            f"{len(failed) or 'some'} of the {what} do not compile: {names}",
            hint=f"the whole output is in {log}; nox -s triage -- {log}",
            document={"failed": list(failed)},
        ) from failure
    reporter.done()


def parse_failed(log: str) -> tuple[str, ...]:
    """Return the outputs that ninja says failed.

    >>> parse_failed("[1/2] x\\nFAILED: [code=1] a/b.cpp.o \\nFAILED: c.o\\n")
    ('a/b.cpp.o', 'c.o')
    """
    return tuple(dict.fromkeys(_FAILED.findall(log)))
