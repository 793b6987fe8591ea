"""Signals as exceptions: what ends this process from outside, and the processor time that one hostile input may cost.

SIGTERM, SIGHUP and Ctrl-C are one exception, so that every `finally` of ours runs: children end, files and locks go.
One handler, installed by the entry point; a thread that waits for a program learns of it by the end of that program.

Limits on sizes and counts stand where an input is read; they are what refuses a hostile file, at once and always at the
same place. The time limit is the net below them, for whatever nobody thought of.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .errors import UsageError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal asks us to end; what handles Ctrl-C handles it as well."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class _State:
    """What the handler knows; written by the main thread alone, apart from `live`."""

    number: int | None = None
    is_held = False
    pending: int | None = None
    # Leaders of sessions -> the signal that asks them to end. Plain operations of a dict: a handler may take no lock.
    live: dict[int, int] = {}  # noqa: RUF012 -- one for the process


def exit_status(stop: BaseException | None = None) -> int:
    """Return 128 + the signal's number, as a shell has it; 130 where Ctrl-C came by Python's own handler."""
    number = getattr(stop, "number", None) or _State.number or signal.SIGINT
    return 128 + int(number)


def stopped_by() -> int | None:
    """Return the signal that ended us, or None."""
    return _State.number


def go_on() -> None:
    """Take a Ctrl-C as meant for a program on our terminal, and not for us."""
    _State.number = None


def check() -> None:
    """Raise in a thread what the main thread raised: programs must neither start nor be waited for any more.

    The main thread has had its exception, and may start what cleans up.

    Raises:
        Stopped: a signal ended us.
    """
    if _State.number is not None and threading.current_thread() is not threading.main_thread():
        raise Stopped(_State.number)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Let no signal come between a program's start and our knowing of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _State.is_held = True
    try:
        yield
    finally:
        _State.is_held = False
        pending, _State.pending = _State.pending, None
        if pending is not None:
            _stop(pending)


def started(leader: int, *, ends_by: int) -> None:
    """Take note of a session that a signal to us ends too, whichever thread waits for it."""
    _State.live[leader] = ends_by


def ended(leader: int) -> None:
    """Forget a session."""
    _State.live.pop(leader, None)


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """Raise `Stopped` in the main thread for SIGTERM, SIGHUP and SIGINT; one that is ignored (nohup) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner, outer = os.getpid(), _State.number

    def handle(number: int, frame: object) -> None:
        if os.getpid() != owner:  # a fork of ours: the signal is for it alone, and it has nothing to clean up
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif _State.is_held:
            _State.pending = number
        elif _State.number is None or number == signal.SIGINT:
            _stop(number)
        # Else the end is under way: nox and runners send SIGINT first, and SIGTERM 0.3 s later.

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    heard = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    _State.number = None
    for number in heard:
        signal.signal(number, handle)
    try:
        yield
    finally:
        _State.number = outer
        for number in heard:
            signal.signal(number, before[number])


def _stop(number: int) -> None:
    _State.number = _State.number or number
    for leader, ends_by in list(_State.live.items()):
        with contextlib.suppress(OSError):
            os.killpg(leader, ends_by)
    raise Stopped(number)


class OverBudget(UsageError):
    """The input asks for more time or memory than any honest one does."""


@contextmanager
def budget_of(what: str, *, cpu_seconds: float) -> Iterator[None]:
    """Refuse `what` once the block has taken `cpu_seconds` of CPU time, or more memory than there is.

    Off the main thread, and where the system has no such timer, only memory is watched.

    Raises:
        OverBudget: with which of the two it was.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise OverBudget(
            f"{what}: took longer than {cpu_seconds:.0f} s of CPU time",
            hint="no ordinary file of this size takes that long: do not install it, and please report how it was made",
        )

    has_timer = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    previous = signal.signal(signal.SIGPROF, stop) if has_timer else None
    try:
        if has_timer:
            signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        yield
    except MemoryError as error:
        raise OverBudget(f"{what}: needs more memory than is allowed", hint="do not install it") from error
    except RecursionError as error:
        raise OverBudget(f"{what}: is nested too deeply", hint="do not install it") from error
    finally:
        if has_timer:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, previous)
