"""What an error of the system means where it is the machine's: a disk that is full, or fails; never a fault of ours."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from .errors import DiskFull, HostError, MpsBuildError, disk_full, reason_of

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# A network folder that went away is ESTALE; the last two are Linux's.
_BROKEN = frozenset(
    getattr(errno, name)
    for name in ("EIO", "ESTALE", "ENXIO", "ENODEV", "EUCLEAN", "EREMOTEIO")
    if hasattr(errno, name)
)
_SAID = ("Input/output error", "Stale file handle", "Structure needs cleaning")
_BROKEN_HINT = (
    "look at the disk (`dmesg` on Linux, Disk Utility on a Mac) or at the network folder; MPS_BUILD_WORK and"
    " MPS_BUILD_CACHE choose folders on another one"
)


# The system's own limits, whoever meets them.
_LIMITS = {
    errno.EMFILE: "allow more open files: `ulimit -n 4096`",
    errno.ENFILE: "close other programs: the system has no more open files",
    errno.ENOMEM: "close other programs, or give this one more memory",
}
# The system's fault only where nobody judged them: a lock that is taken and a server that is silent end so too.
_UNJUDGED = {
    errno.EAGAIN: "allow more processes (`ulimit -u`), or close other programs",
    errno.ETIMEDOUT: "look at the network folder or the device",
}


def is_machines(error: OSError) -> bool:
    """True for what no caller can do anything about: it must not be taken for a fault of the file, or of ours."""
    return error.errno in FULL | _BROKEN | _LIMITS.keys()


def machine_fault(error: BaseException) -> MpsBuildError | None:
    """Return what an error, or the one that it was raised from, says of this machine; None if it says nothing."""
    if isinstance(error, MemoryError):
        return HostError("out of memory", hint=_LIMITS[errno.ENOMEM])
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        if isinstance(cause, (DiskFull, HostError)):
            return None  # said already
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    if cause is None or not (is_machines(cause) or (cause is error and cause.errno in _UNJUDGED)):
        return None
    said = str(error) if isinstance(error, MpsBuildError) else _place(cause)
    if cause.errno in FULL:
        hint = "free some space (`nox -s clean` shows ours) and run the same command again"
        return DiskFull(f"no space left: {said}", hint=hint)
    if cause.errno in _BROKEN:
        return HostError(f"the disk or the network folder fails: {said}", hint=_BROKEN_HINT)
    return HostError(f"the system fails: {said}", hint=(_LIMITS | _UNJUDGED)[cause.errno or 0])


def said_of_machine(text: str, *, during: str) -> MpsBuildError | None:
    """Return the error if what a program said tells of a full disk or of one that fails; None if of neither."""
    if full := disk_full(text, during=during):
        return full
    line = next((line.strip() for line in text.splitlines() if any(words in line for words in _SAID)), None)
    return HostError(f"the disk or the network folder fails, {during}: {line}", hint=_BROKEN_HINT) if line else None


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Put a file's name into an error that has none: reading and writing, unlike opening, do not tell it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def _place(error: OSError) -> str:
    name = error.filename
    return f"{os.fsdecode(name)}: {reason_of(error)}" if isinstance(name, (str, bytes)) else reason_of(error)
