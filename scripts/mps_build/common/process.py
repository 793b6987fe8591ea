"""How other programs are started: commands as values, captured answers, logged work.

Facts about a host come through `Prober`s, so that a recorded host can answer in a
live one's place; work goes through `run_logged`, which keeps the whole output in a file. What a caller watches
while it runs is in `watched`; how a program ends with all that it started is in `sessions`.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from . import stopping
from .environment import without_repository
from .opening import open_to_append
from .plain_text import shown
from .sessions import end_descendants, session

_MOST_LINE_BYTES = 1 << 20
_LOOK_SECONDS = 0.5
# The longest that a program may fetch something: 500 MB at 35 kB/s.
FETCH_SECONDS = 4 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One program call: its arguments, where it runs, and its whole environment (None: ours)."""

    argv: tuple[str, ...]
    cwd: Path | None = None
    environ: Mapping[str, str] | None = None

    def __str__(self) -> str:
        return shlex.join(self.argv)

    @property
    def whole_environ(self) -> dict[str, str]:
        """What a logged, watched or interactive program gets."""
        return dict(self.environ) if self.environ is not None else without_repository(os.environ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What a program answered; `exit` is None when it could not be run, or was cut off."""

    argv: tuple[str, ...]
    stdout: str
    stderr: str
    exit: int | None
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """True if it ran and ended with 0."""
        return self.exit == 0


class CommandFailed(Exception):
    """A logged command ended with a failure; steps turn it into an error of their own."""

    def __init__(self, command: Command, *, exit_code: int, log: Path, tail: tuple[str, ...]) -> None:
        super().__init__(f"`{command}` ended with {_describe_exit(exit_code)}")
        self.command = command
        self.exit_code = exit_code
        self.log = log
        self.tail = tail


def neutral_environ() -> dict[str, str]:
    """Return our environment with a neutral locale, for programs whose text is parsed."""
    return {**without_repository(os.environ), "LC_ALL": "C", "LANG": "C", "LANGUAGE": "C"}


_trace: list[Callable[[Command], None]] = []


def trace_programs(report: Callable[[Command], None]) -> None:
    """Let `report` see every program that is started from now on (`mps-build -v`)."""
    _trace[:] = [report]


def traced(command: Command) -> None:
    """Report a program that is about to be started."""
    for report in _trace:
        report(command)


def capture(command: Command, *, timeout_seconds: float = 20.0, errors: str = "replace") -> Captured:
    """Run a program for its answer: stdin closed, a neutral locale, bytes that are not UTF-8 replaced (`errors`).

    Never raises for what the program does: a missing program, a failure and a time-out are answers. What was
    printed before a time-out is dropped: half an answer reads like another one.
    """
    environ = dict(command.environ) if command.environ is not None else neutral_environ()
    try:
        traced(command)
        with session(
            command.argv,
            cwd=command.cwd,
            environ=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            is_asked=False,
            is_guarded=False,  # a question: it is over soon, and the guard costs as much as the answer
        ) as process:
            stdout, stderr = process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        said = f"no answer within {timeout_seconds:g} seconds"
        return Captured(argv=command.argv, stdout="", stderr=said, exit=None, timed_out=True)
    except OSError as error:
        return Captured(argv=command.argv, stdout="", stderr=str(error), exit=None)
    stopping.check()
    return Captured(
        argv=command.argv,
        stdout=stdout.decode("utf-8", errors),
        stderr=stderr.decode("utf-8", "replace"),
        exit=process.returncode,
    )


def run_logged(
    command: Command,
    *,
    log: Path,
    on_line: Callable[[str], None] | None = None,
    timeout_seconds: float | None = None,
) -> float:
    """Run a program for its work, all output appended to `log`; return its wall seconds.

    Args:
        on_line: sees each line of output (both streams, in order) as it comes; a carriage
            return ends a line too, since progress bars use it.
        timeout_seconds: it is ended, with all that it started, when it has run for so long.

    Raises:
        CommandFailed: with the last 40 lines.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    tail: deque[str] = deque(maxlen=40)
    began = time.monotonic()

    def look() -> None:
        stopping.check()
        if timeout_seconds is not None and time.monotonic() - began > timeout_seconds:
            raise _TooLong

    with open_to_append(log) as file, contextlib.ExitStack() as stack:
        file.write(shown(f"$ {command}\n").encode())
        file.flush()
        traced(command)
        environ, pipe = command.whole_environ, subprocess.PIPE
        running = session(command.argv, cwd=command.cwd, environ=environ, stdout=pipe, stderr=subprocess.STDOUT)
        try:
            process = stack.enter_context(running)
        except OSError as error:
            file.write(shown(f"{error}\n").encode())
            raise CommandFailed(command, exit_code=127, log=log, tail=(str(error),)) from error
        try:
            status = _follow(process, file, look, tail, on_line)
        except _TooLong as error:
            tail.append(f"ended: it was not done after {timeout_seconds:g} seconds")
            file.write(f"{tail[-1]}\n".encode())
            raise CommandFailed(command, exit_code=-signal.SIGKILL, log=log, tail=tuple(tail)) from error
    if status != 0:
        stopping.check()
        raise CommandFailed(command, exit_code=status, log=log, tail=tuple(tail))
    return time.monotonic() - began


class _TooLong(Exception):
    """A program has run for longer than it may."""


def _follow(
    process: subprocess.Popen[bytes],
    file: IO[bytes],
    look: Callable[[], None],
    tail: deque[str],
    on_line: Callable[[str], None] | None,
) -> int:
    assert process.stdout is not None
    for line in _lines(process.stdout, file, look):
        tail.append(line)
        if on_line:
            on_line(line)
    while True:  # it may close its output and go on
        look()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_LOOK_SECONDS)


