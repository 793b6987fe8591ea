"""One process at a time: a lock file, which says who holds it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .opening import open_to_append
from .reporter import Follower, KeptReporter, Reporter

_SECONDS = 1.0  # between two looks at how far the holder is


@contextmanager
def locked(
    path: Path,
    *,
    on_wait: Callable[[str], None] = lambda holder: None,
    meanwhile: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Hold a lock file, made if need be, and write into it which process does.

    The system gives the lock back when the process ends, however it ends.

    Args:
        on_wait: gets the number of the process that holds it ("unknown" if it does not say), before the wait; what it
            raises ends the wait.
        meanwhile: called about once a second of the wait.

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
                _wait(file, meanwhile)
            if _lies_at(file, path):
                file.truncate(0)
                file.write(str(os.getpid()).encode())
                file.flush()
                yield
                return


def _wait(file: IO[bytes], meanwhile: Callable[[], None] | None) -> None:
    """Take the lock as soon as it is free."""
    is_taken = True
    while meanwhile is not None and is_taken:
        meanwhile()
        time.sleep(_SECONDS)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_taken = False
        except BlockingIOError:
            continue
    if is_taken:
        fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def made_by_one(path: Path, reporter: Reporter, *, what: str) -> Iterator[Reporter]:
    """Hold a lock file while something is made; another process that comes meanwhile waits, and shows how far it is.

    Args:
        what: what the holder does, for the line "process 123 ...: waiting for it".

    Yields:
        The reporter to work with: what it is given, others are shown too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = path.with_name(f"{path.name}.progress")
    follower = Follower(kept, reporter)

    def say(holder: str) -> None:
        reporter.line(f"process {holder} {what}: waiting for it")

    with locked(path, on_wait=say, meanwhile=follower.look):
        follower.end()
        try:
            yield KeptReporter(reporter, kept)
        finally:
            kept.unlink(missing_ok=True)


def _lies_at(file: IO[bytes], path: Path) -> bool:
    """False where the process that held the lock removed its file: what was locked is then nobody's lock any more."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
