"""Files: opened only if they are files, written whole, locked; folders tried first; what a system's error means.

A named pipe that nobody writes to would be waited for without end, and a device has no end. Both are refused at once,
as an `OSError` whose words a command can show. What is written goes beside its place first and is renamed, so that a
reader never sees half of it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .errors import DiskFull, HostError, MpsBuildError, UsageError, disk_full, reason_of

_SECONDS = 1.0  # between two looks at whether a lock is free

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


_PIECE = 1 << 20
# What the caller opened for us takes what is written, and no other file takes its place: a pipe of the shell's.
_OWN = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/(\d{1,9}))")


def write_whole(path: Path, data: str | bytes, *, mode: int | None = None) -> None:
    """Write a file; its folder is made if need be, and what was there stays if the writing fails.

    A byte of a path that is not UTF-8 becomes its escape, such as \\udcff, which JSON reads back.

    Args:
        mode: the file's permissions, such as 0o755; the user's default if None.
    """
    data = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    if str(path) == os.devnull:
        return
    if (own := _own(path)) is not None:
        with named(path), os.fdopen(os.dup(own), "wb") as stream:
            stream.write(data)
        return
    with written_whole(path) as beside:
        beside.write_bytes(data)
        if mode is not None:
            beside.chmod(mode)


def copy_whole(source: Path, path: Path, *, follow: bool = True) -> None:
    """Copy a file's contents, never by a link: what is changed later in the source stays out of the copy.

    Args:
        follow: False refuses a source that is a symbolic link.

    Raises:
        OSError: a file cannot be read or written, or the source is not a file.
    """
    with open_regular(source, follow=follow) as data, written_whole(path) as beside, beside.open("xb") as copy:
        for piece in _pieces(data, source):
            copy.write(piece)
        copy.flush()
        os.fsync(copy.fileno())


def _own(path: Path) -> int | None:
    """Return the descriptor of ours that a path stands for, if any; what was printed to it comes first."""
    if (found := _OWN.fullmatch(str(path))) is None:
        return None
    sys.stdout.flush()
    sys.stderr.flush()
    return 1 if found[1] else 2 if found[2] else int(found[3])


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a path in the same folder to write to; it takes the file's place at the end, and goes after an error.

    Raises:
        OSError: it cannot be written, or something that is not a file stands there.
    """
    check_target(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)  # of a run that was killed
    try:
        with named(path):
            yield beside
            beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _pieces(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    while True:
        with named(path):  # of what is read: the error of a write gets the other file's name
            piece = stream.read(_PIECE)
        if not piece:
            return
        yield piece


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


def _lies_at(file: IO[bytes], path: Path) -> bool:
    """False where the process that held the lock removed its file: what was locked is then nobody's lock any more."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
