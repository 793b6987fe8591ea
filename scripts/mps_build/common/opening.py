"""Files that a user or a folder names: opened only if they are files.

A named pipe that nobody writes to would be waited for without end, and a device has no end. Both are refused at once,
as an `OSError` whose words a command can show.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import IO

from .errors import reason_of
from .faults import named

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}


class NotAFile(OSError):
    """The path leads to a pipe, a device or a socket, or to a link where none is followed."""


def open_regular(path: Path, *, follow: bool = True) -> IO[bytes]:
    """Open a regular file for reading, and nothing else; never waits.

    Args:
        follow: False refuses a symbolic link in the path's last place.

    Raises:
        OSError: it cannot be opened, or is not a file (`NotAFile`).
    """
    check_regular(path, follow=follow)  # first: opening a device can already do something
    return os.fdopen(_opened(path, os.O_RDONLY | (0 if follow else os.O_NOFOLLOW)), "rb")


def open_to_append(path: Path, *, follow: bool = True) -> IO[bytes]:
    """Open a regular file to read and to append, made if need be: a log, a lock.

    Args:
        follow: False refuses a symbolic link in the path's last place.

    Raises:
        OSError: as for `open_regular`.
    """
    check_target(path)
    if not follow and path.is_symlink():
        check_regular(path, follow=False)
    # For reading too: who only writes to a pipe waits for its reader.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | (0 if follow else os.O_NOFOLLOW)
    return os.fdopen(_opened(path, flags), "a+b")


def check_regular(path: Path, *, follow: bool = True) -> None:
    """Refuse what is not a regular file, without opening it.

    Raises:
        OSError: as for `open_regular`.
    """
    _check(path.stat(follow_symlinks=follow), path)


def fault_of(path: Path) -> str | None:
    """Return why a path is not a file, in words for a message; None if it is one."""
    try:
        check_regular(path)
    except (FileNotFoundError, ValueError):  # ValueError: a name that no file can have
        return "no such file"
    except OSError as error:
        return reason_of(error)
    return None


def check_target(path: Path) -> None:
    """Refuse to write where something is that is not a file; it need not be there.

    Raises:
        OSError: a pipe would be waited for, and a file that is renamed would take a device's place.
    """
    with contextlib.suppress(FileNotFoundError):
        check_regular(path)


def read_bytes(path: Path, *, most_bytes: int | None = None) -> bytes:
    """Return a regular file's data.

    Raises:
        OSError: as for `open_regular`.
        ValueError: it is larger than `most_bytes`.
    """
    with named(path), open_regular(path) as file:
        data = file.read() if most_bytes is None else file.read(most_bytes + 1)
    if most_bytes is not None and len(data) > most_bytes:
        raise ValueError(f"has more than {most_bytes} bytes")
    return data


def read_text(path: Path, *, most_bytes: int | None = None, errors: str = "strict") -> str:
    """Return a regular file's text, in UTF-8; every kind of line break becomes a line feed.

    Raises:
        OSError: as for `open_regular`.
        ValueError: it is larger than `most_bytes`, or is not UTF-8.
    """
    text = read_bytes(path, most_bytes=most_bytes).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _opened(path: Path, flags: int) -> int:
    # Without waiting, and looked at again: what was a file a moment ago may be a pipe by now.
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        _check(os.fstat(descriptor), path)
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check(status: os.stat_result, path: Path) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if kind != stat.S_IFREG:
        raise NotAFile(errno.EINVAL, f"it is {_KINDS.get(kind, 'something else')}, not a file", str(path))
