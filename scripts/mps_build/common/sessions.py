"""Programs in sessions of their own: a program, and whatever it started, ends with the work it was started for.

A session, not a group: ninja puts each compiler into a group of its own. What leaves the session as well (sccache's
server) means to stay.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from . import stopping

# ninja removes what its compilers left half-written, and pip its downloads, if they are asked to end.
_PATIENCE_SECONDS = 3.0
# Where we are killed outright the pipe closes: the group is asked to end, and 3 seconds later it must.
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
    is_asked: bool = True,
    is_guarded: bool = True,
    is_told: bool = True,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program beside the block; where the block fails, all of its session ends before the error goes on.

    Args:
        is_asked: end it by SIGTERM first; False kills it at once, which is right for a mere question.
        is_guarded: end it also if we are killed outright.
        is_told: a signal to us goes to it at once, whichever thread waits for it.

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
            if is_told:
                stopping.started(process.pid, ends_by=signal.SIGTERM if is_asked else signal.SIGKILL)
            stack.callback(_close, process)
            if is_guarded:
                stack.enter_context(guarded(process.pid))
            stack.push(lambda kind, _error, _at: end_session(process, is_asked=is_asked) if kind else None)
        yield process


def end_session(process: subprocess.Popen[bytes], *, is_asked: bool = True) -> None:
    """End a program and all of its session, and wait for it: a few seconds, however it takes the signals."""
    try:
        if is_asked and _is_over(process, signal.SIGTERM):
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
    told: set[int] = set()
    while members := _members(process.pid):
        for pid in members - told:  # SIGKILL also for what was started meanwhile
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        told |= members
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
