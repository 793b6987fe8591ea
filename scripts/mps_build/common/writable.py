"""Folders that a command will write to, tried before its work starts; and what a refusal of the system means."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

from .errors import UsageError
from .faults import FULL
from .opening import NotAFile

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
        if error.errno in FULL:
            return  # said where it happens, as a full disk
        raise UsageError(f"{what} {folder}: {there} cannot be written to: {error.strerror}", hint=hint) from error


def refusal(error: Exception) -> UsageError | None:
    """Return what a refused path means for the user; None for an error that may be a fault of ours."""
    if not isinstance(error, OSError) or (name := _file_of(error)) is None:
        return None
    if error.errno not in _REFUSALS and not isinstance(error, NotAFile):
        return None
    return UsageError(
        f"{name}: {error.strerror}",
        hint="check its owner and permissions (ls -ld), or choose another folder by an option, MPS_BUILD_WORK or"
        " MPS_BUILD_CACHE",
    )


def _file_of(error: OSError) -> str | None:
    if isinstance(error.filename, bytes):
        return error.filename.decode("utf-8", "replace")
    return error.filename if isinstance(error.filename, str) else None
