"""Files written whole: beside their place first, then renamed, so that a reader never sees half of one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .faults import named
from .opening import check_target, open_regular

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