def run_interactive(command: Command) -> int:
    """Run a program on the caller's own terminal and return its exit status, as a shell gives it."""
    try:
        traced(command)
        with stopping.held():
            process = subprocess.Popen(command.argv, cwd=command.cwd, env=command.whole_environ)
        while True:
            try:
                status = process.wait()
                break
            except KeyboardInterrupt as stop:
                if getattr(stop, "number", signal.SIGINT) != signal.SIGINT:
                    end_descendants(process)
                    raise
                stopping.go_on()  # the terminal tells the program too: it decides
    except OSError as error:
        sys.stderr.write(f"{shown(command.argv[0])}: {error.strerror}\n")
        return 127
    return status if status >= 0 else 128 - status


@contextlib.contextmanager
def beside(command: Command) -> Iterator[None]:
    """Run a program beside the block, and wait for it at the end; where the block fails, the program is killed.

    For what only fills a cache: its output is dropped, and it may fail or not even start.
    """
    traced(command)
    null, environ = subprocess.DEVNULL, command.whole_environ
    with contextlib.ExitStack() as stack:
        process = None
        with contextlib.suppress(OSError):
            process = stack.enter_context(
                session(command.argv, cwd=command.cwd, environ=environ, stdout=null, stderr=null)
            )
        yield
        if process is not None:
            process.wait()


def _lines(stream: IO[bytes], copy: IO[bytes], look: Callable[[], None]) -> Iterator[str]:
    pending = b""
    while chunk := _read(stream, look):
        copy.write(chunk)
        copy.flush()
        if len(pending) > _MOST_LINE_BYTES:  # a line without an end must not be copied again and again
            yield pending.decode("utf-8", "replace")
            pending = b""
        *whole, pending = (pending + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if pending:
        yield pending.decode("utf-8", "replace")


def _read(stream: IO[bytes], look: Callable[[], None]) -> bytes:
    """Return what comes next; empty at the end. `look` is called about twice a second meanwhile."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            look()
            if selector.select(_LOOK_SECONDS):
                return os.read(stream.fileno(), 65536)


def _describe_exit(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
