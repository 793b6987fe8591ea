"""Folders that a command will write to, tried before its work starts; and what a refusal of the system means."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

from .errors import DiskFull, HostError, UsageError, reason_of

# The system refuses a path that the user chose or owns; none of these is a fault in a program.
_REFUSALS = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EEXIST,
        errno.ELOOP,
        errno.ENAMETOOLONG,
    }
)
_FULL = (errno.ENOSPC, errno.EDQUOT)
# The system itself fails, whoever asks it.
_FAULTS = {
    errno.EIO: "look at the disk and its cable or network, and at what the system logged (`dmesg`)",
    errno.ENXIO: "connect the device again",
    errno.ENODEV: "connect the device again",
    errno.ESTALE: "mount the network folder again",
    errno.ETIMEDOUT: "look at the network folder or the device",
    errno.EMFILE: "allow more open files: `ulimit -n 4096`",
    errno.ENFILE: "close other programs: the system has no more open files",
    errno.ENOMEM: "close other programs, or give this one more memory",
    errno.EAGAIN: "allow more processes (`ulimit -u`), or close other programs",
}


def check_writable(folder: Path, *, what: str, hint: str) -> None:
    """Refuse a folder that cannot be written to; one that is not there yet can be made if its parent takes a file.

    Nothing is left behind, and nothing is made.

    Raises:
        UsageError: it cannot be written to, or something on its way is not a folder.
    """
    there = folder.absolute()
    try:
        while not there.exists() and there != there.parent:
            there = there.parent
        if not there.is_dir():
            raise UsageError(f"{what} {folder}: {there} is not a folder", hint=hint)
        with tempfile.TemporaryFile(dir=there, prefix=".mps-build-"):
            pass
    except OSError as error:
        if error.errno in _FULL:
            return  # said where it happens, as a full disk
        raise UsageError(f"{what} {folder}: {there} cannot be written to: {error.strerror}", hint=hint) from error


def refusal(error: Exception) -> UsageError | None:
    """Return what a refused path means for the user; None for an error that may be a fault of ours."""
    if not isinstance(error, OSError) or error.errno not in _REFUSALS or (name := _file_of(error)) is None:
        return None
    return UsageError(
        f"{name}: {error.strerror}",
        hint="check its owner and permissions (ls -ld), or choose another folder by an option, MPS_BUILD_WORK or"
        " MPS_BUILD_CACHE",
    )


def system_fault(error: Exception) -> DiskFull | HostError | None:
    """Return what a full disk, a failure of it, the memory or the system's limits means; None for any other error."""
    if isinstance(error, MemoryError):
        return HostError("out of memory", hint=_FAULTS[errno.ENOMEM])
    if not isinstance(error, OSError):
        return None
    if error.errno in _FULL:
        hint = "free some space (`nox -s clean` shows ours) and run the same command again"
        return DiskFull(f"no space left: {_file_of(error) or reason_of(error)}", hint=hint)
    if error.errno not in _FAULTS:
        return None
    return HostError(f"{_file_of(error) or 'the system'}: {error.strerror}", hint=_FAULTS[error.errno])


def _file_of(error: OSError) -> str | None:
    if isinstance(error.filename, bytes):
        return error.filename.decode("utf-8", "replace")
    return error.filename if isinstance(error.filename, str) else None
