"""How other programs are started: commands as values, answers captured, work logged, sessions ended with their work.

Facts about a host come through `Prober`s, so that a recorded host can answer in a live one's place; work goes through
`run_logged`, which keeps the whole output in a file.

A program has a session, not a group: ninja puts each compiler into a group of its own. What leaves the session as well
(sccache's server) means to stay. In the foreground, Ctrl-C on a terminal reaches every process; what is sent to us
alone is passed on. Which of the two a signal was is said by `si_code` (sigaction(2): SI_USER came from `kill`).
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from . import stopping
from .environment import without_repository
from .files import open_to_append
from .plain_text import shown

# ninja removes what its compilers left half-written, and pip its downloads, if they are made to end.
_PATIENCE_SECONDS = 3.0
# Where we are killed outright the pipe closes: the group is made to end, and 3 seconds later it must.
_GUARD = (
    "read -r _ && exit; kill -s TERM -- -{0}; n=0;"
    " while [ $n -lt 30 ] && kill -s 0 -- -{0}; do sleep 0.1; n=$((n+1)); done; kill -s KILL -- -{0}"
)


@contextlib.contextmanager
def session(
    argv: Sequence[str],
    *,
    cwd: Path | None,
    environ: Mapping[str, str],
    stdout: int | IO[bytes],
    stderr: int,
    is_gentle: bool = True,
    is_guarded: bool = True,
    is_reported: bool = True,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program beside the block; where the block fails, all of its session ends before the error goes on.

    Args:
        is_gentle: end it by SIGTERM first; False kills it at once, which is right for a mere question.
        is_guarded: end it also if we are killed outright.
        is_reported: a signal to us goes to it at once, whichever thread waits for it.

    Raises:
        OSError: the program cannot be run at all.
    """
    stopping.check()
    with contextlib.ExitStack() as stack:
        with stopping.held():
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            if is_reported:
                stopping.started(process.pid, ends_by=signal.SIGTERM if is_gentle else signal.SIGKILL)
            stack.callback(_close, process)
            if is_guarded:
                stack.enter_context(guarded(process.pid))
            stack.push(lambda kind, _error, _at: end_session(process, is_gentle=is_gentle) if kind else None)
        yield process


def end_session(process: subprocess.Popen[bytes], *, is_gentle: bool = True) -> None:
    """End a program and all of its session, and wait for it: a few seconds, however it takes the signals."""
    try:
        if is_gentle and _is_over(process, signal.SIGTERM):
            return
    finally:  # a second Ctrl-C: at once
        if not _is_over(process, signal.SIGKILL):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)  # it may hang in the kernel: nobody can end that


@contextlib.contextmanager
def guarded(group: int) -> Iterator[None]:
    """Let a shell wait on a pipe that only we hold: if we are killed it ends, and the shell ends the group.

    A program that hangs in native code could not see our end by itself.
    """
    argv = ("/bin/sh", "-c", _GUARD.format(group))
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True) as guard:
        assert guard.stdin is not None
        try:
            yield
        finally:
            with contextlib.suppress(BrokenPipeError):
                guard.stdin.write(b"\n")
                guard.stdin.close()


def end_descendants(process: subprocess.Popen[bytes]) -> None:
    """End a program that shares our terminal, a shell most likely, and all that it started."""
    import psutil

    with contextlib.suppress(psutil.Error):
        top = psutil.Process(process.pid)
        family = [*top.children(recursive=True), top]
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):  # an interactive shell ignores SIGTERM
            for each in family:
                with contextlib.suppress(psutil.Error):
                    each.send_signal(number)
            _, family = psutil.wait_procs(family, timeout=0.5)
    process.poll()


