"""What one hostile input may cost: the limit on processor time, and the error for whatever goes beyond a limit.

Limits on sizes and counts stand where the input is read; they are what refuses a hostile file, at once and always at
the same place. The time limit is the net below them, for whatever nobody thought of.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .errors import UsageError


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
