"""The pages and files of an index, written whole beside its place and exchanged, one run at a time.

So a run that is killed at any moment loses nothing. Beside `site` lie, while a run works and after one was killed:

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from mps_build.common.errors import HostError, RefusedForSafety, UsageError, reason_of
from mps_build.common.files import NotAFile, check_writable, copy_whole, locked
from mps_build.common.wheels.wheel_file import BILL, MatchedSet, WheelFile, read_wheel

from . import pages
from .state import REASON, STATE, State, read_state

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


def write_site(
    site: Path,
    *,
    wheels: Sequence[WheelFile],
    sets: Sequence[MatchedSet],
    state: State,
    base_url: str | None,
) -> None:
    """Write the index to `site`, which the caller holds.

    Args:
        base_url: where the wheels lie; None puts them into the site itself.

    Raises:
        RefusedForSafety: a file changed since it was read; the site stays as it was.
        HostError: what was written is not read back; the site stays as it was.
    """
    fresh = next_place(site)
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        _fill(fresh, wheels, sets, state, base_url)
        if read_state(fresh) != state:
            raise HostError(
                f"{fresh / STATE} reads otherwise than it was written; {site} stays as it was",
                hint="check the disk, or what else writes there, then run the same command again",
            )
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    take_place(site)


def _fill(
    fresh: Path, wheels: Sequence[WheelFile], sets: Sequence[MatchedSet], state: State, base_url: str | None
) -> None:
    reasons = {file: state.reasons.get(file, REASON) for file in state.yanked}
    # The metadata is looked for at the wheel's own address: it goes where the wheels go.
    _write_files(fresh / "wheels", wheels, with_wheels=base_url is None)
    _write_simple(fresh / "simple", wheels, base=base_url or "../../wheels/", yanked=reasons)
    for each in sets:
        folder = fresh / "sets" / each.id
        _write_simple(folder / "simple", each.wheels, base=base_url or "../../../../wheels/", yanked=reasons)
        _write(folder / "constraints.txt", each.constraints())
        _write(folder / "requirements.txt", each.requirements())
        _write(folder / "dependencies.txt", each.dependencies())
    _write(fresh / "index.html", pages.front_page(sets, wheels, base=base_url or "wheels/", yanked=reasons))
    _write(fresh / STATE, state.text())  # last: a site that has it is whole


def _write_simple(folder: Path, wheels: Sequence[WheelFile], *, base: str, yanked: Mapping[str, str]) -> None:
    names = sorted({wheel.name for wheel in wheels})
    _write(folder / "index.html", pages.project_list(names))
    _write(folder / "index.json", pages.list_json(names))
    for name in names:
        own = [wheel for wheel in wheels if wheel.name == name]
        _write(folder / name / "index.html", pages.project_page(name, own, base=base, yanked=yanked))
        _write(folder / name / "index.json", pages.project_json(name, own, base=base, yanked=yanked))


def _write_files(folder: Path, wheels: Sequence[WheelFile], *, with_wheels: bool) -> None:
    folder.mkdir(parents=True)
    for wheel in wheels:
        _copy(wheel, folder)
        if not with_wheels:
            (folder / wheel.file).unlink()
        (folder / f"{wheel.file}.metadata").write_bytes(wheel.metadata)
        if wheel.bill is not None:
            (folder / f"{wheel.file}{BILL}").write_bytes(wheel.bill)


def _copy(wheel: WheelFile, folder: Path) -> None:
    """Copy a wheel with what lies beside it, and ask of the copies all that was queried before.

    A hard link would publish what is written into the wheelhouse later, and between the check and the copy another file
    can take a name; what is in `folder` nobody else writes to.

    Raises:
        RefusedForSafety: the copies are not what was checked.
    """
    try:
        for name in (wheel.file, *wheel.beside):
            copy_whole(wheel.path.with_name(name), folder / name, follow=False)
        copied = replace(read_wheel(folder / wheel.file, follow=False), path=wheel.path)
        why = f"it had sha256 {wheel.sha256}, the copy has {copied.sha256}"
    except (FileNotFoundError, NotAFile) as error:
        copied, why = None, f"{Path(error.filename).name}: {reason_of(error)}"
    except UsageError as error:
        copied, why = None, str(error)
    if copied != wheel:
        raise RefusedForSafety(
            f"nothing was published: {wheel.file} changed while it was copied: {why}",
            hint="find out what writes to the folder of the wheels, then run the same command again",
        )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
