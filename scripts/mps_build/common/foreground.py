"""A program in the foreground: signals are its own, and so is the time that it takes to end.

Ctrl-C on a terminal reaches every process in the foreground; what is sent to us alone is passed on. Which of the two a
signal was is told by `si_code` (sigaction(2): SI_USER came from `kill`).
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys

from . import stopping
from .plain_text import shown
from .process import Command, traced
from .sessions import end_descendants

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
        told = signal.sigtimedwait(heard, 0.5)
        if told is None or told.si_signo == signal.SIGCHLD:
            continue
        if told.si_code == _FROM_A_PROCESS:
            process.send_signal(told.si_signo)
        ends += told.si_signo in _ENDS
        if ends > 1:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_LAST_SECONDS)
            end_descendants(process)  # reaps it: how it ended is not to be had any more
            return -told.si_signo
    return status
