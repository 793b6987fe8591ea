"""Programs that run beside ours: one that its caller watches, and macOS's own that keeps the Mac awake."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .opening import open_to_append
from .process import Command, kill_group, traced


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
        kill_group(self._process.pid)
        self._process.wait()


@contextlib.contextmanager
def watched(command: Command, *, log: Path) -> Iterator[Running]:
    """Run a program whose caller watches it, output appended to `log`; nothing of its group outlives the block, or us.

    Raises:
        OSError: the program cannot be run at all.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open_to_append(log) as file:
        traced(command)
        process = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=command.whole_environ,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        with _ended_with_us(process.pid):
            yield Running(process)
    finally:
        kill_group(process.pid)
        process.wait()


@contextlib.contextmanager
def _ended_with_us(group: int) -> Iterator[None]:
    """Let a shell wait on a pipe that only we hold: if we are killed it ends, and the shell kills the group.

    A program that hangs in native code could not see our end by itself.
    """
    argv = ("/bin/sh", "-c", f"read -r _ || kill -s KILL -- -{group}")
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True) as guard:
        assert guard.stdin is not None
        try:
            yield
        finally:
            with contextlib.suppress(BrokenPipeError):
                guard.stdin.write(b"\n")
                guard.stdin.close()


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
