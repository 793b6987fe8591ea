"""The place of a site: one run at a time, and exchanged whole, so that a run killed at any moment loses nothing.

Beside `site` lie, while a run works and after one was killed:

    .site.lock   which process works on it
    .site.new    the next site; after an exchange, the last one
    .site.old    the last site, where the system cannot exchange two folders

A site with a state is whole, since the state is written last. Recovery follows from that alone: where `site` has no
state and `.site.old` has one, the run was killed between its two renames, and the old site goes back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mps_build.common.errors import HostError, UsageError
from mps_build.common.files import check_writable, locked

from .state import STATE

# renameat2's RENAME_EXCHANGE (Linux 3.15) and renamex_np's RENAME_SWAP (macOS 10.12) have one value.
_EXCHANGE = 2
_AT_FDCWD = -100
# Said by file systems that rename and do not exchange: NFS, SMB, exFAT.
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)


def check_place(site: Path) -> None:
    """Refuse a folder that is not an index of ours: it would be replaced whole.

    Raises:
        UsageError: it holds something else.
    """
    if site.is_symlink():
        raise UsageError(f"{site} is a symbolic link", hint="name the folder that it leads to with --output")
    check_writable(site.parent, what="the index", hint="name another folder with --output")
    if site.exists() and not _is_whole(site) and (not site.is_dir() or any(site.iterdir())):
        raise UsageError(
            f"{site} exists and is not an index made by mps-build", hint="name an empty folder with --output"
        )


@contextmanager
def held(site: Path, *, on_wait: Callable[[str], None]) -> Iterator[None]:
    """Hold a site from the reading of its state to the exchange; a second run waits for the first.

    Args:
        on_wait: gets a sentence that names the other process, before the wait.

    Raises:
        UsageError: something else than a lock lies in its place.
        HostError: the file system knows no locks.
    """
    site.parent.mkdir(parents=True, exist_ok=True)
    lock = _beside(site, "lock")
    if lock.is_symlink():  # what it leads to would be written over
        raise UsageError(f"{lock} is a symbolic link", hint="see whose it is and remove it, or name another --output")

    def wait(holder: str) -> None:
        on_wait(f"{site} is being written by process {holder}: waiting until it is done")

    with ExitStack() as stack:
        try:
            stack.enter_context(locked(lock, on_wait=wait))
        except OSError as error:
            raise HostError(
                f"{lock} cannot be locked: {error.strerror}",
                hint="write the index to a local disk (--output), then copy it",
            ) from error
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def recover(site: Path) -> bool:
    """Undo what a killed run left beside a site that is held; return whether the site itself had to be put back."""
    old = _beside(site, "old")
    is_cut = not _is_whole(site) and _is_whole(old)
    if is_cut:
        old.rename(site)  # over an empty folder too
    for left in (old, next_place(site)):
        shutil.rmtree(left, ignore_errors=True)
    return is_cut


def next_place(site: Path) -> Path:
    """Return where the next site is written; it is on the same disk."""
    return _beside(site, "new")


def take_place(site: Path) -> None:
    """Put the folder at `next_place` in the site's place, at once where the system can, and remove the last site."""
    fresh, old = next_place(site), _beside(site, "old")
    _settle(fresh)
    if not _is_whole(site):
        fresh.rename(site)
    elif not _exchanged(fresh, site):
        site.rename(old)
        try:
            fresh.rename(site)
        except BaseException:
            old.rename(site)
            raise
    _sync(site.parent)
    for left in (old, fresh):
        shutil.rmtree(left, ignore_errors=True)


def _beside(site: Path, what: str) -> Path:
    return site.with_name(f".{site.name}.{what}")


def _is_whole(folder: Path) -> bool:
    return (folder / STATE).is_file() and not folder.is_symlink()


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, so that a reader never finds none; False where the system cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            status = library.renamex_np(*paths, ctypes.c_uint(_EXCHANGE))
        else:
            status = library.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], ctypes.c_uint(_EXCHANGE))
    except AttributeError:  # a C library older than the call
        return False
    if status == 0:
        return True
    if (number := ctypes.get_errno()) in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _settle(folder: Path) -> None:
    """Wait until a folder's files are on the disk: a rename may get there before what it renames."""
    for path, _, files in os.walk(folder, topdown=False):
        for name in files:
            _sync(Path(path, name))
        _sync(Path(path))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
