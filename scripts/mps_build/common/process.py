"""How other programs are started: commands as values, captured answers, logged work.

Facts about a host come through `Prober`s, so that a recorded host can answer in a
live one's place; work goes through `run_logged`, which keeps the whole output in a file. What a caller watches
while it runs is in `watched`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .environment import without_repository
from .plain_text import shown

_MOST_LINE_BYTES = 1 << 20


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


def capture(command: Command, *, timeout_seconds: float = 20.0) -> Captured:
    """Run a program for its answer: stdin closed, a neutral locale, bytes that are not UTF-8 replaced.

    Never raises for what the program does: a missing program, a failure and a time-out are answers. What was
    printed before a time-out is dropped: half an answer reads like another one.
    """
    environ = dict(command.environ) if command.environ is not None else neutral_environ()
    try:
        traced(command)
        with subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                stdout, stderr = process.communicate(timeout=timeout_seconds)
                timed_out = False
            except subprocess.TimeoutExpired:
                kill_group(process.pid)
                stdout, stderr = process.communicate()
                timed_out = True
    except OSError as error:
        return Captured(argv=command.argv, stdout="", stderr=str(error), exit=None)
    if timed_out:
        said = f"no answer within {timeout_seconds:g} seconds"
        return Captured(argv=command.argv, stdout="", stderr=said, exit=None, timed_out=True)
    return Captured(
        argv=command.argv,
        stdout=stdout.decode("utf-8", "replace"),
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
        timeout_seconds: the program then runs in a group of its own, which is killed at the limit.
            Without, it stays in ours, so that what kills us as a group leaves no builder behind.

    Raises:
        CommandFailed: with the last 40 lines.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    tail: deque[str] = deque(maxlen=40)
    began = time.monotonic()
    with log.open("ab") as file:
        file.write(shown(f"$ {command}\n").encode())
        file.flush()
        try:
            traced(command)
            process = subprocess.Popen(
                command.argv,
                cwd=command.cwd,
                env=command.whole_environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=timeout_seconds is not None,
            )
        except OSError as error:
            file.write(shown(f"{error}\n").encode())
            raise CommandFailed(command, exit_code=127, log=log, tail=(str(error),)) from error
        watchdog = threading.Timer(timeout_seconds, kill_group, (process.pid,)) if timeout_seconds else None
        if watchdog:
            watchdog.start()
        assert process.stdout is not None
        try:
            for line in _lines(process.stdout, file):
                tail.append(line)
                if on_line:
                    on_line(line)
            process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        finally:
            process.stdout.close()
            if watchdog:
                watchdog.cancel()
    if process.returncode != 0:
        raise CommandFailed(command, exit_code=process.returncode, log=log, tail=tuple(tail))
    return time.monotonic() - began


def run_interactive(command: Command) -> int:
    """Run a program on the caller's own terminal and return its exit status, as a shell gives it."""
    try:
        traced(command)
        with subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=command.whole_environ,
        ) as process:
            while True:
                try:
                    status = process.wait()
                    break
                except KeyboardInterrupt:
                    continue  # the terminal tells the program too: it decides
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
    try:
        process = subprocess.Popen(command.argv, cwd=command.cwd, env=environ, stdin=null, stdout=null, stderr=null)
    except OSError:
        yield
        return
    with process:
        try:
            yield
        except BaseException:
            process.kill()
            raise


def kill_group(pid: int) -> None:
    """Kill a program we started and all it started (each runs in a session of its own)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
        os.killpg(pid, signal.SIGKILL)


def _lines(stream: IO[bytes], copy: IO[bytes]) -> Iterator[str]:
    pending = b""
    while chunk := os.read(stream.fileno(), 65536):
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


def _describe_exit(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
