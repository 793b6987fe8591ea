"""One process at a time: a lock file, which says who holds it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .opening import open_to_append


@contextmanager
def locked(path: Path, *, on_wait: Callable[[str], None] = lambda holder: None) -> Iterator[None]:
    """Hold a lock file, made if need be, and write into it which process does.

    The system gives the lock back when the process ends, however it ends.

    Args:
        on_wait: gets the number of the process that holds it ("unknown" if it does not say), before the wait; what it
            raises ends the wait.

    Raises:
        OSError: it cannot be opened or locked; or a link lies in its place, since what that leads to would be written.
    """
    while True:
        with open_to_append(path, follow=False) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                on_wait(file.read().decode("utf-8", "replace").strip() or "unknown")
                fcntl.flock(file, fcntl.LOCK_EX)
            if _lies_at(file, path):
                file.truncate(0)
                file.write(str(os.getpid()).encode())
                file.flush()
                yield
                return


def _lies_at(file: IO[bytes], path: Path) -> bool:
    """False where the process that held the lock removed its file: what was locked is then nobody's lock any more."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