def _is_over(process: subprocess.Popen[bytes], number: int) -> bool:
    """Send a signal to a whole session, and say whether it was the end of it."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    reported: set[int] = set()
    while members := _members(process.pid):
        for pid in members - reported:  # SIGKILL also for what was started meanwhile
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        reported |= members
        if time.monotonic() > deadline:
            return False
        process.poll()
        time.sleep(0.01)
    # A process of several threads is dead a little before it can be waited for.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
    return True


def _members(leader: int) -> set[int]:
    """Return who is alive in a session."""
    import psutil  # costs 15 ms, which only an end pays

    found = set()
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(pid) == leader and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.add(pid)
    return found


def _close(process: subprocess.Popen[bytes]) -> None:
    stopping.ended(process.pid)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


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
            is_gentle=False,
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
    """Return what comes next; empty at the end. `look` is called about two times a second meanwhile."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            look()
            if selector.select(_LOOK_SECONDS):
                return os.read(stream.fileno(), 65536)


def _describe_exit(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit {code}"


_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_HEARD = (*_ENDS, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)
_FROM_A_PROCESS = 0  # SI_USER; Python has no name for it
_LAST_SECONDS = 1.0


def run_in_foreground(command: Command) -> int:
    """Run a program where the caller stands; return its exit status, as a shell gives it.

    The first signal that asks for an end is the program's: it ends when it is ready, with its own status. The second
    ends it, with all that it started.

    Returns:
        126 where it cannot be run, 127 where it is not there, 128 + N where signal N ended it.
    """
    traced(command)
    try:
        with stopping.held():
            process = subprocess.Popen(command.argv, cwd=command.cwd, env=command.whole_environ)
            heard = {each for each in _HEARD if signal.getsignal(each) != signal.SIG_IGN}  # under nohup: no SIGHUP
            before = signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    except OSError as error:
        sys.stderr.write(f"{shown(command.argv[0])}: {error.strerror}\n")
        return 127 if isinstance(error, FileNotFoundError) else 126
    try:
        status = _ended(process, heard)
    finally:
        while signal.sigtimedwait(heard, 0):  # for a program that has ended
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return status if status >= 0 else 128 - status


def _ended(process: subprocess.Popen[bytes], heard: set[signal.Signals]) -> int:
    """Wait for the end, and pass on what comes meanwhile."""
    ends = 0
    while (status := process.poll()) is None:
        reported = signal.sigtimedwait(heard, 0.5)
        if reported is None or reported.si_signo == signal.SIGCHLD:
            continue
        if reported.si_code == _FROM_A_PROCESS:
            process.send_signal(reported.si_signo)
        ends += reported.si_signo in _ENDS
        if ends > 1:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_LAST_SECONDS)
            end_descendants(process)  # reaps it: how it ended is not to be had any more
            return -reported.si_signo
    return status


class Running:
    """A program under watch, in a group of its own; its output goes to a file."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id, which is its group's id as well."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit status (-n for signal n), or None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Kill it and all it started, and wait for its end."""
        end_session(self._process, is_gentle=False)


@contextlib.contextmanager
def watched(command: Command, *, log: Path) -> Iterator[Running]:
    """Run a program whose caller watches it, output appended to `log`; nothing of its group outlives the block, or us.

    Raises:
        OSError: the program cannot be run at all.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open_to_append(log) as file:
        traced(command)
        with session(
            command.argv,
            cwd=command.cwd,
            environ=command.whole_environ,
            stdout=file,
            stderr=subprocess.STDOUT,
            is_gentle=False,
            is_reported=False,  # its caller judges how it ended, and must not take our end for its fault
        ) as process:
            try:
                yield Running(process)
            finally:
                end_session(process, is_gentle=False)


@contextlib.contextmanager
def kept_awake() -> Iterator[None]:
    """Keep a Mac from sleeping while a long work goes on; elsewhere nothing is done."""
    if sys.platform != "darwin":
        yield
        return
    # -w: caffeinate ends with us, however we end.
    argv = ("/usr/bin/caffeinate", "-ims", "-w", str(os.getpid()))
    try:
        caffeinate = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    except OSError:  # a sandbox may forbid it; a Mac that falls asleep goes on when it wakes
        yield
        return
    with caffeinate:
        try:
            yield
        finally:
            caffeinate.terminate()
